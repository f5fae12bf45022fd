"""The confidences of an evaluation: their values, and the warnings about calibrated ones.

``verbalized_calibrated`` applies a temperature to the stated confidence. ``calibrated`` applies a trained calibrator of
several signals. ``calibrated:<name>`` applies a temperature or an isotonic calibrator to another confidence. This
module chooses the calibration file for each of them and applies it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from abstain.confidence import confidence_values, find_variant, is_calibrated, select, signals_needed
from abstain.errors import ArgumentError, DataError, ResultWarning, at, list_names

if TYPE_CHECKING:
    import os

    from abstain._types import Floats
    from abstain.calibrators import Calibration
    from abstain.items import Items

    Path = str | os.PathLike[str]
    CalibrationLike = Path | Calibration | Sequence[Path | Calibration] | None

_SCALAR_METHODS = ("temperature_scaling", "isotonic")
_VERBALIZED_SIGNALS = ("verbalized", "verbalized_confidence")
_CALIBRATION_NEEDED = {
    "calibrated": "a calibrator trained on features (made by abstain calibrate train)",
    "verbalized_calibrated": "a temperature_scaling calibration file (made by abstain calibrate verbalized)",
}


@dataclass(frozen=True, eq=False, slots=True)
class VariantConfidence:
    """One confidence per item, and the warnings that its metrics need.

    `items` depends on the confidence, because an engine aggregates a table again for each confidence.
    """

    name: str
    values: Floats
    warnings: tuple[ResultWarning, ...]
    items: Items


def load_calibrations(source: CalibrationLike) -> tuple[Calibration, ...]:
    """Return calibrations as objects; paths are read."""
    if source is None:
        return ()
    from abstain.calibrators import Calibration, read_calibration  # noqa: PLC0415  (few evaluations need it)

    calibrations = source if isinstance(source, Sequence) and not isinstance(source, str) else [source]
    return tuple(each if isinstance(each, Calibration) else read_calibration(each) for each in calibrations)


def variant_confidences(
    requested: str | Sequence[str], items: Items, calibrations: Sequence[Calibration]
) -> dict[str, VariantConfidence]:
    """Return the requested confidences by name. A calibration that none of them uses is an error."""
    names = select(requested, items, calibration=bool(calibrations))
    if calibrations and not any(is_calibrated(name) for name in names):
        raise ArgumentError(
            "a calibration file was passed, but no requested confidence uses it; request calibrated, "
            "verbalized_calibrated or calibrated:<name>"
        )
    return {
        name: _calibrated(items, name, calibrations) if is_calibrated(name) else _plain(items, name)
        for name in names
    }


def stated_confidence(items: Items, name: str) -> VariantConfidence:
    """Return a confidence that was not requested by name: an unchanged signal, NaN if an item has none."""
    if name in items.signals and find_variant(name) is None:
        rows = items.under((name,))
        return VariantConfidence(name, rows.signals[name].values, (), rows)
    return _plain(items, name)


def _plain(items: Items, name: str) -> VariantConfidence:
    rows = items.under(signals_needed(name) or ())
    return VariantConfidence(name, confidence_values(rows, name), (), rows)


def _calibrated(items: Items, name: str, calibrations: Sequence[Calibration]) -> VariantConfidence:
    """Return the values of a calibrated variant for every item."""
    from abstain.calibrators import extract_features, filled_message  # noqa: PLC0415

    calibration = _choose(name, calibrations)
    warnings = []
    base = "verbalized" if name == "verbalized_calibrated" else name.removeprefix("calibrated:")
    items = items.under(calibration.feature_names if name == "calibrated" else signals_needed(base) or ())
    if name == "calibrated":
        with at(f"confidence {name}", kind=DataError):
            features = extract_features(items, calibration.feature_names)
        predicted = calibration.calibrator.predict(features.matrix)
        filled = features.filled_counts(items.answered)
        if filled:
            message = filled_message(filled, items.counts.answered)
            warnings.append(ResultWarning("features_filled", message))
    else:
        with at(f"confidence {name}", kind=DataError):
            predicted = calibration.calibrator.predict(confidence_values(items, base))
        if not _learned_from(calibration, base):
            learned = list_names(calibration.feature_names) or "verbalized"
            message = (
                f"the calibrator was fitted on {learned}, not on {base}: its values need not be probabilities"
            )
            warnings.append(ResultWarning("calibrated_elsewhere", message))
    return VariantConfidence(name, predicted, (*_seen_before(items, calibration), *warnings), items)


def _choose(name: str, calibrations: Sequence[Calibration]) -> Calibration:
    """Return the only calibration that fits a confidence; if none fits, the error lists them all."""
    fitting = [each for each in calibrations if _serves(each, name)]
    if len(fitting) > 1 and name.startswith("calibrated:"):
        base = name.removeprefix("calibrated:")
        fitting = [each for each in fitting if _learned_from(each, base)] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ArgumentError(
            f"{len(fitting)} calibration files fit confidence {name!r}; pass only one of them"
        )
    needed = _CALIBRATION_NEEDED.get(
        name, "a temperature_scaling or isotonic calibration file of one feature"
    )
    described = "; ".join(_describe(each) for each in calibrations)
    raise ArgumentError(f"confidence {name!r} needs {needed}, but got {described}")


def _serves(calibration: Calibration, name: str) -> bool:
    if name == "calibrated":
        return bool(calibration.feature_names)
    if name == "verbalized_calibrated":
        return calibration.calibrator.method == "temperature_scaling"
    return calibration.calibrator.method in _SCALAR_METHODS


def _describe(calibration: Calibration) -> str:
    method = calibration.calibrator.method
    if not calibration.feature_names:
        return f"{method} of verbalized confidence, which verbalized_calibrated uses"
    return f"{method} on {list_names(calibration.feature_names)}"


def _learned_from(calibration: Calibration, base: str) -> bool:
    return base in (calibration.feature_names or _VERBALIZED_SIGNALS)


def _seen_before(items: Items, calibration: Calibration) -> tuple[ResultWarning, ...]:
    """Return a warning if the calibrator was fitted on the evaluated run."""
    source, evaluated = calibration.source, items.provenance
    same_file = source.sha256 is not None and source.sha256 == evaluated.get("sha256")
    same_run = source.run_id is not None and source.run_id == evaluated.get("run_id")
    if not (same_file or same_run):
        return ()
    run = f"run {source.run_id}" if source.run_id is not None else "run"
    if source.mode == evaluated.get("mode"):
        message = f"the calibrator was fitted on this {run}: its metrics are in-sample and too optimistic"
    else:
        message = (
            f"the calibrator was fitted on the same {run} in mode {source.mode}: it has seen these "
            f"{items.cluster_noun}s"
        )
    return (ResultWarning("calibrated_in_sample", message),)
