"""Calibrators: from a raw confidence, or several signals, to a probability of being right.

`train` and `fit_verbalized` learn from items and return a `Calibration`. Its `to_json` returns the content of a
calibration file, `read_calibration` reads such a file, and `calibrator` is the fitted estimator. The estimators also
work on plain arrays. Calibration files are JSON, never pickle. `abstain.evaluate` evaluates how a calibrated confidence
ranks items.
"""

from abstain.calibrators._calibration_file import (
    Calibration,
    TrainedCalibration,
    VerbalizedCalibration,
    calibration_schema,
    read_calibration,
)
from abstain.calibrators._estimators import (
    CALIBRATORS,
    BetaCalibrator,
    Calibrator,
    HistogramBinningCalibrator,
    IsotonicCalibrator,
    LinearCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    TemperatureScalingCalibrator,
    VennAbersCalibrator,
)
from abstain.calibrators._training import (
    TARGETS,
    Features,
    extract_features,
    filled_message,
    fit_verbalized,
    target_values,
    train,
)

__all__ = [
    "CALIBRATORS",
    "TARGETS",
    "BetaCalibrator",
    "Calibration",
    "Calibrator",
    "Features",
    "HistogramBinningCalibrator",
    "IsotonicCalibrator",
    "LinearCalibrator",
    "LogisticCalibrator",
    "PlattCalibrator",
    "TemperatureScalingCalibrator",
    "TrainedCalibration",
    "VennAbersCalibrator",
    "VerbalizedCalibration",
    "calibration_schema",
    "extract_features",
    "filled_message",
    "fit_verbalized",
    "read_calibration",
    "target_values",
    "train",
]
