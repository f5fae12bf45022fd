"""The command line: one module per verb, or per two that are alike; each parses, calls and prints.

Nothing heavy is imported before a verb runs, so that `abstain --help` answers at once. However a call ends, it ends in
`_program`, as an exit code and a sentence; everything that is printed goes through `_terminal`, and everything that is
written through `abstain._outputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from abstain.cli import (
    apply,
    calibrate,
    check,
    compare,
    conformal,
    demo,
    evaluate,
    gate,
    metrics,
    plot,
    power,
    report,
    schema,
    threshold,
)
from abstain.cli._program import Program
from abstain.cli._terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["app", "main"]

app = typer.Typer(
    name="abstain",
    cls=Program,
    help=(
        "Judge models that may decline to answer.\n\n"
        "Start with `abstain demo`, then `abstain evaluate run.json --mode few_shot`."
    ),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

calibrate_app = typer.Typer(
    help="Turn raw confidence into a probability of being right.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(calibrate_app, name="calibrate")


def _show_version(asked: bool) -> None:
    if asked:
        import abstain  # noqa: PLC0415
        from abstain.tally import description  # noqa: PLC0415

        say(f"abstain {abstain.__version__}\nkernel: {description()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Judge models that may decline to answer."""


def _register(
    name: str, verb: Callable[..., None], epilog: str | None = None, *, within: typer.Typer = app
) -> None:
    """Add a verb."""
    within.command(name, epilog=epilog)(verb)


_register("evaluate", evaluate.evaluate_command, evaluate.EXAMPLES)
_register("report", report.report_command, report.EXAMPLES)
_register("plot", plot.plot_command, plot.EXAMPLES)
_register("check", check.check_command, check.EXAMPLES)
_register("compare", compare.compare_command, compare.EXAMPLES)
_register("gate", gate.gate_command, gate.EXAMPLES)
_register("threshold", threshold.threshold_command, threshold.EXAMPLES)
_register("apply", apply.apply_command, apply.EXAMPLES)
_register("verbalized", calibrate.verbalized_command, calibrate.VERBALIZED_EXAMPLES, within=calibrate_app)
_register("train", calibrate.train_command, calibrate.TRAIN_EXAMPLES, within=calibrate_app)
_register("intervals", conformal.intervals_command, conformal.INTERVALS_EXAMPLES)
_register("sets", conformal.sets_command, conformal.SETS_EXAMPLES)
_register("power", power.power_command, power.EXAMPLES)
_register("metrics", metrics.metrics_command, metrics.EXAMPLES)
_register("demo", demo.demo_command)
_register("schema", schema.schema_command)


def main() -> None:
    """Run the command line within a process that `abstain.__main__` has prepared, or that is somebody else's."""
    app()
