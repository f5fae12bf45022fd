"""`abstain compare`: any number of systems on the same items, with verdicts in words."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _source_options as options  # noqa: TC001  (typer reads annotations)
from abstain.cli._tables import TableFormat, hand_over
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INPUTS = "Run files, tables or logs: one a system, on the same items."
_MODE = "Which experiment of each input, in order; given once it serves all."
_METRIC = "Metrics, separated by commas; `abstain metrics` lists them."
_CONFIDENCE = "What ranks the answers of each input, in order; given once it serves all."
_LOSS = "abs, abs_norm or zero_one; else abs_norm over a declared scale, or zero_one for labels."
_REFERENCE = "Compare all others with this system, named as in the output, instead of every pair."
_MARGIN = "The smallest difference that would matter: how much more data would tell that."
_OUTPUT = "Where the table goes, or the report if it ends in .html; else the table to stdout."
_INTERSECTION = "Compare the items that all inputs have when some lack some."

EXAMPLES = """\b
Examples:
  abstain compare a.parquet b.parquet c.parquet --metric augrc --cluster patient_id
  abstain compare run.json run.json --mode zero_shot --mode few_shot --metric augrc,aurc
  abstain compare old.csv new.csv --reference old --margin 0.01 --format markdown
"""


def compare_command(
    inputs: Annotated[list[Path], typer.Argument(metavar="INPUT...", help=_INPUTS, show_default=False)],
    modes: Annotated[
        list[str] | None, typer.Option("--mode", metavar="MODE", help=_MODE, show_default=False)
    ] = None,
    metrics: Annotated[str, typer.Option("--metric", metavar="NAMES", help=_METRIC)] = "augrc",
    confidence: Annotated[
        list[str] | None, typer.Option("--confidence", metavar="NAME", help=_CONFIDENCE, show_default=False)
    ] = None,
    loss: Annotated[str | None, typer.Option(metavar="NAME", help=_LOSS, show_default=False)] = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Lowest and highest score there can be.", show_default=False),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="SYSTEM", help=_REFERENCE, show_default=False)
    ] = None,
    margin: Annotated[float | None, typer.Option(metavar="X", help=_MARGIN, show_default=False)] = None,
    resamples: Annotated[
        int, typer.Option("--bootstrap-resamples", metavar="N", help="Cluster resamples; 0 for no verdicts.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same numbers.")] = 42,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95,
    intersection_only: Annotated[bool, typer.Option("--intersection-only", help=_INTERSECTION)] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False),
    ] = None,
    table_format: TableFormat = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but the table.")] = False,
    source_format: options.Format = None,
    truth: options.Truth = None,
    prediction: options.Prediction = None,
    abstained: options.Abstained = None,
    failed: options.Failed = None,
    item: options.Item = None,
    cluster: options.Cluster = None,
    null_prediction: options.NullPrediction = None,
    abstain_rule: options.AbstainRule = None,
    scorer: options.Scorer = None,
    filter: options.Filter = None,  # noqa: A002
) -> None:
    """Compare systems on the same items: differences, p-values corrected for their number, ranks, plain words."""
    from abstain import _files, compare_systems  # noqa: PLC0415
    from abstain.cli._progress import progress_bar  # noqa: PLC0415
    from abstain.cli._systems import read_systems  # noqa: PLC0415
    from abstain.cli.report import REPORT_ENDINGS, command_line  # noqa: PLC0415
    from abstain.report.systems import systems_tables, systems_text  # noqa: PLC0415
    from abstain.report.tables import format_of, render  # noqa: PLC0415

    as_report = table_format is None and output is not None and output.suffix.lower() in REPORT_ENDINGS
    form = format_of(table_format, None if as_report else output)
    if output is not None:
        _files.check_output(output)
    if len(inputs) < 2:
        raise ArgumentError(f"give at least two inputs to compare, got {len(inputs)}")
    each_mode = _one_each(modes or [], len(inputs), "--mode")
    names = system_names([str(path) for path in inputs], each_mode)
    confidences = _one_each(confidence or [], len(inputs), "--confidence")
    systems = read_systems(
        dict(zip(names, inputs, strict=True)),
        modes=dict(zip(names, each_mode, strict=True)),
        confidences=dict(zip(names, confidences, strict=True)),
        metrics=metrics,
        loss=loss,
        scale=scale,
        quiet=quiet,
        format=source_format,
        truth=truth,
        prediction=prediction,
        abstained=abstained,
        failed=failed,
        item=item,
        cluster=cluster,
        null_prediction=null_prediction,
        abstain_rule=abstain_rule,
        scorer=scorer,
        filter=filter,
    )
    with progress_bar("resampling", resamples, wanted=not quiet) as progress:
        found = compare_systems(
            systems,
            metrics=metrics,
            confidence={name: asked for name, asked in zip(names, confidences, strict=True) if asked},
            loss=loss,
            reference=reference,
            margin=margin,
            resamples=resamples,
            seed=seed,
            level=level,
            intersection_only=intersection_only,
            progress=progress,
        )
    if as_report and output is not None:
        found.report(output, command=command_line(sys.argv[1:]))
        return
    hand_over(systems_text(found) if form == "text" else render(systems_tables(found), form), output)


def system_names(paths: Sequence[str], modes: Sequence[str | None]) -> list[str]:
    """Return short names that tell inputs apart: stems, else modes, else both, else whole paths, else numbers.

    >>> system_names(["runs/a.json", "runs/b.json"], ["few_shot", "few_shot"])
    ['a', 'b']
    >>> system_names(["run.json", "run.json"], ["zero_shot", "few_shot"])
    ['zero_shot', 'few_shot']
    """
    stems = [Path(path).stem or path for path in paths]
    pairs = list(zip(stems, modes, strict=True))
    choices = [
        stems,
        [mode or stem for stem, mode in pairs],
        [f"{stem} {mode}" if mode else stem for stem, mode in pairs],
        [f"{path} {mode}" if mode else path for path, mode in zip(paths, modes, strict=True)],
    ]
    for names in choices:
        if max(Counter(names).values()) == 1:
            return names
    return [f"{name} ({number})" for number, name in enumerate(stems, start=1)]


def _one_each(given: list[str], count: int, flag: str) -> list[str | None]:
    if len(given) <= 1:
        return [given[0] if given else None] * count
    if len(given) != count:
        raise ArgumentError(
            f"{flag} must be given once, or once for each of the {count} inputs, got {len(given)}"
        )
    return list(given)
