"""Tables: one model, six forms. Text, Markdown, CSV, LaTeX (booktabs), JSON and HTML say the same.

A table holds numbers as numbers and estimates as estimates; a form decides how they look. Where a person reads
(text, Markdown, LaTeX, HTML) an estimate is one cell, ``0.134 [0.094, 0.176]``; where a program does (CSV, JSON)
it becomes three columns, with all digits. Text from a file is hostile: no form lets it become markup, a
spreadsheet formula, a LaTeX command or a terminal's control sequence. How text lines up is in `text`. Nothing is
computed here, and no result is worded.
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

__all__ = [
    "FORMATS",
    "PAGE",
    "Column",
    "Table",
    "format_of",
    "plain_text",
    "render",
    "table_html",
    "table_text",
]

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
# A name that is wrapped below this many letters is no longer read.
_NARROWEST = 8


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key that programs read, the heading that people read, and how its numbers are printed.

    Attributes:
        key: the name in CSV and JSON.
        heading: the name where people read; the key in words when left out.
        digits: how many decimals a number has at least, or None for whole numbers and text.
        estimate: True where the cells are estimates, which take three columns in CSV and JSON.
        detail: True where only programs read the column: CSV and JSON alone have it.
        once: True where a text shows a value that rows in a run share in the first of them only.
        whole: True where a text never breaks the cells: a name that is wrapped cannot be copied.
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
        """What stands above the column."""
        return self.heading or self.key.replace("_", " ")

    @property
    def numeric(self) -> bool:
        """True where the cells are numbers and so stand to the right."""
        return self.estimate or self.digits is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its caption and what must be read with it.

    Attributes:
        title: what the table shows; empty where what stands above it says so.
        columns: its columns.
        rows: one cell per column.
        notes: sentences that travel with the table.
        facts: values by name that JSON has next to its tables, such as the headline of a comparison.

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
        return self.only([place for place, column in enumerate(self.columns) if not column.detail])

    def only(self, places: Sequence[int]) -> Table:
        """Return the table with some of its columns."""
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in places), rows=rows)

    def without_empty(self, **empty: Cell) -> Table:
        """Return the table without the columns that say nothing: by key, what stands in every row of such a one."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.key not in empty or any(row[place] != empty[column.key] for row in self.rows)
        ]
        return self.only(kept)


def render(tables: Sequence[Table], form: str, width: int | None = None) -> str:
    """Return tables in one of `FORMATS`, ending in a newline.

    CSV can hold one table alone: the first, which is the one that a command is about. `width` is what a text keeps to.
    """
    if _validate.choice(form, "format", FORMATS) == "text":
        return "\n".join(table_text(table, width) for table in tables)
    return _RENDERERS[form](tables)


