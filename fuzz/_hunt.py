"""A hunt runs the cases of a round and shrinks each case that shows a defect.

Hypothesis draws the cases and shrinks them. While it shrinks a case, it may run into another defect. A batch therefore
targets the first defect that it finds, ignores all others, and keeps the smallest case that still shows the target.
Later batches ignore known defects.
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
from fuzz._oracles import find_violations
from fuzz._smaller import shrink_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import SearchStrategy

    from fuzz._workers import Worker

__all__ = ["CORPUS", "Finding", "Hunt", "replay"]

CORPUS = Path(__file__).parent / "corpus"
SHRINK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect: its description, and the smallest case that shows it."""

    what: str
    case: Case

    def keep(self, folder: Path = CORPUS) -> Path:
        """Save the case in the corpus."""
        folder.mkdir(exist_ok=True)
        case = replace(self.case, why=self.what)
        words = "-".join(re.findall(r"[a-z]+", self.what.casefold())[:7])
        path = folder / f"{words}-{case.key}.json"
        path.write_text(case.to_json())
        return path


class _TargetError(Exception):
    """The case shows the targeted defect."""


class _Over(BaseException):
    """There is no time left for the hunt or for shrinking."""


@dataclass
class Hunt:
    """Runs cases with one worker, and collects the defects.

    Attributes:
        worker: the worker that runs the cases.
        deadline: the time to stop, as in `time.monotonic`.
        shrink_seconds: the time limit for shrinking a case.
        shrink_commands: the largest number of commands for shrinking a case, which does not depend on the machine.
        cases: the number of commands so far.
        findings: the new defects.
        passed_over: known defects, such as those of the corpus, which are ignored.
    """

    worker: Worker
    deadline: float = float("inf")
    shrink_seconds: float = SHRINK_SECONDS
    shrink_commands: float = float("inf")
    cases: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    passed_over: set[str] = field(default_factory=set)

    def batch(self, strategy: SearchStrategy[Case], seed: int, examples: int) -> Finding | None:
        """Run some cases; return the first new defect with a small case, or None."""
        target = _Target(self)
        test = hypothesis.given(strategy)(target.check)
        settings = hypothesis.settings(
            max_examples=examples,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        with contextlib.suppress(_TargetError, _Over, Flaky):
            hypothesis.seed(seed)(settings(test))()
        if target.smallest is None:
            return None
        finding = Finding(target.what, self._shrink(target.what, target.smallest))
        self.findings[target.what] = finding
        return finding

    def _shrink(self, what: str, case: Case) -> Case:
        end = min(time.monotonic() + self.shrink_seconds, self.deadline)
        last = self.cases + self.shrink_commands

        def shows_defect(smaller: Case) -> bool:
            return time.monotonic() < end and self.cases < last and what in self.violations(smaller)

        return shrink_case(case, shows_defect)

    def violations(self, case: Case) -> list[str]:
        """Run a case and return the violations that are not yet known."""
        self.cases += len(case.commands)
        violations = [str(violation) for violation in find_violations(case, self.worker.run(case))]
        return [what for what in violations if what not in self.findings and what not in self.passed_over]


@dataclass
class _Target:
    """The defect that a batch targets."""

    hunt: Hunt
    what: str = ""
    smallest: Case | None = None
    end: float = float("inf")
    last: float = float("inf")

    def check(self, case: Case) -> None:
        now = time.monotonic()
        if now > min(self.end, self.hunt.deadline) or self.hunt.cases > self.last:
            raise _Over
        violations = self.hunt.violations(case)
        if violations and not self.what:
            self.what, self.end = violations[0], now + self.hunt.shrink_seconds
            self.last = self.hunt.cases + self.hunt.shrink_commands
        if self.what in violations:
            if self.smallest is None or case.size < self.smallest.size:
                self.smallest = case
            raise _TargetError


def replay(
    worker: Worker, first: int = 0, step: int = 1, folder: Path = CORPUS
) -> Iterator[tuple[Path, list[str]]]:
    """Run the cases of the corpus, or every `step`-th of them, and yield the violations of each."""
    for path in sorted(folder.glob("*.json"))[first::step]:
        case = Case.read(path)
        yield path, [str(violation) for violation in find_violations(case, worker.run(case))]
