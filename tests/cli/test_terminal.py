"""Text from files is printed as plain text: no name, label or mode controls the terminal, in any command."""

from __future__ import annotations

import ast
import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import abstain.cli
from abstain.cli import app
from abstain.report.text import plain_text, printable, printable_json
from examples import EXAMPLES

# Color, title, clipboard, hyperlink, C1, bidirectional controls, isolates, invisible letters, rich markup, bell.
EVIL = "\x1b[31mred\x1b]0 t\x07\x1b]52 c x\x07\x1b]8 http://x\x1b\\\x9b2J\u202eback\u2066\u200b[bold red]x[/]"
QUICK = ("--bootstrap-resamples", "10")
ROLES = {"truth": f"t{EVIL}", "prediction": f"p{EVIL}", "confidence": f"c{EVIL}", "cluster": f"k{EVIL}"}
NAMED = [part for role, name in ROLES.items() for part in (f"--{role}", name)]
PREDICTED = [part for part in NAMED if part not in ("--confidence", ROLES["confidence"])]


def evil_table(path: Path, shift: int = 0) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*ROLES.values(), f"s{EVIL}", "y", "lo", "hi"])
        for row in range(40):
            labels = [f"{EVIL}{(row * step + shift) % 3}" for step in (1, 2)]
            writer.writerow([*labels, row / 40, f"{EVIL}{row // 2}", f"{EVIL}{row % 2}", row % 3, row % 2, 2])
    return path


def evil_run(path: Path) -> Path:
    run = json.loads((EXAMPLES / "run_a.json").read_text())
    for experiment in run["experiments"]:
        for part in (experiment["provenance"], experiment["results"]):
            part["mode"] = f"{part['mode']}{EVIL}"
    run["run_metadata"]["run_id"] = EVIL
    path.write_text(json.dumps(run))
    return path


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    evil_table(Path(f"a{EVIL.replace('/', '')}.csv")).rename("a\x1b[31m\u202e.csv")
    evil_table(Path("b.csv"), 1)
    evil_run(Path("run\x1b[31m.json"))
    Path("broken\x9b.json").write_text("{" + EVIL)
    Path(f"twice{chr(27)}.json").write_text(
        json.dumps({"x": 1})[:-1] + f', "{chr(0x202E)}k": 1, "{chr(0x202E)}k": 2}}'
    )


A, B, RUN = "a\x1b[31m\u202e.csv", "b.csv", "run\x1b[31m.json"
COVERAGE = ("--truth", "y", "--low", "lo", "--high", "hi", "--nominal", "0.9", *QUICK, "--by", f"s{EVIL}")
CALLS: dict[str, tuple[object, ...]] = {
    "evaluate": ("evaluate", A, *NAMED[:4], "--confidence", ROLES["confidence"], *NAMED[6:], *QUICK),
    "evaluate by": ("evaluate", A, *PREDICTED, "--by", f"s{EVIL}", "--metric", "accuracy", *QUICK),
    "evaluate json": ("evaluate", A, *NAMED, *QUICK, "--json"),
    "evaluate csv": ("evaluate", A, *NAMED, *QUICK, "--format", "csv"),
    "evaluate two": ("evaluate", A, B, *NAMED, *QUICK, "--match", "rows", "--truth-may-differ"),
    "guessed": ("evaluate", A, *NAMED[:4], *QUICK),
    "compare": ("compare", A, B, *NAMED, *QUICK, "--match", "rows", "--truth-may-differ"),
    "compare json": (
        "compare",
        A,
        B,
        *NAMED,
        *QUICK,
        "--match",
        "rows",
        "--truth-may-differ",
        "--format",
        "json",
    ),
    "compare not the same": ("compare", A, B, *NAMED, *QUICK),
    "gate": ("gate", A, *NAMED, *QUICK, "--fail-if", "accuracy below 0.01"),
    "check": ("check", A, *PREDICTED),
    "check json": ("check", A, *PREDICTED, "--json"),
    "check broken": ("check", "broken\x9b.json"),
    "check twice": ("check", f"twice{chr(27)}.json"),
    "intervals": ("intervals", A, *COVERAGE),
    "intervals json": ("intervals", A, *COVERAGE, "--json"),
    "no such column": ("evaluate", A, "--truth", "missing"),
    "no such file": ("evaluate", f"missing{EVIL}.csv"),
    "no such group": ("evaluate", A, *NAMED, "--by", f"none{EVIL}"),
    "no such mode": ("evaluate", RUN, "--mode", "none"),
    "no mode": ("evaluate", RUN),
    "run": ("evaluate", RUN, "--mode", f"few_shot{EVIL}", *QUICK),
    "run report": (
        "report",
        RUN,
        "--mode",
        f"few_shot{EVIL}",
        *QUICK,
        "-o",
        f"r{EVIL.replace('/', '')}.html",
    ),
    "calibrate": ("calibrate", "verbalized", RUN, "--mode", f"few_shot{EVIL}", "-o", "c.json"),
    "calibrate json": ("calibrate", "verbalized", RUN, "--mode", f"few_shot{EVIL}", "-o", "c.json", "--json"),
    "plot": ("plot", RUN, "--mode", f"few_shot{EVIL}", *QUICK, "-o", "r\x1b[31m.svg"),
    "no such command": (f"command{EVIL}",),
    "no such option": ("evaluate", f"--option{EVIL}"),
    "no such number": ("evaluate", "--seed", EVIL),
}


