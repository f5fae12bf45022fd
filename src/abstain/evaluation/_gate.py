"""The gate: conditions under which a run fails. Confidence intervals decide them, not point estimates.

The condition "above b" holds if the whole interval of the measured value lies above ``b``, and does not hold if none of
it does. "Below b" is decided in the same way. The run fails if a condition holds. The result is inconclusive if the
interval contains the bound. A change is run minus baseline over the items that both have: it is the difference that
the verdict of `compare` comes from, compared with the margin instead of 0. A run without answers never passes. Each
condition is decided at the requested level.

A run must not pass because it declines more. A change of a matched metric is measured at matched coverage. An absolute
margin is then scaled down with the coverage, like the metric. A condition that would pass, but that a run could satisfy
by declining, is inconclusive in two cases: the answer rate is detectably below the baseline's, or the condition is an
absolute bound on a metric that shrinks by declining. Another condition that bounds the coverage prevents this.
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
    from abstain.evaluation._result import Result
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss, Loss
    from abstain.thresholds import Policy, PolicyCheck


EXIT_CODES = {"pass": 0, "fail": 1, INCONCLUSIVE: 4}
_BASELINE, _NEW = "baseline", "new"
_OPPOSITES = {"worse": "better", "better": "worse", "higher": "lower", "lower": "higher"}
_WITHOUT_ANSWERS = "no item was answered, and a run without answers never passes"


@dataclass(frozen=True, eq=False, slots=True)
class GateCheck:
    """One condition and its verdict.

    Attributes:
        condition: the condition.
        verdict: "pass", "fail" or "inconclusive".
        estimate: the measured value: the metric, or its change from the baseline in the direction of the condition.
        sentence: the verdict as a sentence.
        bound: the number that the value was compared with: that of the condition, scaled to the matched coverage or
            converted from a percentage of the baseline's value.
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
        inconclusive: how an inconclusive condition counts: as "pass", "fail" or "inconclusive".
        level: confidence level of the intervals.
        loss: the loss of an answer, and why this loss; None if no condition needs one.
        clusters: number of clusters of the run, for conditions on its metrics and for its policy; 0 without these.
        compared: number of clusters that run and baseline have in common or, if they are unpaired, that the smaller of
            them has, for conditions on changes; 0 without these.
        unpaired: True if run and baseline are independent samples.
        cluster_noun: the noun for a cluster.
        confidence: the confidence that ranks the answers; empty if no condition needs it.
        warnings: warnings that apply to the result.
        provenance: the origin of the run, and of the baseline that it was compared with.
    """

    checks: tuple[GateCheck, ...]
    inconclusive: str
    level: float
    loss: ItemLoss | None
    clusters: int
    compared: int
    unpaired: bool
    cluster_noun: str
    confidence: str
    warnings: tuple[ResultWarning, ...]
    provenance: tuple[Mapping[str, object], ...]

    def counted(self, check: GateCheck) -> str:
        """Return how a check counts: its verdict, or the setting for inconclusive ones."""
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
    unpaired: bool = False,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
    on_read: OnRead | None = None,
    **columns: Any,
) -> GateResult:
    """Pass or fail a run by conditions on its metrics, or on their change from a baseline.

    Args:
        run: the items of the run, or a data frame, a path, or any other source of `abstain.evaluate`.
        fail_if: conditions such as "cmax below 0.6", "ece above 10%", "augrc worse by 0.005", "augrc worse by 5%" (of
            the baseline's value).
        policy: a policy of `abstain.choose_threshold`; the run fails if the risk guarantee is broken on it.
        baseline: the run that changes are measured from, on the same items unless `unpaired`.
        confidence: the confidence that ranks the answers. Default: the default of the source.
        calibration: the calibration file that a calibrated confidence needs, or its path.
        loss: "abs", "abs_norm", "zero_one", or a function of (truth, prediction). Default: the loss that the items
            imply.
        convention: how areas are integrated.
        inconclusive: how an inconclusive condition counts: as "pass", "fail" or "inconclusive".
        match: how items of run and baseline are matched: "names", or "rows" for the order of rows.
        intersection_only: measure changes only on the items that both runs have. Default: items that one run lacks are
            an error.
        truth_may_differ: measure changes even if the labels of the runs differ. Default: different labels are an error.
        unpaired: measure changes between independent samples, with different items. Nothing is matched.
        interval: the method of confidence intervals: "jackknife", "percentile" or "bca".
        resamples: number of bootstrap resamples. Default: 10,000 for a bootstrap interval, otherwise 0.
        seed: the seed of the resamples.
        level: confidence level of the intervals.
        progress: called with the number of resamples done since the last call.
        on_read: called with the items when data frames and files have been read.
        columns: for data frames and files, the arguments engine, memory and master of `abstain.evaluate`, and those of
            `abstain.read`. If the runs have different values, pass a mapping with the keys "new" and "baseline".

    >>> from abstain import Items
    >>> run = Items.from_arrays([1] * 30, [1] * 24 + [0] * 6, confidence=[0.9] * 30)
    >>> gate(run, ["accuracy below 0.5", "accuracy below 0.75"])
    Gate: inconclusive
      pass: accuracy is 0.800 [0.615, 0.915], not below 0.5
      inconclusive: accuracy is 0.800 [0.615, 0.915], which spans 0.75
    """
    conditions = _conditions(fail_if, optional=policy is not None)
    _validate.choice(inconclusive, "inconclusive", EXIT_CODES)
    _validate.choice(interval, "interval", ("jackknife", "percentile", "bca"))
    changes = [condition for condition in conditions if condition.needs_baseline]
    levels = [condition for condition in conditions if not condition.needs_baseline]
    if changes and baseline is None:
        raise ArgumentError(
            f"condition {changes[0].text!r} is about a change; pass the baseline (baseline=, --baseline)"
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
        "unpaired": unpaired,
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
                "a gate evaluates one system, but a table contains several; keep only the rows of one of them"
            )
        runs = dict(zip(sources, systems.values(), strict=True))
        own = comparison = policy_check = None
        if policy is not None and isinstance(runs[_NEW], EngineTable):
            raise AggregationError(runs[_NEW].label, "a policy is checked row by row")
        if levels:
            own = evaluate({_NEW: runs[_NEW]}, metrics=[condition.metric for condition in levels], **options)
        if compares:
            metrics = [*(condition.metric for condition in changes), METRICS["answer_rate"]]
            pair = {_BASELINE: runs[_BASELINE], _NEW: runs[_NEW]}
            comparison = compare(pair, metrics=metrics, **options, **matching)
        if policy is not None:
            own_loss = None if loss is None or isinstance(loss, str) else loss
            policy_check = policy.check(runs[_NEW], calibration=calibration, loss=own_loss, level=level)
        return runs[_NEW], own, comparison, policy_check

    items, own, comparison, policy_check = aggregate_or_load(
        sources, evaluate_runs, on_read=on_read, **columns
    )
    results = [result for result in (own, comparison) if result is not None]
    sides = [] if comparison is None else [comparison.systems[name] for name in (_NEW, _BASELINE)]
    evaluated = [*([] if own is None else [own.only]), *sides]
    compared = min((side.population.included for side in sides), default=0)
    clusters = 0 if own is None else own.only.population.included
    warnings = [warning for result in results for warning in result.warnings]
    without_answers = bool(evaluated) and not evaluated[0].basis.source.counts.answered
    measured = [
        _change(condition, comparison) if condition.needs_baseline else _level(condition, own)
        for condition in conditions
    ]
    checks = [
        _guarded(_checked(condition, value, without_answers=without_answers), conditions, comparison)
        for condition, value in zip(conditions, measured, strict=True)
    ]
    noun = evaluated[0].cluster_noun if evaluated else items.unit_noun
    if policy_check is not None:
        clusters = len(items.evaluated.cluster_ids)
        checks.append(_policy_gate_check(policy_check))
    fewest = min(filter(None, (clusters, compared)), default=0)
    warnings += few_clusters(fewest, noun, interval)
    warnings += [] if policy_check is None else policy_check.warnings
    return GateResult(
        checks=tuple(checks),
        inconclusive=inconclusive,
        level=level,
        loss=next((result.loss for result in results if result.loss is not None), None),
        clusters=clusters,
        compared=compared,
        unpaired=unpaired,
        cluster_noun=noun,
        confidence=_ranked_by(conditions, results) if policy is None else policy.confidence.name,
        warnings=tuple(dict.fromkeys(warnings)),
        provenance=tuple({system.name: system.provenance for system in evaluated}.values())
        or (items.provenance,),
    )


def _ranked_by(conditions: Sequence[GateCondition], results: Sequence[Result]) -> str:
    """Return the confidences behind the conditions; empty if no condition needs one."""
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


def _policy_gate_check(check: PolicyCheck) -> GateCheck:
    """Return the check of a policy as the check of a condition."""
    guarantee = f"the risk guarantee that {guarantee_clause(check.policy)}"
    condition = PolicyCondition(f"{guarantee} is broken", check.policy.risk)
    verdict = {BROKEN: "fail", KEPT: "pass"}.get(check.verdict, INCONCLUSIVE)
    if not check.answered:
        verdict = "fail"
    risk, ends = format_percent(check.risk.value), check.risk.interval
    risk_text = risk if ends is None else f"{risk} [{format_percent(ends[0])}, {format_percent(ends[1])}]"
    outcome = {"fail": "broken", "pass": "kept"}.get(verdict, INCONCLUSIVE)
    sentence = f"{guarantee} is {outcome}: its risk is {risk_text}"
    if not check.answered:
        sentence = _WITHOUT_ANSWERS
    return GateCheck(condition, verdict, check.risk, sentence, condition.number)


def _conditions(
    fail_if: str | GateCondition | Iterable[str | GateCondition], *, optional: bool
) -> Sequence[GateCondition]:
    conditions = [fail_if] if isinstance(fail_if, (str, GateCondition)) else list(fail_if)
    if not conditions and not optional:
        raise ArgumentError("a gate needs at least one condition, such as 'augrc worse by 0.005'")
    return [each if isinstance(each, GateCondition) else parse_condition(each) for each in conditions]


class _Measured(NamedTuple):
    """The value that a condition is about, the bound that it is compared with, and the origin of the bound in words."""

    estimate: Estimate
    bound: float
    bound_text: str
    coverage: float = math.nan


def _level(condition: GateCondition, result: Result | None) -> _Measured:
    """Return the metric itself, by the first confidence if it needs one."""
    assert result is not None
    table = result.only.metrics
    assert table is not None
    estimate = next(table[name] for name, key in table.keys_of.items() if key.metric == condition.metric.key)
    return _Measured(estimate, condition.number, f"{condition.number:g}")


def _change(condition: GateCondition, comparison: Result | None) -> _Measured:
    """Return the change from the baseline that the verdict of a comparison comes from, and the margin."""
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


def _checked(condition: GateCondition, measured: _Measured, *, without_answers: bool) -> GateCheck:
    """Decide one condition, independently of the others."""
    name, (estimate, bound, bound_text, coverage) = condition.metric.key, measured
    where = "" if math.isnan(coverage) else f" at coverage {coverage:.2f}"
    if without_answers:
        return GateCheck(condition, "fail", estimate, f"{name}: {_WITHOUT_ANSWERS}", bound, coverage)
    if estimate.reason or estimate.interval is None or estimate.clusters < 2:
        reason = estimate.reason or "there is only one cluster, so there is no confidence interval"
        return GateCheck(condition, INCONCLUSIVE, estimate, f"{name}{where}: {reason}", bound, coverage)
    # The sign of a change is such that the condition holds for large values.
    holds = beyond(estimate, bound, upwards=condition.upwards or condition.needs_baseline)
    verdict = INCONCLUSIVE if holds is None else "fail" if holds else "pass"
    value_text = str(estimate)
    if condition.needs_baseline:
        # A change in the other direction is shown in that direction, with a positive number.
        other = estimate.value < 0.0
        word = _OPPOSITES[condition.relation] if other else condition.relation
        value_text = f"{word} by {estimate.turned if other else estimate}"
    failed, passed = condition.relation, f"not {condition.relation}"
    if condition.needs_baseline:
        failed, passed = "beyond", "within"
    outcome = {"fail": failed, "pass": passed, INCONCLUSIVE: "which spans"}[verdict]
    sentence = f"{name}{where} is {value_text}, {outcome} {bound_text}"
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
