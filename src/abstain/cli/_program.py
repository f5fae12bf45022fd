"""How a call of the command line ends: with an exit code and at most one line on stderr. Also the help of commands.

| code | meaning |
|---|---|
| 0 | done |
| 1 | the gate's verdict is "fail", or a risk guarantee is broken |
| 2 | wrong usage, or the operating system refuses a file |
| 3 | wrong data, data larger than the memory, or a model server that fails |
| 4 | the gate's verdict is "inconclusive", or no threshold has a risk guarantee |
| 70 | unexpected: a defect of abstain |
| 130 | interrupted (128 + the number of the signal) |
| 141 | the reader of the output closed the pipe |
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from abstain import _process
from abstain.cli._config import finish_config
from abstain.cli._terminal import print_error, print_text
from abstain.errors import AbstainError, ArgumentError, DataError, lacks_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

CRASHED = 70
_INTERRUPTED = 130
_NO_READER = 141
# The base class of usage errors has a public name only in some supported releases of typer.
_UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

HELP_WIDTH = 100
# The headings of options in the full help of a command, in this order.
MAIN, DATA, MODEL, INTERVALS, OUTPUT = HEADINGS = (
    "Main options",
    "Data",
    "Model",
    "Confidence intervals",
    "Output",
)
# The options that the short help shows, in this order; --help-all shows all of them under their headings.
COMMON_OPTIONS = {
    "apply": "--output --column --abstained --calibration",
    "check": "--truth --prediction --correct --abstained --confidence --cluster --mode --json",
    "compare": (
        "--truth --prediction --abstained --confidence --item --cluster --metric --reference --margin --loss --mode "
        "--level --output --json --explain"
    ),
    "evaluate": (
        "--truth --prediction --correct --abstained --confidence --cluster --metric --by --loss --mode --level "
        "--output --json --explain"
    ),
    "gate": (
        "--fail-if --baseline --policy --inconclusive --truth --prediction --abstained --confidence --item --cluster "
        "--loss --mode --level --output --json --github"
    ),
    "intervals": "--truth --low --high --nominal --cluster --by --margin --level --output --charts --json",
    "plot": (
        "--output --chart --truth --prediction --abstained --confidence --cluster --loss --mode --of --of-system "
        "--level"
    ),
    "power": (
        "--metric --difference --power --level --truth --prediction --confidence --item --cluster --mode --se "
        "--clusters --json"
    ),
    "report": (
        "--output --truth --prediction --abstained --confidence --cluster --metric --by --loss --mode --risk --level "
        "--title --open"
    ),
    "run": (
        "--model --signals --output --question --truth --choices --cluster --mode --examples --limit --dry-run "
        "--resume --compute-aurc"
    ),
    "sets": "--truth --set --members --nominal --cluster --by --margin --level --output --charts --json",
    "threshold": (
        "--risk --sure --risk-type --by --check --split --truth --prediction --abstained --confidence --cluster --loss "
        "--mode --output --json"
    ),
    "train": (
        "--output --method --features --confidence --target --truth --prediction --abstained --cluster --mode --folds "
        "--json"
    ),
    "verbalized": "--output --mode --folds --cluster --json --quiet",
}
_SHOWS_ALL = "abstain.help_all"

# The commands with --engine, and the commands that need every row.
COUNTING = ("check", "compare", "evaluate", "gate", "plot", "power", "report")
ROW_BY_ROW = ("apply", "intervals", "sets", "threshold", "train", "verbalized")


class Command(TyperCommand):
    """A command whose options may be set in a project file, with a short and a full help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a call, and take missing options from the project file."""
        if self.name in ROW_BY_ROW and any(part.partition("=")[0] == "--engine" for part in args):
            raise ArgumentError(
                f"{self.name} looks at every row and loads the whole table; --engine is for "
                f"{', '.join(COUNTING[:-1])} and {COUNTING[-1]}"
            )
        rest: list[str] = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            finish_config(ctx)
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the common options, or all options under their headings."""
        parameters = self.get_params(ctx)
        arguments = [each for each in parameters if each.param_type_name == "argument"]
        options = [each for each in parameters if each.param_type_name != "argument"]
        sections = {"Arguments": arguments}
        common_flags = self._common_flags(ctx)
        if common_flags:
            by_flag = {flag: option for option in options for flag in option.opts}
            sections["Common options"] = [by_flag[flag] for flag in (*common_flags, "--help", "--help-all")]
        else:
            for heading in (*HEADINGS, "Options"):
                sections[heading] = [each for each in options if _heading(each) == heading]
        for heading, shown in sections.items():
            records = [record for each in shown if (record := _help_record(each, ctx)) is not None]
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, and how to show the other options."""
        super().format_epilog(ctx, formatter)
        if self._common_flags(ctx):
            formatter.write(f"\nMore options: {ctx.command_path} --help-all\n")

    def _common_flags(self, ctx: Any) -> list[str]:
        """Return the options of the short help; empty if the help shows all options."""
        return [] if _SHOWS_ALL in ctx.meta else COMMON_OPTIONS.get(self.name or "", "").split()


def show_all_options(context: typer.Context, requested: bool) -> None:
    """Print the help with all options and exit: the callback of the eager option --help-all."""
    if requested and not context.resilient_parsing:
        context.meta[_SHOWS_ALL] = True
        print_text(context.get_help())
        raise typer.Exit


def _heading(option: Any) -> str:
    return getattr(option, "rich_help_panel", None) or "Options"


def _help_record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """Return the names of a parameter and its help, with the default as a sentence."""
    record = parameter.get_help_record(ctx)
    if record is None:
        return None
    names, text = record
    text = re.sub(r"\s*\[default: (.*)\]$", r" Default: \1.", text)
    return names, re.sub(r"\s*\[required\]$", " Required.", text)


class CommandGroup(TyperGroup):
    """A command that has subcommands."""

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
    """Turn every error and every interrupt into a line on stderr and an exit code."""
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
    except OSError as refused:  # nothing can be printed, for example after `| head` or on a full disk
        _discard_output()
        if _process.stop_code() is not None:
            return _process.stop_code() or _INTERRUPTED
        return _NO_READER if isinstance(refused, BrokenPipeError) else ArgumentError.exit_code


def _print_problem(problem: BaseException) -> int:
    stop_code = _process.stop_code()
    # An engine may raise its own error when it is interrupted.
    if stop_code is not None or isinstance(problem, (KeyboardInterrupt, typer.Abort)):
        kept = str(problem) if isinstance(problem, KeyboardInterrupt) else ""
        print_error(kept or "interrupted; nothing was written")
        return stop_code or _INTERRUPTED
    if isinstance(problem, _UsageError):
        usage = io.StringIO()
        problem.show(file=usage)
        print_text(usage.getvalue(), error=True, end="")
        return int(problem.exit_code)
    if isinstance(problem, BrokenPipeError):
        raise problem
    if isinstance(problem, OSError):
        print_error(_refusal(problem))
        _discard_output()
        return ArgumentError.exit_code
    if lacks_memory(problem):
        print_error("the memory does not suffice for these data; evaluate fewer columns or rows at a time")
        return DataError.exit_code
    if isinstance(problem, AbstainError):
        print_error(problem)
        return problem.exit_code
    if _process.debugging():
        print_text("".join(traceback.format_exception(problem)), error=True, end="")
    print_text(_crash_line(problem), error=True)
    return CRASHED


def _refusal(problem: OSError) -> str:
    """Return the message of an error of the operating system, such as a full disk or a locked folder."""
    try:
        os.getcwd()  # noqa: PTH109
    except OSError:
        return "the working directory no longer exists; change to one that does"
    path = f"{problem.filename}: " if isinstance(problem.filename, str) else ""
    return f"{path}the system refuses it ({problem.strerror or type(problem).__name__})"


def _discard_output() -> None:
    """Discard unwritten output of the streams; otherwise Python would fail to write it at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _process.silence(stream)


def _crash_line(problem: BaseException) -> str:
    """Return one line about an unexpected error: its module and line, but no text of any file."""
    from abstain import __version__  # noqa: PLC0415

    home = Path(_process.__file__).parent
    frames = [
        frame for frame in traceback.extract_tb(problem.__traceback__) if home in Path(frame.filename).parents
    ]
    location = f" at {Path(frames[-1].filename).relative_to(home)}:{frames[-1].lineno}" if frames else ""
    return (
        f"abstain: unexpected {type(problem).__name__}{location} (abstain {__version__}, Python "
        f"{platform.python_version()}, {platform.system()}): a defect of abstain; please report this line to the "
        f"project's issue tracker. {_process.DEBUG}=1 shows the traceback, which may show text of your files"
    )