REFUSED = {name for name in CALLS if name.startswith("no ")} | {
    "check broken",
    "check twice",
    "compare not the same",
}


@pytest.mark.parametrize("name", CALLS)
def test_no_text_controls_the_terminal(name: str) -> None:
    done: Any = CliRunner().invoke(app, [str(part) for part in CALLS[name]])
    assert done.exit_code == 0 or name in REFUSED, done.output
    assert done.exit_code in (0, 2, 3), done.output
    for text in (done.stdout, done.stderr):
        assert all(letter.isprintable() or letter == "\n" for letter in text), [
            (letter, text[max(index - 60, 0) : index])
            for index, letter in enumerate(text)
            if not (letter.isprintable() or letter == "\n")
        ][:3]
    if done.exit_code and not name.startswith("no such") and name != "check":
        assert done.stderr.count("\n") == 1
    if name.endswith("json") and done.exit_code == 0:
        assert "\\u202e" in done.stdout
        json.loads(done.stdout)


def test_a_terminal_gets_only_styles_of_abstain() -> None:
    """A real terminal has colors and may show a progress bar."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "abstain", *(str(part) for part in CALLS["evaluate"])]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    received = b""
    try:
        while piece := os.read(master, 65536):
            received += piece
    except OSError:  # the other side is closed
        pass
    assert process.wait(60) == 0, received
    text = received.decode()
    assert "\x1b[1m" in text
    for part in ("\x1b[31m", "\x1b]", "\x9b", "\u202e", "\u2066", "\u200b", "\x07"):
        assert part not in text, part
    assert "[bold red]x[/]" in text.replace("\r\n", "")


def test_all_output_of_commands_is_printed_by_one_module() -> None:
    folder = Path(abstain.cli.__file__).parent
    found = []
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in (
                    "print",
                    "typer.echo",
                    "typer.secho",
                    "Console",
                    "sys.stdout.write",
                    "sys.stderr.write",
                ):
                    found.append((path.name, called))
    # A summary for a file is rendered with a console in memory.
    assert sorted(found) == [("_publishing.py", "Console"), ("_terminal.py", "typer.echo")]


def test_an_error_does_not_show_the_first_record_of_a_table_without_a_header(tmp_path: Path) -> None:
    Path("h.csv").write_text("Mrs. Example coughs,1,0.4\nMr. Sample fell,0,0.5\n")
    for call in (
        ("evaluate", "h.csv"),
        ("evaluate", "h.csv", "--truth", "label"),
        ("check", "h.csv"),
        ("intervals", "h.csv", "--truth", "y", "--low", "lo", "--high", "hi", "--nominal", "0.9"),
        ("sets", "h.csv", "--truth", "y", "--set", "s", "--nominal", "0.9"),
        ("compare", "h.csv", "h.csv"),
    ):
        done: Any = CliRunner().invoke(app, list(call))
        assert done.exit_code == 2, done.output
        assert "3 columns; the first line contains values and not names" in done.stderr
        for word in ("Example", "coughs", "0.4"):
            assert word not in done.output


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("coughs,,,Example\nfell,b,c,d\n", False),  # names are missing
        ("coughs,Example,True\nfell,Sample,False\ncoughs,Sample,True\n", False),  # values occur again below
        (",label,pred\n0,a,b\n1,b,b\n", True),  # a row index has no name
        ("coughs,Example,x\ncoughs,Sample,y\n", False),  # one value of three occurs again
        ("no,Yes,Example\nyes,no,Sample\n", False),  # answers above answers
        ("coughs,,-,x,Example\nfell,,b,y,Example\n", False),  # a gap, and a value that occurs again
        (
            "coughs,well,south,Example\nfell,well,north,Sample\n",
            False,
        ),  # there is no sign that these are names
        ("coughs,N/A,south,Example\nfell,0.5,north,Sample\n", False),  # a missing number is not a name
        ("gold standard,guess,sure\na,b,0.5\nb,b,0.4\n", True),  # a word above numbers is a name
        ("label,pred,note,\na,b,c,\n", True),  # a comma too many
        ("label,pred,False,True\na,b,0.2,0.8\n", True),  # classes above their probabilities
        ("label,pred,note\na,label,pred\n", True),  # other columns may repeat the names
        ("label,pred,nan,note\na,b,nan,c\n", True),  # one value of four may occur again
        ("label,pred\n", True),  # there are no rows
    ],
)
def test_an_error_lists_the_first_line_only_if_it_has_column_names(text: str, listed: bool) -> None:
    Path("h.csv").write_text(text)
    done: Any = CliRunner().invoke(app, ["evaluate", "h.csv", "--truth", "other"])
    assert done.exit_code == 2, done.output
    assert (
        "the first line may contain values and not names: does the file have a header?" in done.stderr
    ) is not listed
    assert ("columns: " in done.stderr or "those that look like names: label" in done.stderr) is listed
    assert "Example" not in done.output


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_an_unknown_group_column_does_not_list_the_first_line(engine: str) -> None:
    Path("h.csv").write_text("coughs,yes,Example\nfell,no,Sample\nfell,yes,Other\n")
    options = ["--truth", "coughs", "--prediction", "yes", "--metric", "accuracy", "--by", "site"]
    done: Any = CliRunner().invoke(app, ["evaluate", "h.csv", *options, "--engine", engine])
    assert done.exit_code == 2, done.output
    assert "'site'" in done.stderr
    assert "may contain values and not names: does" in done.stderr
    assert "Example" not in done.output


def test_a_cluster_of_free_text_is_shortened() -> None:
    text = "The patient, a man of 43 who lives in Example Street, came in with a cough"
    for name, items in (("x.csv", ("a", "b")), ("y.csv", ("a", "c"))):
        rows = [f'1,1,0.5,"{text}",{item}\n' for item in items]
        Path(name).write_text("truth,prediction,confidence,cluster,item\n" + "".join(rows))
    done: Any = CliRunner().invoke(app, ["compare", "x.csv", "y.csv", *QUICK])
    assert done.exit_code == 3, done.output
    assert "The patient, a man of 43…" in done.stderr
    assert "Example Street" not in done.output


def test_printable_characters_stay_and_others_are_replaced() -> None:
    assert printable("naïve 中文 ≥ 0\n\tnext\N{NO-BREAK SPACE}x") == "naïve 中文 ≥ 0\n next x"
    assert plain_text(EVIL + "\n") == printable(EVIL).strip()
    assert json.loads(printable_json(json.dumps([EVIL, "\U000e0001\ud800"], ensure_ascii=False))) == [
        EVIL,
        "\U000e0001\ud800",
    ]
