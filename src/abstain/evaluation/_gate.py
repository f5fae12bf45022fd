"""The gate: conditions under which a run must not pass, each judged by its interval and not by its point.

With the interval of what a condition measures, and its bound ``b``, "above b" holds where the whole interval
lies above ``b`` and is refuted where none of it does; "below b" likewise. A condition that holds fails the
run, one that is refuted lets it pass, and where the interval spans the bound nothing is decided. A change is
right - left over the items that run and baseline share: the difference that `compare` tells, against the
margin in place of 0. A run that answered nothing never passes. Each condition is judged at the level that was
asked for.

Conditions are sentences, read by hand so that a mistake is answered with a suggestion::

    METRIC above NUMBER                 the metric itself
    METRIC below NUMBER
    METRIC worse by NUMBER              the change from the baseline, in the metric's own direction
    METRIC better by NUMBER
    METRIC higher by NUMBER             the change from the baseline, whatever is better
    METRIC lower by NUMBER
    METRIC at matched coverage worse by NUMBER

METRIC is any name of the registry, with its parameter where it has one: ``aurc``, ``ece``,
``risk_at_coverage@0.8``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._brief import brief, few_lines
from abstain.errors import ArgumentError, CountingError
from abstain.evaluation._evaluate import compare, evaluate
from abstain.evaluation._warnings import few_clusters
from abstain.guarantees import BROKEN, KEPT, per_cent, promise_words
from abstain.inference import beyond, resamples_wanted
from abstain.items import Items
from abstain.metrics.registry import find_metric
from abstain.sources import Countable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abstain._confidences import CalibrationLike
    from abstain.errors import ResultWarning
    from abstain.evaluation._result import Result, SystemResult
    from abstain.guarantees import Policy, PolicyCheck
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss, Loss
    from abstain.metrics.registry import MetricSpecification

    Progress = Callable[[int], None]

__all__ = [
    "EXIT_CODES",
    "GateCheck",
    "GateCondition",
    "GateResult",
    "PolicyCondition",
    "gate",
    "parse_condition",
]

EXIT_CODES = {"pass": 0, "fail": 1, "undecided": 4}
_BASELINE, _NEW = "baseline", "new"


@dataclass(frozen=True, eq=False, slots=True)
class GateCheck:
    """One condition and how it was judged.

    Attributes:
        condition: the condition.
        verdict: "pass", "fail" or "undecided".
        estimate: what was measured: the metric, or its change from the baseline in the direction of the condition.
        words: the verdict as a sentence.
    """

    condition: GateCondition | PolicyCondition
    verdict: str
    estimate: Estimate
    words: str

    __repr__ = brief


@dataclass(frozen=True, eq=False, slots=True)
class GateResult:
    """The result of `gate`.

    Attributes:
        checks: every condition.
        undecided: what an undecided condition counts as: "pass", "fail", or "undecided" itself.
        level: confidence level of the intervals.
        loss: what a wrong answer costs, and why this loss; None where no condition needs one.
        clusters: how many clusters of the run conditions on its own metrics, and its policy, rest on; 0 without any.
        compared: how many clusters that run and baseline share conditions on changes rest on; 0 without any.
        cluster_noun: what a cluster is called.
        confidence: what ranks the answers; empty where no condition needs it.
        warnings: what the reader must know.
        provenance: where the run, and the baseline that it was compared with, came from.
    """

    checks: tuple[GateCheck, ...]
    undecided: str
    level: float
    loss: ItemLoss | None
    clusters: int
    compared: int
    cluster_noun: str
    confidence: str
    warnings: tuple[ResultWarning, ...]
    provenance: tuple[Mapping[str, object], ...]

    def counted(self, check: GateCheck) -> str:
        """Return what a check counts as, once undecided ones are counted as asked."""
        return self.undecided if check.verdict == "undecided" else check.verdict

    @property
    def verdict(self) -> str:
        """The verdict: "fail" if any condition fails, else "undecided" if any is, else "pass"."""
        counted = {self.counted(check) for check in self.checks}
        return next(verdict for verdict in ("fail", "undecided", "pass") if verdict in counted)

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 4 for undecided."""
        return EXIT_CODES[self.verdict]

    def __repr__(self) -> str:
        lines = [f"{check.verdict}: {check.words}" for check in self.checks]
        return few_lines(f"Gate: {self.verdict}", lines)


