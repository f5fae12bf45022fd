"""The terminal summary of a calibration: what was learned, from how much, and how well it does on clusters not seen.

Everything that came from a file is printed as plain text, never as markup. Figures are read off the artifact,
not computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from abstain.calibrators import TrainedCalibration, VerbalizedCalibration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from abstain.calibrators import Calibration

__all__ = ["calibration_summary"]

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


def calibration_summary(calibration: Calibration) -> Group:
    """Return the summary of an artifact."""
    source = calibration.source
    where = f"{source.path or 'items'}{f' ({source.mode})' if source.mode else ''}"
    clusters = "" if source.n_clusters is None else f" in {source.n_clusters} clusters"
    parts: list[RenderableType] = [
        Text(f"{_title(calibration)}, learned from {where}", style="bold"),
        Text(f"{source.n_samples} answered items{clusters}{_base_rate(calibration)}"),
        *_learned(calibration),
    ]
    validation = calibration.validation
    if validation is not None:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("figure")
        table.add_column("in-sample", justify="right")
        table.add_column("held out", justify="right")
        for name, value in validation.in_sample.items():
            held_out = None if validation.held_out is None else validation.held_out.get(name)
            table.add_row(_LABELS.get(name, name), _number(value), _number(held_out))
        how = (
            validation.reason or f"{validation.method}; report this column, the other flatters the calibrator"
        )
        parts += [Text(), table, Text(f"[held out: {how}]", style="dim")]
    if calibration.warnings:
        lines = [
            Padding(Text(f"! {notice.message}", style="yellow"), (0, 0, 0, 2))
            for notice in calibration.warnings
        ]
        parts += [Text(), Text("take care", style="bold"), *lines]
    return Group(*parts)


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
        return [Text(f"temperature {calibration.temperature:.3f}: what the model states is {verdict}")]
    return []


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
