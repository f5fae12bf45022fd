"""Training: from items to a calibration, with in-sample and held-out metrics.

Only answered items are used. Held-out metrics come from cross-validation by cluster: the items of a fold are predicted
by a calibrator that was fitted without its clusters, and all predictions are evaluated together.

A feature is a signal. A null is replaced by a cautious default and counted. It is an error if an item does not have the
signal.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.calibrators._calibration_file import (
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
from abstain.calibrators._models import CLIP, TemperatureModel
from abstain.errors import ArgumentError, DataError, ResultWarning, SignalError, list_names
from abstain.items import CONFIDENCE_NAMES
from abstain.losses import item_loss
from abstain.metrics.calibration import brier_score, expected_calibration_error, negative_log_likelihood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from abstain._types import Floats
    from abstain.calibrators._calibration_file import Metrics
    from abstain.calibrators._models import Model
    from abstain.items import Items


TARGETS = ("correctness", "near_correct", "loss")
BINARY_TARGETS = ("correctness", "near_correct")
# The bins of the ECE in a calibration file are part of the format: ten of equal width.
FILE_BINS = 10
FEW_CLUSTERS = 20
# Other names of methods.
METHOD_ALIASES = {"temperature": "temperature_scaling"}
_VERBALIZED = "verbalized_confidence"
# The middle of the scale of verbalized confidence, 1 to 5.
_MIDDLE = 3.0


def fit_verbalized(
    items: Items, *, folds: int = 5, seed: int = 42, created_at: datetime | None = None
) -> VerbalizedCalibration:
    """Fit the temperature of a verbalized confidence on a scale of 1 to 5.

    ``v = (verbalized_confidence - 1) / 4`` of answered items that have one. The target is correctness.

    Args:
        items: the items to learn from.
        folds: number of folds of the cross-validation.
        seed: seed of the assignment of clusters to folds.
        created_at: the time in the calibration file. Default: now.
    """
    rows = _answered_items(items)
    signal = rows.signals.get(_VERBALIZED)
    if signal is None:
        raise SignalError(
            f"there is no signal {_VERBALIZED} to calibrate; record it in the run, or use another signal"
        )
    rows = rows.take(~np.isnan(signal.values))
    if not len(rows):
        raise SignalError(
            f"the signal {_VERBALIZED} is null for every answered item, so there is no data to learn from"
        )
    stated = rows.signals[_VERBALIZED].values
    outside = (stated < 1.0) | (stated > 5.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise SignalError(
            f"{_VERBALIZED} must be from 1 to 5, got {stated[row]:g} for {rows.describe_row(row)} "
            f"({int(outside.sum())} such items)"
        )
    before = ((stated - 1.0) / 4.0)[:, None]
    target = target_values(rows, "correctness")
    fitted = TemperatureScalingCalibrator().fit(before, target)
    compute_metrics = partial(_before_and_after, target, before[:, 0])
    validation = _cross_validate(fitted, before, target, rows, compute_metrics, folds, seed)
    model = fitted.model
    assert isinstance(model, TemperatureModel)
    return VerbalizedCalibration(
        method="temperature_scaling",
        abstain_version=version("abstain"),
        created_at=_timestamp(created_at),
        temperature=model.temperature,
        fitted_on=Source(**_source(rows)),
        metrics=VerbalizedMetrics(**validation.in_sample),
        validation=validation,
        warnings=_warnings(rows, model, {}),
    )


def train(
    items: Items,
    *,
    method: str,
    features: str | Iterable[str] | None = None,
    target: str = "correctness",
    folds: int = 5,
    seed: int = 42,
    trained_at: datetime | None = None,
) -> TrainedCalibration:
    """Train a calibrator on signals of the answered items.

    Args:
        items: the items to learn from.
        method: one of `CALIBRATORS`, or "temperature" for temperature_scaling. With the target "loss", "logistic" and
            "platt" are linear.
        features: names of signals, as a sequence or separated by commas. Default: the confidence, if a signal has
            one of its usual names.
        target: "correctness", "near_correct" or "loss".
        folds: number of folds of the cross-validation.
        seed: seed of the assignment of clusters to folds.
        trained_at: the time in the calibration file. Default: now.
    """
    method = _validate.choice(METHOD_ALIASES.get(method, method), "method", CALIBRATORS)
    _validate.choice(target, "target", TARGETS)
    names = _feature_names(features, items)
    estimator = _estimator(method, target, len(names))
    rows = _answered_items(items)
    extracted = extract_features(rows, names)
    targets = target_values(rows, target)
    if target in BINARY_TARGETS and len(np.unique(targets)) < 2:
        raise DataError(
            f"{target} is {targets[0]:g} for all {len(targets)} answered items; "
            "a calibrator needs items of both outcomes"
        )
    try:
        fitted = estimator().fit(extracted.matrix, targets)
    except DataError as problem:
        raise DataError(f"{list_names(names)}: {problem}") from None
    compute_metrics = partial(_binary_metrics if target in BINARY_TARGETS else _loss_metrics, targets)
    validation = _cross_validate(fitted, extracted.matrix, targets, rows, compute_metrics, folds, seed)
    filled = extracted.filled_counts()
    source = TrainingSource(
        **_source(rows),
        # A loss is not an event, so it has no positive rate.
        positive_rate=float(targets.mean()) if target in BINARY_TARGETS else None,
        trained_at=_timestamp(trained_at),
    )
    form: Any = TRAINED[method]
    calibration: TrainedCalibration = form(
        method=method,
        abstain_version=version("abstain"),
        features=tuple(names),
        target=target,
        training_metadata=source,
        validation_metrics={name: value for name, value in validation.in_sample.items() if name != "nll"},
        validation=validation,
        filled=filled,
        model=fitted.model,
        warnings=_warnings(rows, fitted.model, filled),
    )
    return calibration


def _feature_names(features: str | Iterable[str] | None, items: Items) -> list[str]:
    if isinstance(features, str):
        return [part.strip() for part in features.split(",")]
    if features is not None:
        return list(features)
    if items.usual_confidence is None:
        raise ArgumentError(
            "name the signals to learn from (--features, features=); signals here: "
            f"{list_names(sorted(items.signals)) or 'none'}"
        )
    return [items.usual_confidence]


def filled_message(filled: dict[str, int], rows: int) -> str:
    """Return the sentence about the number of nulls that were filled in."""
    parts = ", ".join(f"{name} for {count} of {rows} items" for name, count in filled.items())
    return f"null features were filled in with defaults: {parts}"


def _estimator(method: str, target: str, features: int) -> type[Calibrator]:
    estimator = CALIBRATORS[method]
    if estimator.one_feature and features != 1:
        raise ArgumentError(
            f"method {method} takes one feature, got {features}; use logistic to combine several"
        )
    if target == "loss" and method in ("logistic", "platt"):
        return LinearCalibrator
    if target == "loss" and estimator.binary_target:
        suitable = [name for name, calibrator in CALIBRATORS.items() if not calibrator.binary_target]
        raise ArgumentError(
            f"method {method} learns from a target of 0 or 1; for the target loss use {', '.join(suitable)}"
        )
    return estimator


def _answered_items(items: Items) -> Items:
    rows = items.take(items.answered)
    if not len(rows):
        raise DataError("no item is answered; a calibrator learns from answered items only")
    return rows


def _cross_validate(
    fitted: Calibrator,
    features: Floats,
    target: Floats,
    rows: Items,
    compute_metrics: Callable[[Floats], Metrics],
    folds: int,
    seed: int,
) -> Validation:
    """Return metrics of in-sample predictions and of predictions by calibrators fitted without the row's fold."""
    validation = partial(Validation, in_sample=compute_metrics(fitted.predict(features)))
    parts = min(_validate.whole(folds, "folds", least=2), len(rows.cluster_ids))
    if parts < 2:
        reason = f"there is only one {rows.cluster_noun}, which cannot be held out"
        return validation(held_out=None, method="none", reason=reason)
    method = f"{parts}-fold cross-validation by {rows.cluster_noun}"
    fold = assign_folds(rows.cluster_index, parts, seed)
    predicted = np.empty(len(rows))
    for part in range(parts):
        held_out = fold == part
        try:
            calibrator = type(fitted)().fit(features[~held_out], target[~held_out])
            predicted[held_out] = calibrator.predict(features[held_out])
        except DataError as problem:
            reason = f"without fold {part + 1} of {parts}, {problem}"
            return validation(held_out=None, method=method, reason=reason)
    return validation(held_out=compute_metrics(predicted), method=method)


