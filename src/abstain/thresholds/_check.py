"""Check a policy on data that it was not chosen on: risk and coverage with intervals, and whether the promise is kept.

The verdict is read off the interval of the risk: kept if all of it is at most the risk that was promised, broken if
all of it is above, else inconclusive. A threshold that is judged on the data it was chosen on flatters
itself, and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate
from abstain._confidences import load_calibrations
from abstain._text import few_lines
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.inference import INCONCLUSIVE, Estimate, Intervals, beyond
from abstain.inference.points import points_of
from abstain.losses import LOSS_NAMES
from abstain.metrics import Columns
from abstain.readers import items_of_argument
from abstain.thresholds._apply import drift_warnings
from abstain.thresholds._rows import cluster_noun, confidence_quantiles, one_confidence, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike, VariantConfidence
    from abstain.items import Items
    from abstain.losses import Loss
    from abstain.thresholds._policy import Policy
    from abstain.thresholds._rows import AnsweredRows

    Floats = NDArray[np.float64]

KEPT, BROKEN = "kept", "broken"
_EXIT_CODES = {KEPT: 0, BROKEN: 1, INCONCLUSIVE: 4}


@dataclass(frozen=True, eq=False, slots=True)
class GroupCheck:
    """What a policy does in one group: its name, the verdict, the risk and the coverage with their intervals."""

    group: str
    verdict: str
    risk: Estimate
    coverage: Estimate


@dataclass(frozen=True, eq=False, slots=True)
class PolicyCheck:
    """What a policy does on new data.

    Attributes:
        policy: the policy.
        verdict: "kept", "broken" or "inconclusive".
        risk: the risk that was promised to be small, with its interval.
        coverage: the share of items that are answered, with its interval.
        items: how many items were asked.
        answered: how many of them the policy answers.
        wrong: how many answers have a loss above 0.
        clusters: how many clusters there are.
        cluster_noun: what a cluster is called.
        reason: why the check is inconclusive, if that is not for its interval.
        warnings: what the reader must know.
        groups: the same for each group, where the promise is about groups; it is kept where it is in all of them, and
            broken where it is in any.
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
        from abstain.thresholds._words import check_lines  # noqa: PLC0415

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
    """Return what a policy does on new data, and whether its promise is kept.

    Args:
        policy: the policy.
        items: data that it was not chosen on, with truths: Items, a data frame or a path.
        confidence: the policy's confidence; another one is refused.
        calibration: the artifact that its confidence needs, or its path.
        loss: a loss of your own, where the policy was chosen by one; else the loss is the policy's.
        level: confidence level of the intervals.
        columns: how a data frame or a file is read: arguments of `abstain.read`, such as truth="y", cluster="patient".

    >>> from abstain import Items, choose_threshold
    >>> sure = [(200 - row) / 200 for row in range(200)]
    >>> items = Items.from_arrays([1] * 200, [1] * 150 + [0] * 50, confidence=sure)
    >>> new = Items.from_arrays([1] * 200, [1] * 180 + [0] * 20, confidence=sure)
    >>> print(check_policy(choose_threshold(items, risk=0.1), new))
    The promise that at most 10% of answers are wrong is kept.
    """
    _validate.level(level)
    if not policy.promises:
        raise ArgumentError("this policy promises nothing, and there is nothing to check; see its reason")
    if confidence not in (None, policy.confidence.name):
        raise ArgumentError(
            f"the policy is for the confidence {policy.confidence.name}, and its threshold says nothing of {confidence}"
        )
    items = items_of_argument(items, columns, check_policy)
    stated = stated_for(policy, items.judged, calibration)
    named = policy.loss.name if policy.loss.name in LOSS_NAMES else loss
    if named is None:
        raise ArgumentError(
            f"the policy was chosen by a loss of your own ({policy.loss.name}); pass it (loss=)"
        )
    rows, measured, _ = rows_of(items, stated, named, policy.loss.largest, policy.by)
    if measured.name != policy.loss.name:
        raise ArgumentError(
            f"the policy was chosen by the loss {policy.loss.name}, and this is {measured.name}"
        )
    _refuse_the_same(policy, items, rows)
    if not len(rows):
        raise DataError("there is no item to check on: none is answered or abstained")
    limits = policy.thresholds(rows.groups, len(rows))[rows.answered]
    answer = rows.confidence >= limits
    risk, coverage = _estimates(policy, rows, answer, level)
    weight = rows.mass[rows.answered]
    answered = float(weight[answer].sum())
    verdict, reason = _verdict(policy, risk, answered)
    groups = _groups(policy, rows, answer, level)
    if groups:
        told = {each.verdict for each in groups}
        verdict = BROKEN if BROKEN in told else KEPT if told == {KEPT} else INCONCLUSIVE
        reason = ""
    return PolicyCheck(
        policy=policy,
        verdict=verdict,
        risk=risk,
        coverage=coverage,
        items=round(float(rows.mass.sum())),
        answered=round(answered),
        wrong=round(float(weight[answer & (rows.loss > 0.0)].sum())),
        clusters=len(rows.names),
        cluster_noun=cluster_noun(items, rows),
        reason=reason,
        warnings=(
            *stated.warnings,
            *drift_warnings(policy, rows.confidence, answered / float(rows.mass.sum()), len(rows.names)),
        ),
        groups=groups,
    )


