"""`abstain check`: what a file is, what it holds, and what can be computed from it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from abstain.cli._options import Reading, announcements, spelled_out
from abstain.cli._tables import SummaryFormat, print_tables, summary_format

if TYPE_CHECKING:
    from abstain.evaluation import SourceCheck

_INPUT = "A run file, table or log, or several of one kind; a pattern in quotes is expanded."
PROBLEMS = 3

EXAMPLES = """\b
Examples:
  abstain check preds.parquet
  abstain check preds.csv --truth label --prediction pred --cluster patient_id
  abstain check 'logs/*.eval' --scorer match
"""


@spelled_out
def check_command(
    *,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help=_INPUT, show_default=False)],
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="Which experiment of a run file.", show_default=False)
    ] = None,
    confidence: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the confidence.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
    table_format: SummaryFormat = None,
    reading: Reading,
) -> None:
    """Say what a file is, what it holds and what can be computed from it. Exit code 3 if rows have problems."""
    from abstain import check  # noqa: PLC0415

    form = summary_format(table_format, as_json=as_json)
    found = check(inputs, mode=mode, confidence=confidence, **reading.options)
    if as_json:
        typer.echo(json.dumps(_document(found), indent=2))
    elif form != "text":
        from abstain.report.check import check_table  # noqa: PLC0415

        print_tables([check_table(found)], form)
    else:
        from abstain.report.check import check_summary  # noqa: PLC0415
        from abstain.report.console import console_for  # noqa: PLC0415

        notes = [line for line in announcements(found.items) if "guessed" not in line]
        screen = console_for()
        screen.print(check_summary(found, notes, screen.width))
    if found.problems:
        raise typer.Exit(PROBLEMS)


def _document(found: SourceCheck) -> dict[str, Any]:
    counts = found.counts
    return {
        "source": found.source,
        "format": found.format,
        "columns": dict(found.columns),
        "guessed": list(found.guessed),
        "outcomes": {name: getattr(counts, name) for name in ("answered", "abstained", "failed", "unscored")},
        "clusters": {
            "noun": found.clusters.noun,
            "count": found.clusters.count,
            "smallest": found.clusters.smallest,
            "median": found.clusters.median,
            "largest": found.clusters.largest,
        },
        "signals": {
            name: {
                "distinct": signal.distinct,
                "tied_share": signal.tied_share,
                "missing": signal.missing,
                "low": _number(signal.low),
                "high": _number(signal.high),
            }
            for name, signal in found.signals.items()
        },
        "metadata": list(found.metadata),
        "confidences": {
            name: {"possible": state.possible, "reason": state.reason}
            for name, state in found.confidences.items()
        },
        "metrics": {
            name: {"possible": state.possible, "reason": state.reason}
            for name, state in found.metrics.items()
        },
        "defaults": dict(found.defaults),
        "abstention_rule": found.items.provenance.get("abstention_rule"),
        "problems": list(found.problems),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
