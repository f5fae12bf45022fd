"""The gate: conditions under which a run must not pass, each decided by its interval and not by its point.

With the interval of the measured value and a bound ``b``, "above b" holds if the whole interval lies above ``b`` and is
refuted if none of it does; "below b" likewise. A condition that holds fails the run, one that is refuted lets it pass,
and an interval that spans the bound is inconclusive. A change is right - left over the items that run and baseline
share: the difference that the verdict of `compare` comes from, held against the margin in place of 0. A run that
answered nothing never passes. Each condition is decided at the requested level.

A run must not pass because it declines more. A change of a matched metric is measured at matched coverage, where an
absolute margin shrinks with the coverage as the metric does. A condition that declining could satisfy, and that would
pass, is inconclusive if the answer rate is detectably below the baseline's, or if it is an absolute bound on a metric
that shrinks by declining, unless another condition bounds the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain import _validate
from abstain._text import few_lines
from abstain.errors import AggregationError, ArgumentError
from abstain.evaluation._differences import OWN_COVERAGES
from abstain.evaluation._evaluate import aggregate_or_load, compare, evaluate
from abstain.evaluation._gate_conditions import GateCondition, PolicyCondition, parse_condition
from abstain.evaluation._warnings import few_clusters
from abstain.inference import INCONCLUSIVE, against_margin, beyond, number_text, resamples_wanted
from abstain.metrics.registry import METRICS
from abstain.readers.engines import EngineTable
from abstain.thresholds import BROKEN, KEPT, format_percent, guarantee_clause

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from abstain._confidences import CalibrationLike
    from abstain._types import Progress
    from abstain.errors import ResultWarning
    from abstain.evaluation._evaluate import OnRead
    from abstain.evaluation._result import Result, SystemResult
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss, Loss
    from abstain.thresholds import Policy, PolicyCheck


EXIT_CODES = {"pass": 0, "fail": 1, INCONCLUSIVE: 4}
_BASELINE, _NEW = "baseline", "new"
_OPPOSITES = {"worse": "better", "better": "worse", "higher": "lower", "lower": "higher"}


@dataclass(frozen=True, eq=False, slots=True)
class GateCheck:
    """One condition and how it was judged.

    Attributes:
        condition: the condition.
        verdict: "pass", "fail" or "inconclusive".
        estimate: the measured value: the metric, or its change from the baseline in the direction of the condition.
        sentence: the verdict as a sentence.
        bound: the number that the value was held against: that of the condition, scaled to the matched coverage or
            turned from a percentage into a number.
        coverage: the matched coverage at which a change was measured; NaN otherwise.
    """

    condition: GateCondition | PolicyCondition
    verdict: str
    estimate: Estimate
    sentence: str
    bound: float = math.nan
    coverage: float = math.nan


@dataclass(frozen=True, eq=False, slots=True)
class GateResult:
    """The result of `gate`.

    Attributes:
        checks: every condition.
        inconclusive: what an inconclusive condition counts as: "pass", "fail", or "inconclusive" itself.
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
    inconclusive: str
    level: float
    loss: ItemLoss | None
    clusters: int
    compared: int
    cluster_noun: str
    confidence: str
    warnings: tuple[ResultWarning, ...]
    provenance: tuple[Mapping[str, object], ...]

    def counted(self, check: GateCheck) -> str:
        """Return what a check counts as: its verdict, or what inconclusive ones were set to count as."""
        return self.inconclusive if check.verdict == INCONCLUSIVE else check.verdict

    @property
    def verdict(self) -> str:
        """The verdict: "fail" if any condition fails, otherwise "inconclusive" if any is, otherwise "pass"."""
        counted = {self.counted(check) for check in self.checks}
        return next(verdict for verdict in ("fail", INCONCLUSIVE, "pass") if verdict in counted)

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 4 for inconclusive."""
        return EXIT_CODES[self.verdict]

    def __repr__(self) -> str:
        lines = [f"{check.verdict}: {check.sentence}" for check in self.checks]
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
    inconclusive: str = INCONCLUSIVE,
    match: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
    on_read: OnRead | None = None,
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
        inconclusive: what an inconclusive condition counts as: "pass", "fail" or "inconclusive".
        match: how items of run and baseline are matched: "names", or "rows" where the order of rows is the match.
        intersection_only: measure changes on the items that both runs have when some lack some.
        truth_may_differ: measure changes although the runs disagree about the truth of items.
        interval: how intervals are made: "jackknife", "percentile" or "bca".
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same verdict.
        level: confidence level of the intervals.
        progress: called with the number of resamples done since the last call.
        on_read: called with the items when data frames and files have been read.
        columns: of data frames and files, how they are read, as `abstain.evaluate` takes it: engine, memory, master and
            the arguments of `abstain.read`. A mapping with the keys "new" and "baseline" gives each run its own value.

    >>> from abstain import Items
    >>> run = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> gate(run, ["accuracy below 0.5", "accuracy below 0.75"])
    Gate: inconclusive
      pass: accuracy is 0.800 [0.615, 0.909], not below 0.5
      inconclusive: accuracy is 0.800 [0.615, 0.909], which spans 0.75
    """
    conditions = _conditions(fail_if, optional=policy is not None)
    _validate.choice(inconclusive, "inconclusive", EXIT_CODES)
    _validate.choice(interval, "interval", ("jackknife", "percentile", "bca"))
    changes = [condition for condition in conditions if condition.needs_baseline]
    levels = [condition for condition in conditions if not condition.needs_baseline]
    if changes and baseline is None:
        raise ArgumentError(
            f"condition {changes[0].text!r} is about a change; name the baseline (baseline=, --baseline)"
        )
    options: dict[str, Any] = {
        "confidence": confidence,
        "calibration": calibration,
        "selective": False,
        "loss": loss,
        "convention": convention,
        "interval": interval,
        # A verdict needs no bootstrap in addition to its interval.
        "resamples": resamples_wanted(resamples, interval),
        "seed": seed,
        "level": level,
        "progress": progress,
        "on_read": on_read,
    }
    matching = {
        "match": match,
        "intersection_only": intersection_only,
        "truth_may_differ": truth_may_differ,
    }
    guarded = any(condition.passes_by_declining for condition in conditions)
    compares = bool(changes) or (baseline is not None and guarded)
    sources = {_NEW: run} if baseline is None else {_NEW: run, _BASELINE: baseline}

    def evaluate_runs(
        systems: Mapping[str, Any],
    ) -> tuple[Any, Result | None, Result | None, PolicyCheck | None]:
        """Return the run, its own metrics, its comparison with the baseline and the check of its policy."""
        if len(systems) > len(sources):
            raise ArgumentError(
                "a gate judges one system, and a table here holds several; keep the rows of one of them"
            )
        runs = dict(zip(sources, systems.values(), strict=True))
        own = comparison = risk_type = None
        if policy is not None and isinstance(runs[_NEW], EngineTable):
            raise AggregationError(runs[_NEW].label, "a promise is judged row by row")
        if levels:
            own = evaluate({_NEW: runs[_NEW]}, metrics=[condition.metric for condition in levels], **options)
        if compares:
            metrics = [*(condition.metric for condition in changes), METRICS["answer_rate"]]
            pair = {_BASELINE: runs[_BASELINE], _NEW: runs[_NEW]}
            comparison = compare(pair, metrics=metrics, **options, **matching)
        if policy is not None:
            own_loss = None if loss is None or isinstance(loss, str) else loss
            risk_type = policy.check(runs[_NEW], calibration=calibration, loss=own_loss, level=level)
        return runs[_NEW], own, comparison, risk_type

    items, own, comparison, risk_type = aggregate_or_load(sources, evaluate_runs, on_read=on_read, **columns)
    results = [result for result in (own, comparison) if result is not None]
    evaluated: list[SystemResult] = [] if own is None else [own.only]
    if comparison is not None:
        evaluated += [comparison.systems[_NEW], comparison.systems[_BASELINE]]
    clusters = 0 if own is None else own.only.population.included
    compared = 0 if comparison is None or comparison.matching is None else comparison.matching.clusters
    warnings = [warning for result in results for warning in result.warnings]
    silent = bool(evaluated) and not evaluated[0].basis.source.counts.answered
    measured = [
        _change(condition, comparison) if condition.needs_baseline else _level(condition, own)
        for condition in conditions
    ]
    checks = [
        _guarded(_checked(condition, value, silent=silent), conditions, comparison)
        for condition, value in zip(conditions, measured, strict=True)
    ]
    noun = evaluated[0].cluster_noun if evaluated else items.cluster_noun
    if risk_type is not None:
        clusters = len(items.evaluated.cluster_ids)
        checks.append(_policy_gate_check(risk_type))
    fewest = min(filter(None, (clusters, compared)), default=0)
    warnings += few_clusters(fewest, noun, interval)
    warnings += [] if risk_type is None else risk_type.warnings
    return GateResult(
        checks=tuple(checks),
        inconclusive=inconclusive,
        level=level,
        loss=next((result.loss for result in results if result.loss is not None), None),
        clusters=clusters,
        compared=compared,
        cluster_noun=noun,
        confidence=_ranked_by(conditions, results) if policy is None else policy.confidence.name,
        warnings=tuple(dict.fromkeys(warnings)),
        provenance=tuple({system.name: system.provenance for system in evaluated}.values())
        or (items.provenance,),
    )


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