def gate(
    run: Any,
    fail_if: str | GateCondition | Iterable[str | GateCondition] = (),
    *,
    policy: Policy | None = None,
    baseline: Any = None,
    confidence: str | None = None,
    calibration: CalibrationLike = None,
    loss: Loss | None = None,
    convention: str = "trapezoid",
    undecided: str = "undecided",
    match: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
    **columns: Any,
) -> GateResult:
    """Judge a run against conditions that it must not meet, alone or against a baseline.

    Args:
        run: the items of the run, or a data frame, a path, or anything else that `abstain.evaluate` takes.
        fail_if: conditions such as "cmax below 0.6", "ece above 10%", "augrc worse by 0.005", "augrc worse by 5%" (of
            the baseline's).
        policy: what `abstain.choose_threshold` returned: fails where its promise is broken on this run.
        baseline: the run that changes are measured from, on the same items.
        confidence: what ranks the answers; the default when left out.
        calibration: the artifact that a calibrated confidence needs, or its path.
        loss: "abs", "abs_norm", "zero_one", or a function of (truth, prediction); else what the items imply.
        convention: how areas are integrated.
        undecided: what a condition counts as whose interval spans its bound: "pass", "fail" or "undecided".
        match: how items of run and baseline are matched: "names", or "rows" where the order of rows is the match.
        intersection_only: measure changes on the items that both runs have when some lack some.
        truth_may_differ: measure changes although the runs disagree about the truth of items.
        interval: how intervals are made: "jackknife", "percentile" or "bca".
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same verdict.
        level: confidence level of the intervals.
        progress: called with the number of resamples done since the last call.
        columns: of data frames and files, how they are read, as `abstain.evaluate` takes it: engine, memory, and the
            arguments of `abstain.read`.

    >>> from abstain import Items
    >>> run = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> gate(run, ["accuracy below 0.5", "accuracy below 0.75"])
    Gate: undecided
      pass: accuracy is 0.800 [0.615, 0.909], not below 0.5
      undecided: accuracy is 0.800 [0.615, 0.909], which spans 0.75
    """
    conditions = _conditions(fail_if, optional=policy is not None)
    _validate.choice(undecided, "undecided", EXIT_CODES)
    _validate.choice(interval, "interval", ("jackknife", "percentile", "bca"))
    changes = [condition for condition in conditions if condition.needs_baseline]
    levels = [condition for condition in conditions if not condition.needs_baseline]
    if changes and baseline is None:
        raise ArgumentError(
            f"condition {changes[0].text!r} is about a change; name the baseline (baseline=, --baseline)"
        )
    if policy is not None:
        _check_items(run)
    asked: dict[str, Any] = {
        "confidence": confidence,
        "calibration": calibration,
        "selective": False,
        "loss": loss,
        "convention": convention,
        "interval": interval,
        # A verdict needs no bootstrap beside its interval.
        "resamples": resamples_wanted(resamples, interval),
        "seed": seed,
        "level": level,
        "progress": progress,
        **columns,
    }
    found: dict[int, tuple[Estimate, str, float]] = {}
    results: list[Result] = []
    judged: list[SystemResult] = []
    clusters = compared = 0
    if levels:
        own = evaluate({_NEW: run}, metrics=[condition.metric for condition in levels], **asked)
        _check_one_system(own, (_NEW,))
        results.append(own)
        judged.append(own.only)
        clusters = own.only.population.included
        found |= {id(condition): (_level(condition, own), "", math.nan) for condition in levels}
    if changes:
        comparison = compare(
            {_BASELINE: baseline, _NEW: run},
            metrics=[condition.metric for condition in changes],
            match=match,
            intersection_only=intersection_only,
            truth_may_differ=truth_may_differ,
            **asked,
        )
        _check_one_system(comparison, (_BASELINE, _NEW))
        results.append(comparison)
        judged += [comparison.systems[_NEW], comparison.systems[_BASELINE]]
        compared = 0 if comparison.matching is None else comparison.matching.clusters
        found |= {id(condition): _change(condition, comparison) for condition in changes}
    warnings = [warning for result in results for warning in result.warnings]
    checks = [
        _judged(condition, *found[id(condition)], silent=not judged[0].basis.work.source.counts.answered)
        for condition in conditions
    ]
    noun = judged[0].cluster_noun if judged else run.cluster_noun
    if policy is not None:
        own_loss = None if loss is None or isinstance(loss, str) else loss
        kept = policy.check(run, calibration=calibration, loss=own_loss, level=level)
        clusters = len(run.judged.cluster_ids)
        checks.append(_promise_check(kept))
    fewest = min(filter(None, (clusters, compared)), default=0)
    warnings += few_clusters(fewest, noun, interval)
    warnings += [] if policy is None else kept.warnings
    return GateResult(
        checks=tuple(checks),
        undecided=undecided,
        level=level,
        loss=next((result.loss for result in results if result.loss is not None), None),
        clusters=clusters,
        compared=compared,
        cluster_noun=noun,
        confidence=_ranked_by(conditions, results) if policy is None else policy.confidence.name,
        warnings=tuple(dict.fromkeys(warnings)),
        provenance=tuple({system.name: system.provenance for system in judged}.values()) or (run.provenance,),
    )


