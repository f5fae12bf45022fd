"""`abstain evaluate`: from one or two inputs to a summary and an artifact."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli._judging import Question, evaluated, new_name, show
from abstain.cli._options import Inputs, Judging, Pairing, Quiet, Reading, spelled_out
from abstain.cli._tables import AsJson, SummaryFormat, print_tables, summary_format

if TYPE_CHECKING:
    from abstain.evaluation import Result

_OUTPUT = "Where the artifact goes; else into a new file here, whose name is printed."

EXAMPLES = """\b
Examples:
  abstain evaluate run.json --mode few_shot --loss abs
  abstain evaluate run.json --mode few_shot --confidence all -o metrics.json
  abstain evaluate --input run.json --mode zero_shot --input run.json --mode few_shot
  abstain evaluate --input results.json --metric default_benchmark --by ckd_stage
  abstain evaluate preds.csv --truth label --prediction pred --confidence prob --cluster patient_id
  abstain evaluate logs/2026-11-15_task.eval --cluster-by doc
  abstain evaluate samples_arc_easy.jsonl
"""


@spelled_out
def evaluate_command(
    *,
    inputs: Inputs,
    question: Question,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False)
    ] = None,
    as_json: AsJson = False,
    table_format: SummaryFormat = None,
    quiet: Quiet = False,
    judging: Judging,
    pairing: Pairing,
    reading: Reading,
) -> None:
    """Judge one run, or compare two, with intervals."""
    from abstain import _files  # noqa: PLC0415

    form = summary_format(table_format, as_json=as_json, quiet=quiet)
    if output is not None:
        _files.check_output(output)
    stem, result = evaluated(inputs, question, reading, pairing, judging, quiet=quiet)
    if output is None and not as_json and form == "text":
        output = new_name(stem, "-metrics.json")
    _publish(result, output, form, as_json=as_json, quiet=quiet)


def _publish(result: Result, output: Path | None, form: str, *, as_json: bool, quiet: bool) -> None:
    from abstain import _files  # noqa: PLC0415
    from abstain.report.artifact import artifact, encode  # noqa: PLC0415

    content = encode(artifact(result, datetime.now(UTC)))
    if output is not None:
        _files.write_whole(output, content)
    if as_json:
        typer.echo(content.decode(), nl=False)
    elif quiet:
        typer.echo(str(output))
    elif form != "text":
        from abstain.report.views import tables  # noqa: PLC0415

        print_tables(tables(result), form)
    else:
        show(result)
        typer.echo(f"\nartifact: {output}")