def _policy_gate_check(kept: PolicyCheck) -> GateCheck:
    """The check of a policy as a condition: its promise is broken, kept, or it cannot be told."""
    condition = PolicyCondition(
        f"the promise is broken that {guarantee_clause(kept.policy)}", kept.policy.risk
    )
    verdict = {BROKEN: "fail", KEPT: "pass"}.get(kept.verdict, INCONCLUSIVE)
    if not kept.answered:
        verdict = "fail"
    risk, ends = format_percent(kept.risk.value), kept.risk.interval
    risk_text = risk if ends is None else f"{risk} [{format_percent(ends[0])}, {format_percent(ends[1])}]"
    outcome = {"fail": "broken", "pass": "kept"}.get(verdict, INCONCLUSIVE)
    sentence = f"the promise that {guarantee_clause(kept.policy)} is {outcome}: its risk is {risk_text}"
    if not kept.answered:
        sentence = "nothing was answered, and a run that answers nothing never passes"
    return GateCheck(condition, verdict, kept.risk, sentence, condition.number)


def _conditions(
    fail_if: str | GateCondition | Iterable[str | GateCondition], *, optional: bool
) -> Sequence[GateCondition]:
    conditions = [fail_if] if isinstance(fail_if, (str, GateCondition)) else list(fail_if)
    if not conditions and not optional:
        raise ArgumentError("a gate needs at least one condition, such as 'augrc worse by 0.005'")
    return [each if isinstance(each, GateCondition) else parse_condition(each) for each in conditions]


