"""`abstain apply`: decide for each row of a table whether to answer or to defer, by a policy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import files_of, read_policy_argument
from abstain.cli._publishing import check_outputs
from abstain.cli._terminal import print_sentences, print_text, print_warnings
from abstain.errors import at

_POLICY = "Policy file of `abstain threshold`."
_TABLE = "Table of new rows: CSV, Parquet or JSONL. It needs no truth."
_OUTPUT = "File for the table with the new column. Default: only counts are printed."
_COLUMN = "Name of the new column, which contains answer or defer."
_SAFE = (
    "Begin cells that a spreadsheet would run as a formula with an apostrophe. Default: cells are unchanged."
)
_ABSTAINED = "Column that is true if the model declined. Default: a column named abstained."

EXAMPLES = """\b
Examples:
  abstain apply policy.json new.parquet -o decided.parquet
  abstain apply policy.json new.csv -o decided.csv --column policy
  abstain apply policy.json new.csv --abstained declined
"""


@opt.expand_option_groups
def apply_command(
    *,
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help=_POLICY, show_default=False)],
    source: Annotated[Path, typer.Argument(metavar="TABLE", help=_TABLE, show_default=False)],
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help=_COLUMN)] = "decision",
    abstained: Annotated[str | None, opt.named("--abstained", "COLUMN", _ABSTAINED)] = None,
    calibration: opt.Calibrations = None,
    safe_csv: Annotated[bool, typer.Option("--safe-csv", help=_SAFE)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only warnings.")] = False,
) -> None:
    """Add the decision, answer or defer, to every row of a table, and report a drift of its confidences."""
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
            safe_csv=safe_csv,
        )
    print_warnings(done.warnings)
    if not quiet:
        print_sentences(done.lines)
        if output is not None:
            print_text(f"decisions: {output}")


COMMANDS: opt.Commands = {"apply": (apply_command, EXAMPLES)}
