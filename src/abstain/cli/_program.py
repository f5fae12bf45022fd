"""How a call of the command line ends: with an exit code and at most one line on stderr.

| code | meaning |
|---|---|
| 0 | done |
| 1 | the gate's verdict is "fail" |
| 2 | the call is wrong, or the operating system refuses a file |
| 3 | the data are wrong, or larger than the memory |
| 4 | the gate's verdict is "inconclusive", or no threshold has a risk guarantee |
| 70 | unexpected: a defect of abstain |
| 130 | interrupted (128 + the number of the signal) |
| 141 | the reader of the output went away |
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from abstain import _process
from abstain.cli._config import finish_config
from abstain.cli._terminal import say, say_error
from abstain.errors import AbstainError, ArgumentError, DataError, lacks_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

CRASHED = 70
_INTERRUPTED = 130
_NO_READER = 141
# The class of typer's usage errors has no public name in every supported release; BadParameter is one of them.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

# The headings of options in the help of a verb, in this order.
QUESTION, DATA, MODEL, INTERVALS, OUTPUT = HEADINGS = (
    "Question",
    "Data",
    "Model",
    "Intervals",
    "Output",
)


# The verbs that take --engine, and those that need every row.
COUNTING = ("check", "compare", "evaluate", "gate", "plot", "power", "report")
ROW_BY_ROW = ("apply", "intervals", "sets", "threshold", "train", "verbalized")


class Command(TyperCommand):
    """A verb whose options may stand in a file of the project, and whose help has them under headings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a call, and fill in what it left out."""
        if self.name in ROW_BY_ROW and any(part.partition("=")[0] == "--engine" for part in args):
            raise ArgumentError(
                f"{self.name} looks at every row, and loads what it reads; --engine is for {', '.join(COUNTING[:-1])} "
                f"and {COUNTING[-1]}"
            )
        rest: list[str] = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            finish_config(ctx)
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by heading, then the others."""
        sections: dict[str, list[tuple[str, str]]] = {
            name: [] for name in ("Arguments", *HEADINGS, "Options")
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = "Arguments" if parameter.param_type_name == "argument" else None
                sections[panel or getattr(parameter, "rich_help_panel", None) or "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class CommandGroup(TyperGroup):
    """A verb that has subcommands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the subcommand of a call; an error names all of them."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            names = self.list_commands(ctx)
            raise ArgumentError(
                f"abstain {self.name} needs a subcommand ({' or '.join(names)}), got {args[0]!r}; see "
                f"abstain {self.name} {names[-1]} --help"
            )
        return super().resolve_command(ctx, args)


@contextlib.contextmanager
def ending_in_exit_code() -> Iterator[None]:
    """Turn every error and interrupt into a line on stderr and an exit code."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as problem:
        if isinstance(problem, typer.Exit) and _process.stop_code() is None:
            code = problem.exit_code
        else:
            code = _report(problem)
        _process.ignore_stops()
        raise typer.Exit(code) from None


def _report(problem: BaseException) -> int:
    """Print one line about a problem and return the exit code."""
    try:
        return _print_problem(problem)
    except OSError as refused:  # nothing can be printed, as after `| head` or on a full disk
        _discard_output()
        if _process.stop_code() is not None:
            return _process.stop_code() or _INTERRUPTED
        return _NO_READER if isinstance(refused, BrokenPipeError) else ArgumentError.exit_code


def _print_problem(problem: BaseException) -> int:
    stop_code = _process.stop_code()
    # An engine may turn the interrupt into an error of its own.
    if stop_code is not None or isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        kept = str(problem) if isinstance(problem, KeyboardInterrupt) else ""
        say_error(kept or "interrupted; nothing was written")
        return stop_code or _INTERRUPTED
    if isinstance(problem, _UsageError):
        usage = io.StringIO()
        problem.show(file=usage)
        say(usage.getvalue(), error=True, end="")
        return int(problem.exit_code)
    if isinstance(problem, BrokenPipeError):
        raise problem
    if isinstance(problem, OSError):
        say_error(_refusal(problem))
        _discard_output()
        return ArgumentError.exit_code
    if lacks_memory(problem):
        say_error("the memory does not suffice for these data; judge fewer columns or rows at a time")
        return DataError.exit_code
    if isinstance(problem, AbstainError):
        say_error(problem)
        return problem.exit_code
    if _process.debugging():
        say("".join(traceback.format_exception(problem)), error=True, end="")
    say(_crash_line(problem), error=True)
    return CRASHED


def _refusal(problem: OSError) -> str:
    """Return an error of the operating system in its words: a full disk, a locked folder."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return "the working directory no longer exists; change to one that does"
    path = f"{problem.filename}: " if isinstance(problem.filename, str) else ""
    return f"{path}the system refuses it ({problem.strerror or type(problem).__name__})"


def _discard_output() -> None:
    """Discard what a stream cannot take; otherwise Python would fail with it at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _process.silence(stream)


def _crash_line(problem: BaseException) -> str:
    """Return one line about an unexpected error: where it happened, and no text of any file."""
    from abstain import __version__  # noqa: PLC0415

    home = Path(_process.__file__).parent
    frames = [
        frame for frame in traceback.extract_tb(problem.__traceback__) if home in Path(frame.filename).parents
    ]
    where = f" at {Path(frames[-1].filename).relative_to(home)}:{frames[-1].lineno}" if frames else ""
    return (
        f"abstain: unexpected {type(problem).__name__}{where} (abstain {__version__}, Python "
        f"{platform.python_version()}, {platform.system()}): a defect of abstain; please report this line to the "
        f"project's issue tracker. {_process.DEBUG}=1 shows the traceback, which may show text of your files"
    )
