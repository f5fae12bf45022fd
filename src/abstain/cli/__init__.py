"""The command line: one module per verb, or per two similar ones; each parses options, calls a function and prints.

The module of a verb is imported when the verb is called, so that `abstain --help` is fast. Every call ends in
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
from abstain.cli._program import Command, CommandGroup, ending_in_exit_code
from abstain.cli._terminal import say

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from abstain.cli._options import Commands

__all__ = ["app", "main"]


# The verbs by their heading in the help, each with the question that it answers.
_HEADINGS = {
    "Ask": {
        "run": "What does a model answer that may decline, and how sure is it?",
    },
    "Judge": {
        "check": "What is in this file, and what can be computed from it?",
        "evaluate": "How good is a model that may abstain, and how sure is that?",
        "compare": "Which of these systems is better?",
        "intervals": "Do these prediction intervals cover as they claim?",
        "sets": "Do these prediction sets cover as they claim?",
    },
    "Decide": {
        "threshold": "What may it answer if at most 5% of answers may be wrong?",
        "apply": "Which of these rows does it answer under that policy?",
        "gate": "Is this run good enough, or worse than the last? For CI.",
        "power": "How large must a study be to see a difference?",
        "calibrate": "How likely is an answer right at this confidence?",
    },
    "Show": {
        "report": "One HTML page for whoever has to be convinced.",
        "plot": "One chart, as SVG, PNG, PDF or HTML.",
    },
    "Learn": {
        "metrics": "Which metrics are there, and what does each need?",
        "demo": "What does it look like? Two classifiers that may abstain.",
        "schema": "What is in the JSON files? Their schemas.",
    },
}
# A verb is in the module of its name, except these.
_MODULES = {"intervals": "conformal", "sets": "conformal"}
_VERBS = [name for verbs in _HEADINGS.values() for name in verbs]


class _Loaded(Mapping[str, Any]):
    """The verbs as commands; the module of a verb is imported when its command is looked up."""

    def __iter__(self) -> Iterator[str]:
        return iter(_VERBS)

    def __len__(self) -> int:
        return len(_VERBS)

    def __getitem__(self, name: str) -> Any:
        if name not in _VERBS:
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
        for command, (verb, examples) in commands.items():
            group.command(command, epilog=examples, cls=Command)(verb)
        return get_command(group)


class _Program(TyperGroup):
    """The root of the command line; every call ends with an exit code."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("MutableMapping[str, Any]", _Loaded())

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the verbs by heading, without importing their modules."""
        width = max(map(len, _VERBS))
        for heading, verbs in _HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), question) for name, question in verbs.items()])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the root."""
        with ending_in_exit_code():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a verb."""
        with ending_in_exit_code():
            super().invoke(ctx)
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        _process.ignore_stops()


app = typer.Typer(
    name="abstain",
    cls=_Program,
    help=(
        "Judge models that may decline to answer.\n\n"
        "Start with `abstain demo`, then `abstain evaluate run.json --mode few_shot`. "
        "`abstain VERB --help` has examples. Columns, loss, level and gates that a project says once stand in its "
        "abstain.toml, or under [tool.abstain] in its pyproject.toml."
    ),
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        import abstain  # noqa: PLC0415
        from abstain.resampling import description  # noqa: PLC0415

        say(f"abstain {abstain.__version__}\nkernel: {description()}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Judge models that may decline to answer."""


def main() -> None:
    """Run the command line, in a process that `abstain.__main__` has prepared or in any other."""
    app(prog_name="abstain")
