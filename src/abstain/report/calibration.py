"""What a calibration learned, from how much, and how well it does on clusters not seen: a summary and a table.

The metrics are read from the calibration file, not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from abstain.calibrators import TrainedCalibration, VerbalizedCalibration
from abstain.report.console import WIDTH, format_table, format_warnings, heading, line
from abstain.report.tables import Column, Table
from abstain.report.views import source_line

if TYPE_CHECKING:
    from abstain.calibrators import Calibration
    from abstain.report.tables import Cell

_LABELS = {
    "nll_before": "NLL before",
    "nll_after": "NLL after",
    "ece_before": "ECE before",
    "ece_after": "ECE after",
    "auc_roc": "AUROC",
    "brier_score": "Brier score",
    "ece": "ECE (10 bins)",
    "nll": "NLL",
    "mae": "mean absolute error",
    "mse": "mean squared error",
}


def calibration_summary(calibration: Calibration, width: int = WIDTH) -> Group:
    """Return the summary of a calibration file."""
    source, validation = calibration.source, calibration.validation
    title, base_rate = "temperature of the stated confidence", ""
    if isinstance(calibration, TrainedCalibration):
        target, rate = calibration.target, calibration.training_metadata.positive_rate
        title = f"{calibration.method} calibrator of {target} on {', '.join(calibration.features)}"
        base_rate = "" if rate is None else f", mean {target} {rate:.3f}"
    clusters = "" if source.n_clusters is None else f" in {source.n_clusters} clusters"
    parts = [
        heading(f"{title}, learned from {_source(calibration)}"),
        line(f"{source.n_samples} answered items{clusters}{base_rate}"),
    ]
    if isinstance(calibration, VerbalizedCalibration):
        verdict = "overconfident" if calibration.temperature > 1.0 else "not overconfident"
        parts.append(line(f"temperature {calibration.temperature:.3f}: the stated confidence is {verdict}"))
    if validation is not None:
        table = calibration_table(calibration)
        rows = tuple(
            (_LABELS.get(str(name), name), *("undefined" if value is None else value for value in values))
            for name, *values in table.rows
        )
        advice = f"{validation.method}; report this column, because in-sample values are too good"
        how = line(f"Held out: {validation.reason or advice}.", dim=True)
        parts += [line(), format_table(Table("", table.columns, rows), width), how]
    warnings = format_warnings((notice.message for notice in calibration.warnings), width)
    return Group(*parts[:2], *warnings, *parts[2:])


def calibration_table(calibration: Calibration) -> Table:
    """Return the metrics of a calibration, in-sample and held out."""
    columns = (Column("metric"), Column("in_sample", "in-sample", digits=3), Column("held_out", digits=3))
    validation = calibration.validation
    rows: list[tuple[Cell, ...]] = []
    notes = [notice.message for notice in calibration.warnings]
    if validation is not None:
        held_out = validation.held_out or {}
        rows = [(name, value, held_out.get(name)) for name, value in validation.in_sample.items()]
        notes.insert(0, f"Held out: {validation.reason or validation.method}.")
    samples = calibration.source.n_samples
    title = f"Calibration learned from {samples} answered items of {_source(calibration)}"
    return Table(title, columns, tuple(rows), tuple(notes))


def _source(calibration: Calibration) -> str:
    return source_line({"path": calibration.source.path, "mode": calibration.source.mode})
