"""Check a policy on data that it was not chosen on: risk and coverage with intervals, and a verdict.

The verdict follows from the confidence interval of the risk: kept if all of it is at most the risk limit, broken if all
of it is above, otherwise inconclusive. The data that the policy was chosen on are rejected, because the check would be
too optimistic on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._text import few_lines
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.inference import INCONCLUSIVE, Estimate, Intervals, beyond
from abstain.inference.points import points_of
from abstain.losses import LOSS_NAMES
from abstain.metrics import Columns
from abstain.readers import items_of_argument
from abstain.thresholds._answered_rows import answered_rows, confidence_quantiles, policy_confidence
from abstain.thresholds._drift import drift_warnings
from abstain.thresholds._sentences import check_lines

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain.items import Items
    from abstain.losses import Loss
    from abstain.thresholds._answered_rows import AnsweredRows
    from abstain.thresholds._policy import Policy

KEPT, BROKEN = "kept", "broken"
_EXIT_CODES = {KEPT: 0, BROKEN: 1, INCONCLUSIVE: 4}


@dataclass(frozen=True, eq=False, slots=True)
class GroupCheck:
    """The check of one group: its name, the verdict, and risk and coverage with intervals."""

    group: str
    verdict: str
    risk: Estimate
    coverage: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class PolicyCheck:
    """The check of a policy on new data.

    Attributes:
        policy: the policy.
        verdict: "kept", "broken" or "inconclusive".
        risk: the limited risk, with its interval.
        coverage: proportion of items that are answered, with its interval.
        items: number of items.
        answered: number of items that the policy answers.
        wrong: number of answers with a loss above 0.
        clusters: number of clusters.
        cluster_noun: the noun for a cluster.
        reason: why the check is inconclusive, if not because of the interval.
        warnings: warnings that apply to this check.
        groups: the check of each group, if the guarantee is about groups. The verdict is then "kept" if it is in all
            groups, and "broken" if it is in any.
    """

    policy: Policy
    verdict: str
    risk: Estimate
    coverage: Estimate
    items: int
    answered: int
    wrong: int
    clusters: int
    cluster_noun: str
    reason: str = ""
    warnings: tuple[ResultWarning, ...] = ()
    groups: tuple[GroupCheck, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 for kept, 1 for broken, 4 for inconclusive."""
        return _EXIT_CODES[self.verdict]

    @property
    def lines(self) -> list[str]:
        """The check in sentences; the first is the verdict."""
        return check_lines(self)

    def __str__(self) -> str:
        return self.lines[0]

    def __repr__(self) -> str:
        return few_lines("Check of a policy", self.lines)


def check_policy(
    policy: Policy,
    items: Any,
    *,
    confidence: str | None = None,
    calibration: CalibrationLike = None,
    loss: Loss | None = None,
    level: float = 0.95,
    **columns: Any,
) -> PolicyCheck:
    """Return risk and coverage of a policy on new data, and whether its guarantee holds.

    Args:
        policy: the policy.
        items: data that it was not chosen on, with labels: Items, a data frame or a path.
        confidence: the policy's confidence; any other is an error.
        calibration: the calibration file that its confidence needs, or its path.
        loss: the custom loss, if the policy was chosen with one. Default: the policy's loss.
        level: confidence level of the intervals.
        columns: how to read a data frame or a file: arguments of `abstain.read`, such as truth="y", cluster="patient".

    >>> from abstain import Items, choose_threshold
    >>> sure = [(200 - row) / 200 for row in range(200)]
    >>> items = Items.from_arrays([1] * 200, [1] * 150 + [0] * 50, confidence=sure)
    >>> new = Items.from_arrays([1] * 200, [1] * 180 + [0] * 20, confidence=sure)
    >>> print(check_policy(choose_threshold(items, risk=0.1), new))
    The risk guarantee that at most 10% of answers are wrong is kept.
    """
    _validate.level(level)
    if not policy.has_guarantee:
        raise ArgumentError("this policy has no risk guarantee to check; see its reason")
    if confidence not in (None, policy.confidence.name):
        raise ArgumentError(
            f"the policy is for the confidence {policy.confidence.name}; its threshold is not valid for {confidence}"
        )
    items = items_of_argument(items, columns, check_policy)
    ranking = policy_confidence(policy, items.evaluated, calibration)
    if policy.loss.name in LOSS_NAMES:
        loss = policy.loss.name
    if loss is None:
        raise ArgumentError(f"the policy was chosen with a custom loss ({policy.loss.name}); pass it (loss=)")
    rows, item_loss, _ = answered_rows(items, ranking, loss, policy.loss.largest, policy.by)
    if item_loss.name != policy.loss.name:
        raise ArgumentError(
            f"the policy was chosen with the loss {policy.loss.name}, but loss= is {item_loss.name}; pass the same one"
        )
    if _is_same_data(policy, items, rows):
        raise ArgumentError(
            "these are the data that the policy was chosen on, and a check on them would be too optimistic; use other "
            "data, or divide the data before choosing (--split, abstain.thresholds.split_by_cluster)"
        )
    if not len(rows):
        raise DataError("there is no item to check the policy on: no item is answered or abstained")
    answer = rows.confidence >= policy.thresholds(rows.groups, len(rows))
    risk, coverage = _estimate_risk_and_coverage(policy, rows, answer, level)
    counts = rows.item_counts
    total, answered = float(counts.sum()), float(counts[answer].sum())
    verdict, reason = _verdict(policy, risk, answered)
    groups = _check_groups(policy, rows, answer, level)
    if groups:
        verdicts = {group.verdict for group in groups}
        verdict = BROKEN if BROKEN in verdicts else KEPT if verdicts == {KEPT} else INCONCLUSIVE
        reason = ""
    return PolicyCheck(
        policy=policy,
        verdict=verdict,
        risk=risk,
        coverage=coverage,
        items=round(total),
        answered=round(answered),
        wrong=round(float(counts[answer & (rows.loss > 0.0)].sum())),
        clusters=len(rows.names),
        cluster_noun=rows.noun,
        reason=reason,
        warnings=(
            *ranking.warnings,
            *drift_warnings(policy, rows.confidence[rows.answered], answered / total, len(rows.names)),
        ),
        groups=groups,
    )


