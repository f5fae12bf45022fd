"""`abstain compare`: any number of systems on the same items, with verdicts in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _steps
from abstain.cli._options import (
    AsJson,
    Commands,
    EngineOptions,
    Inputs,
    IntervalOptions,
    MatchOptions,
    Quiet,
    ReadOptions,
    Simultaneous,
    SummaryFormat,
    named,
    one_each,
    output_to,
    spelled_out,
)
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation import Result
    from abstain.items import Items
    from abstain.readers.engines import Countable

_METRIC = (
    "Metrics, separated by commas; `abstain metrics` lists them. Default: augrc; without a confidence, the bundle "
    "answers."
)
_CONFIDENCE = "What ranks the answers of each input, in order; given once it serves all."
_REFERENCE = "Compare all others with this system, named as in the output, instead of every pair."
_MARGIN = (
    "The smallest difference that would matter: are systems within it, and how much more data would tell it?"
)
_OUTPUT = "What to write, by its ending: .html (a report), .json, .md, .csv, .tex or .txt (the tables)."

EXAMPLES = """\b
A system does not win by declining more: areas, selective risk and accuracy
are compared at the largest coverage that both systems reach.

\b
Examples:
  abstain compare a.parquet b.parquet c.parquet --metric augrc \\
      --cluster patient_id
  abstain compare run.json run.json --mode zero_shot --mode few_shot \\
      --metric augrc,aurc
  abstain compare old.csv new.csv --reference old --margin 0.01 \\
      --format markdown
"""


@spelled_out
def compare_command(
    *,
    inputs: Inputs,
    metrics: Annotated[
        str | None, typer.Option("--metric", "-m", metavar="NAMES", help=_METRIC, show_default=False)
    ] = None,
    confidence: Annotated[list[str] | None, named("--confidence", "NAME", _CONFIDENCE)] = None,
    reference: Annotated[str | None, named("--reference", "SYSTEM", _REFERENCE)] = None,
    margin: Annotated[float | None, named("--margin", "X", _MARGIN)] = None,
    simultaneous: Simultaneous = False,
    output: Annotated[Path | None, output_to(_OUTPUT)] = None,
    as_json: AsJson = False,
    table_format: SummaryFormat = None,
    quiet: Quiet = False,
    judging: IntervalOptions,
    pairing: MatchOptions,
    reading: ReadOptions,
    counted: EngineOptions,
) -> None:
    """Compare systems on the same items: the conclusion, every difference with its interval, and ranks."""
    from abstain import compare  # noqa: PLC0415
    from abstain.readers import is_table  # noqa: PLC0415

    wanted = _steps.printing(table_format, output, native="text", as_json=as_json, quiet=quiet)
    files = _steps.files_of(inputs, judging, reading)
    _steps.check_outputs(output, inputs=files)
    sources = inputs.sources
    if not sources or (len(sources) < 2 and not is_table(next(iter(sources.values())).path)):
        raise ArgumentError(f"give at least two inputs to compare, got {len(sources)}")
    each = dict(zip(sources, one_each(confidence or [], len(sources), "--confidence"), strict=True))

    def asked(systems: Mapping[str, Items | Countable], *, show_progress: bool) -> Result:
        if len(systems) < 2:
            raise ArgumentError(
                f"give at least two inputs to compare, or a table of two systems, got {len(systems)}"
            )
        with (
            _steps.at_data(systems),
            _steps.resampling_bar(judging.interval, judging.resamples, wanted=show_progress) as progress,
        ):
            return compare(
                systems,
                metrics=metrics,
                selective=False,
                confidence=_asked(each),
                reference=reference,
                margin=margin,
                simultaneous=simultaneous,
                **judging.options,
                **pairing.options,
                progress=progress,
            )

    result = _steps.judged(
        sources,
        reading,
        counted,
        judge=asked,
        told=_steps.came_from,
        confidences=each,
        metrics=metrics or "augrc",
        row_by_row="" if len(sources) > 1 else "the systems of one table are told apart row by row",
        quiet=quiet,
    )
    forms = _steps.forms_of(result)
    # The artifact of a comparison is its tables, which hold any number of systems.
    forms = forms._replace(artifact=lambda: _steps.encoded(forms.table("json")))
    _steps.publish(wanted, forms, output, inputs=files)


def _asked(each: Mapping[str, str | None]) -> str | dict[str, str] | None:
    """The confidence of all systems, or that of each where they were given one each."""
    different = set(each.values())
    return different.pop() if len(different) == 1 else {name: asked for name, asked in each.items() if asked}


COMMANDS: Commands = {"compare": (compare_command, EXAMPLES)}
