"""One table in five forms: what they say is the same, and no text in them becomes anything else."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from abstain import ArgumentError, Estimate
from abstain.report.tables import FORMATS, Column, Table, format_of, plain_text, render

TABLE = Table(
    "Two systems",
    (
        Column("system"),
        Column("answered", digits=0),
        Column("augrc", "AUGRC", estimate=True),
        Column("p", digits=4),
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


def test_bad_calls() -> None:
    with pytest.raises(ArgumentError, match=r"unknown format 'markdwn' \(did you mean 'markdown'\?\)"):
        render([TABLE], "markdwn")
    with pytest.raises(ArgumentError, match="row 0 of the table has 1 cells for 2 columns"):
        Table("", (Column("a"), Column("b")), (("x",),))


def test_the_ending_of_the_output_means_a_format() -> None:
    assert format_of(None, None) == "text"
    assert format_of(None, Path("t.tex")) == "latex"
    assert format_of(None, Path("t.MD")) == "markdown"
    assert format_of("csv", Path("t.md")) == "csv"
    assert format_of(None, Path("t.unknown")) == "text"
    assert plain_text("a\x07b\n c") == "a\N{REPLACEMENT CHARACTER}b c"
