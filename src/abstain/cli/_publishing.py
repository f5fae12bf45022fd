"""From a result to the screen and to files: which formats are requested, and what is written where."""

from __future__ import annotations

import io
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from abstain import _outputs, _process
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
    """A result and the functions that render it; an HTML report is the same for every kind of result."""

    result: Any
    results_json: Callable[[Any], bytes]
    tables: Callable[[Any], Sequence[Table]]
    summary: Callable[..., Any]

    def render_file(self, form: str, path: Path) -> OutputFile:
        """Return the file at a path in a format."""
        if form == "json":
            return OutputFile("artifact:", path, self.results_json(self.result))
        if form == "html":
            from abstain.report.html import report_html  # noqa: PLC0415

            page = report_html(self.result, command=command_line(sys.argv[1:]))
            return OutputFile("report:", path, encode_text(page))
        if form == "text":
            return OutputFile("summary:", path, encode_text(self._summary_text()))
        from abstain.report.tables import render  # noqa: PLC0415

        return OutputFile("table:", path, encode_text(render(self.tables(self.result), form)))

    def _summary_text(self) -> str:
        """Return the summary for a file, without colours and at a fixed width."""
        from rich.console import Console  # noqa: PLC0415

        from abstain.report.console import WIDTH  # noqa: PLC0415

        console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
        with console.capture() as printed:
            console.print(self.summary(self.result, width=WIDTH))
        return printed.get()


def renderers_of(result: Result, *, json_of_tables: bool = False) -> Renderers:
    """Return how the result of an evaluation or comparison is rendered.

    The results JSON of a comparison is its tables, which hold any number of systems.
    """

    def results_json(result: Result) -> bytes:
        from abstain.report.results_json import encode, results_json  # noqa: PLC0415
        from abstain.report.tables import render  # noqa: PLC0415

        if json_of_tables:
            return encode_text(render(tables(result), "json"))
        return encode(results_json(result, datetime.now(UTC)))

    # The views import rich, which the results JSON does not need.
    def tables(result: Result) -> Sequence[Table]:
        from abstain.report import views  # noqa: PLC0415

        return views.tables(result)

    def summary(result: Result, width: int) -> Any:
        from abstain.report import views  # noqa: PLC0415

        return views.summary(result, width=width)

    return Renderers(result, results_json, tables, summary)


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
    result = renderers.result
    files = [] if output is None else [renderers.render_file(formats.written, output)]
    files += further
    paths_only = formats.quiet and bool(files)
    if formats.as_json:
        say_json(renderers.results_json(result).decode())
    elif not paths_only:
        print_tables(
            formats.printed, lambda: renderers.tables(result), lambda: show(renderers.summary, result)
        )
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
    outputs = [path for path in paths if path is not None]
    if outputs:
        _outputs.check_outputs(outputs, inputs=inputs)


def write_files(contents: Mapping[Path, bytes], *, inputs: Sequence[Path]) -> None:
    """Write the files of a command after its result was printed; from here on, signals do not stop it."""
    _process.begin_to_write()
    if contents:
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
