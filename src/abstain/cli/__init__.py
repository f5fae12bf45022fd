"""The command line: one module per command, which parses options, calls a function and prints the result.

The module of a command is imported when the command is called, so that `abstain --help` is fast. Every call ends in
`_program` with an exit code. Text is printed through `_terminal`, and files are written through `abstain._outputs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from abstain import _process
from abstain.cli._program import HELP_WIDTH, Command, CommandGroup, ending_in_exit_code
from abstain.cli._terminal import print_text

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from abstain.cli._options import Commands

__all__ = ["app", "main"]


# The commands by their headings in the help, each with its summary.
_HEADINGS = {
    "Run": {
        "run": "Run a model that may decline on a table of questions.",
    },
    "Evaluate": {
        "check": "Show what a file contains and which metrics it supports.",
        "evaluate": "Evaluate one system: coverage, error rate, risk-coverage areas.",
        "compare": "Compare systems: differences, verdicts, ranks.",
        "intervals": "Evaluate prediction intervals: coverage and width.",
        "sets": "Evaluate prediction sets: coverage and size.",
    },
    "Decide": {
        "threshold": "Choose a threshold with a risk guarantee, or check a guarantee.",
        "apply": "Apply a policy to new rows: answer or defer.",
        "gate": "Pass or fail a run by conditions on its metrics, for CI.",
        "power": "Compute the number of clusters that a new study needs.",
        "calibrate": "Turn a confidence into a probability of being correct.",
    },
    "Report": {
        "report": "Write an HTML report.",
        "plot": "Draw one chart as SVG, PNG, PDF or HTML.",
    },
    "Learn": {
        "metrics": "List the metrics and the data that each one needs.",
        "demo": "Try abstain on two classifiers that may decline.",
        "schema": "Print the JSON Schema of an output file.",
    },
}
# The module of a command has the name of the command, with these exceptions.
_MODULES = {"intervals": "conformal", "sets": "conformal"}
_NAMES = [name for commands in _HEADINGS.values() for name in commands]


class LazyCommands(Mapping[str, Any]):
    """The commands by name; the module of a command is imported when the command is looked up."""

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)

    def __getitem__(self, name: str) -> Any:
        if name not in _NAMES:
            raise KeyError(name)
        module = import_module(f"{__name__}.{_MODULES.get(name, name)}")
        commands: Commands = module.COMMANDS
        if name in commands:
            commands = {name: commands[name]}
        group = typer.Typer(
            name=name,
            cls=CommandGroup,
            help=None if name in commands else module.HELP,
            no_args_is_help=name not in commands,
            add_completion=False,
            rich_markup_mode=None,
        )
        for command_name, (function, examples) in commands.items():
            group.command(command_name, epilog=examples, cls=Command)(function)
        return get_command(group)


class _Program(TyperGroup):
    """The root of the command line; every call ends with an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("MutableMapping[str, Any]", LazyCommands())

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the commands under their headings, without importing their modules."""
        width = max(map(len, _NAMES))
        for heading, commands in _HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the root."""
        with ending_in_exit_code():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with ending_in_exit_code():
            super().invoke(ctx)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        _process.ignore_stops()


app = typer.Typer(
    name="abstain",
    cls=_Program,
    help=(
        "Evaluate models that may decline to answer.\n\n"
        "\b\nStart with:\n"
        "  abstain demo\n"
        "  abstain check preds.csv\n"
        "  abstain evaluate preds.csv --truth label --prediction pred\n\n"
        "`abstain COMMAND --help` shows the common options and examples. A project can set columns, loss, level and "
        "gates in abstain.toml, or under [tool.abstain] in pyproject.toml."
    ),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH},
)


def _show_version(requested: bool) -> None:
    if requested:
        import abstain  # noqa: PLC0415
        from abstain.resampling import description  # noqa: PLC0415

        print_text(f"abstain {abstain.__version__}\nkernel: {description()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Evaluate models that may decline to answer."""


def main() -> None:
    """Run the command line."""
    app(prog_name="abstain")
