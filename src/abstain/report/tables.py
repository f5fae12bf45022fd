"""Tables: one model and a renderer for each of six formats: text, Markdown, CSV, LaTeX (booktabs), JSON and HTML.

A table holds numbers as numbers and estimates as estimates. In the formats for people (text, Markdown, LaTeX, HTML) an
estimate is one cell, ``0.134 [0.094, 0.176]``; in those for programs (CSV, JSON) it is three columns with all digits.
Text from a file is hostile: no renderer lets it become markup, a spreadsheet formula, a LaTeX command or a control
sequence of a terminal. To add a format, write its renderer and add one line to `_RENDERERS`.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference import Estimate, number_text
from abstain.report.text import plain_text, printable_json, text_lines, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    Cell = str | int | float | bool | Estimate | None

PAGE = "html"
_ENDINGS = {
    ".txt": "text",
    ".md": "markdown",
    ".csv": "csv",
    ".tex": "latex",
    ".json": "json",
    ".html": PAGE,
    ".htm": PAGE,
}
_UNDEFINED = "undefined"
# Names are not wrapped to fewer letters than this.
_NARROWEST = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key that programs read, the heading that people read, and how its numbers are printed.

    Attributes:
        key: the name in CSV and JSON.
        heading: the name for people. Default: the key with spaces.
        digits: the minimum number of decimals, or None for integers and text.
        estimate: True if the cells are estimates, which take three columns in CSV and JSON.
        detail: True if only CSV and JSON have the column.
        once: True if text omits a value that is the same as in the row above.
        whole: True if text never breaks the cells: a wrapped name cannot be copied.
        p_value: True if a number that rounds to 0 is printed as less than the last digit.
    """

    key: str
    heading: str = ""
    digits: int | None = None
    estimate: bool = False
    detail: bool = False
    once: bool = False
    whole: bool = False
    p_value: bool = False

    @property
    def title(self) -> str:
        """The heading of the column."""
        return self.heading or self.key.replace("_", " ")

    @property
    def numeric(self) -> bool:
        """True if the cells are numbers, which are right-aligned."""
        return self.estimate or self.digits is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption, and with notes that must be read with it.

    JSON also has the `facts` next to its tables, such as the headline of a comparison.

    >>> table = Table("Areas", (Column("system"), Column("augrc", "AUGRC", estimate=True)),
    ...               (("a", Estimate(0.134, 0.094, 0.176)), ("=b", Estimate(0.1))))
    >>> print(render([table], "csv"), end="")
    system,augrc,augrc_low,augrc_high
    a,0.134,0.094,0.176
    '=b,0.1,,
    >>> print(render([table], "markdown"), end="")
    **Areas**
    <BLANKLINE>
    | system | AUGRC |
    |:---|---:|
    | a | 0.134 [0.094, 0.176] |
    | =b | 0.100 |
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ArgumentError(
                    f"row {number} of the table has {len(row)} cells for {len(self.columns)} columns"
                )

    @property
    def readable(self) -> Table:
        """The table as people read it, without its details."""
        return self.only([index for index, column in enumerate(self.columns) if not column.detail])

    def only(self, indices: Sequence[int]) -> Table:
        """Return the table with some of its columns."""
        rows = tuple(tuple(row[index] for index in indices) for row in self.rows)
        return replace(self, columns=tuple(self.columns[index] for index in indices), rows=rows)

    def without_empty(self, **empty: Cell) -> Table:
        """Return the table without uninformative columns: those with the given value, by key, in every row."""
        kept = [
            index
            for index, column in enumerate(self.columns)
            if column.key not in empty or any(row[index] != empty[column.key] for row in self.rows)
        ]
        return self.only(kept)


def render(tables: Sequence[Table], form: str, width: int | None = None) -> str:
    """Return tables in one of `FORMATS`, ending in a newline.

    CSV has only the first table, which is the one that a command is about. `width` is the width of text.
    """
    return _RENDERERS[_validate.choice(form, "format", FORMATS)](tables, width)


def format_of(
    asked: str | None,
    output: Path | None = None,
    *,
    native: str = "text",
    served: Collection[str] | None = None,
) -> str:
    """Return the format of an output: that of its ending, or the requested one.

    An unknown ending is an error, and so is one that contradicts the requested format. Without both, it is the native
    one. If the formats that are served are not all of `FORMATS`, name them.

    >>> from pathlib import Path
    >>> format_of(None, Path("table.tex")), format_of("csv"), format_of(None)
    ('latex', 'csv', 'text')
    """
    if asked is not None:
        _validate.choice(asked, "format", FORMATS)
    ending = "" if output is None else output.suffix.lower()
    if not ending:
        return asked or native
    served = FORMATS if served is None else served
    form = _ENDINGS.get(ending, "")
    if form not in served:
        endings = ", ".join(end for end, form in _ENDINGS.items() if form in served)
        raise ArgumentError(f"{output}: the ending decides the format, and must be one of {endings}")
    if asked not in (None, form):
        raise ArgumentError(
            f"{output}: the ending means {form}, but --format is {asked}; leave one of them out"
        )
    return form


