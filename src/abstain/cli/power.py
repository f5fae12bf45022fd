"""`abstain power`: the number of clusters that a new study needs to detect a difference."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Annotated, Any

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import announcer, column_arguments, reading_bar
from abstain.cli._terminal import print_json, print_sentences

_METRIC = "Metric to compare; see `abstain metrics`."
_DIFFERENCE = "Smallest difference that matters, in units of the metric."
_POWER = "Power: the probability of detecting a true difference of this size."
_LEVEL = "Confidence level of the confidence interval that must exclude zero."
_CORRELATION = (
    "Assumed correlation between two systems if the pilot has only one. Default: 0.5, none for areas."
)
_LOSS = "Loss of an answer: zero_one, abs or abs_norm. Default: set by the scale or the type of the labels."
_SE = "Standard error of the difference, instead of a pilot; requires --clusters."
_CLUSTERS = "Number of clusters that the standard error is for."

EXAMPLES = """\b
Examples:
  abstain power pilot.json --mode few_shot --metric accuracy --difference 0.05
  abstain power a.csv b.csv --item id --cluster patient --metric augrc \\
      --difference 0.02 --power 0.9
  abstain power --se 0.015 --clusters 41 --metric augrc --difference 0.02
"""


@opt.expand_option_groups
def power_command(
    *,
    inputs: opt.Inputs,
    metric: Annotated[
        str,
        typer.Option("--metric", "-m", metavar="NAME", help=_METRIC),
    ],
    difference: Annotated[float, typer.Option(metavar="D", help=_DIFFERENCE)],
    power: Annotated[float, typer.Option(metavar="PROPORTION", help=_POWER)] = 0.8,
    level: Annotated[float, typer.Option(metavar="PROPORTION", help=_LEVEL)] = 0.95,
    correlation: Annotated[float | None, opt.named("--correlation", "R", _CORRELATION)] = None,
    confidence: opt.RankedBy = None,
    loss: Annotated[str | None, opt.named("--loss", "NAME", _LOSS)] = None,
    se: Annotated[float | None, opt.named("--se", "X", _SE)] = None,
    clusters: Annotated[int | None, opt.named("--clusters", "N", _CLUSTERS)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Compute the number of clusters that a new study needs, from a pilot of one or two systems."""
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
        print_json(json.dumps(document, indent=2) + "\n")
        return
    basis = answer.basis
    print_sentences([f"{answer}.", f"{basis[0].upper()}{basis[1:]}."])


COMMANDS: opt.Commands = {"power": (power_command, EXAMPLES)}
