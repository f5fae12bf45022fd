"""The options that say how a source is to be read; the same for every verb that reads one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abstain.items import Items

_TABLES = "Tables"
_LOGS = "Logs"


def _column(flag: str, what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar="COLUMN", help=what, show_default=False, rich_help_panel=_TABLES
    )
    return option


Format = Annotated[
    str | None,
    typer.Option(
        "--input-format",
        metavar="NAME",
        show_default=False,
        help="What the input is: run, evaluation, inspect, lm-eval, csv, parquet or jsonl; else told from the content.",
    ),
]
Truth = Annotated[str | None, _column("--truth", "What is right.")]
Prediction = Annotated[str | None, _column("--prediction", "What the model said.")]
Abstained = Annotated[str | None, _column("--abstained", "True where the model declined.")]
Failed = Annotated[str | None, _column("--failed", "True where the run produced nothing.")]
Item = Annotated[str | None, _column("--item", "Names of the items.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        "--cluster-by",
        metavar="NAME",
        show_default=False,
        help="What belongs together: a column, or in a log a key of the sample's metadata or document.",
    ),
]
NullPrediction = Annotated[
    str | None,
    typer.Option(
        "--null-prediction",
        metavar="MEANING",
        show_default=False,
        help="What a missing prediction means: abstained or failed.",
    ),
]
AbstainRule = Annotated[
    str | None,
    typer.Option(
        "--abstain-rule",
        metavar="RULE",
        show_default=False,
        help="Who declined where the source does not say: choice:E, regex:PATTERN, phrases:A|B or phrases:@FILE.",
    ),
]
Scorer = Annotated[
    str | None,
    typer.Option(
        "--scorer", metavar="NAME", show_default=False, help="Inspect: which scorer. lm-eval: which metric."
    ),
]
Filter = Annotated[
    str | None, typer.Option("--filter", metavar="NAME", show_default=False, help="lm-eval: which filter.")
]


def announcements(items: Items, settled: Iterable[str] = ()) -> list[str]:
    """Return what was found or guessed about a source and must be said aloud, but for roles that are `settled`."""
    from abstain.sources import FORMATS  # noqa: PLC0415

    provenance = items.provenance
    path, lines = provenance.get("path", "items"), []
    guessed = [role for role in provenance.get("guessed", ()) if role not in settled]
    if guessed:
        columns = provenance["columns"]
        listed = ", ".join(f"{role} = {columns[role]}" for role in guessed)
        lines.append(f"{path}: a {FORMATS[provenance['format']]}; guessed {listed}")
    rule = provenance.get("abstention_rule")
    if rule:
        counts = ", ".join(
            f"{rule.get(state, 0)} {state}" for state in ("abstained", "answered", "undetermined")
        )
        lines.append(f"{path}: the abstention rule found {counts}")
    if provenance.get("format") == "inspect" and provenance.get("status") != "success":
        lines.append(f"{path}: the log's status is {provenance.get('status')}; it may not hold every sample")
    filters = provenance.get("filters", ())
    if len(filters) > 1 and "filter" in items.metadata:
        lines.append(
            f"{path}: {len(filters)} filters read together ({', '.join(filters)}); --filter chooses one"
        )
    return lines


def announce(sources: Iterable[Items], settled: Iterable[str] = ()) -> None:
    """Say it, once, on stderr."""
    for line in dict.fromkeys(line for items in sources for line in announcements(items, settled)):
        typer.echo(line, err=True)