def table_text(table: Table, width: int | None = None) -> str:
    """Return a table as aligned text, within a width if one is given, ending in a newline.

    A table that is too wide wraps its last column of text. If that is not enough, it is split into blocks of columns,
    each with the names of the rows. If that is not enough either, it wraps those names.
    """
    shown = table.readable
    lines = _fit_width(shown, width)
    if shown.title:
        lines = [*_wrapped_note(shown.title, width), "", *lines]
    if shown.notes:
        lines += ["", *(line for note in shown.notes for line in _wrapped_note(note, width))]
    return "\n".join(lines) + "\n"


def _fit_width(table: Table, width: int | None) -> list[str]:
    """Return the lines of a table, split into blocks of columns if it is too wide."""
    lines, fits = _wrap_last_column(table, width)
    if fits:
        return lines
    # The columns before the first number name the row.
    numeric = [index for index, column in enumerate(table.columns) if column.numeric]
    names = list(range(min(numeric, default=len(table.columns))))
    blocks: list[list[int]] = [[]]
    for index in range(len(names), len(table.columns)):
        wider = [*blocks[-1], index]
        if blocks[-1] and not _wrap_last_column(table.only([*names, *wider]), width)[1]:
            blocks.append([index])
        else:
            blocks[-1] = wider
    lines = []
    for block in blocks:
        lines += ["", *_fit_block(table.only([*names, *block]), width)]
    return lines[1:]


def _fit_block(table: Table, width: int | None) -> list[str]:
    lines, fits = _wrap_last_column(table, width)
    if fits:
        return lines
    names = [index for index, column in enumerate(table.columns) if not column.numeric and not column.whole]
    right = [column.numeric for column in table.columns]
    return text_lines(_cells(table), right, width, shrink=names, least=_NARROWEST)[0]


def _wrap_last_column(table: Table, width: int | None) -> tuple[list[str], bool]:
    """Return the lines of a table whose last column of text is wrapped, and whether they fit the width."""
    right = [column.numeric for column in table.columns]
    # The last column of text can be wrapped: it is a remark or a reason. The names of the rows should not be.
    last = max((index for index, side in enumerate(right) if not side), default=None)
    shrink = () if last is None or (last == 0 and len(right) > 1) else (last,)
    return text_lines(_cells(table), right, width, shrink=shrink)


def _cells(table: Table) -> list[list[str]]:
    """Return the heading and the rows as text, without repeated names."""
    rows = [[plain_text(column.title) for column in table.columns]]
    above: tuple[Cell, ...] | None = None
    for row in table.rows:
        cells = _displayed(row, table.columns, plain_text)
        for index, column in enumerate(table.columns):
            # A name is repeated if any value to the left of it changes.
            if column.once and above is not None and above[: index + 1] == row[: index + 1]:
                cells[index] = ""
        rows.append(cells)
        above = row
    return rows


def _wrapped_note(text: str, width: int | None) -> list[str]:
    return [plain_text(text)] if width is None else wrapped(plain_text(text), width)