def _check_one_system(result: Result, names: Sequence[str]) -> None:
    """Raise if a table held several systems."""
    if len(result.systems) > len(names):
        raise ArgumentError(
            "a gate judges one system, and a table here holds several; keep the rows of one of them"
        )


def _check_items(run: Any) -> None:
    """Raise unless a run can be held against a promise, which is judged row by row."""
    if isinstance(run, Countable):
        raise CountingError(
            f"{run.label}: a promise is judged row by row; load the table (engine, --engine: numpy)"
        )
    if not isinstance(run, Items):
        raise ArgumentError("a policy is held against Items; read them first (abstain.read)")


def _ranked_by(conditions: Sequence[GateCondition], results: Sequence[Result]) -> str:
    """The confidence that conditions rest on, where any does."""
    ranked = any(
        condition.metric.ranked or "confidence" in condition.metric.needs for condition in conditions
    )
    names = dict.fromkeys(
        name
        for result in results
        for system in result.systems.values()
        for name in system.confidences.values()
    )
    return ", ".join(names) if ranked else ""


def _promise_check(kept: PolicyCheck) -> GateCheck:
    """The check of a policy as a condition: its promise is broken, kept, or it cannot be told."""
    condition = PolicyCondition(f"the promise is broken that {promise_words(kept.policy)}", kept.policy.risk)
    verdict = {BROKEN: "fail", KEPT: "pass"}.get(kept.verdict, "undecided")
    if not kept.answered:
        verdict = "fail"
    risk, ends = per_cent(kept.risk.value), kept.risk.interval
    told = risk if ends is None else f"{risk} [{per_cent(ends[0])}, {per_cent(ends[1])}]"
    outcome = {"fail": "broken", "pass": "kept"}.get(verdict, "undecided")
    words = f"the promise that {promise_words(kept.policy)} is {outcome}: its risk is {told}"
    if not kept.answered:
        words = "nothing was answered, and a run that answers nothing never passes"
    return GateCheck(condition, verdict, kept.risk, words)


def _conditions(
    fail_if: str | GateCondition | Iterable[str | GateCondition], *, optional: bool
) -> Sequence[GateCondition]:
    several = [fail_if] if isinstance(fail_if, (str, GateCondition)) else list(fail_if)
    if not several and not optional:
        raise ArgumentError("a gate needs at least one condition, such as 'augrc worse by 0.005'")
    return [each if isinstance(each, GateCondition) else parse_condition(each) for each in several]


