"""`abstain check`: the format and content of a file, and the metrics that it supports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import announcements, reading_bar
from abstain.cli._publishing import choose_formats, print_tables
from abstain.cli._terminal import print_json, print_summary

if TYPE_CHECKING:
    from abstain.evaluation import SourceCheck

_INPUT = "Run file, table or log, or several of one format. A pattern in quotes is expanded."
PROBLEMS = 3

EXAMPLES = """\b
Examples:
  abstain check preds.parquet
  abstain check preds.csv --truth label --prediction pred \\
      --cluster patient_id
  abstain check 'logs/*.eval' --scorer match
"""


@opt.expand_option_groups
def check_command(
    *,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help=_INPUT, show_default=False)],
    mode: opt.RunMode = None,
    confidence: Annotated[
        str | None, opt.named("--confidence", "COLUMN", "Column of the confidence.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    table_format: opt.SummaryFormat = None,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Show the content of a file, its problems, and the metrics that it supports. Exit code 3 if rows have problems."""
    from abstain import check  # noqa: PLC0415

    formats = choose_formats(table_format, None, as_json=as_json)
    with reading_bar(wanted=not as_json):
        checked = check(inputs, mode=mode, confidence=confidence, **engine.options, **reading.options)
    if as_json:
        print_json(json.dumps(_document(checked), indent=2) + "\n")
    else:
        from abstain.evaluation import NEVER_EQUAL, refusal_hint, scale_hint  # noqa: PLC0415
        from abstain.report.check import check_summary, check_table  # noqa: PLC0415

        notes = [
            line
            for line in announcements(checked.items.provenance, metadata=checked.items.metadata)
            if "guessed" not in line
        ]
        for name, items in checked.systems.items():
            source = f"{checked.source}, {name}" if name else checked.source
            hints = (scale_hint(items), NEVER_EQUAL if items.never_equal else "", refusal_hint(items))
            notes += [f"{source}: {sentence}" for sentence in hints if sentence]
        print_tables(
            formats.printed,
            lambda: [check_table(checked)],
            lambda: print_summary(check_summary, checked, notes),
        )
    if checked.problems:
        raise typer.Exit(PROBLEMS)


def _document(checked: SourceCheck) -> dict[str, Any]:
    from abstain.report.tables import finite  # noqa: PLC0415

    outcomes = ("answered", "abstained", "failed", "unscored")
    return {
        "source": checked.source,
        "format": checked.format,
        "systems": {
            name: {outcome: getattr(items.counts, outcome) for outcome in outcomes}
            for name, items in checked.systems.items()
            if name
        },
        "columns": dict(checked.columns),
        "guessed": list(checked.guessed),
        "outcomes": {outcome: getattr(checked.counts, outcome) for outcome in outcomes},
        "clusters": asdict(checked.clusters),
        "signals": {
            name: {field: finite(value) for field, value in asdict(signal).items()}
            for name, signal in checked.signals.items()
        },
        "metadata": list(checked.metadata),
        "confidences": {name: asdict(state) for name, state in checked.confidences.items()},
        "metrics": {name: asdict(state) for name, state in checked.metrics.items()},
        "defaults": dict(checked.defaults),
        "abstention_rule": checked.items.provenance.get("abstention_rule"),
        "problems": list(checked.problems),
    }


COMMANDS: opt.Commands = {"check": (check_command, EXAMPLES)}
