"""How a call of the command line ends: as a sentence on stderr and an exit code, whatever happened in it.

0    done                        3    the data are wrong, or more than the memory holds
1    the gate's "fail"           4    the gate's "inconclusive", or no threshold can be promised
2    the call is wrong, or the   70   unexpected: a defect of abstain
system refuses a file       130  interrupted (128 + the number of the signal)
141  the reader of the output went away
"""

from __future__ import annotations

import io
import os
import platform
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from abstain import _process
from abstain.cli._config import configure
from abstain.cli._terminal import say, say_error
from abstain.errors import AbstainError, ArgumentError, DataError, lacks_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

CRASHED = 70
_INTERRUPTED = 130
_NO_READER = 141
# The class of typer's own usage errors has no public name in every release; it is found through one of them.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


# The headings under which options stand in the help of a verb, in this order.
QUESTION, DATA, MODEL, INTERVALS, OUTPUT = HEADINGS = (
    "Question",
    "Data",
    "Model",
    "Intervals",
    "Output",
)


# The verbs that can do with rows that an engine counts, and those that need each of them.
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
            configure(ctx)
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


class VerbGroup(TyperGroup):
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


class Program(TyperGroup):
    """The root of the command line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002
        windows_expand_args: bool = True,  # noqa: ARG002
        **extra: Any,
    ) -> NoReturn:
        """Run a call and exit; nothing leaves here but an exit code."""
        name = prog_name or "abstain"
        try:
            self._main_shell_completion(extra, name, complete_var)
            with self.make_context(name, list(sys.argv[1:] if args is None else args), **extra) as context:
                self.invoke(context)
            code = _flushed()
        except Exception as problem:
            code = _ended(problem)
        except KeyboardInterrupt:
            code = _interrupted()
        _process.ignore_stops()
        sys.exit(code)


def _flushed() -> int:
    """Bring out what was printed while its failing can still be told."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return 0


def _ended(problem: Exception) -> int:
    """Say how a call ended, if it is not said yet, and return the exit code."""
    if _process.stop_code() is not None:
        return _interrupted()
    try:
        if isinstance(problem, typer.Exit):
            _flushed()
            return problem.exit_code
        return _told(problem)
    except OSError as refused:
        return _unsaid(refused)


def _told(problem: Exception) -> int:
    if isinstance(problem, typer.Abort):
        return _interrupted()
    if isinstance(problem, _UsageError):
        usage = io.StringIO()
        problem.show(file=usage)
        say(usage.getvalue(), error=True, end="")
        return int(problem.exit_code)
    if isinstance(problem, OSError):
        return _refused(problem)
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


def _refused(problem: OSError) -> int:
    """What the system refuses is told in its words: a full disk, a locked folder, a working directory that is gone."""
    if isinstance(problem, BrokenPipeError):
        return _unsaid(problem)
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        say_error("the working directory no longer exists; change to one that does")
        return ArgumentError.exit_code
    place = f"{problem.filename}: " if isinstance(problem.filename, str) else ""
    say_error(f"{place}the system refuses it ({problem.strerror or type(problem).__name__})")
    return _unsaid(problem)


def _unsaid(problem: OSError) -> int:
    """Nothing more can be printed, as after `| head` or on a full disk: let the exit code alone tell it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _process.silence(stream)
    return _NO_READER if isinstance(problem, BrokenPipeError) else ArgumentError.exit_code


def _interrupted() -> int:
    try:
        if not _process.is_stop_told():
            say_error("interrupted; nothing was written")
    except OSError as problem:
        _unsaid(problem)
    return _process.stop_code() or _INTERRUPTED


def _crash_line(problem: BaseException) -> str:
    """Return the one line for what nobody expected: where it happened, and nothing of what any file says."""
    from abstain import __version__  # noqa: PLC0415

    home = Path(_process.__file__).parent
    steps = [
        step for step in traceback.extract_tb(problem.__traceback__) if home in Path(step.filename).parents
    ]
    where = f" at {Path(steps[-1].filename).relative_to(home)}:{steps[-1].lineno}" if steps else ""
    return (
        f"abstain: unexpected {type(problem).__name__}{where} (abstain {__version__}, Python "
        f"{platform.python_version()}, {platform.system()}): a defect of abstain; please report this line to the "
        f"project's issue tracker. {_process.DEBUG}=1 shows the traceback, which may show text of your files"
    )