def _level(condition: GateCondition, result: Result) -> Estimate:
    """The metric itself, by the first confidence where it needs one."""
    table = result.only.metrics
    assert table is not None
    return next(table[name] for name, key in table.keys_of.items() if key.metric == condition.metric.key)


def _change(condition: GateCondition, comparison: Result) -> tuple[Estimate, str, float]:
    """The change from the baseline, the coverage that it is measured at where it is matched, and what it was before."""
    key = condition.metric.key
    whole = [each for each in comparison.differences if each.metric == key and not each.matched]
    matched = [each for each in comparison.differences if each.metric == key and each.matched]
    # Where both answer the same share, they are at matched coverage as they are.
    chosen = (matched or whole)[0] if condition.matched else whole[0]
    where = f" at coverage {chosen.coverage:.2f}" if chosen.matched else ""
    change = chosen.estimate
    if not condition.upwards:
        change = _turned(change)
    return change, where, chosen.left_value


def _turned(change: Estimate) -> Estimate:
    return replace(change, value=-change.value, low=-change.high, high=-change.low)


def _judged(
    condition: GateCondition, estimate: Estimate, where: str, before: float = math.nan, *, silent: bool
) -> GateCheck:
    name, bound = condition.metric.key, condition.number
    shown = f"{bound:g}"
    if condition.relative:
        bound *= abs(before)
        shown = f"{100 * condition.number:g}% of the baseline's {before:.3f}"
    if silent:
        words = f"{name}: nothing was answered, and a run that answers nothing never passes"
        return GateCheck(condition, "fail", estimate, words)
    if estimate.reason or estimate.interval is None or estimate.clusters < 2:
        reason = estimate.reason or "the interval rests on a single cluster"
        return GateCheck(condition, "undecided", estimate, f"{name}{where}: {reason}")
    # A change was turned so that it grows with what the condition warns of.
    holds = beyond(estimate, bound, upwards=condition.upwards or condition.needs_baseline)
    verdict = "undecided" if holds is None else "fail" if holds else "pass"
    is_what = str(estimate)
    if condition.needs_baseline:
        # Nothing is worse by less than nothing: such a change is told from its other side.
        other = estimate.value < 0.0
        word = _OPPOSITES[condition.relation] if other else condition.relation
        is_what = f"{word} by {_turned(estimate) if other else estimate}"
    outcome = {
        "fail": f"beyond {shown}" if condition.needs_baseline else f"{condition.relation} {shown}",
        "pass": f"within {shown}" if condition.needs_baseline else f"not {condition.relation} {shown}",
        "undecided": f"which spans {shown}",
    }[verdict]
    return GateCheck(condition, verdict, estimate, f"{name}{where} is {is_what}, {outcome}")


_LEVELS = ("above", "below")
_CHANGES = ("worse", "better", "higher", "lower")
_OPPOSITES = {"worse": "better", "better": "worse", "higher": "lower", "lower": "higher"}
_MATCHED = ("at", "matched", "coverage")
_MATCHED_METRICS = ("aurc", "augrc")
_SYMBOLS = {">": "above", ">=": "above", "<": "below", "<=": "below", "over": "above", "under": "below"}
_FORM = (
    "write METRIC above NUMBER, METRIC below NUMBER, or METRIC worse by NUMBER "
    "(also better by, higher by, lower by)"
)