def assign_folds(cluster: NDArray[np.intp], folds: int, seed: int) -> NDArray[np.intp]:
    """Return the fold of every row; clusters are assigned at random and never split."""
    order = np.random.default_rng(_validate.seed(seed)).permutation(int(cluster.max()) + 1)
    fold_of_cluster = np.empty(len(order), np.intp)
    fold_of_cluster[order] = np.arange(len(order)) % folds
    return fold_of_cluster[cluster]


def _before_and_after(target: Floats, before: Floats, after: Floats) -> Metrics:
    return {
        "nll_before": negative_log_likelihood(target, before, clip=CLIP),
        "nll_after": negative_log_likelihood(target, after, clip=CLIP),
        "ece_before": expected_calibration_error(target, before, bins=FILE_BINS),
        "ece_after": expected_calibration_error(target, after, bins=FILE_BINS),
    }


def _binary_metrics(target: Floats, predicted: Floats) -> Metrics:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    return {
        "auc_roc": float(roc_auc_score(target, predicted)),
        "brier_score": brier_score(target, predicted),
        "ece": expected_calibration_error(target, predicted, bins=FILE_BINS),
        "nll": negative_log_likelihood(target, predicted, clip=CLIP),
    }


def _loss_metrics(target: Floats, predicted: Floats) -> Metrics:
    difference = predicted - target
    return {"mae": float(np.abs(difference).mean()), "mse": float((difference**2).mean())}


