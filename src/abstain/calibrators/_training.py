"""Training: from items to a calibration artifact, with metrics that were held out beside those that were not.

Only answered items teach. Held-out metrics come from cross-validation by cluster: the clusters are dealt into
folds, a fold's items are predicted by a calibrator that saw none of its clusters, and all predictions are
judged together. So nobody needs to report a metric that the calibrator was fitted to.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.calibrators._artifact import (
    TRAINED,
    Source,
    TrainedCalibration,
    TrainingSource,
    Validation,
    VerbalizedCalibration,
    VerbalizedMetrics,
)
from abstain.calibrators._estimators import (
    CALIBRATORS,
    TEMPERATURES,
    Calibrator,
    LinearCalibrator,
    TemperatureScalingCalibrator,
)
from abstain.calibrators._features import BINARY_TARGETS, TARGETS, extract_features, target_values
from abstain.calibrators._models import CLIP, TemperatureModel
from abstain.errors import ArgumentError, DataError, ResultWarning, SignalError
from abstain.metrics.calibration import brier_score, expected_calibration_error, negative_log_likelihood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from abstain.items import Items

    Floats = NDArray[np.float64]

__all__ = ["fit_verbalized", "train"]

# The bins of an artifact's ECE are part of the format: ten of equal width.
ARTIFACT_BINS = 10
FEW_CLUSTERS = 20
# What the artifact calls temperature_scaling is asked for as temperature elsewhere.
OTHER_WORDS = {"temperature": "temperature_scaling"}
_VERBALIZED = "verbalized_confidence"


def fit_verbalized(
    items: Items, *, folds: int = 5, seed: int = 42, created_at: datetime | None = None
) -> VerbalizedCalibration:
    """Fit the temperature of the confidence that a model states on a scale of 1 to 5.

    ``v = (verbalized_confidence - 1) / 4`` of answered items that have one; the target is correctness.

    Args:
        items: the items to learn from.
        folds: how many folds the clusters are dealt into for the held-out metrics.
        seed: how they are dealt.
        created_at: the time that the artifact bears; now when left out.
    """
    rows = _answered(items)
    signal = rows.signals.get(_VERBALIZED)
    if signal is None:
        raise SignalError(
            f"there is no signal {_VERBALIZED} to calibrate; ask the model for it, or use another signal"
        )
    rows = rows.take(~np.isnan(signal.values))
    if not len(rows):
        raise SignalError(
            f"the signal {_VERBALIZED} is null for every answered item; there is nothing to learn from"
        )
    stated = rows.signals[_VERBALIZED].values
    outside = (stated < 1.0) | (stated > 5.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise SignalError(
            f"{_VERBALIZED} must lie in 1 to 5, got {stated[row]:g} for {rows.describe_row(row)} "
            f"({int(outside.sum())} such items)"
        )
    before = ((stated - 1.0) / 4.0)[:, None]
    target = target_values(rows, "correctness")
    fitted = TemperatureScalingCalibrator().fit(before, target)
    held_out, reason, dealt = _cross_validated(
        TemperatureScalingCalibrator, before, target, rows, folds, seed
    )

    def measured(after: Floats) -> dict[str, float | None]:
        return _before_and_after(target, before[:, 0], after)

    model = fitted.model
    assert isinstance(model, TemperatureModel)
    in_sample = measured(fitted.predict(before))
    return VerbalizedCalibration(
        method="temperature_scaling",
        abstain_version=version("abstain"),
        created_at=_timestamp(created_at),
        temperature=model.temperature,
        fitted_on=Source(**_source(rows)),
        metrics=VerbalizedMetrics(**in_sample),
        validation=Validation(
            in_sample=in_sample,
            held_out=None if held_out is None else measured(held_out),
            method=dealt,
            reason=reason,
        ),
        warnings=(*_temperature_warnings(model), *_cluster_warnings(rows)),
    )


def train(
    items: Items,
    *,
    method: str,
    features: str | Iterable[str],
    target: str = "correctness",
    folds: int = 5,
    seed: int = 42,
    trained_at: datetime | None = None,
) -> TrainedCalibration:
    """Train a calibrator on signals of the answered items.

    Args:
        items: the items to learn from.
        method: one of `CALIBRATORS`, or "temperature" for temperature_scaling; "logistic" and "platt" become
            linear for the target "loss".
        features: names of signals, as a sequence or separated by commas.
        target: "correctness", "near_correct" or "loss".
        folds: how many folds the clusters are dealt into for the held-out metrics.
        seed: how they are dealt.
        trained_at: the time that the artifact bears; now when left out.
    """
    method = _validate.choice(OTHER_WORDS.get(method, method), "method", CALIBRATORS)
    _validate.choice(target, "target", TARGETS)
    names = [part.strip() for part in features.split(",")] if isinstance(features, str) else list(features)
    estimator = _estimator(method, target, len(names))
    rows = _answered(items)
    extracted = extract_features(rows, names)
    wanted = target_values(rows, target)
    if target in BINARY_TARGETS and len(np.unique(wanted)) < 2:
        raise DataError(
            f"{target} is {wanted[0]:g} for all {len(wanted)} answered items; a calibrator needs items of both outcomes"
        )
    try:
        fitted = estimator().fit(extracted.matrix, wanted)
    except DataError as problem:
        raise DataError(f"{', '.join(names)}: {problem}") from None
    held_out, reason, dealt = _cross_validated(estimator, extracted.matrix, wanted, rows, folds, seed)
    measured = _binary_metrics if target in BINARY_TARGETS else _loss_metrics
    in_sample = measured(wanted, fitted.predict(extracted.matrix))
    filled = extracted.filled_counts()
    source = TrainingSource(
        **_source(rows),
        # A loss is no event, and so has no rate at which it comes true.
        positive_rate=float(wanted.mean()) if target in BINARY_TARGETS else None,
        trained_at=_timestamp(trained_at),
    )
    form: Any = TRAINED[method]
    calibration: TrainedCalibration = form(
        method=method,
        abstain_version=version("abstain"),
        features=tuple(names),
        target=target,
        training_metadata=source,
        validation_metrics={name: value for name, value in in_sample.items() if name != "nll"},
        validation=Validation(
            in_sample=in_sample,
            held_out=None if held_out is None else measured(wanted, held_out),
            method=dealt,
            reason=reason,
        ),
        filled=filled,
        model=fitted.model,
        warnings=(
            *_filled_warnings(filled, len(rows)),
            *(_temperature_warnings(fitted.model) if isinstance(fitted.model, TemperatureModel) else ()),
            *_cluster_warnings(rows),
        ),
    )
    return calibration


def filled_message(filled: dict[str, int], rows: int) -> str:
    """Return the sentence that says how many nulls were filled in."""
    parts = ", ".join(f"{name} for {count} of {rows} items" for name, count in filled.items())
    return f"null features were filled in with defaults: {parts}"


def _estimator(method: str, target: str, features: int) -> Callable[[], Calibrator]:
    estimator: Any = CALIBRATORS[method]
    if estimator.one_feature and features != 1:
        raise ArgumentError(
            f"method {method} takes one feature, got {features}; use logistic to combine several"
        )
    if target == "loss" and method in ("logistic", "platt"):
        return LinearCalibrator
    if target == "loss" and estimator.binary_target:
        fitting = [name for name, known in CALIBRATORS.items() if not known.binary_target]
        raise ArgumentError(
            f"method {method} learns from a target of 0 or 1; for the target loss use {', '.join(fitting)}"
        )
    made: Callable[[], Calibrator] = estimator
    return made


def _answered(items: Items) -> Items:
    rows = items.take(items.answered)
    if not len(rows):
        raise DataError("no item is answered; a calibrator learns from answered items only")
    return rows


def _cross_validated(
    make: Callable[[], Calibrator], features: Floats, target: Floats, rows: Items, folds: int, seed: int
) -> tuple[Floats | None, str, str]:
    """Predict every row by a calibrator that saw none of its cluster; None and a reason where that cannot be done."""
    folds = _validate.whole(folds, "folds", least=2)
    clusters = len(rows.cluster_ids)
    parts = min(folds, clusters)
    dealt = f"{parts}-fold cross-validation by {rows.cluster_noun}"
    if clusters < 2:
        return None, f"one {rows.cluster_noun} alone cannot be held out", "none"
    fold = deal(rows.cluster_index, parts, seed)
    predicted = np.empty(len(rows))
    for part in range(parts):
        held = fold == part
        try:
            predicted[held] = make().fit(features[~held], target[~held]).predict(features[held])
        except DataError as problem:
            return None, f"without fold {part + 1} of {parts}, {problem}", dealt
    return predicted, "", dealt


def deal(cluster: NDArray[np.intp], folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of every row: clusters are shuffled and dealt like cards, and none is ever split."""
    order = np.random.default_rng(_validate.seed(seed)).permutation(int(cluster.max()) + 1)
    fold_of_cluster = np.empty(len(order), np.intp)
    fold_of_cluster[order] = np.arange(len(order)) % folds
    return fold_of_cluster[cluster]


