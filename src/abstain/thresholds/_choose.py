"""Choose a threshold whose risk is promised, or say why there is none.

The question has defaults that cannot mislead: items in clusters are tested over clusters, few clusters by a test that
holds for any number, and where nothing can be promised there is no threshold, never the one that merely looked good.
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from abstain import _files
from abstain._confidences import load_calibrations
from abstain.errors import DataError, ResultWarning
from abstain.readers import items_of_argument
from abstain.thresholds._evidence import SELECTIVE, shortest_between
from abstain.thresholds._policy import (
    GUARANTEES,
    CalibrationHash,
    Chosen,
    Policy,
    PolicyConfidence,
    PolicyData,
    PolicyLoss,
    Seen,
    known,
)
from abstain.thresholds._question import FEW_CLUSTERS, ThresholdRequest
from abstain.thresholds._rows import AnsweredRows, cluster_noun, confidence_quantiles, one_confidence, rows_of
from abstain.thresholds._trial import instead, reason_for_none, trial_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike, VariantConfidence
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss

    Floats = NDArray[np.float64]


def choose_threshold(
    items: Any,
    *,
    risk: float | str = 0.05,
    sure: float | str | None = 0.95,
    promise: str = SELECTIVE,
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
    """Return the policy that answers most and whose risk is promised; without a threshold where nothing can be.

    The promise "selective" is about the risk among answers, and "joint" about the risk per item asked, which deferring
    lowers by itself. When no `method` is named: items in clusters are tested by a t test over clusters, which is
    asymptotic; fewer than 20 clusters, or where `finite_sample` asks for it, by betting; items without clusters by the
    exact binomial test where the loss is 0 or 1, else by that of Hoeffding and Bentkus; and without `sure`, the joint
    risk is kept to on average (conformal risk control).

    Args:
        items: the data to choose on: Items, a data frame or a path, as for `abstain.evaluate`. A check needs others.
        risk: the largest risk that is acceptable, such as 0.05 or "5%", decided before looking.
        sure: how sure the promise shall be; None for one that holds on average.
        promise: "selective" or "joint".
        confidence: what ranks the answers; the default of the source when left out.
        calibration: the artifact that a calibrated confidence needs, or its path.
        loss: "zero_one", "abs_norm", "abs", a function of (truth, prediction), or one number per item.
        largest_loss: the largest value that a custom loss can have. Default for "abs": the width of the declared scale.
        method: "binomial", "cluster-t", "betting", "hoeffding-bentkus", "sgr" or "crc".
        finite_sample: take a test that holds for any number of clusters.
        search: "fixed-sequence", or "holm" to test all thresholds at once.
        start: the coverage at which the fixed sequence begins; 0.2 when left out.
        grid: thresholds that were decided on before looking; else they are read off the data.
        largest_cluster: the most items that a cluster can have, for betting; the most seen when left out.
        needless: the largest share of items that may be deferred although the answer was right.
        by: a metadata column: one threshold per group.
        worst: with `by`: one threshold that holds for every group.
        columns: how a data frame or a file is read: arguments of `abstain.read`, such as truth="y", cluster="patient".

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
    question = ThresholdRequest.checked(
        risk=risk,
        sure=sure,
        promise=promise,
        method=method,
        search=search,
        start=start,
        grid=grid,
        largest_cluster=largest_cluster,
        needless=needless,
        by=by,
        worst=worst,
    )
    items = items_of_argument(items, columns, choose_threshold)
    stated = one_confidence(items.judged, confidence, calibration)
    rows, measured, largest = rows_of(items, stated, loss, largest_loss, by)
    _check_rows(rows, items)
    question = question.settled(rows, items.cluster_noun, finite_sample=finite_sample)
    chosen, groups = _chosen(question, rows, items.cluster_noun)
    return _policy(question, items, rows, stated, measured, largest, chosen, groups, calibration)


def _check_rows(rows: AnsweredRows, items: Items) -> None:
    if not len(rows):
        raise DataError("there is no item to choose on: none is answered or abstained")
    if not len(rows.confidence):
        raise DataError("nothing was answered, so that there is no confidence to choose a threshold of")
    if len(rows.names) < 2:
        raise DataError(
            f"one {items.cluster_noun} alone says nothing about others; a promise needs items of several"
        )