class _Measured(NamedTuple):
    """The value that a condition is about, the bound that it is held against, and where the bound comes from."""

    estimate: Estimate
    bound: float
    bound_text: str
    coverage: float = math.nan


def _level(condition: GateCondition, result: Result | None) -> _Measured:
    """The metric itself, by the first confidence if it needs one."""
    assert result is not None
    table = result.only.metrics
    assert table is not None
    estimate = next(table[name] for name, key in table.keys_of.items() if key.metric == condition.metric.key)
    return _Measured(estimate, condition.number, f"{condition.number:g}")


def _change(condition: GateCondition, comparison: Result | None) -> _Measured:
    """The change from the baseline that the verdict of a comparison comes from, and the margin that it is held to."""
    assert comparison is not None
    chosen = comparison.difference(_BASELINE, _NEW, condition.metric.key)
    change = chosen.estimate if not condition.number else against_margin(chosen.estimate)
    if chosen.basis == OWN_COVERAGES:
        change = replace(change, reason=change.reason or chosen.no_verdict)
    if not condition.upwards:
        change = change.turned
    at_coverage = f"coverage {chosen.coverage:.2f}"
    bound, bound_text = condition.number, f"{condition.number:g}"
    if condition.relative:
        bound *= abs(chosen.left_value)
        bound_text = f"{100 * condition.number:g}% of the baseline's {number_text(chosen.left_value)}"
        bound_text += f" at {at_coverage}" if chosen.matched else ""
    elif (
        chosen.matched
        and condition.metric.coverage_power
        and bound
        and chosen.coverage < chosen.left_coverage
    ):
        # The margin refers to the baseline's coverage; a metric that ends earlier cannot differ as much.
        bound *= (chosen.coverage / chosen.left_coverage) ** condition.metric.coverage_power
        full = f"{condition.number:g} at the baseline's coverage {chosen.left_coverage:.2f}"
        bound_text = f"{bound:.2g} ({full}, scaled to {at_coverage})"
    return _Measured(change, bound, bound_text, chosen.coverage if chosen.matched else math.nan)


