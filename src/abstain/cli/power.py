"""`abstain power`: how many clusters a new study needs to tell two systems apart."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import announcer, column_arguments, reading_bar
from abstain.cli._terminal import say, say_json

EXAMPLES = """\b
Examples:
  abstain power pilot.json --mode few_shot --metric augrc --difference 0.02
  abstain power a.csv b.csv --item id --cluster patient --metric accuracy \\
      --difference 0.05 --power 0.9
  abstain power --se 0.015 --clusters 41 --metric augrc --difference 0.02
"""


@opt.expand_option_groups
def power_command(
    *,
    inputs: opt.Inputs,
    metric: Annotated[
        str,
        typer.Option("--metric", "-m", metavar="NAME", help="By which metric; `abstain metrics` lists them."),
    ],
    difference: Annotated[
        float, typer.Option(metavar="D", help="The smallest difference that would matter.")
    ],
    power: Annotated[float, typer.Option(metavar="P", help="The chance of telling it.")] = 0.8,
    level: Annotated[float, typer.Option(metavar="P", help="The level at which it is told.")] = 0.95,
    correlation: Annotated[
        float, typer.Option(metavar="R", help="How far two systems agree, for a pilot of one.")
    ] = 0.5,
    confidence: opt.RankedBy = None,
    loss: Annotated[str | None, opt.named("--loss", "NAME", "abs, abs_norm or zero_one.")] = None,
    se: Annotated[
        float | None, opt.named("--se", "X", "Standard error of the difference, in place of a pilot.")
    ] = None,
    clusters: Annotated[int | None, opt.named("--clusters", "N", "For how many clusters that is.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Say how many clusters a new study needs to tell a difference, from a pilot of one or two systems."""
    from abstain import power as compute_power  # noqa: PLC0415

    sources = inputs.sources
    confidences = dict.fromkeys(sources, confidence)
    options: dict[str, Any] = {}
    if sources:
        options = {
            "confidence": confidence,
            "loss": loss,
            **matching.options,
            **engine.options,
            **column_arguments(sources, reading, confidences, metric),
            "on_read": announcer(confidences, quiet=as_json),
        }
    pilot = [{name: source.path for name, source in sources.items()}] if sources else []
    with reading_bar(wanted=not as_json):
        answer = compute_power(
            *pilot,
            metric=metric,
            difference=difference,
            correlation=correlation,
            se=se,
            clusters=clusters,
            power=power,
            level=level,
            **options,
        )
    if as_json:
        from abstain.report.tables import finite  # noqa: PLC0415

        names = [field.name for field in fields(answer) if field.name != "provenance"]
        values = {name: getattr(answer, name) for name in names}
        document = {
            name: finite(value) if isinstance(value, float) else value for name, value in values.items()
        }
        say_json(json.dumps(document, indent=2) + "\n")
        return
    say(f"{answer}.")
    basis = answer.basis
    say(f"{basis[0].upper()}{basis[1:]}.")


COMMANDS: opt.Commands = {"power": (power_command, EXAMPLES)}
