"""`abstain power`: how many clusters a new study needs to tell two systems apart."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli._options import (
    Commands,
    EngineOptions,
    Inputs,
    MatchOptions,
    ReadOptions,
    named,
    spelled_out,
)
from abstain.cli._steps import at_data, judged
from abstain.cli._terminal import say, say_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from abstain.evaluation import PowerAnswer
    from abstain.items import Items
    from abstain.readers.engines import Countable

EXAMPLES = """\b
Examples:
  abstain power pilot.json --mode few_shot --metric augrc --difference 0.02
  abstain power a.csv b.csv --item id --cluster patient --metric accuracy \\
      --difference 0.05 --power 0.9
  abstain power --se 0.015 --clusters 41 --metric augrc --difference 0.02
"""


@spelled_out
def power_command(
    *,
    inputs: Inputs,
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
    confidence: Annotated[str | None, named("--confidence", "NAME", "What ranks the answers.")] = None,
    loss: Annotated[str | None, named("--loss", "NAME", "abs, abs_norm or zero_one.")] = None,
    se: Annotated[
        float | None, named("--se", "X", "Standard error of the difference, in place of a pilot.")
    ] = None,
    clusters: Annotated[int | None, named("--clusters", "N", "For how many clusters that is.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The answer as JSON.")] = False,
    pairing: MatchOptions,
    reading: ReadOptions,
    counted: EngineOptions,
) -> None:
    """Say how many clusters a new study needs to tell a difference, from a pilot of one or two systems."""
    from abstain import power as asked  # noqa: PLC0415

    pilot = inputs.sources
    options = {} if not pilot else {"confidence": confidence, "loss": loss}
    if len(pilot) > 1:
        options |= pairing.options

    def answered(systems: Mapping[str, Items | Countable], *, show_progress: bool) -> PowerAnswer:
        del show_progress  # it draws nothing
        with at_data(systems):
            return asked(
                *([systems] if systems else []),
                metric=metric,
                difference=difference,
                correlation=correlation,
                se=se,
                clusters=clusters,
                power=power,
                level=level,
                **options,
            )

    found = judged(
        pilot,
        reading,
        counted,
        judge=answered,
        told=lambda answer: answer.provenance,
        confidences=dict.fromkeys(pilot, confidence),
        metrics=metric,
        quiet=as_json,
    )
    if as_json:
        from abstain.report.artifact import finite  # noqa: PLC0415

        values = {part.name: getattr(found, part.name) for part in fields(found) if part.name != "provenance"}
        told = {name: finite(value) if isinstance(value, float) else value for name, value in values.items()}
        say_json(json.dumps(told, indent=2) + "\n")
        return
    say(f"{found}.")
    basis = found.basis
    say(f"{basis[0].upper()}{basis[1:]}.")


COMMANDS: Commands = {"power": (power_command, EXAMPLES)}
