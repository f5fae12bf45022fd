"""`abstain schema`: print the JSON Schema of an output file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from abstain.cli._terminal import print_json

if TYPE_CHECKING:
    from abstain.cli._options import Commands

EXAMPLES = """\b
Examples:
  abstain schema metrics
  abstain schema metrics > metrics.schema.json
  abstain schema policy > policy.schema.json
"""
KINDS = ("metrics", "calibration", "conformal", "policy")


def schema_command(
    kind: str = typer.Argument(help=f"Type of file: {', '.join(KINDS)}.", metavar="KIND", show_default=False),
) -> None:
    """Print the JSON Schema of an output file."""
    from abstain import _validate  # noqa: PLC0415
    from abstain.calibrators import calibration_schema  # noqa: PLC0415
    from abstain.report.results_json import metrics_schema  # noqa: PLC0415
    from abstain.report.results_json_conformal import conformal_schema  # noqa: PLC0415
    from abstain.thresholds import policy_schema  # noqa: PLC0415

    _validate.choice(kind, "schema", KINDS)
    schemas = {
        "metrics": metrics_schema,
        "calibration": calibration_schema,
        "conformal": conformal_schema,
        "policy": policy_schema,
    }
    print_json(json.dumps(schemas[kind](), indent=2) + "\n")


COMMANDS: Commands = {"schema": (schema_command, EXAMPLES)}