def _before_and_after(target: Floats, before: Floats, after: Floats) -> dict[str, float | None]:
    return {
        "nll_before": negative_log_likelihood(target, before, clip=CLIP),
        "nll_after": negative_log_likelihood(target, after, clip=CLIP),
        "ece_before": expected_calibration_error(target, before, bins=ARTIFACT_BINS),
        "ece_after": expected_calibration_error(target, after, bins=ARTIFACT_BINS),
    }


def _binary_metrics(target: Floats, predicted: Floats) -> dict[str, float | None]:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    return {
        "auc_roc": float(roc_auc_score(target, predicted)),
        "brier_score": brier_score(target, predicted),
        "ece": expected_calibration_error(target, predicted, bins=ARTIFACT_BINS),
        "nll": negative_log_likelihood(target, predicted, clip=CLIP),
    }


def _loss_metrics(target: Floats, predicted: Floats) -> dict[str, float | None]:
    difference = predicted - target
    return {"mae": float(np.abs(difference).mean()), "mse": float((difference**2).mean())}


def _source(rows: Items) -> dict[str, Any]:
    known = {name: rows.provenance.get(name) for name in ("path", "run_id", "git_commit", "mode", "sha256")}
    return {**known, "n_samples": len(rows), "n_clusters": len(rows.cluster_ids)}


def _filled_warnings(filled: dict[str, int], rows: int) -> tuple[ResultWarning, ...]:
    return (ResultWarning(code="features_filled", message=filled_message(filled, rows)),) if filled else ()


def _temperature_warnings(model: TemperatureModel) -> tuple[ResultWarning, ...]:
    if model.temperature not in TEMPERATURES:
        return ()
    ends = f"{TEMPERATURES[0]:g} to {TEMPERATURES[1]:g}"
    message = f"the temperature is at the end of its range of {ends}: the data would have it go on"
    return (ResultWarning(code="temperature_at_bound", message=message),)


def _cluster_warnings(rows: Items) -> tuple[ResultWarning, ...]:
    clusters = len(rows.cluster_ids)
    if clusters >= FEW_CLUSTERS:
        return ()
    message = (
        f"the calibrator rests on {clusters} {rows.cluster_noun}s; held-out metrics of so few vary widely"
    )
    return (ResultWarning(code="few_clusters", message=message),)


def _timestamp(moment: datetime | None) -> str:
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")
