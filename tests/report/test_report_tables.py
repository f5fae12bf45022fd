"""One table in six formats: the same contents, and text from files stays text."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from html import unescape
from pathlib import Path

import pytest

from abstain import ArgumentError, Estimate
from abstain.report.tables import FORMATS, Column, Table, format_of, render, table_html, table_text
from abstain.report.text import display_width, plain_text, wrapped

TABLE = Table(
    "Two systems",
    (
        Column("system"),
        Column("answered", digits=0),
        Column("augrc", "AUGRC", estimate=True),
        Column("p", digits=4, p_value=True),
        Column("told"),
        Column("words", detail=True),
    ),
    (
        ("a", 1234, Estimate(0.134, 0.094, 0.176), 0.01, True, "worse"),
        ("b", 7, Estimate(-0.05), math.nan, False, ""),
        ("c", 0, Estimate(math.nan, reason="nothing answered"), None, False, "undefined"),
    ),
    ("Take care.",),
)

HTML_TAGS = ("table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li")
HOSTILE = (
    '=HYPERLINK("http://evil")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "  =1+1",
    "\uff1d1+1",
    "x;=1+1",
    "x,=1+1",
    'quo"te',
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "| a | b |",
    r"\input{/etc/passwd} $x$ & 50% #1 {a}_b^c~",
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe",
    "line\nbreak",
)


def hostile_table(text: str) -> Table:
    return Table(text, (Column("key", text), Column("value", digits=1)), ((text, -1.5),), (text,))


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_text() -> None:
    assert render([TABLE], "text") == (
        "Two systems\n\n"
        "system  answered                 AUGRC       p  told\n"
        "------  --------  --------------------  ------  ----\n"
        "a          1,234  0.134 [0.094, 0.176]  0.0100  yes\n"
        "b              7                -0.050          no\n"
        "c              0             undefined          no\n"
        "\nTake care.\n"
    )


def test_markdown() -> None:
    assert render([TABLE], "markdown") == (
        "**Two systems**\n\n"
        "| system | answered | AUGRC | p | told |\n"
        "|:---|---:|---:|---:|:---|\n"
        "| a | 1,234 | 0.134 [0.094, 0.176] | 0.0100 | yes |\n"
        "| b | 7 | -0.050 |  | no |\n"
        "| c | 0 | undefined |  | no |\n"
        "\n- Take care.\n"
    )


def test_latex() -> None:
    assert render([TABLE], "latex") == (
        "% needs \\usepackage{booktabs}\n"
        "\\begin{table}\n"
        "  \\centering\n"
        "  \\caption{Two systems}\n"
        "  \\begin{tabular}{lrrrl}\n"
        "    \\toprule\n"
        "    system & answered & AUGRC & p & told \\\\\n"
        "    \\midrule\n"
        "    a & 1,234 & 0.134 [0.094, 0.176] & 0.0100 & yes \\\\\n"
        "    b & 7 & $-$0.050 &  & no \\\\\n"
        "    c & 0 & undefined &  & no \\\\\n"
        "    \\bottomrule\n"
        "  \\end{tabular}\n"
        "  \\par\\smallskip\\footnotesize\n"
        "  Take care.\n"
        "\\end{table}\n"
    )


def test_csv_has_all_digits_and_all_columns() -> None:
    assert rows_of(render([TABLE], "csv")) == [
        ["system", "answered", "augrc", "augrc_low", "augrc_high", "p", "told", "words"],
        ["a", "1234", "0.134", "0.094", "0.176", "0.01", "true", "worse"],
        ["b", "7", "-0.05", "", "", "", "false", ""],
        ["c", "0", "", "", "", "", "false", "undefined"],
    ]


def test_json_is_strict() -> None:
    found = json.loads(render([TABLE, TABLE], "json"), parse_constant=pytest.fail)
    assert [table["title"] for table in found["tables"]] == ["Two systems"] * 2
    assert found["tables"][0]["notes"] == ["Take care."]
    assert found["tables"][0]["rows"][1] == {
        "system": "b",
        "answered": 7,
        "augrc": -0.05,
        "augrc_low": None,
        "augrc_high": None,
        "p": None,
        "told": False,
        "words": "",
    }
    infinite = Table("", (Column("x", digits=1),), ((math.inf,),))
    assert json.loads(render([infinite], "json"))["tables"][0]["rows"] == [{"x": None}]


@pytest.mark.parametrize("text", HOSTILE)
def test_csv_runs_nothing_in_a_spreadsheet_and_keeps_numbers(text: str) -> None:
    rendered = render([hostile_table(text)], "csv")
    (cell, number) = rows_of(rendered)[1]
    assert cell in (text, f"'{text}")
    assert cell.lstrip()[:1] not in "=+-@\uff1d" or not cell.strip()
    assert cell[:1] not in "\t\r\n"
    assert number == "-1.5"
    # Wherever a semicolon or a tab parts the fields, this text is still one of them.
    if ";" in text or "\t" in text:
        assert f'"{cell}"' in rendered


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_holds_no_markup_of_the_text(text: str) -> None:
    rendered = render([hostile_table(text)], "markdown")
    assert "<" not in rendered
    assert "](" not in rendered.replace("\\](", "")
    for line in rendered.splitlines()[2:5]:
        assert line.replace("\\|", "").count("|") == 3


@pytest.mark.parametrize("text", HOSTILE)
def test_latex_holds_no_command_of_the_text(text: str) -> None:
    body = render([hostile_table(text)], "latex").split("\\midrule")[1].split("\\bottomrule")[0]
    assert "\\input" not in body
    for special in "&%#_$":
        assert body.replace(f"\\{special}", "").replace("$-$", "").count(special) == (
            1 if special == "&" else 0
        )


def test_html() -> None:
    assert render([TABLE], "html") == (
        "<table><caption>Two systems</caption><thead><tr><th>system</th>"
        '<th class="number">answered</th><th class="number">AUGRC</th><th class="number">p</th><th>told</th>'
        '</tr></thead><tbody><tr><td>a</td><td class="number">1,234</td><td class="number">0.134 [0.094, 0.176]</td>'
        '<td class="number">0.0100</td><td>yes</td></tr>'
        '<tr><td>b</td><td class="number">7</td><td class="number">-0.050</td><td class="number"></td><td>no</td></tr>'
        '<tr><td>c</td><td class="number">0</td><td class="number">undefined</td><td class="number"></td><td>no</td>'
        "</tr>"
        "</tbody></table><ul><li>Take care.</li></ul>\n"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_html_holds_no_markup_of_the_text(text: str) -> None:
    page = table_html(hostile_table(text))
    assert set(re.findall(r"</?\w+", page)) <= {
        *(f"<{tag}" for tag in HTML_TAGS),
        *(f"</{tag}" for tag in HTML_TAGS),
    }
    assert unescape(re.findall(r"<td>(.*?)</td>", page)[0]) == plain_text(text)


WIDE = Table(
    "",
    (
        Column("confidence", once=True),
        Column("metric"),
        Column("left", estimate=True),
        Column("right", estimate=True),
        Column("difference", estimate=True),
        Column("p", digits=4, p_value=True),
        Column("conclusion"),
    ),
    tuple(
        (
            "retrieval_similarity_mean",
            metric,
            *[Estimate(0.134, 0.094, 0.176)] * 3,
            0.01,
            "inconclusive, " * 4 + "alas",
        )
        for metric in ("aurc", "risk_at_coverage@0.9")
    ),
)


@pytest.mark.parametrize("width", [70, 80, 100, 120, 160, 200])
def test_a_text_keeps_to_the_width(width: int) -> None:
    lines = table_text(WIDE, width).splitlines()
    assert max(map(display_width, lines)) <= width


@pytest.mark.parametrize("width", [80, 100, 120, 160, 200, None])
def test_a_text_has_the_same_cells_at_every_width(width: int | None) -> None:
    """Columns that do not fit are printed below, in blocks that begin with the names of the rows."""
    text = table_text(WIDE, width)
    assert text.count("0.134 [0.094, 0.176]") == 6
    assert text.count("0.0100") == 2
    for heading in ("left", "right", "difference", "conclusion"):
        assert text.count(f" {heading}") == 1
    blocks = text.strip().split("\n\n")
    assert all(block.startswith("confidence") for block in blocks)
    assert len(blocks) == {80: 4, 100: 3, 120: 2, 160: 1, 200: 1, None: 1}[width]
    words = set(re.findall(r"[a-z@_.\d]+", table_text(WIDE)))
    assert set(re.findall(r"[a-z@_.\d]+", text)) == words


def test_a_small_p_value_is_not_printed_as_0() -> None:
    table = Table("", (Column("p", digits=4, p_value=True),), ((3e-9,), (0.0,), (0.00006,)))
    assert table_text(table).split() == ["p", "-------", "<0.0001", "0.0000", "0.0001"]
    assert "| &lt;0.0001 |" in render([table], "markdown")
    assert '<td class="number">&lt;0.0001</td>' in render([table], "html")
    assert "$<$0.0001" in render([table], "latex")
    assert rows_of(render([table], "csv"))[1] == ["3e-09"]


def test_a_repeated_value_is_printed_once() -> None:
    columns = (Column("a", once=True), Column("b", once=True), Column("c"))
    table = Table("", columns, (("x", "y", "1"), ("x", "y", "2"), ("x", "z", "3"), ("w", "z", "4")))
    assert table_text(table).splitlines()[2:] == ["x  y  1", "      2", "   z  3", "w  z  4"]
    assert rows_of(render([table], "csv"))[2] == ["x", "y", "2"]


def test_a_name_that_is_to_be_copied_is_not_broken() -> None:
    name = "a_name_that_is_long_enough_to_be_broken"
    columns = (Column("name", whole=True), Column("what", "what it is"))
    text = table_text(Table("", columns, ((name, "words " * 12),)), 60)
    assert name in text
    broken = table_text(Table("", (Column("name"), columns[1]), ((name, "words " * 12),)), 30)
    assert name not in broken
    assert max(map(len, broken.splitlines())) <= 30


def test_wrapping_breaks_at_spaces_before_it_breaks_words() -> None:
    assert wrapped("one two three", 8) == ["one two", "three"]
    assert wrapped("risk_at_coverage@0.5 is tied", 20) == ["risk_at_coverage@0.5", "is tied"]
    assert wrapped("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrapped("漢字漢字", 4) == ["漢字", "漢字"]
    assert wrapped("", 4) == [""]


def test_uninformative_columns_are_left_out() -> None:
    table = Table("", (Column("a"), Column("b"), Column("c")), (("", "all", "1"), ("", "x", "2")))
    assert [column.key for column in table.without_empty(a="", b="all").columns] == ["b", "c"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_form_moves_the_terminal(form: str, text: str) -> None:
    rendered = render([hostile_table(text)], form)
    if form == "csv":
        return  # bytes are kept as they are: a program reads them
    assert not any(ord(letter) < 32 and letter != "\n" for letter in rendered)
    assert form == "json" or "\u202e" not in rendered


def test_wide_letters_line_up() -> None:
    table = Table("", (Column("x"), Column("n", digits=0)), (("漢字", 1), ("abcd", 2)))
    lines = render([table], "text").splitlines()[-2:]
    assert lines == ["漢字  1", "abcd  2"]


def test_an_empty_table_is_a_table() -> None:
    table = Table("Nothing", (Column("x"), Column("y", estimate=True)), ())
    assert rows_of(render([table], "csv")) == [["x", "y", "y_low", "y_high"]]
    for form in FORMATS:
        assert render([table], form).endswith("\n")


def test_a_table_without_a_title_has_no_empty_one() -> None:
    table = Table("", (Column("x"),), (("1",),))
    assert render([table], "markdown").startswith("| x |")
    assert "caption" not in render([table], "latex") + render([table], "html")
    assert render([table], "text").startswith("x\n")


def test_bad_calls() -> None:
    with pytest.raises(ArgumentError, match=r"unknown format 'markdwn' \(did you mean 'markdown'\?\)"):
        render([TABLE], "markdwn")
    with pytest.raises(ArgumentError, match="row 0 of the table has 1 cells for 2 columns"):
        Table("", (Column("a"), Column("b")), (("x",),))


def test_the_ending_of_the_output_means_a_format() -> None:
    assert format_of(None, None) == "text"
    assert format_of(None, Path("t.tex")) == "latex"
    assert format_of(None, Path("t.MD")) == "markdown"
    assert format_of("csv", Path("t.csv")) == format_of("csv", Path("t")) == "csv"
    assert format_of(None, Path("t"), native="json") == "json"
    with pytest.raises(ArgumentError, match="the ending means markdown, but --format is csv"):
        format_of("csv", Path("t.md"))
    with pytest.raises(
        ArgumentError, match=r"must be one of \.txt, \.md, \.csv, \.tex, \.json, \.html, \.htm$"
    ):
        format_of(None, Path("t.unknown"))
    with pytest.raises(ArgumentError, match=r"must be one of \.html, \.htm$"):
        format_of(None, Path("t.json"), served=("html",))
    assert plain_text("a\x07b\n c") == "a\N{REPLACEMENT CHARACTER}b c"
