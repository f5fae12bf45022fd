"""`abstain calibrate`: fit a calibrator to the answers of one input, and write it to a file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import files_of, load_one_system
from abstain.cli._publishing import Renderers, check_json_ending, check_outputs, choose_formats, publish
from abstain.errors import ArgumentError, at

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.calibrators import Calibration
    from abstain.items import Items

_MODE = "Experiment of a run file; required if it has several."
_METHOD = "temperature, logistic, platt, linear, isotonic, beta, histogram_binning or venn_abers."
_INPUT = "Run file, table or log with the training data. A pattern in quotes is one input."
_INPUT_OPTION = "The same as INPUT, as an option."
_FEATURES = "Signals or columns to learn from, separated by commas. Default: the confidence."
_CONFIDENCE = "Confidence to calibrate: a column or signal. Default: one with a usual name, such as prob."
_JSON = "Also print the calibration file as JSON, instead of the summary."
_QUIET = "Print only the path of the calibration file."
_FOLDS = "Number of cross-validation folds of whole clusters, for the held-out metrics."

VERBALIZED_EXAMPLES = """\b
Examples:
  abstain calibrate verbalized train.json --mode few_shot \\
      -o temperature.json
  abstain calibrate verbalized train.json -o temperature.json --folds 10
  abstain evaluate test.json --calibration temperature.json \\
      --confidence verbalized_calibrated
"""
TRAIN_EXAMPLES = """\b
Examples:
  abstain calibrate train train.json --mode few_shot --method logistic \\
      --features verbalized_confidence,retrieval_similarity_mean \\
      -o logistic.json
  abstain calibrate train train.json --method isotonic \\
      --features token_msp -o isotonic.json
  abstain calibrate train preds.csv --truth label --prediction pred \\
      --confidence prob --method isotonic -o isotonic.json
  abstain evaluate test.json --calibration isotonic.json \\
      --confidence calibrated
"""

Output = Annotated[Path, opt.output_to("Calibration file to write (JSON).")]


@dataclass(frozen=True)
class TrainingInput(opt.OptionGroup):
    """The training data."""

    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUT", help=_INPUT, show_default=False),
    ] = None
    further_inputs: Annotated[list[Path] | None, opt.named("--input", "FILE", _INPUT_OPTION)] = None
    mode: Annotated[str | None, opt.named("--mode", "MODE", _MODE)] = None

    @property
    def path(self) -> Path:
        """The one input, as an argument or as an option."""
        paths = [*(self.inputs or []), *(self.further_inputs or [])]
        if len(paths) != 1:
            raise ArgumentError(
                f"pass one input to learn from, got {len(paths)}; see abstain calibrate --help"
            )
        return paths[0]


@dataclass(frozen=True)
class CheckOptions(opt.OptionGroup):
    """Cross-validation and printed output."""

    folds: Annotated[int, typer.Option(metavar="N", help=_FOLDS)] = 5
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the folds.")] = 42
    as_json: Annotated[bool, typer.Option("--json", help=_JSON)] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help=_QUIET)] = False
    table_format: opt.SummaryFormat = None


@opt.expand_option_groups
def verbalized_command(
    *, output: Output, training: TrainingInput, checking: CheckOptions, reading: opt.ReadOptions
) -> None:
    """Fit a temperature for a verbalized confidence of 1 to 5."""
    from abstain.calibrators import fit_verbalized  # noqa: PLC0415

    fit = partial(fit_verbalized, folds=checking.folds, seed=checking.seed)
    _calibrate(fit, training, "verbalized_confidence", reading, output, checking)


@opt.expand_option_groups
def train_command(
    *,
    output: Output,
    method: Annotated[str, opt.named("--method", "NAME", _METHOD)],
    features: Annotated[str | None, opt.named("--features", "NAMES", _FEATURES)] = None,
    confidence: Annotated[str | None, opt.named("--confidence", "NAME", _CONFIDENCE)] = None,
    training: TrainingInput,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="Target to predict: correctness, near_correct or loss.")
    ] = "correctness",
    checking: CheckOptions,
    reading: opt.ReadOptions,
) -> None:
    """Train a calibrator on signals of the answered items."""
    if features is not None and confidence is not None:
        raise ArgumentError(
            "--confidence and --features exclude each other: both name the features; pass one of them"
        )
    from abstain.calibrators import train  # noqa: PLC0415

    names = features or confidence
    folds, seed = checking.folds, checking.seed
    fit = partial(train, method=method, features=names, target=target, folds=folds, seed=seed)
    _calibrate(fit, training, names, reading, output, checking)


def _calibrate(
    fit: Callable[[Items], Calibration],
    training: TrainingInput,
    signals: str | None,
    reading: opt.ReadOptions,
    output: Path,
    checking: CheckOptions,
) -> None:
    from abstain.report.calibration import calibration_summary, calibration_table  # noqa: PLC0415

    formats = choose_formats(checking.table_format, None, as_json=checking.as_json, quiet=checking.quiet)
    check_json_ending(output, "a calibration")
    path = training.path
    files = files_of(path, reading)
    check_outputs(output, inputs=files)
    quiet = checking.as_json or checking.quiet
    items = load_one_system(path, training.mode, signals, reading, purpose="a calibration", quiet=quiet)
    with at(path):
        calibration = fit(items)
    renderers = Renderers(
        calibration,
        type(calibration).to_json,
        lambda calibration: [calibration_table(calibration)],
        calibration_summary,
        json_label="calibration:",
    )
    publish(formats, renderers, output, inputs=files)


HELP = "Turn a confidence into a probability of being correct."
COMMANDS: opt.Commands = {
    "verbalized": (verbalized_command, VERBALIZED_EXAMPLES),
    "train": (train_command, TRAIN_EXAMPLES),
}
