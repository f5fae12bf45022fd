"""From a result to the terminal and to files: requested formats, renderers and output files."""

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
from abstain.cli._terminal import print_json, print_summary, print_text
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abstain.evaluation import Result
    from abstain.report.tables import Table

_KEEP = "To save it: -o NAME.json (all results), .html (a report), .md .csv .tex .txt"
# A file name may have 255 bytes, a letter takes at most four of them, and an ending follows.
_LONGEST_STEM = 50


class OutputFormats(NamedTuple):
    """The formats of printed and written results.

    Attributes:
        printed: the format of the printed table; "text" prints the summary.
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
    """Return the formats of a command; options that contradict each other are an error."""
    if as_json and quiet:
        raise ArgumentError(
            "--json and --quiet exclude each other: one prints the results JSON, the other only the path of a file"
        )
    if table_format is not None and (as_json or quiet):
        raise ArgumentError("--format, --json and --quiet exclude each other; pass one of them")
    if table_format is None and output is None:
        return OutputFormats("text", native, as_json, quiet)
    from abstain.report.tables import format_of  # noqa: PLC0415

    written = format_of(table_format, output, native=native)
    return OutputFormats("text" if table_format is None or output else table_format, written, as_json, quiet)


def check_json_ending(output: Path | None, content: str) -> None:
    """Raise if the ending of an output file means another format than JSON."""
    if output is not None and output.suffix.lower() not in ("", ".json"):
        raise ArgumentError(f"{output}: {content} is written as JSON; use the ending .json")


class OutputFile(NamedTuple):
    """A file that a command writes."""

    label: str
    path: Path
    content: bytes


class Renderers(NamedTuple):
    """A result, the functions that render it, and the label of its JSON file."""

    result: Any
    results_json: Callable[[Any], bytes]
    tables: Callable[[Any], Sequence[Table]]
    summary: Callable[..., Any]
    json_label: str = "results:"

    def render_file(self, form: str, path: Path) -> OutputFile:
        """Return the file with the result in a format."""
        if form == "json":
            return OutputFile(self.json_label, path, self.results_json(self.result))
        if form == "html":
            from abstain.report.html import report_html  # noqa: PLC0415

            page = report_html(self.result, command=command_line(sys.argv[1:]))
            return OutputFile("report:", path, encode_text(page))
        if form == "text":
            return OutputFile("summary:", path, encode_text(self._summary_text()))
        from abstain.report.tables import render  # noqa: PLC0415

        return OutputFile("table:", path, encode_text(render(self.tables(self.result), form)))

    def _summary_text(self) -> str:
        """Return the summary for a file, without colors and at a fixed width."""
        from rich.console import Console  # noqa: PLC0415

        from abstain.report.console import WIDTH  # noqa: PLC0415

        console = Console(file=io.StringIO(), width=WIDTH, highlight=False, color_system=None)
        with console.capture() as printed:
            console.print(self.summary(self.result, width=WIDTH))
        return printed.get()


def renderers_of(result: Result, *, json_of_tables: bool = False, explain: bool = False) -> Renderers:
    """Return the renderers of an evaluation or a comparison.

    With `json_of_tables`, the results JSON has the tables, which can hold any number of systems. With `explain`, the
    summary explains its numbers.
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

        return views.summary(result, width=width, explain=explain)

    return Renderers(result, results_json, tables, summary)


def print_tables(form: str, tables: Callable[[], Sequence[Table]], summarize: Callable[[], None]) -> None:
    """Print tables in a format, or the summary if the format is "text"."""
    if form == "text":
        summarize()
        return
    from abstain.report.tables import render  # noqa: PLC0415

    print_text(render(tables(), form), end="")


def publish(
    formats: OutputFormats,
    renderers: Renderers,
    output: Path | None,
    *,
    inputs: Sequence[Path],
    further: Sequence[OutputFile] = (),
) -> None:
    """Print a result and write its files; then print the paths of the files, or how to save the result."""
    result = renderers.result
    files = [] if output is None else [renderers.render_file(formats.written, output)]
    files += further
    paths_only = formats.quiet and bool(files)
    if formats.as_json:
        print_json(renderers.results_json(result).decode())
    elif not paths_only:
        print_tables(
            formats.printed,
            lambda: renderers.tables(result),
            lambda: print_summary(renderers.summary, result),
        )
    write_files({file.path: file.content for file in files}, inputs=inputs)
    if formats.as_json or formats.printed != "text":
        return
    if formats.quiet:
        for file in files:
            print_text(file.path)
        return
    width = max((len(file.label) for file in files), default=0)
    lines = [f"{file.label:<{width}} {file.path}" for file in files] or [_KEEP]
    print_text("\n".join(["", *lines]))


def check_outputs(*paths: Path | None, inputs: Sequence[Path]) -> None:
    """Raise before the work starts if an output cannot be written, or is an input."""
    outputs = [path for path in paths if path is not None]
    if outputs:
        _outputs.check_outputs(outputs, inputs=inputs)


def write_files(contents: Mapping[Path, bytes], *, inputs: Sequence[Path]) -> None:
    """Write the files of a command after its result was printed; from then on, signals do not stop it."""
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
    """Return a default name for an output file; raise if the file exists."""
    path = Path(f"{file_name(stem)[:_LONGEST_STEM]}{ending}")
    if os.path.lexists(path):
        raise ArgumentError(
            f"{path} exists already; name the output file with -o, which replaces an existing file"
        )
    return path


def command_line(arguments: Sequence[str]) -> str:
    """Return a command as it would be typed, including the settings of the project file."""
    return shlex.join(["abstain", *arguments, *spelled_settings()])