def _chosen(question: ThresholdRequest, rows: AnsweredRows, noun: str) -> tuple[Chosen, tuple[Chosen, ...]]:
    """What is chosen for all rows, and for each group."""
    if question.by is None or rows.groups is None:
        return _choice(question, rows, noun), ()
    names = sorted(set(rows.groups.tolist()))
    if question.worst:
        chosen = _choice(question, rows, noun)
        parts = tuple(
            Chosen(group=name, seen=_seen_at(question, rows.take(rows.groups == name), chosen.threshold))
            for name in names
        )
        return chosen, parts
    parts = tuple(_group_choice(question, rows.take(rows.groups == name), noun, name) for name in names)
    return Chosen(reason=f"there is one threshold per {question.by}, see groups"), parts


def _group_choice(question: ThresholdRequest, rows: AnsweredRows, noun: str, name: str) -> Chosen:
    own = question
    if question.method == "cluster-t" and len(rows.names) < FEW_CLUSTERS:
        own = replace(question, method="betting")
    if not len(rows.confidence) or len(rows.names) < 2:
        return Chosen(group=name, reason=f"fewer than two {noun}s, or no answer")
    found = _choice(own, rows, noun)
    return Chosen(
        group=name,
        threshold=found.threshold,
        shown=found.shown,
        reason=found.reason,
        seen=found.seen,
        instead=found.instead,
    )


def _choice(question: ThresholdRequest, rows: AnsweredRows, noun: str) -> Chosen:
    trial = trial_of(question, rows)
    step, p_values = trial.step()
    shown = trial.everything or trial.evidence
    if step is None:
        return Chosen(reason=reason_for_none(trial, rows, noun), instead=instead(trial))
    threshold = float(shown.steps.threshold[step])
    below = rows.confidence[rows.confidence < threshold]
    here = rows.confidence[rows.confidence >= threshold]
    lowest = float(here.min()) if len(here) else threshold
    if question.method == "crc":  # which is about the confidences that were seen
        threshold = lowest
    parted = shortest_between(float(below.max(initial=-math.inf)), lowest)
    return Chosen(
        threshold=threshold,
        shown=threshold if question.grid is not None else parted,
        seen=_seen_at(question, rows, threshold, known(float(p_values[step]))),
    )


def _seen_at(
    question: ThresholdRequest, rows: AnsweredRows, threshold: float | None, p_value: float | None = None
) -> Seen | None:
    if threshold is None:
        return None
    mass = rows.mass
    total, weight = float(mass.sum()), mass[rows.answered]
    kept = rows.confidence >= threshold
    answered = float(weight[kept].sum())
    loss = float((weight * rows.loss)[kept].sum())
    over = answered if question.promise == SELECTIVE else total
    return Seen(
        items=round(total),
        answered=round(answered),
        coverage=answered / total,
        wrong=round(float(weight[kept & (rows.loss > 0.0)].sum())),
        risk=loss / over if over else None,
        p_value=p_value,
    )


def promised_thresholds(
    items: Items, values: Floats, loss: Floats, risks: Sequence[float], *, sure: float = 0.95
) -> dict[float, float]:
    """Return, for each risk by itself, the threshold that is promised by default; those without one are left out.

    Args:
        items: judged items.
        values: the confidence of each.
        loss: the loss of each, on [0, 1]; NaN where it is not answered.
        risks: which risks are asked for, each decided on before looking.
        sure: how sure each promise is.
    """
    answered = items.answered
    rows = AnsweredRows(
        answered, values[answered], loss[answered], items.cluster_index, items.cluster_ids, items.weight
    )
    if not len(rows.confidence) or len(rows.names) < 2:
        return {}
    asked = ThresholdRequest(risks[0], sure, SELECTIVE, "", "", None, None, None, None, None, False)
    question = asked.settled(rows, items.cluster_noun, finite_sample=False)
    trial = trial_of(question, rows)
    found = {}
    for risk in risks:
        step, _ = trial.at(risk).step()
        if step is not None:
            found[risk] = float(trial.evidence.steps.threshold[step])
    return found