def _is_same_data(policy: Policy, items: Items, rows: AnsweredRows) -> bool:
    """Return whether the policy was chosen on these rows.

    Parts of one file are different data if clusters or confidences differ. The same answers in the same file are the
    same data even if they are read with another truth, loss or cluster column.
    """
    chosen_on = policy.data
    fingerprint, answers = rows.fingerprints()
    if chosen_on.fingerprint == fingerprint:
        return True
    if chosen_on.sha256 is None or chosen_on.sha256 != items.provenance.get("sha256"):
        return False
    if chosen_on.cluster_noun == rows.noun:
        return chosen_on.answers == answers
    # Names of different kinds of clusters cannot be compared, so compare the confidences.
    same_count = chosen_on.answered == round(float(rows.item_counts[rows.answered].sum()))
    return same_count and policy.confidence.quantiles == confidence_quantiles(rows)


def _estimate_risk_and_coverage(
    policy: Policy, rows: AnsweredRows, answer: NDArray[np.bool_], level: float
) -> tuple[Estimate, Estimate]:
    """Return the limited risk and the coverage at the fixed threshold, with jackknife intervals over clusters."""
    about: dict[str, Any] = {"level": level, "n": len(rows), "clusters": len(rows.names)}
    if not answer.any():
        return Estimate(float("nan"), reason="no item is answered", **about), Estimate(0.0, **about)
    columns = Columns.of(
        len(rows),
        answered=answer,
        loss=np.where(answer, rows.loss, np.nan),
        confidence=np.where(answer, 1.0, np.nan),
        largest_loss=1.0,
        **({} if rows.weight is None else {"weight": rows.weight}),
    )
    intervals = Intervals.of(rows.names, rows.cluster, rows.weight, level=level)
    if intervals.units > 1:
        columns = columns.in_units(intervals.unit_of_cluster[rows.cluster], intervals.units)
    points = points_of(columns, np.array([1.0]), intervals)
    risk_row, coverage_row = (0 if policy.risk_type == "selective" else 1), 2
    risk, coverage = (
        Estimate(
            float(points.value[row, 0]),
            float(points.low[row, 0]),
            float(points.high[row, 0]),
            method="jackknife over clusters",
            **about,
        )
        for row in (risk_row, coverage_row)
    )
    return risk, coverage


def _check_groups(
    policy: Policy, rows: AnsweredRows, answer: NDArray[np.bool_], level: float
) -> tuple[GroupCheck, ...]:
    """Check every group that the guarantee is about."""
    if rows.groups is None:
        return ()
    checks = []
    for group in policy.groups:
        inside = rows.groups == group.group
        if (group.threshold is None and not policy.worst) or not inside.any():
            continue
        risk, coverage = _estimate_risk_and_coverage(policy, rows.take(inside), answer[inside], level)
        verdict, _ = _verdict(policy, risk, float(answer[inside].sum()))
        checks.append(GroupCheck(group.group, verdict, risk, coverage))
    return tuple(checks)


def _verdict(policy: Policy, risk: Estimate, answered: float) -> tuple[str, str]:
    if not answered:
        return (
            INCONCLUSIVE,
            "no item is answered, so the guarantee is neither kept nor broken",
        )
    above = beyond(risk, policy.risk, upwards=True)
    if above is None:
        reason = (
            ""
            if risk.interval is not None
            else "there is only one cluster, so there is no confidence interval"
        )
        return INCONCLUSIVE, reason
    return (BROKEN if above else KEPT), ""
