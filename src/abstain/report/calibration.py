"""What a calibration learned, from how much, and how well it does on clusters not seen: a summary and a table.

The metrics are read off the artifact, not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from abstain.calibrators import TrainedCalibration, VerbalizedCalibration
from abstain.report.console import WIDTH, format_table, format_warnings, heading, line
from abstain.report.tables import Column, Table
from abstain.report.views import source_line

if TYPE_CHECKING:
    from rich.text import Text

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
    """Return the summary of an artifact."""
    source = calibration.source
    clusters = "" if source.n_clusters is None else f" in {source.n_clusters} clusters"
    parts = [
        heading(f"{_title(calibration)}, learned from {_where(calibration)}"),
        line(f"{source.n_samples} answered items{clusters}{_base_rate(calibration)}"),
        *_learned(calibration),
    ]
    validation = calibration.validation
    if validation is not None:
        table = calibration_table(calibration)
        rows = tuple(
            (_LABELS.get(str(name), name), *("undefined" if value is None else value for value in values))
            for name, *values in table.rows
        )
        how = (
            validation.reason or f"{validation.method}; report this column, the other flatters the calibrator"
        )
        parts += [
            line(),
            format_table(Table("", table.columns, rows), width),
            line(f"[held out: {how}]", dim=True),
        ]
    return Group(*parts, *format_warnings((notice.message for notice in calibration.warnings), width))


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
    title = f"Calibration learned from {samples} answered items of {_where(calibration)}"
    return Table(title, columns, tuple(rows), tuple(notes))


def _where(calibration: Calibration) -> str:
    return source_line({"path": calibration.source.path, "mode": calibration.source.mode})


def _title(calibration: Calibration) -> str:
    if isinstance(calibration, TrainedCalibration):
        return f"{calibration.method} calibrator of {calibration.target} on {', '.join(calibration.features)}"
    return "temperature of the stated confidence"


def _base_rate(calibration: Calibration) -> str:
    if not isinstance(calibration, TrainedCalibration):
        return ""
    rate = calibration.training_metadata.positive_rate
    return "" if rate is None else f", mean {calibration.target} {rate:.3f}"


def _learned(calibration: Calibration) -> list[Text]:
    if isinstance(calibration, VerbalizedCalibration):
        verdict = "overconfident" if calibration.temperature > 1.0 else "not overconfident"
        return [line(f"temperature {calibration.temperature:.3f}: what the model states is {verdict}")]
    return []
