"""`abstain evaluate`: from one or two inputs to a summary and an artifact."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from abstain.cli._options import (
    AsJson,
    Commands,
    Inputs,
    Judging,
    Pairing,
    Question,
    Quiet,
    Reading,
    SummaryFormat,
    output_to,
    spelled_out,
)
from abstain.cli._steps import (
    Written,
    check_outputs,
    evaluated,
    files_of,
    new_name,
    printing,
    publish,
    show_result,
    tables_of,
)

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
    output: Annotated[Path | None, output_to(_OUTPUT)] = None,
    as_json: AsJson = False,
    table_format: SummaryFormat = None,
    quiet: Quiet = False,
    judging: Judging,
    pairing: Pairing,
    reading: Reading,
) -> None:
    """Judge one run, or compare two, with intervals."""
    from abstain.report.artifact import artifact, encode  # noqa: PLC0415

    wanted = printing(table_format, as_json=as_json, quiet=quiet)
    files = files_of(inputs, question, judging, reading)
    check_outputs(output, inputs=files)
    stem, result = evaluated(inputs, question, reading, pairing, judging, quiet=quiet)
    if output is None and wanted.needs_file:
        output = new_name(stem, "-metrics.json")
    content = encode(artifact(result, datetime.now(UTC)))
    written = [] if output is None else [Written("artifact:", output, content)]
    publish(wanted, content, written, lambda: tables_of(result), lambda: show_result(result), inputs=files)


COMMANDS: Commands = {"evaluate": (evaluate_command, EXAMPLES)}
