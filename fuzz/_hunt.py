"""A hunt: run the cases of a round, and make each failure as small as it gets.

Hypothesis draws the cases and shrinks them. It may shrink one defect into another; so the first defect of a batch is
its prey, everything else is passed over, and the smallest case that still shows the prey is kept. What was found is
passed over from then on.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.errors import Flaky

from fuzz._case import Case
from fuzz._oracles import judge
from fuzz._smaller import made_small

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

    from fuzz._workers import Worker

__all__ = ["CORPUS", "Finding", "Hunt", "replay"]

CORPUS = Path(__file__).parent / "corpus"
SHRINK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect: what is wrong, and the smallest case that shows it."""

    what: str
    case: Case

    def keep(self, folder: Path = CORPUS) -> Path:
        """Put the case into the corpus."""
        folder.mkdir(exist_ok=True)
        case = replace(self.case, why=self.what)
        words = "-".join(re.findall(r"[a-z]+", self.what.casefold())[:7])
        place = folder / f"{words}-{case.key}.json"
        place.write_text(case.to_json())
        return place


class _PreyError(Exception):
    """The case shows the defect that is being hunted."""


class _Over(BaseException):
    """The hunt is over: no time is left, or what was found is small enough."""


@dataclass
class Hunt:
    """Runs cases with one worker, and remembers what it found.

    Attributes:
        worker: who runs them.
        deadline: when to stop, on the clock of `time.monotonic`.
        shrink_seconds: how long a case may be made smaller.
        cases: how many commands were run.
        findings: what was found, each defect once.
        passed_over: what is known already, such as what a case of the corpus shows.
    """

    worker: Worker
    deadline: float = float("inf")
    shrink_seconds: float = SHRINK_SECONDS
    cases: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    passed_over: set[str] = field(default_factory=set)

    def batch(self, strategy: SearchStrategy[Case], seed: int, examples: int) -> Finding | None:
        """Run some cases; return the first new defect, made small, or None."""
        prey = _Prey(self)
        looked_at = hypothesis.given(strategy)(prey.look)
        settled = hypothesis.settings(
            max_examples=examples,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        with contextlib.suppress(_PreyError, _Over, Flaky):
            hypothesis.seed(seed)(settled(looked_at))()
        if prey.smallest is None:
            return None
        finding = Finding(prey.what, self._made_small(prey.what, prey.smallest))
        self.findings[prey.what] = finding
        return finding

    def _made_small(self, what: str, case: Case) -> Case:
        until = min(time.monotonic() + self.shrink_seconds, self.deadline)

        def shows(less: Case) -> bool:
            return time.monotonic() < until and what in self.violations(less)

        return made_small(case, shows)

    def violations(self, case: Case) -> list[str]:
        """What is wrong with what comes of a case and is not yet known."""
        self.cases += len(case.commands)
        found = [str(violation) for violation in judge(case, self.worker.run(case))]
        return [what for what in found if what not in self.findings and what not in self.passed_over]


@dataclass
class _Prey:
    """The defect that a batch is after."""

    hunt: Hunt
    what: str = ""
    smallest: Case | None = None
    until: float = float("inf")

    def look(self, case: Case) -> None:
        now = time.monotonic()
        if now > min(self.until, self.hunt.deadline):
            raise _Over
        found = self.hunt.violations(case)
        if found and not self.what:
            self.what, self.until = found[0], now + self.hunt.shrink_seconds
        if self.what in found:
            if self.smallest is None or case.size < self.smallest.size:
                self.smallest = case
            raise _PreyError


def replay(
    worker: Worker, first: int = 0, step: int = 1, folder: Path = CORPUS
) -> Iterator[tuple[Path, list[str]]]:
    """Run the cases of the corpus, or every so many; yield what is wrong with each."""
    for path in sorted(folder.glob("*.json"))[first::step]:
        case = Case.read(path)
        yield path, [str(violation) for violation in judge(case, worker.run(case))]
