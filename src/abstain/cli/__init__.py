"""The command line: one module per verb, or per two that are alike; each parses, calls and prints.

Nothing heavy is imported before a verb runs, so that `abstain --help` answers at once. Every mistake that a
person can make ends here, in one handler: a sentence on stderr and an exit code (2 for the call, 3 for the
data), never a traceback.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any

import typer

from abstain.cli import (
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
)
from abstain.errors import AbstainError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    name="abstain",
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

        typer.echo(f"abstain {abstain.__version__}")
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
    """Add a verb; whatever goes wrong in it ends as a sentence on stderr and an exit code."""

    @functools.wraps(verb)
    def guarded(*arguments: Any, **options: Any) -> None:
        try:
            verb(*arguments, **options)
        except AbstainError as problem:
            typer.echo(f"abstain: {problem}", err=True)
            raise typer.Exit(problem.exit_code) from None
        except KeyboardInterrupt:
            typer.echo("abstain: interrupted; nothing was written", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader went away, as `| head` does; there is nobody left to tell.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None

    within.command(name, epilog=epilog)(guarded)


_register("evaluate", evaluate.evaluate_command, evaluate.EXAMPLES)
_register("report", report.report_command, report.EXAMPLES)
_register("plot", plot.plot_command, plot.EXAMPLES)
_register("check", check.check_command, check.EXAMPLES)
_register("compare", compare.compare_command, compare.EXAMPLES)
_register("gate", gate.gate_command, gate.EXAMPLES)
_register("verbalized", calibrate.verbalized_command, calibrate.VERBALIZED_EXAMPLES, within=calibrate_app)
_register("train", calibrate.train_command, calibrate.TRAIN_EXAMPLES, within=calibrate_app)
_register("intervals", conformal.intervals_command, conformal.INTERVALS_EXAMPLES)
_register("sets", conformal.sets_command, conformal.SETS_EXAMPLES)
_register("power", power.power_command, power.EXAMPLES)
_register("metrics", metrics.metrics_command, metrics.EXAMPLES)
_register("demo", demo.demo_command)
_register("schema", schema.schema_command)


def main() -> None:
    """Run the command line."""
    app()