def _policy(
    question: ThresholdRequest,
    items: Items,
    rows: AnsweredRows,
    stated: VariantConfidence,
    measured: ItemLoss,
    largest: float,
    chosen: Chosen,
    groups: tuple[Chosen, ...],
    calibration: CalibrationLike,
) -> Policy:
    weight = rows.mass[rows.answered]
    overall = float(weight @ rows.loss) / float(weight.sum())
    must = (
        max((overall - question.risk) / (1.0 - question.risk), 0.0) if question.promise == SELECTIVE else 0.0
    )
    calibrations = load_calibrations(calibration)
    fingerprint, answers = rows.fingerprints()
    return Policy(
        threshold=chosen.threshold,
        shown=chosen.shown,
        reason=chosen.reason,
        seen=chosen.seen,
        instead=chosen.instead,
        abstain_version=version("abstain"),
        promise=question.promise,  # type: ignore[arg-type]
        risk=question.risk,
        sure=question.sure,
        method=question.method,  # type: ignore[arg-type]
        search=question.search,  # type: ignore[arg-type]
        guarantee=GUARANTEES[question.method],  # type: ignore[arg-type]
        confidence=PolicyConfidence(
            name=_column_of(items, stated.name),
            calibration=CalibrationHash(
                method=calibrations[0].calibrator.method, sha256=_files.sha256(calibrations[0].to_json())
            )
            if calibrations
            else None,
            quantiles=confidence_quantiles(rows.confidence),
            clusters=len(rows.names),
            percent=_column_of(items, stated.name) in items.provenance.get("percent", ()),
        ),
        loss=PolicyLoss(
            name=measured.name, definition=measured.definition, rule=measured.rule, largest=largest
        ),
        data=PolicyData(
            path=_text(items.provenance.get("path")),
            sha256=_text(items.provenance.get("sha256")),
            fingerprint=fingerprint,
            answers=answers,
            items=round(float(rows.mass.sum())),
            answered=round(float(weight.sum())),
            clusters=len(rows.names),
            cluster_noun=cluster_noun(items, rows),
            largest_cluster=question.largest(rows),
            risk=overall,
        ),
        needless=question.needless,
        by=question.by,
        worst=question.worst,
        groups=groups,
        must_decline=must,
        assumptions=_assumptions(question, rows, items.cluster_noun),
        warnings=(*stated.warnings, *_warnings(question, items, rows)),
    )


def _column_of(items: Items, name: str) -> str:
    """The column that a confidence is, where it is one by another name."""
    columns = items.provenance.get("columns", {})
    return str(columns["confidence"]) if name == "confidence" and "confidence" in columns else name


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _assumptions(question: ThresholdRequest, rows: AnsweredRows, noun: str) -> tuple[str, ...]:
    units = f"{noun}s" if rows.clustered else "items"
    found = [
        f"the {units} to come are drawn like those that the threshold was chosen on, and independently of one another",
        "the risk, the sureness and the method were decided on before looking at these data, and tried once",
    ]
    if not rows.clustered:
        found.append(
            "no two items belong to the same patient, document or conversation: no clusters are known here"
        )
    if question.method == "cluster-t":
        found.append(f"there are many {units}: the test is asymptotic")
    if question.method in ("betting", "hoeffding-bentkus") and rows.clustered:
        found.append(f"no {noun} has more than {question.largest(rows):g} items")
    if question.method == "crc" and rows.clustered:
        found.append(f"the risk that is kept to is the mean over {units} of the risk within each")
    if question.needless is not None:
        found.append(
            "an item that the model itself declined has no answer, and counts as deferred for good reason"
        )
    return tuple(found)


def _warnings(question: ThresholdRequest, items: Items, rows: AnsweredRows) -> list[ResultWarning]:
    found = []
    if not rows.clustered and "cluster" in items.unnamed:
        message = (
            "every item is taken as independent of all others, because no cluster was named; where several belong to "
            "one patient or document the promise does not hold (--cluster, cluster=)"
        )
        found.append(ResultWarning("clusters_unnamed", message))
    elif question.method == "cluster-t" and len(rows.names) < 2 * FEW_CLUSTERS:
        message = (
            f"{len(rows.names)} {items.cluster_noun}s are few for a t test; betting holds for any number "
            "(--finite-sample, finite_sample=True)"
        )
        found.append(ResultWarning("few_clusters", message))
    if rows.constant_confidence:
        message = (
            f"the confidence of every answer is {rows.confidence[0]:g}; a constant confidence ranks nothing, so any "
            "threshold answers everything or nothing"
        )
        found.append(ResultWarning("constant_confidence", message))
    left = items.counts.failed + items.counts.unscored
    if left > 0.01 * max(items.counts.n, 1):
        message = f"{left:,} items failed or have no truth, and are not part of the promise"
        found.append(ResultWarning("left_out", message))
    return found
