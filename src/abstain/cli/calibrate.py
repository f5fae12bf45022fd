"""`abstain calibrate`: fit a calibrator to the answers of one input, and write it to a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli._options import Commands, ReadOptions, SummaryFormat, expand_option_groups, named, output_to
from abstain.cli._pipeline import files_of, load_one_system
from abstain.cli._publishing import Renderers, check_json_ending, check_outputs, choose_formats, publish
from abstain.cli._terminal import show
from abstain.errors import ArgumentError, at

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.calibrators import Calibration
    from abstain.items import Items

_MODE = "Which experiment of the run; needed if there are several."
_METHOD = "temperature (temperature_scaling), logistic, platt, linear, isotonic, beta, histogram_binning or venn_abers."
_INPUT = "The run file, table or log to learn from; a pattern in quotes is one input."
_FEATURES = "Signals or columns to learn from, separated by commas. Default: the confidence."
_CONFIDENCE = "Calibrate this confidence: a column or signal. Default: one with a usual name, such as prob."
_FOLDS = "Folds of whole participants for the held-out metrics."

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

Output = Annotated[Path, output_to("Where the artifact goes.")]


@dataclass(frozen=True, slots=True)
class Lesson:
    """The input to learn from."""

    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUT", help=_INPUT, show_default=False),
    ] = None
    further_inputs: Annotated[list[Path] | None, named("--input", "FILE", "The same, as an option.")] = None
    mode: Annotated[str | None, named("--mode", "MODE", _MODE)] = None

    @property
    def path(self) -> Path:
        """The one input, as an argument or as an option."""
        paths = [*(self.inputs or []), *(self.further_inputs or [])]
        if len(paths) != 1:
            raise ArgumentError(
                f"give one input to learn from, got {len(paths)}; see abstain calibrate --help"
            )
        return paths[0]


@dataclass(frozen=True, slots=True)
class Checking:
    """How what was learned is checked, and what is printed of it."""

    folds: Annotated[int, typer.Option(metavar="N", help=_FOLDS)] = 5
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same folds.")] = 42
    as_json: Annotated[bool, typer.Option("--json", help="Artifact to stdout as well; no summary.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the artifact's path alone.")] = False
    table_format: SummaryFormat = None


@expand_option_groups
def verbalized_command(*, output: Output, lesson: Lesson, checking: Checking, reading: ReadOptions) -> None:
    """Fit the temperature of a confidence stated as 1 to 5."""

    def fit(items: Items) -> Calibration:
        from abstain.calibrators import fit_verbalized  # noqa: PLC0415

        return fit_verbalized(items, folds=checking.folds, seed=checking.seed)

    _calibrate(fit, lesson, "verbalized_confidence", reading, output, checking)


@expand_option_groups
def train_command(
    *,
    output: Output,
    method: Annotated[str, named("--method", "NAME", _METHOD)],
    features: Annotated[str | None, named("--features", "NAMES", _FEATURES)] = None,
    confidence: Annotated[str | None, named("--confidence", "NAME", _CONFIDENCE)] = None,
    lesson: Lesson,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="What to predict: correctness, near_correct or loss.")
    ] = "correctness",
    checking: Checking,
    reading: ReadOptions,
) -> None:
    """Train a calibrator on signals of the answered items."""
    if features is not None and confidence is not None:
        raise ArgumentError("--confidence names the one feature to learn from; leave it or --features out")
    names = features or confidence

    def fit(items: Items) -> Calibration:
        from abstain.calibrators import train  # noqa: PLC0415

        folds, seed = checking.folds, checking.seed
        return train(items, method=method, features=names, target=target, folds=folds, seed=seed)

    _calibrate(fit, lesson, names, reading, output, checking)


def _calibrate(
    fit: Callable[[Items], Calibration],
    lesson: Lesson,
    signals: str | None,
    reading: ReadOptions,
    output: Path,
    checking: Checking,
) -> None:
    from abstain.report.calibration import calibration_summary, calibration_table  # noqa: PLC0415

    formats = choose_formats(checking.table_format, None, as_json=checking.as_json, quiet=checking.quiet)
    check_json_ending(output, "a calibration")
    path = lesson.path
    files = files_of(path, reading)
    check_outputs(output, inputs=files)
    quiet = checking.as_json or checking.quiet
    items = load_one_system(path, lesson.mode, signals, reading, purpose="a calibration", quiet=quiet)
    with at(path):
        calibration = fit(items)
    renderers = Renderers(
        calibration.to_json,
        lambda: [calibration_table(calibration)],
        lambda: show(calibration_summary, calibration),
    )
    publish(formats, renderers, output, inputs=files)


HELP = "Turn raw confidence into a probability of being right."
COMMANDS: Commands = {
    "verbalized": (verbalized_command, VERBALIZED_EXAMPLES),
    "train": (train_command, TRAIN_EXAMPLES),
}
