"""How verbs hand over what they found: the flags `--format` and `--json`, and stdout or a whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abstain.report.tables import Table

TableFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The table as text, markdown, csv, latex or json; else what the ending of the output means, else text.",
        show_default=False,
    ),
]

SummaryFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Print a table as markdown, csv, latex or json in place of the summary (text).",
        show_default=False,
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Artifact to stdout; no summary.")]


def summary_format(asked: str | None, *, as_json: bool = False, quiet: bool = False) -> str:
    """Return the format of what a verb prints beside its artifact: text is its summary."""
    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the artifact, the other its path"
        )
    if asked is not None and (as_json or quiet):
        raise ArgumentError("--format says what to print, and so do --json and --quiet; give one of them")
    if asked is None:
        return "text"
    from abstain.report.tables import format_of  # noqa: PLC0415

    return format_of(asked, None)


def print_tables(tables: Sequence[Table], form: str) -> None:
    """Print tables in one of their formats."""
    from abstain.report.tables import render  # noqa: PLC0415

    typer.echo(render(tables, form), nl=False)


def hand_over(text: str, output: Path | None) -> None:
    """Print a text, or write it whole and say nothing."""
    if output is None:
        typer.echo(text, nl=False)
        return
    from abstain import _files  # noqa: PLC0415

    _files.write_whole(output, text.encode("utf-8", "replace"))