def format_of(
    asked: str | None,
    output: Path | None = None,
    *,
    native: str = "text",
    served: Collection[str] | None = None,
) -> str:
    """Return the format of what is written: what the ending of the output means, else what was asked for.

    An ending that means nothing here is refused, and so is one that contradicts what was asked for.

    Args:
        asked: one of `FORMATS`.
        output: where it goes, if not to the screen.
        native: the format where neither says one.
        served: what can be written here; `FORMATS` when left out.

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
    meant = _ENDINGS.get(ending, "")
    if meant not in served:
        known = ", ".join(end for end, form in _ENDINGS.items() if form in served)
        raise ArgumentError(f"{output}: the ending decides what is written, and here it can be {known}")
    if asked not in (None, meant):
        raise ArgumentError(
            f"{output}: the ending means {meant}, and --format says {asked}; leave one of them out"
        )
    return meant


def table_text(table: Table, width: int | None = None) -> str:
    """Return a table as text that lines up, within a width where one is named, ending in a newline.

    A table that is too wide wraps its last column of text; then it is cut into blocks of columns, each with the names
    of its rows; then it wraps those names. It says the same at every width.
    """
    shown = table.readable
    lines = _fitted(shown, width)
    head = [*_wrapped_note(shown.title, width), ""] if shown.title else []
    noted = [line for note in shown.notes for line in _wrapped_note(note, width)]
    return "\n".join([*head, *lines, *(["", *noted] if noted else [])]) + "\n"


def _fitted(table: Table, width: int | None) -> list[str]:
    """The lines of a table, cut into blocks of columns where all of them are too wide."""
    lines, fitting = _lines(table, width)
    if fitting:
        return lines
    columns = range(len(table.columns))
    # A row goes by what stands before its first number.
    names = [
        place for place in columns if not any(table.columns[before].numeric for before in range(place + 1))
    ]
    blocks: list[list[int]] = [[]]
    for place in columns[len(names) :]:
        wider = [*blocks[-1], place]
        if blocks[-1] and not _lines(table.only([*names, *wider]), width)[1]:
            blocks.append([place])
        else:
            blocks[-1] = wider
    parts = [_block(table.only([*names, *block]), width) for block in blocks]
    return [line for number, part in enumerate(parts) for line in ([""] * (number > 0) + part)]


def _block(table: Table, width: int | None) -> list[str]:
    lines, fitting = _lines(table, width)
    if fitting:
        return lines
    names = [place for place, column in enumerate(table.columns) if not column.numeric and not column.whole]
    right = [column.numeric for column in table.columns]
    return text_lines(_cells(table), right, width, shrink=names, least=_NARROWEST)[0]


def _lines(table: Table, width: int | None) -> tuple[list[str], bool]:
    """The lines of a table whose last column of text is wrapped, and whether they keep to the width."""
    right = [column.numeric for column in table.columns]
    # The last column of text is the one to wrap at no loss: a remark, a reason, words. Names of rows are not.
    last = max((place for place, side in enumerate(right) if not side), default=None)
    shrink = () if last is None or (last == 0 and len(right) > 1) else (last,)
    return text_lines(_cells(table), right, width, shrink=shrink)


def _cells(table: Table) -> list[list[str]]:
    """The heading and the rows as text, without repeated names."""
    rows = [[plain_text(column.title) for column in table.columns]]
    above: tuple[Cell, ...] | None = None
    for row in table.rows:
        cells = _displayed(row, table.columns, plain_text)
        for place, column in enumerate(table.columns):
            # A run ends where any value to the left changes: the name is then told again.
            if column.once and above is not None and above[: place + 1] == row[: place + 1]:
                cells[place] = ""
        rows.append(cells)
        above = row
    return rows


def _wrapped_note(text: str, width: int | None) -> list[str]:
    return [plain_text(text)] if width is None else wrapped(plain_text(text), width)


def _markdown(tables: Sequence[Table]) -> str:
    parts = []
    for table in (table.readable for table in tables):
        heads = [_markdown_text(column.title) for column in table.columns]
        rows = [_displayed(row, table.columns, _markdown_text, escape) for row in table.rows]
        rule = "|".join("---:" if column.numeric else ":---" for column in table.columns)
        lines = [f"**{_markdown_text(table.title)}**", ""] if table.title else []
        lines += [f"| {' | '.join(heads)} |", f"|{rule}|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines += [f"- {_markdown_text(note)}" if note else "" for note in _noted(table)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _latex(tables: Sequence[Table]) -> str:
    parts = []
    for table in (table.readable for table in tables):
        sides = "".join("r" if column.numeric else "l" for column in table.columns)
        heads = " & ".join(_latex_text(column.title) for column in table.columns)
        rows = [
            " & ".join(_displayed(row, table.columns, _latex_text, _latex_number)) + r" \\"
            for row in table.rows
        ]
        lines = [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            *([f"  \\caption{{{_latex_text(table.title)}}}"] if table.title else []),
            f"  \\begin{{tabular}}{{{sides}}}",
            r"    \toprule",
            f"    {heads} \\\\",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
        ]
        if table.notes:
            lines += [r"  \par\smallskip\footnotesize", "  " + _latex_text(" ".join(table.notes))]
        parts.append("\n".join([*lines, r"\end{table}"]))
    return "\n\n".join(parts) + "\n"


def _csv(tables: Sequence[Table]) -> str:
    lines = []
    for table in tables[:1]:
        lines.append([_spreadsheet_text(key) for key in _keys(table)])
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


def _html(tables: Sequence[Table]) -> str:
    return "\n".join(map(table_html, tables)) + "\n"


def _html_text(text: str) -> str:
    return escape(plain_text(text))


_RENDERERS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
    "html": _html,
}
FORMATS = ("text", *_RENDERERS)


def _displayed(
    row: tuple[Cell, ...],
    columns: tuple[Column, ...],
    text: Callable[[str], str],
    number: Callable[[str], str] = str,
) -> list[str]:
    """The cells of a row as a person reads them: text made safe by `text`, numbers dressed by `number`."""
    return [
        text(cell) if isinstance(cell, str) else number(number_cell(cell, column))
        for cell, column in zip(row, columns, strict=True)
    ]


def number_cell(cell: Estimate | int | float | bool | None, column: Column) -> str:
    """Return a cell that is not text as a person reads it."""
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
    """The cells of a row as a program reads them: undefined numbers are None."""
    values: list[Any] = []
    for cell, column in zip(row, columns, strict=True):
        if isinstance(cell, Estimate):
            values += [_finite(cell.value), _finite(cell.low), _finite(cell.high)]
        elif column.estimate:
            values += [_finite(cell) if isinstance(cell, float) else cell, None, None]
        else:
            values.append(_finite(cell) if isinstance(cell, float) else cell)
    return values


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _noted(table: Table) -> list[str]:
    return ["", *(plain_text(note) for note in table.notes)] if table.notes else []


def _markdown_text(text: str) -> str:
    # Markdown passes HTML through, so its characters go first; then what Markdown itself would read.
    safe = plain_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # An underscore within a word is no markup, and names are full of them.
    return re.sub(r"[\\`*\[\]|~#]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", safe)


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
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
    # A minus before a number is no hyphen, and "<" outside of mathematics may print as another letter.
    return text.replace("-", "$-$").replace("<", "$<$")


def _spreadsheet_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _spreadsheet_text(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _spreadsheet_text(text: str) -> str:
    """Text that a spreadsheet takes for text: an apostrophe before what it would run as a formula.

    Semicolons and tabs are quoted as commas are, because in some countries they part the fields.
    """
    start = unicodedata.normalize("NFKC", text.lstrip()[:1])
    if start in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n"):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if re.search(r'[,;"\t\r\n]', text) else text
