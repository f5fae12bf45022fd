"""`abstain calibrate`: learn from a run how far its confidence can be believed, and write what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli._tables import SummaryFormat, print_tables, summary_format
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abstain.calibrators import Calibration
    from abstain.items import Items

_FOLDS = "Folds of whole participants for the held-out metrics."

Input = Annotated[
    list[Path] | None, typer.Argument(metavar="INPUT", help="The run file to learn from.", show_default=False)
]
InputOption = Annotated[
    list[Path] | None,
    typer.Option("--input", metavar="FILE", help="The same, as an option.", show_default=False),
]
Mode = Annotated[
    str | None,
    typer.Option(
        metavar="MODE", help="Which experiment of the run; needed if there are several.", show_default=False
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where the artifact goes.", show_default=False)
]
Folds = Annotated[int, typer.Option(metavar="N", help=_FOLDS)]
Seed = Annotated[int, typer.Option(metavar="N", help="The same seed gives the same folds.")]
AsJson = Annotated[bool, typer.Option("--json", help="Artifact to stdout as well; no summary.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the artifact's path alone.")]

VERBALIZED_EXAMPLES = """\b
Example:
  abstain calibrate verbalized --input train.json --mode few_shot --output temperature.json
"""
TRAIN_EXAMPLES = """\b
Example:
  abstain calibrate train --input train.json --mode few_shot --method logistic \\
      --features verbalized_confidence,retrieval_similarity_mean --output logistic.json
"""


def verbalized_command(
    output: Output,
    inputs: Input = None,
    further_inputs: InputOption = None,
    mode: Mode = None,
    folds: Folds = 5,
    seed: Seed = 42,
    as_json: AsJson = False,
    quiet: Quiet = False,
    table_format: SummaryFormat = None,
) -> None:
    """Fit the temperature of the confidence that a model states on a scale of 1 to 5."""

    def fit(items: Items) -> Calibration:
        from abstain.calibrators import fit_verbalized  # noqa: PLC0415

        return fit_verbalized(items, folds=folds, seed=seed)

    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    paths = [*(inputs or []), *(further_inputs or [])]
    _calibrate(fit, paths, mode, output, form, as_json=as_json, quiet=quiet)


def train_command(
    output: Output,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="temperature (temperature_scaling), logistic, platt, linear, isotonic, beta, histogram_binning or "
            "venn_abers.",
            show_default=False,
        ),
    ],
    features: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Signals to learn from, separated by commas.", show_default=False),
    ],
    inputs: Input = None,
    further_inputs: InputOption = None,
    mode: Mode = None,
    target: Annotated[
        str, typer.Option(metavar="NAME", help="What to predict: correctness, near_correct or loss.")
    ] = "correctness",
    folds: Folds = 5,
    seed: Seed = 42,
    as_json: AsJson = False,
    quiet: Quiet = False,
    table_format: SummaryFormat = None,
) -> None:
    """Train a calibrator on signals of the answered items."""

    def fit(items: Items) -> Calibration:
        from abstain.calibrators import train  # noqa: PLC0415

        return train(items, method=method, features=features, target=target, folds=folds, seed=seed)

    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    paths = [*(inputs or []), *(further_inputs or [])]
    _calibrate(fit, paths, mode, output, form, as_json=as_json, quiet=quiet)


def _calibrate(
    fit: Callable[[Items], Calibration],
    paths: Sequence[Path],
    mode: str | None,
    output: Path,
    form: str,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if len(paths) != 1:
        raise ArgumentError(f"give one input to learn from, got {len(paths)}; see abstain calibrate --help")
    from abstain import _files, read  # noqa: PLC0415

    _files.check_output(output)
    calibration = fit(read(paths[0], mode=mode))
    content = calibration.to_json()
    _files.write_whole(output, content)
    if as_json:
        typer.echo(content.decode(), nl=False)
    elif quiet:
        typer.echo(str(output))
    elif form != "text":
        from abstain.report.calibration import calibration_table  # noqa: PLC0415

        print_tables([calibration_table(calibration)], form)
    else:
        from abstain.report.calibration import calibration_summary  # noqa: PLC0415
        from abstain.report.console import console_for  # noqa: PLC0415

        screen = console_for()
        screen.print(calibration_summary(calibration, screen.width))
        typer.echo(f"\nartifact: {output}")
