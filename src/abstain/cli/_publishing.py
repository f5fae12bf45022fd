"""From a result to the screen and to files: which formats are requested, and what is written where."""

from __future__ import annotations

import io
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain.cli._config import spelled_settings
from abstain.cli._terminal import say, say_json, show
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain.evaluation import Result
    from abstain.report.tables import Table

_KEEP = "To keep it: -o NAME.json (every number), .html (a report), .md .csv .tex .txt"
# A file name may have 255 bytes, and a letter takes at most four; an ending follows.
_LONGEST_STEM = 50


class OutputFormats(NamedTuple):
    """What a command prints and writes.

    Attributes:
        printed: the table that is printed in place of the summary; "text" for the summary.
        written: the format of the output file.
        as_json: True to print the results JSON.
        quiet: True to print only the paths of written files.
    """

    printed: str
    written: str
    as_json: bool
    quiet: bool


def choose_formats(
    table_format: str | None,
    output: Path | None,
    *,
    native: str = "json",
    as_json: bool = False,
    quiet: bool = False,
) -> OutputFormats:
    """Return what a command prints and writes; options that contradict each other are an error."""
    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the artifact, the other its path"
        )
    if table_format is not None and (as_json or quiet):
        raise ArgumentError("--format says what to print, and so do --json and --quiet; give one of them")
    if table_format is None and output is None:
        return OutputFormats("text", native, as_json, quiet)
    from abstain.report.tables import format_of  # noqa: PLC0415

    written = format_of(table_format, output, native=native)
    return OutputFormats("text" if table_format is None or output else table_format, written, as_json, quiet)


def check_json_ending(output: Path | None, what: str) -> None:
    """Raise if the ending of an output means another format than JSON."""
    if output is not None and output.suffix.lower() not in ("", ".json"):
        raise ArgumentError(f"{output}: {what} is written as JSON; give the file the ending .json")


class OutputFile(NamedTuple):
    """A file that a command writes."""

    label: str
    path: Path
    content: bytes


class Renderers(NamedTuple):
    """Functions that give a result in each of its formats."""

    results_json: Callable[[], bytes]
    tables: Callable[[], Sequence[Table]]
    print_summary: Callable[[], None]
    page: Callable[[], str] = str
    text: Callable[[], str] = str

    def render_file(self, form: str, path: Path) -> OutputFile:
        """Return the file at a path in a format."""
        if form == "json":
            return OutputFile("artifact:", path, self.results_json())
        if form == "html":
            return OutputFile("report:", path, encode_text(self.page()))
        if form == "text":
            return OutputFile("summary:", path, encode_text(self.text()))
        return OutputFile("table:", path, encode_text(self.render_tables(form)))

    def render_tables(self, form: str) -> str:
        """Return the tables in a format."""
        from abstain.report.tables import render  # noqa: PLC0415

        return render(self.tables(), form)


def renderers_of(result: Result) -> Renderers:
    """Return the functions that render the result of an evaluation or comparison."""

    def results_json() -> bytes:
        from abstain.report.artifact import artifact, encode  # noqa: PLC0415

        return encode(artifact(result, datetime.now(UTC)))

    def tables() -> Sequence[Table]:
        from abstain.report.views import tables  # noqa: PLC0415

        return tables(result)

    def text() -> str:
        from abstain.report.views import summary  # noqa: PLC0415

        return summary_text(summary, result)

    return Renderers(results_json, tables, lambda: print_result(result), lambda: report_page(result), text)


def report_page(result: Any) -> str:
    """Return the HTML report of a result."""
    from abstain.report.html import report_html  # noqa: PLC0415

    return report_html(result, command=command_line(sys.argv[1:]))


def print_result(result: Result) -> None:
    """Print the summary of a result."""
    from abstain.report.views import summary  # noqa: PLC0415

    show(summary, result)


def summary_text(summary: Callable[..., Any], result: Any) -> str:
    """Return a summary for a file, without colours and at a fixed width."""
    from rich.console import Console  # noqa: PLC0415

    from abstain.report.console import WIDTH  # noqa: PLC0415

    console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
    with console.capture() as printed:
        console.print(summary(result, width=WIDTH))
    return printed.get()


def print_tables(form: str, tables: Callable[[], Sequence[Table]], print_summary: Callable[[], None]) -> None:
    """Print tables in a format; the summary if that is "text"."""
    if form == "text":
        print_summary()
        return
    from abstain.report.tables import render  # noqa: PLC0415

    say(render(tables(), form), end="")


def publish(
    formats: OutputFormats,
    renderers: Renderers,
    output: Path | None,
    *,
    inputs: Sequence[Path],
    further: Sequence[OutputFile] = (),
) -> None:
    """Print a result and write its files; then print the paths of the files, or how to keep the result."""
    files = [] if output is None else [renderers.render_file(formats.written, output)]
    files += further
    paths_only = formats.quiet and bool(files)
    if formats.as_json:
        say_json(renderers.results_json().decode())
    elif not paths_only:
        print_tables(formats.printed, renderers.tables, renderers.print_summary)
    write_files({file.path: file.content for file in files}, inputs=inputs)
    if formats.as_json or formats.printed != "text":
        return
    if formats.quiet:
        for file in files:
            say(file.path)
        return
    width = max((len(file.label) for file in files), default=0)
    lines = [f"{file.label:<{width}} {file.path}" for file in files] or [_KEEP]
    say("\n".join(["", *lines]))


def check_outputs(*paths: Path | None, inputs: Sequence[Path]) -> None:
    """Raise before the work starts if an output cannot be written, or is an input."""
    named = [path for path in paths if path is not None]
    if named:
        from abstain import _outputs  # noqa: PLC0415

        _outputs.check_outputs(named, inputs=inputs)


def write_files(contents: Mapping[Path, bytes], *, inputs: Sequence[Path]) -> None:
    """Write the files of a command after its result was printed; from here on, signals do not stop it."""
    from abstain import _process  # noqa: PLC0415

    _process.begin_to_write()
    if contents:
        from abstain import _outputs  # noqa: PLC0415

        _outputs.write_files(contents, inputs=inputs)


def encode_text(text: str) -> bytes:
    """Return a text as the content of a file."""
    return text.encode("utf-8", "replace")


def file_name(text: str) -> str:
    """Return a text as the name of a file."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in text)


def new_name(stem: str, ending: str) -> Path:
    """Return a default name for an output; a file of that name is never replaced."""
    path = Path(f"{file_name(stem)[:_LONGEST_STEM]}{ending}")
    if os.path.lexists(path):
        raise ArgumentError(f"{path} is there already; name what is to be written (-o), and it is replaced")
    return path


def command_line(arguments: Sequence[str]) -> str:
    """Return a command as one would type it, including the settings of the project file."""
    return shlex.join(["abstain", *arguments, *spelled_settings()])
