"""`abstain apply`: decide by a policy what is answered and what is deferred, row by row."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import files_of, read_policy_argument
from abstain.cli._publishing import check_outputs
from abstain.cli._terminal import say
from abstain.errors import at

_NEW = "The table to decide on: CSV, Parquet or JSONL; it needs no truth."
_COLUMN = "What the new column is called; it says answer or defer."
_ABSTAINED = "True where the model itself declined; else a column called abstained."

EXAMPLES = """\b
Examples:
  abstain apply policy.json new.parquet -o decided.parquet
  abstain apply policy.json new.csv -o decided.csv --column policy
  abstain apply policy.json new.csv --abstained declined
"""


@opt.expand_option_groups
def apply_command(
    *,
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="What `abstain threshold` wrote.")],
    source: Annotated[Path, typer.Argument(metavar="TABLE", help=_NEW, show_default=False)],
    output: Annotated[
        Path | None, opt.output_to("The same table with the decision; else it is counted alone.")
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help=_COLUMN)] = "decision",
    abstained: Annotated[str | None, opt.named("--abstained", "COLUMN", _ABSTAINED)] = None,
    calibration: opt.Calibrations = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings alone.")] = False,
) -> None:
    """Add answer or defer to every row of a table, and say how far its confidences have moved."""
    files = [*files_of(policy, source), *(calibration or [])]
    check_outputs(output, inputs=files)
    swapped = f"abstain apply {shlex.quote(str(source))} {shlex.quote(str(policy))}"
    chosen = read_policy_argument(policy, source, swapped)
    with at(source):
        done = chosen.apply(
            source,
            output=output,
            column=column,
            abstained=abstained,
            calibration=calibration,
            inputs=files,
        )
    if not quiet:
        for line in done.lines:
            say(line)
    for warning in done.warnings:
        say(f"warning: {warning}", error=True)
    if output is not None and not quiet:
        say(f"decided: {output}")


COMMANDS: opt.Commands = {"apply": (apply_command, EXAMPLES)}
