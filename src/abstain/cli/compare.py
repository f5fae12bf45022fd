"""`abstain compare`: differences between any number of systems, with verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import announcer, column_arguments, files_of, progress_bars
from abstain.cli._publishing import check_outputs, choose_formats, publish, renderers_of
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.items import Items

_METRIC = "Metrics, separated by commas. Default: augrc, or the bundle answers if there is no confidence."
_CONFIDENCE = "Confidence that ranks the answers: once for all inputs, or once per input."
_REFERENCE = "Compare all systems with this one. Default: compare every pair."
_MARGIN = "Smallest difference that matters, for verdicts of equivalence and for sample sizes."
_OUTPUT = (
    "File to write; its ending sets the format: .html (a report), .json, .md, .csv, .tex or .txt (tables)."
)

EXAMPLES = """\b
A system does not win by declining more: areas, selective risk and selective
accuracy are compared at the largest coverage that both systems reach.

\b
Examples:
  abstain compare a.parquet b.parquet c.parquet --metric augrc \\
      --cluster patient_id
  abstain compare run.json run.json --mode zero_shot --mode few_shot \\
      --metric augrc,aurc
  abstain compare old.csv new.csv --reference old --margin 0.01 \\
      --format markdown
  abstain compare week-13.parquet week-14.parquet --unpaired --by site
"""


@opt.expand_option_groups
def compare_command(
    *,
    inputs: opt.Inputs,
    metrics: Annotated[
        str | None, typer.Option("--metric", "-m", metavar="NAMES", help=_METRIC, show_default=False)
    ] = None,
    confidence: Annotated[list[str] | None, opt.named("--confidence", "NAME", _CONFIDENCE)] = None,
    by: opt.By = None,
    reference: Annotated[str | None, opt.named("--reference", "SYSTEM", _REFERENCE)] = None,
    margin: Annotated[float | None, opt.named("--margin", "X", _MARGIN)] = None,
    simultaneous: opt.Simultaneous = False,
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    as_json: opt.AsJson = False,
    table_format: opt.SummaryFormat = None,
    explain: opt.Explain = False,
    quiet: opt.Quiet = False,
    intervals: opt.IntervalOptions,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Compare systems: a conclusion, differences with confidence intervals, and ranks. Items are matched by name."""
    from abstain import compare  # noqa: PLC0415
    from abstain.readers import is_table  # noqa: PLC0415

    formats = choose_formats(table_format, output, native="text", as_json=as_json, quiet=quiet)
    files = files_of(inputs, intervals, reading)
    check_outputs(output, inputs=files)
    sources = inputs.sources
    if not sources or (len(sources) < 2 and not is_table(next(iter(sources.values())).path)):
        raise ArgumentError(f"pass at least two inputs to compare, got {len(sources)}")
    engine_options = engine.options
    if len(sources) == 1:
        engine.refuse("the systems of one table are separated row by row")
        engine_options["engine"] = "numpy"
    each = dict(zip(sources, opt.one_each(confidence or [], len(sources), "--confidence"), strict=True))
    announce = announcer(each, quiet=quiet)

    def check_systems(systems: Mapping[str, Items]) -> None:
        announce(systems)
        if len(systems) < 2:
            raise ArgumentError(
                f"pass at least two inputs to compare, or a table with two systems, got {len(systems)}"
            )

    with progress_bars(intervals.interval, intervals.resamples, wanted=not quiet) as progress:
        result = compare(
            {name: source.path for name, source in sources.items()},
            metrics=metrics,
            selective=False,
            confidence=_one_or_each(each),
            by=opt.listed(by) or None,
            reference=reference,
            margin=margin,
            simultaneous=simultaneous,
            **intervals.options,
            **matching.options,
            **engine_options,
            **column_arguments(sources, reading, each, metrics or "augrc", all_columns=bool(by)),
            progress=progress,
            on_read=check_systems,
        )
    publish(formats, renderers_of(result, json_of_tables=True, explain=explain), output, inputs=files)


def _one_or_each(confidences: Mapping[str, str | None]) -> str | dict[str, str] | None:
    """Return the confidence of all systems, or a mapping if they differ."""
    different = set(confidences.values())
    if len(different) == 1:
        return different.pop()
    return {name: confidence for name, confidence in confidences.items() if confidence}


COMMANDS: opt.Commands = {"compare": (compare_command, EXAMPLES)}