def _markdown(table: Table) -> str:
    table = table.readable
    heads = [_markdown_text(column.title) for column in table.columns]
    rows = [_displayed(row, table.columns, _markdown_text, escape) for row in table.rows]
    rule = "|".join("---:" if column.numeric else ":---" for column in table.columns)
    lines = [f"**{_markdown_text(table.title)}**", ""] if table.title else []
    lines += [f"| {' | '.join(heads)} |", f"|{rule}|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", *(f"- {_markdown_text(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines)


def _latex(table: Table) -> str:
    table = table.readable
    sides = "".join("r" if column.numeric else "l" for column in table.columns)
    heads = " & ".join(_latex_text(column.title) for column in table.columns)
    rows = [" & ".join(_displayed(row, table.columns, _latex_text, _latex_number)) for row in table.rows]
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        *([f"  \\caption{{{_latex_text(table.title)}}}"] if table.title else []),
        f"  \\begin{{tabular}}{{{sides}}}",
        r"    \toprule",
        f"    {heads} \\\\",
        r"    \midrule",
        *(f"    {row} \\\\" for row in rows),
        r"    \bottomrule",
        r"  \end{tabular}",
    ]
    if table.notes:
        lines += [r"  \par\smallskip\footnotesize", "  " + _latex_text(" ".join(table.notes))]
    return "\n".join([*lines, r"\end{table}"])


def _csv(table: Table) -> str:
    # The csv module would not quote semicolons and tabs, which some spreadsheets take for separators.
    lines = [[_spreadsheet_text(key) for key in _keys(table)]]
    lines += [[_spreadsheet_cell(value) for value in _values(row, table.columns)] for row in table.rows]
    return "".join(",".join(line) + "\n" for line in lines)


def _json(tables: Sequence[Table]) -> str:
    records = [
        {
            "title": table.title,
            "rows": [dict(zip(_keys(table), _values(row, table.columns), strict=True)) for row in table.rows],
            "notes": list(table.notes),
        }
        for table in tables
    ]
    document = {name: fact for table in tables for name, fact in table.facts.items()} | {"tables": records}
    return printable_json(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def table_html(table: Table) -> str:
    """Return a table as plain HTML: escaped, without script or style; numbers are in cells of the class "number".

    >>> table_html(Table("", (Column("x"),), (("<b>",),), ("Few.",)))
    '<table><thead><tr><th>x</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table><ul><li>Few.</li></ul>'
    """
    shown = table.readable
    sides = [' class="number"' if column.numeric else "" for column in shown.columns]

    def line(tag: str, texts: Sequence[str]) -> str:
        cells = (f"<{tag}{side}>{text}</{tag}>" for text, side in zip(texts, sides, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    caption = f"<caption>{_html_text(shown.title)}</caption>" if shown.title else ""
    head = line("th", [_html_text(column.title) for column in shown.columns])
    body = "".join(line("td", _displayed(row, shown.columns, _html_text, escape)) for row in shown.rows)
    notes = "".join(f"<li>{_html_text(note)}</li>" for note in shown.notes)
    listed = f"<ul>{notes}</ul>" if notes else ""
    return f"<table>{caption}<thead>{head}</thead><tbody>{body}</tbody></table>{listed}"


def _html_text(text: str) -> str:
    return escape(plain_text(text))


_RENDERERS: dict[str, Callable[[Sequence[Table], int | None], str]] = {
    "text": lambda tables, width: "\n".join(table_text(table, width) for table in tables),
    "markdown": lambda tables, _: "\n\n".join(map(_markdown, tables)) + "\n",
    "csv": lambda tables, _: _csv(tables[0]),
    "latex": lambda tables, _: "\n\n".join(map(_latex, tables)) + "\n",
    "json": lambda tables, _: _json(tables),
    PAGE: lambda tables, _: "\n".join(map(table_html, tables)) + "\n",
}
FORMATS = tuple(_RENDERERS)


def _displayed(
    row: tuple[Cell, ...],
    columns: tuple[Column, ...],
    text: Callable[[str], str],
    number: Callable[[str], str] = str,
) -> list[str]:
    """Return the cells of a row for people: text escaped by `text`, numbers formatted by `number`."""
    return [
        text(cell) if isinstance(cell, str) else number(number_cell(cell, column))
        for cell, column in zip(row, columns, strict=True)
    ]


def number_cell(cell: Estimate | int | float | bool | None, column: Column) -> str:
    """Return a cell that is not text, for people."""
    if isinstance(cell, Estimate):
        return str(cell) if cell.defined else _UNDEFINED
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if cell is None or math.isnan(cell):
        return ""
    digits = column.digits
    if isinstance(cell, int) or digits is None:
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:g}"
    if digits and not column.p_value:
        return number_text(cell)
    return f"<{0.1**digits:.{digits}f}" if 0.0 < cell < 0.5 * 0.1**digits else f"{cell:.{digits}f}"


def _keys(table: Table) -> list[str]:
    keys = []
    for column in table.columns:
        keys += [column.key, f"{column.key}_low", f"{column.key}_high"] if column.estimate else [column.key]
    return keys


def _values(row: tuple[Cell, ...], columns: tuple[Column, ...]) -> list[Any]:
    """Return the cells of a row for programs: undefined numbers are None."""
    values: list[Any] = []
    for cell, column in zip(row, columns, strict=True):
        if isinstance(cell, Estimate):
            values += [finite(cell.value), finite(cell.low), finite(cell.high)]
        else:
            values += [finite(cell), None, None] if column.estimate else [finite(cell)]
    return values


def finite(value: Any) -> Any:
    """Return a value as JSON has it: a number that is undefined or infinite is None."""
    if not isinstance(value, float):
        return value
    return float(value) if math.isfinite(value) else None


def _markdown_text(text: str) -> str:
    # Markdown passes HTML through, so that its characters are replaced first, then those of Markdown.
    safe = plain_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # An underscore within a word is not markup, and is frequent in names.
    return re.sub(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", safe)


_LATEX = {
    **{letter: f"\\{letter}" for letter in "{}$&%#_"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
}


def _latex_text(text: str) -> str:
    safe = "".join(_LATEX.get(letter, letter) for letter in plain_text(text))
    # A bracket at the start of a row would be read as an option of the line's end before it.
    return f"{{{safe}}}" if safe.startswith("[") else safe


def _latex_number(text: str) -> str:
    # A minus before a number is not a hyphen, and "<" outside of mathematics may print as another letter.
    return text.replace("-", "$-$").replace("<", "$<$")


def _spreadsheet_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _spreadsheet_text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _spreadsheet_text(text: str) -> str:
    """Return text that a spreadsheet does not run as a formula: it would, without an apostrophe in front."""
    start = unicodedata.normalize("NFKC", text.lstrip()[:1])
    if start in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n"):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if re.search(r'[,;"\t\r\n]', text) else text