@dataclass(frozen=True, eq=False, slots=True)
class GateCondition:
    """One condition, as it was understood.

    Attributes:
        text: the sentence.
        metric: what is measured.
        relation: "above", "below", "worse", "better", "higher" or "lower".
        number: the bound, or the margin of a change.
        matched: True where the change is measured at the coverage that both runs reach.
        relative: True where the margin is a share of the baseline's value.

    >>> condition = parse_condition("augrc worse by 0.005")
    >>> condition.metric.name, condition.relation, condition.number, condition.needs_baseline
    ('augrc', 'worse', 0.005, True)
    """

    text: str
    metric: MetricSpecification
    relation: str
    number: float
    matched: bool = False
    relative: bool = False

    @property
    def measured(self) -> str:
        """What is measured."""
        return self.metric.key

    @property
    def needs_baseline(self) -> bool:
        """True where the condition is about a change."""
        return self.relation in _CHANGES

    @property
    def upwards(self) -> bool:
        """True where the condition holds for what is large, else for what is small."""
        if self.relation in ("worse", "better"):
            return (self.relation == "better") == (self.metric.direction == "higher")
        return self.relation in ("above", "higher")

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PolicyCondition:
    """The condition that a policy's promise is broken.

    Attributes:
        text: the sentence.
        number: the risk that was promised.
        relation: always "above".
        measured: what is measured.
    """

    text: str
    number: float
    relation: str = "above"
    measured: str = "risk of the policy"

    def __str__(self) -> str:
        return self.text


def parse_condition(text: str) -> GateCondition:
    """Return the condition that a sentence says; an error says what could have been meant.

    >>> parse_condition("ece > 0.1")
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: condition 'ece > 0.1': unknown relation '>' (did you mean 'above'?); write ...
    """
    sentence = " ".join(str(text).split())
    words = sentence.split()
    if len(words) < 3:
        raise _wrong(sentence, f"too short; {_FORM}")
    metric = _metric(sentence, words[0])
    rest = [word.casefold() for word in words[1:]]
    matched = tuple(rest[:3]) == _MATCHED
    rest = rest[3:] if matched else rest
    if not rest or rest[0] not in (*_LEVELS, *_CHANGES):
        raise _wrong(sentence, _unknown_relation(rest[0] if rest else ""))
    relation, *rest = rest
    if relation in _CHANGES:
        if rest[:1] != ["by"]:
            raise _wrong(sentence, f"{relation!r} needs a margin: {words[0]} {relation} by NUMBER")
        rest = rest[1:]
    if len(rest) != 1:
        raise _wrong(sentence, f"one number must stand at its end; {_FORM}")
    number = _number(sentence, rest[0])
    _check(sentence, metric, relation, number, matched=matched)
    relative = relation in _CHANGES and rest[0].endswith("%")
    return GateCondition(sentence, metric, relation, number, matched, relative)


def _metric(sentence: str, name: str) -> MetricSpecification:
    try:
        return find_metric(name)
    except ArgumentError as problem:
        raise _wrong(sentence, str(problem)) from None


def _unknown_relation(word: str) -> str:
    nearest = _SYMBOLS.get(word)
    hint = f" (did you mean {nearest!r}?)" if nearest else _validate.suggestion(word, (*_LEVELS, *_CHANGES))
    return f"unknown relation {word!r}{hint}; {_FORM}"


def _number(sentence: str, word: str) -> float:
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        raise _wrong(sentence, f"{word!r} is not a number") from None
    if not math.isfinite(number):
        raise _wrong(sentence, f"{word!r} is not a finite number")
    return number / 100.0 if word.endswith("%") else number


def _check(
    sentence: str, metric: MetricSpecification, relation: str, number: float, *, matched: bool
) -> None:
    if relation in _CHANGES and number < 0.0:
        raise _wrong(sentence, f"a margin must not be negative, got {number:g}")
    if relation in ("worse", "better") and metric.direction == "neither":
        raise _wrong(
            sentence,
            f"{metric.key} has no better direction; write {metric.key} lower by {number:g} or "
            f"{metric.key} higher by {number:g}",
        )
    if matched and relation in _LEVELS:
        raise _wrong(sentence, "only a change from the baseline can be measured at matched coverage")
    if matched and metric.key not in _MATCHED_METRICS:
        raise _wrong(
            sentence, f"at matched coverage there are {' and '.join(_MATCHED_METRICS)}, not {metric.key}"
        )


def _wrong(sentence: str, what: str) -> ArgumentError:
    return ArgumentError(f"condition {sentence!r}: {what}")
