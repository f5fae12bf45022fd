"""How a process ends under any condition: with an exit code, at most one line, and never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import abstain as package
from abstain import readers
from abstain.cli import app
from processes import FEW_SHOT, RUN, abstain, names, on_linux, started

CALLS = {
    "evaluate": ("evaluate", *FEW_SHOT),
    "gate": ("gate", *FEW_SHOT, "--fail-if", "cmax below 0.1"),
    "check": ("check", str(RUN), "--mode", "few_shot"),
    "metrics": ("metrics",),
    "schema": ("schema", "metrics"),
    "help": ("--help",),
}
# One command in every run of the tests, the others at night.
CASES = [name if name == "evaluate" else pytest.param(name, marks=pytest.mark.nightly) for name in CALLS]


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def broken(problem: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise problem

    monkeypatch.setattr(readers, "read_systems", fail)


def test_a_crash_is_one_line_with_a_distinct_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken(RuntimeError("could not convert 'Mrs. Example coughs'"), monkeypatch)
    done = call("evaluate", *FEW_SHOT)
    assert (done.exit_code, done.stdout) == (70, "")
    assert done.stderr.startswith("abstain: unexpected RuntimeError at evaluation/_evaluate.py:")
    assert f"(abstain {package.__version__}, Python " in done.stderr
    assert "please report this line" in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Example" not in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("ABSTAIN_DEBUG", "1")
    done = call("evaluate", *FEW_SHOT)
    assert (done.exit_code, "Traceback" in done.stderr) == (70, True)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("problem", "code", "sentence"),
    [
        (MemoryError(), 3, "abstain: the memory does not suffice for these data; "),
        (RecursionError(), 70, "abstain: unexpected RecursionError at "),
        (KeyboardInterrupt(), 130, "abstain: interrupted; nothing was written\n"),
        (
            OSError(28, "No space left on device", "/tmp/x"),
            2,
            "abstain: /tmp/x: the system refuses it (No space",
        ),
        (PermissionError(13, "Permission denied"), 2, "abstain: the system refuses it (Permission denied)\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_errors_of_the_operating_system_have_an_exit_code_and_a_sentence(
    problem: BaseException, code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(problem, monkeypatch)
    done = call("evaluate", *FEW_SHOT, "--json")
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(sentence)
    assert done.stderr.count("\n") == (1 if sentence else 0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_harm_nothing(name: str, closed: tuple[int, ...], tmp_path: Path) -> None:
    def close() -> None:
        for number in closed:
            os.close(number)

    arguments = (*CALLS[name], "-o", "out") if name == "evaluate" else CALLS[name]
    done = abstain(*arguments, cwd=tmp_path, preexec_fn=close)
    assert (done.returncode, done.stderr) == (0, b"")
    assert names(tmp_path) == (["out"] if name == "evaluate" else [])
    if name == "evaluate":
        assert (tmp_path / "out").read_bytes().startswith(b"{")


@on_linux
@pytest.mark.parametrize("name", CASES)
def test_a_full_stdout_is_reported_and_no_file_is_written(name: str, tmp_path: Path) -> None:
    arguments = (*CALLS[name], "-o", "out") if name == "evaluate" else CALLS[name]
    with Path("/dev/full").open("wb") as full:
        done = abstain(*arguments, cwd=tmp_path, stdout=full)
        assert (done.returncode, done.stderr) == (
            2,
            b"abstain: the system refuses it (No space left on device)\n",
        )
        assert abstain(*arguments, cwd=tmp_path, stdout=full, stderr=full).returncode == 2
    assert names(tmp_path) == []


@on_linux
def test_a_full_stderr_does_not_change_the_exit_code_of_an_error(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = abstain("evaluate", "missing.json", cwd=tmp_path, stderr=full)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_reader_that_closes_the_pipe_is_not_a_failed_gate(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = abstain(*CALLS["gate"], cwd=tmp_path, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("name", ["evaluate", "schema"])
@pytest.mark.nightly
def test_a_working_directory_that_is_gone(name: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f'rmdir "{gone}"; exec "$@"'
    command = ["bash", "-c", line, "bash", sys.executable, "-m", "abstain", *CALLS[name]]
    done = subprocess.run(command, cwd=gone, capture_output=True, check=False, timeout=60)
    assert done.returncode in (0, 2), done.stderr
    assert b"Traceback" not in done.stderr
    if done.returncode:
        assert done.stderr.count(b"\n") == 1


@pytest.mark.nightly
def test_an_interrupt_while_a_table_is_read(tmp_path: Path) -> None:
    """DuckDB raises its own error when it is interrupted."""
    rows = "".join(f"{n % 2},{n % 3},0.{n},{n}\n" for n in range(400_000))
    (tmp_path / "t.csv").write_text("truth,prediction,confidence,id\n" + rows)
    for wait in (0.8, 1.2, 1.6, 2.0):
        process = started("evaluate", "t.csv", "--bootstrap-resamples", "100000000", cwd=tmp_path)
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        out, problem = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, b"")
        assert problem.splitlines()[-1:] in ([], [b"abstain: interrupted; nothing was written"])
        assert b"Traceback" not in problem
        assert names(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_a_character_shows_another_one(encoding: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    name = "é\u202e中.json"
    (tmp_path / name).write_bytes(RUN.read_bytes())
    options = FEW_SHOT[1:]
    done = abstain("evaluate", name, *options, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")


def test_python_warnings_are_not_shown(tmp_path: Path) -> None:
    program = (
        "import warnings, abstain.__main__ as entry, abstain.cli as cli\n"
        "cli.main = lambda: warnings.warn('text of a file')\nentry.main()"
    )
    for debug, shown in (("", False), ("1", True)):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "ABSTAIN_DEBUG": debug},
        )
        assert ("text of a file" in done.stderr) is shown


_ENDS_WITHIN = """
import os, signal, sys
from abstain import _process
_process.prepare()
class Ends:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        sum(range(100_000))                       # the handler runs here and cannot raise
class Fails:
    def __del__(self):
        raise RuntimeError("a defect")
