"""Choose a threshold whose risk is guaranteed, or explain why there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec

from abstain import _files, _validate
from abstain._confidences import load_calibrations
from abstain.errors import DataError, ResultWarning
from abstain.readers import items_of_argument
from abstain.thresholds._answered_rows import (
    AnsweredRows,
    answered_rows,
    confidence_quantiles,
    one_confidence,
)
from abstain.thresholds._policy import (
    GUARANTEES,
    METHODS,
    SEARCHES,
    CalibrationHash,
    GroupThreshold,
    Observed,
    Policy,
    PolicyConfidence,
    PolicyData,
    PolicyLoss,
)
from abstain.thresholds._request import FEW_CLUSTERS, ThresholdRequest, descending_grid, rate
from abstain.thresholds._risk_table import CLUSTER_TESTS, JOINT, SELECTIVE, shortest_between
from abstain.thresholds._selection import Selection, find_alternative, reason_for_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._confidences import CalibrationLike
    from abstain._types import Floats
    from abstain.items import Items
    from abstain.losses import Loss

# With fewer effective clusters, a warning names their number. Unequal ones violated too many guarantees in simulations.
_WARNING_CLUSTERS = 40


def choose_threshold(
    items: Any,
    *,
    risk: float | str = 0.05,
    sure: float | str | None = 0.95,
    risk_type: str = SELECTIVE,
    confidence: str | None = None,
    calibration: CalibrationLike = None,
    loss: Loss | None = None,
    largest_loss: float | None = None,
    method: str | None = None,
    finite_sample: bool = False,
    search: str | None = None,
    start: float | None = None,
    grid: Sequence[float] | None = None,
    largest_cluster: int | None = None,
    needless: float | str | None = None,
    by: str | None = None,
    worst: bool = False,
    **columns: Any,
) -> Policy:
    """Return the policy that answers most and whose risk is guaranteed, or a policy without a threshold.

    The risk type "selective" limits the risk among answers. The risk type "joint" limits the risk per item asked, which
    is reduced by deferring. The default method depends on the data:

    - items in clusters: random weights of the clusters and of a pseudo-cluster, which is asymptotic
    - fewer than 12 clusters of equal size, or unequal ones that count like fewer, or `finite_sample`: Gaffke's test,
      whose pseudo-cluster has the largest possible size and is wholly wrong
    - items without clusters: the exact binomial test if the loss is 0 or 1, otherwise the Hoeffding-Bentkus test
    - ``sure=None``: conformal risk control, which limits the joint risk on average

    Args:
        items: the data to choose on: Items, a data frame or a path, as for `abstain.evaluate`. Check the policy on
            other data.
        risk: the largest acceptable risk, such as 0.05 or "5%", fixed before looking at the data.
        sure: the probability with which the guarantee holds; None for one that holds on average.
        risk_type: "selective" or "joint".
        confidence: the confidence that ranks the answers. Default: the default of the source.
        calibration: the calibration file that a calibrated confidence needs, or its path.
        loss: "zero_one", "abs_norm", "abs", a function of (truth, prediction), or one number per item.
        largest_loss: the largest value that a custom loss can have. Default for "abs": the width of the declared scale.
        method: "binomial", "pseudo-cluster", "gaffke", "hoeffding-bentkus", "sgr" or "crc".
        finite_sample: use a test that does not need many clusters (gaffke).
        search: "fixed-sequence", or "holm" to test all thresholds at once.
        start: the coverage at which the fixed sequence begins. Default: 0.2, or more if the risk requires it.
        grid: thresholds that were fixed before looking at the data. Default: read from the data.
        largest_cluster: the largest possible number of items per cluster, for gaffke. Default: the largest observed.
        needless: the largest proportion of items that may be deferred although the answer was right.
        by: a metadata column: one threshold per group.
        worst: with `by`: one threshold that holds for every group.
        columns: how to read a data frame or a file: arguments of `abstain.read`, such as truth="y", cluster="patient".

    >>> from abstain import Items
    >>> truth = [1] * 200
    >>> sure = [(200 - row) / 200 for row in range(200)]
    >>> items = Items.from_arrays(truth, [1] * 150 + [0] * 50, confidence=sure)
    >>> policy = choose_threshold(items, risk=0.1)
    >>> print(policy)
    To be 95% sure that at most 10% of answers are wrong, answer those with a confidence of at least 0.215: 79% of
    items, 158 of 200.
    >>> choose_threshold(items, risk=0.001).threshold is None
    True
    """
    if method is not None:
        _validate.choice(method, "method", METHODS)
    if search is not None:
        _validate.choice(search, "search", SEARCHES)
    if largest_cluster is not None:
        largest_cluster = _validate.whole(largest_cluster, "largest_cluster", least=1)
    request = ThresholdRequest(
        risk=rate(risk),
        sure=None if sure is None or method == "crc" else rate(sure, "sure"),
        risk_type=_validate.choice(risk_type, "risk_type", (SELECTIVE, JOINT)),
        method=method or "",
        search=search or "",
        start=None if start is None else _validate.coverage(start, "start"),
        grid=None if grid is None else descending_grid(grid),
        largest_cluster=largest_cluster,
        needless=None if needless is None else rate(needless, "needless"),
        by=by,
        worst=worst,
    )
    items = items_of_argument(items, columns, choose_threshold)
    ranking = one_confidence(items.evaluated, confidence, calibration)
    rows, item_loss, largest = answered_rows(items, ranking, loss, largest_loss, by)
    _check_rows(rows)
    request = request.with_method_for(rows, finite_sample=finite_sample)
    chosen, groups = _choose_for_all_and_by_group(request, rows)
    data = _describe_data(request, items, rows)
    must_decline = 0.0
    if request.risk_type == SELECTIVE and data.risk is not None:
        must_decline = max((data.risk - request.risk) / (1.0 - request.risk), 0.0)
    return Policy(
        threshold=chosen.threshold,
        shown_threshold=chosen.shown_threshold,
        reason=chosen.reason,
        observed=chosen.observed,
        alternative=chosen.alternative,
        abstain_version=version("abstain"),
        risk_type=request.risk_type,  # type: ignore[arg-type]
        risk=request.risk,
        sure=request.sure,
        method=request.method,  # type: ignore[arg-type]
        search=request.search,  # type: ignore[arg-type]
        guarantee=GUARANTEES[request.method],  # type: ignore[arg-type]
        confidence=_describe_confidence(items, rows, ranking.name, calibration),
        loss=PolicyLoss(
            name=item_loss.name, definition=item_loss.definition, rule=item_loss.rule, largest=largest
        ),
        data=data,
        needless=request.needless,
        by=request.by,
        worst=request.worst,
        groups=groups,
        must_decline=must_decline,
        assumptions=_assumptions(request, rows),
        warnings=(*ranking.warnings, *_warnings(request, items, rows)),
    )


def _check_rows(rows: AnsweredRows) -> None:
    if not len(rows):
        raise DataError("there is no item to choose a threshold on: no item is answered or abstained")
    if not rows.answered.any():
        raise DataError("no item was answered, so there is no confidence to choose a threshold from")
    if len(rows.names) < 2:
        raise DataError(f"there is only one {rows.cluster_noun}; a risk guarantee needs items of several")


def _choose_for_all_and_by_group(
    request: ThresholdRequest, rows: AnsweredRows
) -> tuple[GroupThreshold, tuple[GroupThreshold, ...]]:
    parts = rows.by_group()
    if request.by is not None and not request.worst:
        groups = [_choose_for_group(request, part, name) for name, part in parts.items()]
        return GroupThreshold(reason=f"there is one threshold per {request.by}, see groups"), tuple(groups)
    chosen = _choose(request, rows)
    threshold = chosen.threshold
    return chosen, tuple(
        GroupThreshold(group=name, observed=None if threshold is None else _observe(request, part, threshold))
        for name, part in parts.items()
    )


def _choose_for_group(request: ThresholdRequest, rows: AnsweredRows, name: str) -> GroupThreshold:
    if not rows.answered.any() or len(rows.names) < 2:
        return GroupThreshold(group=name, reason=f"fewer than two {rows.cluster_noun}s, or no answer")
    if request.method == "pseudo-cluster" and rows.effective_clusters < FEW_CLUSTERS:
        request = replace(request, method="gaffke")
    return msgspec.structs.replace(_choose(request, rows), group=name)


def _choose(request: ThresholdRequest, rows: AnsweredRows) -> GroupThreshold:
    selection = Selection.of_rows(request, rows)
    step, p_values = selection.select_step()
    if step is None:
        return GroupThreshold(
            reason=reason_for_none(selection, rows), alternative=find_alternative(selection)
        )
    threshold = float(selection.table.thresholds[step])
    is_answered = rows.confidence >= threshold
    lowest_answered = float(rows.confidence[is_answered].min()) if is_answered.any() else threshold
    highest_deferred = float(rows.confidence[rows.answered & ~is_answered].max(initial=-math.inf))
    if request.method == "crc":  # whose guarantee is about observed confidences
        threshold = lowest_answered
    p_value = float(p_values[step])
    return GroupThreshold(
        threshold=threshold,
        shown_threshold=threshold
        if request.grid is not None
        else shortest_between(highest_deferred, lowest_answered),
        observed=_observe(request, rows, threshold, p_value if math.isfinite(p_value) else None),
    )


def _observe(
    request: ThresholdRequest, rows: AnsweredRows, threshold: float, p_value: float | None = None
) -> Observed:
    is_answered = rows.confidence >= threshold
    counts, losses = rows.item_counts[is_answered], rows.loss[is_answered]
    total, answered = float(rows.item_counts.sum()), float(counts.sum())
    denominator = answered if request.risk_type == SELECTIVE else total
    return Observed(
        items=round(total),
        answered=round(answered),
        coverage=answered / total,
        wrong=round(float(counts[losses > 0.0].sum())),
        risk=float((counts * losses).sum()) / denominator if denominator else None,
        p_value=p_value,
    )


def _describe_confidence(
    items: Items, rows: AnsweredRows, name: str, calibration: CalibrationLike
) -> PolicyConfidence:
    columns = items.provenance.get("columns", {})
    if name == "confidence" and "confidence" in columns:
        name = str(columns["confidence"])
    calibration_hash = None
    if calibrations := load_calibrations(calibration):
        calibration_file = calibrations[0]
        calibration_hash = CalibrationHash(
            method=calibration_file.calibrator.method, sha256=_files.sha256(calibration_file.to_json())
        )
    return PolicyConfidence(
        name=name,
        calibration=calibration_hash,
        quantiles=confidence_quantiles(rows),
        clusters=len(rows.names),
        percent=name in items.provenance.get("percent", ()),
    )


def _describe_data(request: ThresholdRequest, items: Items, rows: AnsweredRows) -> PolicyData:
    path, sha256 = items.provenance.get("path"), items.provenance.get("sha256")
    fingerprint, answers = rows.fingerprints()
    counts = rows.item_counts[rows.answered]
    answered = float(counts.sum())
    return PolicyData(
        path=None if path is None else str(path),
        sha256=None if sha256 is None else str(sha256),
        fingerprint=fingerprint,
        answers=answers,
        items=round(float(rows.item_counts.sum())),
        answered=round(answered),
        clusters=len(rows.names),
        cluster_noun=rows.noun,
        largest_cluster=request.largest_cluster_of(rows),
        risk=float(counts @ rows.loss[rows.answered]) / answered,
    )


def guaranteed_thresholds(
    items: Items, values: Floats, loss: Floats, risks: Sequence[float], *, sure: float = 0.95
) -> dict[float, float]:
    """Return the threshold that the default method guarantees for each risk; risks without one are omitted.

    Every evaluated item has a confidence (`values`) and a loss in [0, 1], NaN if it is not answered. Each guarantee by
    itself holds with the probability `sure`.
    """
    rows = AnsweredRows.of_items(items, values, loss)
    if not rows.answered.any() or len(rows.names) < 2:
        return {}
    request = ThresholdRequest(risk=risks[0], sure=sure)
    request = request.with_method_for(rows, finite_sample=False)
    selection = Selection.of_rows(request, rows)
    thresholds = {}
    for risk in risks:
        step, _ = selection.with_risk(risk).select_step()
        if step is not None:
            thresholds[risk] = float(selection.table.thresholds[step])
    return thresholds


def _assumptions(request: ThresholdRequest, rows: AnsweredRows) -> tuple[str, ...]:
    units = f"{rows.noun}s"
    assumptions = [
        f"future {units} are independent and come from the same distribution as those that the threshold was chosen on",
        "the risk, its probability and the method were fixed before looking at these data, and used once",
    ]
    if not rows.clustered:
        assumptions.append(
            "no two items belong to the same patient, document or conversation, because no clusters were named"
        )
    if request.method == "pseudo-cluster":
        assumptions.append(
            f"there are many {units}, and no few of them have most of the errors: the test is asymptotic"
        )
    if request.method in ("gaffke", "hoeffding-bentkus") and rows.clustered:
        assumptions.append(f"no {rows.noun} has more than {request.largest_cluster_of(rows):g} items")
    if request.method == "crc" and rows.clustered:
        assumptions.append(f"the guaranteed risk is the mean over {units} of the risk within each")
    if request.needless is not None:
        assumptions.append(
            "an item that the model itself declined has no answer, and does not count as deferred needlessly"
        )
    return tuple(assumptions)


def _warnings(request: ThresholdRequest, items: Items, rows: AnsweredRows) -> list[ResultWarning]:
    warnings = []
    if not rows.clustered and "cluster" in items.unnamed:
        message = (
            "every item is treated as independent, because no cluster was named; if several items belong to one "
            "patient or document, the risk guarantee does not hold: name the cluster (--cluster, cluster=)"
        )
        warnings.append(ResultWarning("clusters_unnamed", message))
    elif request.method in CLUSTER_TESTS and (effective := rows.effective_clusters) < _WARNING_CLUSTERS:
        count = f"{len(rows.names)} {items.cluster_noun}s"
        if effective < 0.9 * len(rows.names):
            count += f" of unequal size count like {effective:.0f} of equal size, which"
        remedy = (
            "was used" if request.method == "gaffke" else "can be used (--finite-sample, finite_sample=True)"
        )
        message = f"{count} are few for an asymptotic test; Gaffke's test does not need many, and {remedy}"
        warnings.append(ResultWarning("few_clusters", message))
    if rows.constant_confidence:
        constant = rows.confidence[rows.answered][0]
        message = (
            f"every answer has the same confidence, {constant:g}, so any threshold answers all items or none"
        )
        warnings.append(ResultWarning("constant_confidence", message))
    not_evaluated = items.counts.failed + items.counts.unscored
    if not_evaluated > 0.01 * max(items.counts.n, 1):
        message = (
            f"{not_evaluated:,} items failed or have no label, and the risk guarantee does not include them"
        )
        warnings.append(ResultWarning("left_out", message))
    return warnings