def _checked(condition: GateCondition, measured: _Measured, *, silent: bool) -> GateCheck:
    """Decide one condition by itself."""
    name, (estimate, bound, bound_text, coverage) = condition.metric.key, measured
    where = "" if math.isnan(coverage) else f" at coverage {coverage:.2f}"
    if silent:
        sentence = f"{name}: nothing was answered, and a run that answers nothing never passes"
        return GateCheck(condition, "fail", estimate, sentence, bound, coverage)
    if estimate.reason or estimate.interval is None or estimate.clusters < 2:
        reason = estimate.reason or "the interval rests on a single cluster"
        return GateCheck(condition, INCONCLUSIVE, estimate, f"{name}{where}: {reason}", bound, coverage)
    # A change was turned so that it grows with what the condition warns of.
    holds = beyond(estimate, bound, upwards=condition.upwards or condition.needs_baseline)
    verdict = INCONCLUSIVE if holds is None else "fail" if holds else "pass"
    is_what = str(estimate)
    if condition.needs_baseline:
        # A change in the other direction is shown in that direction, with a positive number.
        other = estimate.value < 0.0
        word = _OPPOSITES[condition.relation] if other else condition.relation
        is_what = f"{word} by {estimate.turned if other else estimate}"
    failed, passed = condition.relation, f"not {condition.relation}"
    if condition.needs_baseline:
        failed, passed = "beyond", "within"
    outcome = {"fail": failed, "pass": passed, INCONCLUSIVE: "which spans"}[verdict]
    sentence = f"{name}{where} is {is_what}, {outcome} {bound_text}"
    return GateCheck(condition, verdict, estimate, sentence, bound, coverage)


def _guarded(check: GateCheck, conditions: Sequence[GateCondition], comparison: Result | None) -> GateCheck:
    """Return a check that would pass as inconclusive if the run may pass only because it declines more."""
    condition = check.condition
    if (
        check.verdict != "pass"
        or not isinstance(condition, GateCondition)
        or not condition.passes_by_declining
        or any(other.bounds_coverage for other in conditions if other is not condition)
    ):
        return check
    reason = ""
    if comparison is not None:
        fewer = comparison.difference(_BASELINE, _NEW, "answer_rate")
        if beyond(fewer.estimate, 0.0, upwards=False):
            reason = f"the run answers fewer items than the baseline, by {fewer.estimate.turned}"
    if not reason and not condition.needs_baseline and condition.metric.shrinks_by_declining:
        reason = "a run that declines more items has a smaller value"
    if not reason:
        return check
    add = "cmax below 0.8" if comparison is None else "cmax lower by 0.05"
    sentence = f'{check.sentence}, but {reason}: add a condition on the coverage, such as --fail-if "{add}"'
    return replace(check, verdict=INCONCLUSIVE, sentence=sentence)