if sys.argv[1] == "stop":
    Ends()
else:
    Fails()
print(_process.stop_code())
"""


@pytest.mark.parametrize(("case", "code", "message"), [("stop", "143", ""), ("defect", "None", "a defect")])
def test_a_signal_during_a_destructor_is_remembered_without_a_message(
    case: str, code: str, message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ENDS_WITHIN, case], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == code
    assert message in done.stderr
    assert bool(message) == bool(done.stderr)


_THREADS = """
import os
from abstain import _process
_process.prepare()
import numpy
print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task")))
"""


@on_linux
@pytest.mark.parametrize(("setting", "expected"), [(None, ["1", "1"]), ("2", ["2"])])
def test_a_command_starts_no_threads_that_wait_by_spinning(setting: str | None, expected: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {} if setting is None else {"OPENBLAS_NUM_THREADS": setting}
    done = subprocess.run(
        [sys.executable, "-c", _THREADS], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split()[: len(expected)] == expected


_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from abstain import __main__ as entry
entry.prepare()
import numpy, duckdb, abstain.cli
size = next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmSize" in line)
resource.setrlimit(resource.RLIMIT_AS, (size * 1000 + int(sys.argv.pop(1)),) * 2)
entry.main()
"""


@on_linux
@pytest.mark.nightly
def test_too_little_memory_is_reported_in_one_line(tmp_path: Path) -> None:
    table, rows = tmp_path / "table.csv", 400_000
    lines = (f"{row % 2},{row * 7 % 2},{row * 0.6180339887 % 1:.15f},{row // 10}" for row in range(rows))
    table.write_text("\n".join(("truth,prediction,confidence,patient_id", *lines)))
    messages = set()
    for megabytes in range(200, 620, 30):
        done = subprocess.run(
            [sys.executable, "-c", _LITTLE_MEMORY, str(megabytes << 20), "evaluate", table, "--quiet"],
            capture_output=True,
            text=True,
            check=False,
        )
        if "ABORT" in done.stderr or done.returncode < 0:
            continue  # the C library ended the process before Python could report it
        assert done.returncode in (0, 3), done.stderr
        messages |= {done.stderr.partition("memory")[1]}
    assert "memory" in messages
