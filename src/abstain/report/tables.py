"""Tables: one model, five forms. Text, Markdown, CSV, LaTeX (booktabs) and JSON say the same.

A table holds numbers as numbers and estimates as estimates; a form decides how they look. Where a person reads
(text, Markdown, LaTeX) an estimate is one cell, ``0.134 [0.094, 0.176]``; where a program does (CSV, JSON) it
becomes three columns, with all digits. Text from a file is hostile: no form lets it become markup, a
spreadsheet formula, a LaTeX command or a terminal's control sequence. Nothing is computed here.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Cell = str | int | float | bool | Estimate | None

__all__ = ["FORMATS", "Column", "Table", "format_of", "plain_text", "render"]

_ENDINGS = {".txt": "text", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}
_UNDEFINED = "undefined"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key that programs read, the heading that people read, and how its numbers are printed.

    Attributes:
        key: the name in CSV and JSON.
        heading: the name in text, Markdown and LaTeX; the key in words when left out.
        digits: how many decimals a number is printed with, or None for whole numbers and text.
        estimate: True where the cells are estimates, which take three columns in CSV and JSON.
        detail: True where only programs read the column: it is left out of text, Markdown and LaTeX.
    """

    key: str
    heading: str = ""
    digits: int | None = None
    estimate: bool = False
    detail: bool = False

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
        title: what the table shows.
        columns: its columns.
        rows: one cell a column.
        notes: sentences that travel with the table.

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

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ArgumentError(
                    f"row {number} of the table has {len(row)} cells for {len(self.columns)} columns"
                )

    @property
    def readable(self) -> Table:
        """The table as people read it, without its details."""
        kept = [place for place, column in enumerate(self.columns) if not column.detail]
        rows = tuple(tuple(row[place] for place in kept) for row in self.rows)
        return Table(self.title, tuple(self.columns[place] for place in kept), rows, self.notes)


def render(tables: Sequence[Table], form: str) -> str:
    """Return tables in one of `FORMATS`, ending in a newline.

    CSV can hold one table alone: the first, which is the one that a command is about.
    """
    return _RENDERERS[_validate.choice(form, "format", FORMATS)](tables)


def format_of(asked: str | None, output: Path | None) -> str:
    """Return the format that was asked for, else the one that the output's ending means, else text."""
    if asked is not None:
        return _validate.choice(asked, "format", FORMATS)
    return _ENDINGS.get(output.suffix.lower(), "text") if output is not None else "text"


def _text(tables: Sequence[Table]) -> str:
    parts = []
    for table in (table.readable for table in tables):
        cells = [[plain_text(column.title) for column in table.columns]]
        cells += [_displayed(row, table.columns, plain_text) for row in table.rows]
        widths = [max(_display_width(text) for text in column) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                _padded(text, width, right=column.numeric)
                for text, width, column in zip(row, widths, table.columns, strict=True)
            ).rstrip()
            for row in cells
        ]
        rule = "  ".join("-" * width for width in widths)
        parts.append("\n".join([plain_text(table.title), "", lines[0], rule, *lines[1:], *_noted(table)]))
    return "\n\n".join(parts) + "\n"


def _markdown(tables: Sequence[Table]) -> str:
    parts = []
    for table in (table.readable for table in tables):
        heads = [_markdown_text(column.title) for column in table.columns]
        rows = [_displayed(row, table.columns, _markdown_text) for row in table.rows]
        rule = "|".join("---:" if column.numeric else ":---" for column in table.columns)
        lines = [f"**{_markdown_text(table.title)}**", "", f"| {' | '.join(heads)} |", f"|{rule}|"]
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
            f"  \\caption{{{_latex_text(table.title)}}}",
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
    return json.dumps({"tables": records}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


_RENDERERS: dict[str, Callable[[Sequence[Table]], str]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
}
FORMATS = tuple(_RENDERERS)


def _displayed(
    row: tuple[Cell, ...],
    columns: tuple[Column, ...],
    text: Callable[[str], str],
    number: Callable[[str], str] = str,
) -> list[str]:
    """The cells of a row as a person reads them: text made safe by `text`, numbers dressed by `number`."""
    return [
        text(cell) if isinstance(cell, str) else number(_display(cell, column.digits))
        for cell, column in zip(row, columns, strict=True)
    ]


def _display(cell: Estimate | int | float | bool | None, digits: int | None) -> str:
    if isinstance(cell, Estimate):
        return format(cell, f".{3 if digits is None else digits}f") if cell.defined else _UNDEFINED
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if cell is None or math.isnan(cell):
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:g}" if digits is None else f"{cell:.{digits}f}"


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
            values += [cell, None, None]
        else:
            values.append(_finite(cell) if isinstance(cell, float) else cell)
    return values


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _noted(table: Table) -> list[str]:
    return ["", *(plain_text(note) for note in table.notes)] if table.notes else []


def plain_text(text: str) -> str:
    """One line without anything that a terminal, an editor or a reader could take for more than letters."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in _one_line(text)
    )


def _one_line(text: str) -> str:
    return " ".join(str(text).split())


def _display_width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - _display_width(text))
    return space + text if right else text + space


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
    # A minus before a number is no hyphen.
    return text.replace("-", "$-$")


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