def stated_for(policy: Policy, items: Items, calibration: CalibrationLike) -> VariantConfidence:
    """Return the confidence of items that is the policy's, made as it was made there; refused where it is not."""
    name, wanted = policy.confidence.name, policy.confidence.calibration
    given = load_calibrations(calibration)
    if wanted is not None:
        if not given:
            raise ArgumentError(
                f"the policy's confidence {name} is made with a calibration artifact; pass it (--calibration, "
                "calibration=)"
            )
        if _files.sha256(given[0].to_json()) != wanted.sha256:
            raise ArgumentError(
                f"the calibration artifact is not the one that the policy's confidence {name} was made with"
            )
    elif given:
        raise ArgumentError(
            f"the policy's confidence {name} is made without a calibration artifact; leave it out"
        )
    return one_confidence(items, name, calibration)


def _refuse_the_same(policy: Policy, items: Items, rows: AnsweredRows) -> None:
    if _is_same_data(policy, items, rows):
        raise ArgumentError(
            "these are the data that the policy was chosen on, and it would flatter itself there; check it on others, "
            "or divide the data before choosing (--split, abstain.thresholds.split_by_cluster)"
        )


def _is_same_data(policy: Policy, items: Items, rows: AnsweredRows) -> bool:
    """Return whether the policy was chosen on these rows.

    Parts of one file are other data if they have other clusters or other confidences. The same answers of the same file
    stay the same data if they are read with another truth, another loss or another cluster column.
    """
    chosen_on = policy.data
    fingerprint, answers = rows.fingerprints()
    if chosen_on.fingerprint == fingerprint:
        return True
    if chosen_on.sha256 is None or chosen_on.sha256 != items.provenance.get("sha256"):
        return False
    if chosen_on.cluster_noun == cluster_noun(items, rows):
        return chosen_on.answers == answers
    # The names of other clusters cannot be compared: the confidences decide.
    same_count = chosen_on.answered == round(float(rows.mass[rows.answered].sum()))
    return same_count and policy.confidence.quantiles == confidence_quantiles(rows.confidence)


def _estimates(
    policy: Policy, rows: AnsweredRows, answer: NDArray[np.bool_], level: float
) -> tuple[Estimate, Estimate]:
    """The promised risk and the coverage, with jackknife intervals over clusters, at a threshold that is held fixed."""
    intervals = Intervals.of(rows.names, rows.cluster, rows.weight, level=level)
    answered = np.zeros(len(rows), np.bool_)
    answered[np.flatnonzero(rows.answered)[answer]] = True
    loss = np.full(len(rows), np.nan)
    loss[answered] = rows.loss[answer]
    columns = Columns.of(
        len(rows),
        answered=answered,
        loss=loss,
        confidence=np.where(answered, 1.0, np.nan),
        largest_loss=1.0,
        **({} if rows.weight is None else {"weight": rows.weight}),
    )
    if intervals.units > 1:
        columns = columns.in_units(intervals.unit_of_cluster[rows.cluster], intervals.units)
    about = {"level": level, "n": len(rows), "clusters": len(rows.names)}
    if not answered.any():
        nothing = Estimate(float("nan"), reason="nothing is answered", **about)  # type: ignore[arg-type]
        return nothing, Estimate(0.0, **about)  # type: ignore[arg-type]
    points = points_of(columns, np.array([1.0]), intervals)
    which = 0 if policy.promise == "selective" else 1
    risk, coverage = (
        Estimate(
            float(points.value[place, 0]),
            float(points.low[place, 0]),
            float(points.high[place, 0]),
            method="jackknife over clusters",
            **about,  # type: ignore[arg-type]
        )
        for place in (which, 2)
    )
    return risk, coverage


def _groups(
    policy: Policy, rows: AnsweredRows, answer: NDArray[np.bool_], level: float
) -> tuple[GroupCheck, ...]:
    """What the policy does in each group that it makes a promise about."""
    if rows.groups is None:
        return ()
    promised = [each.group for each in policy.groups if policy.worst or each.threshold is not None]
    found = []
    for name in promised:
        inside = rows.groups == name
        if not inside.any():
            continue
        own = answer[inside[rows.answered]]
        risk, coverage = _estimates(policy, rows.take(inside), own, level)
        found.append(GroupCheck(name, _verdict(policy, risk, float(own.sum()))[0], risk, coverage))
    return tuple(found)


def _verdict(policy: Policy, risk: Estimate, answered: float) -> tuple[str, str]:
    if not answered:
        return (
            INCONCLUSIVE,
            "nothing is answered, and a policy that answers nothing keeps and breaks no promise",
        )
    above = beyond(risk, policy.risk, upwards=True)
    if above is None:
        reason = "" if risk.interval is not None else "the interval rests on a single cluster"
        return INCONCLUSIVE, reason
    return (BROKEN if above else KEPT), ""