def _source(rows: Items) -> dict[str, Any]:
    source = {name: rows.provenance.get(name) for name in ("path", "run_id", "git_commit", "mode", "sha256")}
    return {**source, "n_samples": len(rows), "n_clusters": len(rows.cluster_ids)}


def _warnings(rows: Items, model: Model, filled: dict[str, int]) -> tuple[ResultWarning, ...]:
    messages = {}
    if filled:
        messages["features_filled"] = filled_message(filled, len(rows))
    if isinstance(model, TemperatureModel) and model.temperature in TEMPERATURES:
        ends = f"{TEMPERATURES[0]:g} to {TEMPERATURES[1]:g}"
        messages["temperature_at_bound"] = (
            f"the temperature is at the end of its range of {ends}; the best temperature is outside this range"
        )
    clusters = len(rows.cluster_ids)
    if clusters < FEW_CLUSTERS:
        messages["few_clusters"] = (
            f"the calibrator was fitted on {clusters} {rows.cluster_noun}s; held-out metrics of so few are imprecise"
        )
    return tuple(ResultWarning(code, message) for code, message in messages.items())


def _timestamp(moment: datetime | None) -> str:
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, eq=False, slots=True)
class Features:
    """The features of items, one column each.

    Attributes:
        names: the signals, in the order of the columns.
        matrix: the values, (items, features).
        filled: True if a null was filled in, (items, features).
    """

    names: tuple[str, ...]
    matrix: Floats
    filled: NDArray[np.bool_]

    def __repr__(self) -> str:
        return f"Features({len(self.names)} features of {len(self.matrix)} items)"

    def filled_counts(self, rows: NDArray[np.bool_] | None = None) -> dict[str, int]:
        """Return the number of filled values of each feature among `rows`, without features that have none."""
        filled = self.filled if rows is None else self.filled[rows]
        counts = filled.sum(axis=0).tolist()
        return {name: count for name, count in zip(self.names, counts, strict=True) if count}


def extract_features(items: Items, names: Iterable[str]) -> Features:
    """Return signals as features; a null becomes 3 if the name contains "confidence", otherwise 0.

    A missing value in a confidence column of a table (a column with one of the usual names) is an error.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1, 0], [1, 1], signals={"verbalized_confidence": [5, None]})
    >>> features = extract_features(items, ["verbalized_confidence"])
    >>> features.matrix.tolist(), features.filled_counts()
    ([[5.0], [3.0]], {'verbalized_confidence': 1})
    """
    signal_names = tuple(names)
    if not signal_names or len(set(signal_names)) != len(signal_names):
        raise ArgumentError(
            "features must name at least one signal, without duplicates, "
            f"got {list_names(signal_names) or 'none'}"
        )
    columns, filled = [], []
    for name in signal_names:
        signal = items.signals.get(name)
        if signal is None:
            hint = _validate.suggestion(name, items.signals)
            raise SignalError(
                f"there is no signal {name!r} to use as a feature{hint}; signals here: "
                f"{list_names(sorted(items.signals)) or 'none'}"
            )
        if signal.absent.any():
            raise SignalError(f"feature {name} is missing for {items.where(signal.absent)}")
        # The scale of a confidence column is unknown, so there is no default.
        if name.casefold() in CONFIDENCE_NAMES:
            items.check_stated(name, signal.null & items.answered)
        filled.append(signal.null)
        columns.append(np.where(signal.null, null_default(name), signal.values))
    return Features(signal_names, np.stack(columns, axis=1), np.stack(filled, axis=1))


def null_default(name: str) -> float:
    """Return the replacement of a null: the middle of 1 to 5 for a verbalized confidence, otherwise 0."""
    return _MIDDLE if "confidence" in name and "similarity" not in name else 0.0


def target_values(items: Items, target: str) -> Floats:
    """Return the target of every answered item; NaN for others.

    ``correctness`` is 1 if the answer is right, ``near_correct`` is 1 if its error is at most 1, and ``loss`` is
    ``1 - |prediction - truth| / width`` of the declared scale.

    >>> from abstain import Items
    >>> target_values(Items.from_arrays([3, 0, 2], [1, 0, 1], scale=(0, 3)), "loss").round(4)
    array([0.3333, 1.    , 0.6667])
    """
    _validate.choice(target, "target", TARGETS)
    if target == "correctness":
        return 1.0 - item_loss(items, "zero_one").values
    if target == "near_correct":
        distance = item_loss(items, "abs").values
        return np.where(np.isnan(distance), np.nan, (distance <= 1.0).astype(np.float64))
    return 1.0 - item_loss(items, "abs_norm").values
