"""Output files: an input is never overwritten, and a file is written completely or not at all."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from abstain.cli import app
from processes import FEW_SHOT, RUN, abstain, names, on_linux, started, with_small_disk, without_rights

if TYPE_CHECKING:
    from collections.abc import Iterator

# Every command that writes: its options without files, its inputs (as passed) and its outputs.
QUICK = ("--mode", "few_shot", "--bootstrap-resamples", "0")
INTERVALS = ("--truth", "y", "--low", "lo", "--high", "hi", "--nominal", "0.9", "--bootstrap-resamples", "0")
SETS = ("--truth", "label", "--set", "set", "--nominal", "0.9", "--bootstrap-resamples", "0")
LEARN = ("--mode", "few_shot")
TRAIN = (*LEARN, "--method", "logistic", "--features", "verbalized_confidence")
RULES = {"--abstain-rule": "phrases:@phrases.txt", "--failed-rule": "phrases:@phrases.txt"}
EVALUATED = {"--calibration": "calibration.json", **RULES}
RUNS = {"INPUT...": "run.json", "--input": "run.json", **EVALUATED}
TABLE = {"INPUT": "table.csv"}
CALLS: dict[str, tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]] = {
    "evaluate": (QUICK, {**RUNS, "--instrument": "form.json"}, ("-o",)),
    "report": (QUICK, {**RUNS, "--instrument": "form.json"}, ("-o",)),
    "plot": (QUICK, {**RUNS, "--instrument": "form.json"}, ("-o",)),
    "compare": ((*QUICK, "run_b.json"), RUNS, ("-o",)),
    "gate": (
        (*QUICK, "--fail-if", "cmax below 0.1"),
        {"RUN": "run.json", "--baseline": "run.json", "--policy": "policy.json", **EVALUATED},
        ("-o", "--junit", "--markdown"),
    ),
    "threshold": (
        ("--mode", "few_shot", "--risk", "50%"),
        {"INPUT": "run.json", "--check": "run_b.json", **EVALUATED},
        ("-o",),
    ),
    "apply": (
        ("table.csv",),
        {"POLICY": "policy.json", "TABLE": "table.csv", "--calibration": "calibration.json"},
        ("-o",),
    ),
    "calibrate verbalized": (LEARN, {"INPUT": "run.json", "--input": "run.json", **RULES}, ("-o",)),
    "calibrate train": (TRAIN, {"INPUT": "run.json", "--input": "run.json", **RULES}, ("-o",)),
    "intervals": (INTERVALS, {"TABLE": "table.csv"}, ("-o",)),
    "sets": (SETS, {"TABLE": "sets.jsonl"}, ("-o",)),
    "run": (
        ("--model", "mockllm/model"),
        {
            "QUESTIONS": "table.csv",
            "--examples": "phrases.txt",
            "--template": "@phrases.txt",
            "--instrument": "form.json",
        },
        ("-o",),
    ),
}
# The metavars of parameters for files. The commands in SILENT write no file, or read none.
FILES = {"FILE", "INPUT", "RUN", "TABLE", "POLICY", "RULE", "INPUT...", "KEY FILE"}
SILENT = {"check", "metrics", "schema", "demo", "power"}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_bytes(RUN.read_bytes())
    Path("run_b.json").write_bytes(RUN.read_bytes())
    Path("table.csv").write_text("y,lo,hi\n" + "".join(f"{n % 3},{n % 2},{2 + n % 2}\n" for n in range(20)))
    Path("sets.jsonl").write_text(
        "".join(json.dumps({"label": "xy"[n % 2], "set": ["x"]}) + "\n" for n in range(20))
    )
    for name in ("calibration.json", "phrases.txt", "form.json", "policy.json"):
        Path(name).write_text("{}")
    return {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} ")
        else:
            yield before + name, command


def test_the_calls_cover_every_parameter_for_files() -> None:
    for name, command in commands(get_command(app)):
        if name in SILENT:
            continue
        _, inputs, outputs = CALLS[name]
        known = {*inputs, *outputs, "--instrument", "--join"}
        for parameter in command.params:
            if parameter.metavar in FILES:
                names_of_parameter = {parameter.metavar, *parameter.opts}
                assert names_of_parameter & known, f"{name} {parameter.opts}: is it an input or an output?"


CASES = [
    (command, source, output)
    for command, (_, inputs, outputs) in CALLS.items()
    for source in inputs
    for output in outputs
]


@pytest.mark.parametrize(("command", "source", "output"), CASES)
def test_an_input_is_never_an_output(command: str, source: str, output: str, files: dict[str, bytes]) -> None:
    options, inputs, _ = CALLS[command]
    name = inputs[source].rpartition("@")[2]
    first = next(iter(inputs.values()))
    # The output is a link to the input, with the ending of a chart for plot.
    link = Path(f"link{'.svg' if command == 'plot' else ''}")
    link.symlink_to(name)
    value = {"--input": [source, name]}.get(source, [inputs[source]])
    arguments = value if source.isupper() or source == "--input" else [first, source, *value]
    done = call(*command.split(), *arguments, *options, output, link)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"abstain: {link}: is the input {name} itself; choose another file for the output\n"
    link.unlink()
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == files


def test_a_joined_table_is_never_an_output(files: dict[str, bytes]) -> None:
    Path("truths.csv").write_text("id,truth\n1,0\n")
    Path("said.csv").write_text("id,prediction\n1,0\n")
    done = call("evaluate", "said.csv", "--join", "id", "truths.csv", "-o", "truths.csv")
    sentence = "abstain: truths.csv: is the input truths.csv itself; choose another file for the output\n"
    assert (done.exit_code, done.stderr) == (2, sentence)
    assert Path("truths.csv").read_text() == "id,truth\n1,0\n"
    assert "run.json" in files


def test_an_input_of_a_pattern_is_never_an_output(files: dict[str, bytes]) -> None:
    Path("a.csv").write_bytes(files["table.csv"])
    done = call("intervals", "*.csv", *INTERVALS, "-o", "a.csv")
    assert (done.exit_code, done.stderr) == (
        2,
        "abstain: a.csv: is the input a.csv itself; choose another file for the output\n",
    )


def test_a_chart_does_not_overwrite_the_table_it_is_of(files: dict[str, bytes]) -> None:
    Path("charts").mkdir()
    Path("charts/coverage.json").write_bytes(files["sets.jsonl"])
    options = ("--charts", "charts", "--chart-format", "json", "--input-format", "jsonl")
    done = call("sets", "charts/coverage.json", *SETS, *options[:4], "-o", "out.json")
    assert (done.exit_code, Path("charts/coverage.json").read_bytes()) == (2, files["sets.jsonl"]), (
        done.output
    )
    assert not Path("out.json").exists()
    assert names(Path("charts")) == ["coverage.json"]


@pytest.mark.slow
def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    gate = ("gate", *FEW_SHOT, "--fail-if", "cmax below 0.1")
    done = abstain(*gate, "--junit", "/dev/stdout", "-q", cwd=tmp_path)
    assert done.stdout.startswith(b'<?xml version="1.0"')
    done = abstain("evaluate", *FEW_SHOT, "-o", "/dev/null", "-q", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"/dev/null\n")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    # A redirected stdout is a file that the shell opened; it is written to, not replaced.
    with Path("out").open("wb") as out:
        abstain(*gate, "--junit", "/dev/stdout", cwd=tmp_path, stdout=out)
    assert b"<?xml" in Path("out").read_bytes()
    assert b"gate: pass" in Path("out").read_bytes()
    reading, writing = os.pipe()
    done = abstain("evaluate", *FEW_SHOT, "-o", f"/dev/fd/{writing}", "-q", cwd=tmp_path, pass_fds=[writing])
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert json.loads(pipe.read())["schema_version"] == "1"


@on_linux
@pytest.mark.nightly
def test_a_gate_writes_whole_files_and_none_if_nothing_can_be_printed(
    tmp_path: Path, files: dict[str, bytes]
) -> None:
    gate = ("gate", *FEW_SHOT, "--fail-if", "cmax below 0.1", "--junit", "junit.xml", "--markdown")
    done = abstain(*gate, "/dev/full", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        b"abstain: /dev/full: cannot be written (No space left on device)\n",
    )
    assert names(tmp_path) == sorted([*files, "junit.xml"])
    assert Path("junit.xml").read_text().rstrip().endswith("</testsuites>")
    Path("junit.xml").unlink()
    with Path("/dev/full").open("wb") as full:
        done = abstain(*gate, "summary.md", cwd=tmp_path, stdout=full)
    assert (done.returncode, names(tmp_path)) == (2, sorted(files))
    done = abstain(*gate, "junit.xml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        b"abstain: junit.xml: is the path of two outputs; choose another file for one of them\n",
    )


@pytest.mark.parametrize("command", ["evaluate", pytest.param("report", marks=pytest.mark.nightly)])
def test_a_full_disk_leaves_the_old_file(command: str, tmp_path: Path, files: dict[str, bytes]) -> None:
    Path("out").write_bytes(b"old")
    done = abstain(command, *FEW_SHOT, "-o", "out", cwd=tmp_path, preexec_fn=with_small_disk)
    assert (done.returncode, done.stderr) == (2, b"abstain: out: cannot be written (File too large)\n")
    assert Path("out").read_bytes() == b"old"
    assert names(tmp_path) == sorted([*files, "out"])


@pytest.mark.slow
def test_a_locked_folder_or_file_is_reported_before_the_evaluation(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    (tmp_path / "file").write_bytes(b"kept")
    (tmp_path / "file").chmod(0o444)
    (locked / "inside").write_bytes(b"kept")
    charts = ("intervals", "table.csv", *INTERVALS, "--charts", "locked/x")
    for mode, sentence in ((0o555, b"write-protected"), (0o000, b"Permission denied")):
        locked.chmod(mode)
        for output in ("locked/new", "locked/inside"):
            done = abstain("evaluate", *FEW_SHOT, "-o", output, cwd=tmp_path, preexec_fn=without_rights)
            assert (done.returncode, done.stdout) == (2, b"")
            assert sentence in done.stderr
            assert done.stderr.count(b"\n") == 1
        done = abstain(*charts, cwd=tmp_path, preexec_fn=without_rights)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    locked.chmod(0o755)
    done = abstain("evaluate", *FEW_SHOT, "-o", "file", cwd=tmp_path, preexec_fn=without_rights)
    assert (done.returncode, b"is write-protected" in done.stderr) == (2, True)
    assert [path.read_bytes() for path in (tmp_path / "file", locked / "inside")] == [b"kept", b"kept"]


@pytest.mark.parametrize("name", [b"\xff\xfe.json", b"x" * 255, b"x" * 300, "\x1b[31m\u202e.json".encode()])
def test_names_of_outputs_that_are_hard_to_print(
    name: bytes, tmp_path: Path, files: dict[str, bytes]
) -> None:
    done = abstain("evaluate", *FEW_SHOT, "-q", "-o", os.fsdecode(name), cwd=tmp_path)
    found = set(os.listdir(os.fsencode(tmp_path))) - {os.fsencode(known) for known in files}  # noqa: PTH208
    if len(name) > 255:
        assert (done.returncode, found) == (2, set())
        assert done.stderr.endswith(b": cannot be written (File name too long)\n")
    else:
        assert (done.returncode, done.stderr, found) == (0, b"", {name})
    assert b"\x1b" not in done.stdout + done.stderr
    (done.stdout + done.stderr).decode()


def test_an_input_with_the_longest_name_has_a_report_with_a_shorter_one(tmp_path: Path) -> None:
    long = Path("é" * 120 + ".json")
    long.write_bytes(RUN.read_bytes())
    done = call("report", long, *QUICK, "-q")
    assert done.exit_code == 0, done.output
    assert Path(done.stdout.strip()).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.nightly
def test_a_stop_at_any_moment_leaves_nothing_or_everything(tmp_path: Path, number: signal.Signals) -> None:
    moments = random.Random(number)
    report = ("report", RUN, "--mode", "few_shot", "--bootstrap-resamples", "2000", "-o", "out.html")
    for _ in range(8):
        process = started(*report, cwd=tmp_path)
        time.sleep(moments.uniform(0.0, 3.0))
        process.send_signal(number)
        out, problem = process.communicate(timeout=60)
        written = [name for name in names(tmp_path) if name.startswith((".abstain", "out"))]
        if process.returncode == 0:
            assert (out, problem, written) == (b"report: out.html\n", b"", ["out.html"])
            (tmp_path / "out.html").unlink()
        else:
            assert (process.returncode, written) == (128 + number, [])
            assert problem in (b"", b"abstain: interrupted; nothing was written\n")
