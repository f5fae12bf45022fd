"""Runs that are stopped: by a signal, by a server that fails, or by another run in the same folder."""

from __future__ import annotations

import re
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from abstain import read
from runs.counting_server import ANSWER, serving_replies
from runs.serving import MODEL, abstain, command, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Inspect loads this file inside its event loop. The signal arrives in the middle of a sample, when a KeyboardInterrupt
# would be lost.
TASK = """
import os
import signal
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.hooks import Hooks, hooks

started = []

@hooks(name="stopper", description="Sends a signal when the third sample starts.")
class Stopper(Hooks):
    async def on_sample_start(self, data):
        started.append(data)
        if len(started) == 3 and "STOP_BY" in os.environ:
            os.kill(os.getpid(), int(os.environ["STOP_BY"]))

@task
def numbers():
    return Task(dataset=[
        Sample(input=f"Is {number} prime?", target="yes", id=number, metadata={"choices": ["yes", "no"]})
        for number in range(40)
    ])
"""


def questions(folder: Path, count: int) -> Path:
    rows = [f"{number},Is {number} prime?,yes,yes|no\n" for number in range(count)]
    path = folder / "questions.csv"
    path.write_text("id,question,truth,choices\n" + "".join(rows))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_in_the_middle_of_a_sample_stops_the_run(tmp_path: Path, name: str) -> None:
    number = getattr(signal, name)
    (tmp_path / "task.py").write_text(TASK)
    with serving_replies() as server:
        arguments = ("run", "task.py", "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        stopped = abstain(tmp_path, *arguments, "--max-connections", "1", STOP_BY=str(int(number)))
        asked = server.requests
        resumed = abstain(tmp_path, *arguments, "--resume")
    assert stopped.returncode == 128 + number
    assert stopped.stderr == (
        "abstain: interrupted; finished answers are kept in run-logs (--resume continues the run)\n"
    )
    assert asked <= 4
    assert resumed.returncode == 0, resumed.stderr
    assert len(read(tmp_path / "run.json")) == 40


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_run_that_waits_for_replies(tmp_path: Path, number: signal.Signals) -> None:
    source = questions(tmp_path, 12)
    with serving_replies() as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        with subprocess.Popen(
            command(*arguments, "--max-connections", "2"),
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
        ) as process:
            server.wait_for(5)
            server.hold.clear()
            server.wait_for(server.requests + 1)
            process.send_signal(number)
            assert process.wait(timeout=300) == 128 + number
        asked = server.requests
        server.hold.set()
        assert asked < 12
        resumed = abstain(tmp_path, *arguments, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert len(read(tmp_path / "run.json")) == 12
    # Answers that had arrived before the signal are kept.
    assert server.requests - asked < 12


@pytest.mark.slow
def test_a_background_process_that_ignores_sigint_stops_at_sigterm(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(TASK)
    with serving_replies() as server:
        arguments = ("run", "task.py", "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        stopped = subprocess.run(
            command(*arguments, "--max-connections", "1"),
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            env=environment(STOP_BY=str(int(signal.SIGTERM))),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
    assert stopped.returncode == 128 + signal.SIGTERM
    assert server.requests <= 4


def refusing(status: int, part: str) -> Callable[[int, dict[str, Any]], tuple[int, str]]:
    """Return replies that are errors if the request contains a field."""
    return lambda _number, body: (status, "the patient said") if part in body else ANSWER


@pytest.mark.slow
def test_equal_failures_in_a_row_stop_the_run(tmp_path: Path) -> None:
    source, is_down = questions(tmp_path, 40), [True]

    def reply(number: int, _body: dict[str, Any]) -> tuple[int, str]:
        return (404, "the patient said") if is_down and number > 6 else ANSWER

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        stopped = abstain(tmp_path, *arguments, "--max-connections", "1", "--max-failures", "4")
        asked = server.requests
        (log,) = (tmp_path / "run-logs").glob("*.eval")
        recorded = read(log).counts
        is_down.clear()
        resumed = abstain(tmp_path, *arguments, "--resume")
    assert stopped.returncode == 3
    assert (
        "stopped after 4 equal failures in a row (HTTP 404); the answers so far are in run-logs"
        in stopped.stderr
    )
    assert len(stopped.stderr.splitlines()) == 1
    assert recorded.answered == 5
    # One call before the questions, five answers and four failures; one more request may have been on its way.
    assert 10 <= asked <= 11
    assert resumed.returncode == 0, resumed.stderr
    assert len(read(tmp_path / "run.json")) == 40
    # The five answers are kept, and another call checks the server.
    assert server.requests - asked == 1 + 35


@pytest.mark.slow
def test_a_run_with_many_failed_items_has_an_exit_code_and_a_run_file(tmp_path: Path) -> None:
    source = questions(tmp_path, 12)

    def reply(_number: int, body: dict[str, Any]) -> tuple[int, str]:
        return (404, "") if any(f"Is {number} prime" in str(body) for number in (1, 4, 7)) else ANSWER

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        limited = abstain(tmp_path, *arguments, "--max-failed", "0.2")
        again = abstain(tmp_path, *arguments, "--max-failed", "0.25", "--resume")
    assert limited.returncode == 3
    assert (
        "3 of 12 items failed (HTTP 404: 3), more than the proportion 0.2 of --max-failed" in limited.stderr
    )
    assert "run file: run.json" in limited.stdout
    assert again.returncode == 0, again.stderr
    assert read(tmp_path / "run.json").counts.failed == 3


@pytest.mark.slow
def test_the_error_about_unreadable_replies_does_not_suggest_to_resume(tmp_path: Path) -> None:
    source = questions(tmp_path, 3)
    with serving_replies(lambda _number, _body: (200, "I do not know")) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments)
    assert done.returncode == 3
    assert "all 3 items failed (unread: no_object: 3)" in done.stderr
    assert "another model or larger --max-tokens may help" in done.stderr
    assert "--resume" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "part", "requests", "code", "message"),
    [
        (
            400,
            "response_format",
            2,
            2,
            r"refuses the JSON schema of the replies \(HTTP 400\); pass --no-structured",
        ),
        (400, "logprobs", 3, 2, r"refuses to return log-probabilities \(HTTP 400\); omit tokens from"),
        (400, "messages", 4, 3, r"the first call failed \(HTTP 400\), and no question was sent"),
        (
            401,
            "messages",
            1,
            3,
            r"the first call failed \(HTTP 401\), and no question was sent; check the API key",
        ),
    ],
)
def test_the_first_call_shows_what_the_server_refuses(
    tmp_path: Path, status: int, part: str, requests: int, code: int, message: str
) -> None:
    source = questions(tmp_path, 8)
    with serving_replies(refusing(status, part)) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--signals", "tokens")
    assert done.returncode == code
    assert re.search(message, done.stderr), done.stderr
    assert "patient" not in done.stderr
    assert server.requests == requests
    assert not any("prime" in str(body) for body in server.bodies)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "most", "message"),
    [
        ("p_true", 0, "to return log-probabilities (HTTP 400); omit p_true from --signals"),
        ("tokens,p_true", 0, "to return log-probabilities (HTTP 400); omit tokens and p_true from --signals"),
        ("tokens,p_true", 5, "20 log-probabilities per token (HTTP 400); omit p_true from --signals"),
    ],
)
def test_the_first_call_shows_that_p_true_is_not_available(
    tmp_path: Path, signals: str, most: int, message: str
) -> None:
    source = questions(tmp_path, 8)

    def reply(_number: int, body: dict[str, Any]) -> tuple[int, str]:
        return (400, "") if body.get("top_logprobs", 0) > most else ANSWER

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--signals", signals)
    assert done.returncode == 2
    assert f"the server refuses {message}" in done.stderr
    assert not any("prime" in str(body) for body in server.bodies)


@pytest.mark.slow
def test_a_server_that_is_busy_during_the_first_call_gets_the_questions(tmp_path: Path) -> None:
    source = questions(tmp_path, 2)

    def reply(number: int, _body: dict[str, Any]) -> tuple[int, str]:
        return (429, "") if number == 1 else ANSWER

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--max-retries", "0")
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "run.json")) == 2


@pytest.mark.slow
def test_a_request_that_hangs_ends_after_the_timeout(tmp_path: Path) -> None:
    source = questions(tmp_path, 2)

    def reply(number: int, _body: dict[str, Any]) -> tuple[int, str]:
        if number > 1:  # the first call checks the server
            server.hold.clear()
        return ANSWER

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--timeout", "2")
        without_server = abstain(tmp_path, *arguments, "--timeout", "1", "--resume")
    assert done.returncode == without_server.returncode == 3
    assert "all 2 items failed (AttemptTimeoutError: 2)" in done.stderr
    assert "the first call failed (AttemptTimeoutError)" in without_server.stderr


@pytest.mark.slow
def test_max_retries_is_the_number_of_further_requests(tmp_path: Path) -> None:
    source = questions(tmp_path, 1)

    def reply(number: int, _body: dict[str, Any]) -> tuple[int, str]:
        return ANSWER if number == 1 else (503, "")

    with serving_replies(reply) as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--max-retries", "1")
        first = server.requests
        server.bodies.clear()
        # Inspect loads the model again to resume a run.
        again = abstain(tmp_path, *arguments, "--max-retries", "0", "--resume")
    assert done.returncode == again.returncode == 3
    assert "all 1 items failed (InternalServerError: 1)" in done.stderr
    assert first == 1 + 2
    assert server.requests == 1 + 1


@pytest.mark.slow
def test_a_task_can_be_resumed_from_another_directory(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "task.py").write_text(TASK.replace("range(40)", "range(3)"))
    is_down = [True]

    def reply(_number: int, body: dict[str, Any]) -> tuple[int, str]:
        return (404, "") if is_down and "Is 1 prime" in str(body) else ANSWER

    with serving_replies(reply) as server:
        model = ("--model", MODEL, "--base-url", server.address)
        failed = abstain(folder, "run", "task.py", *model, "-o", "run.json")
        is_down.clear()
        resumed = abstain(tmp_path, "run", "inner/task.py", *model, "-o", "inner/run.json", "--resume")
    assert failed.returncode == 3
    assert resumed.returncode == 0, resumed.stderr
    assert read(folder / "run.json").counts.answered == 3


@pytest.mark.slow
def test_resuming_with_another_table_names_what_changed(tmp_path: Path) -> None:
    source = questions(tmp_path, 3)
    with serving_replies() as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        assert abstain(tmp_path, *arguments).returncode == 0
        asked = server.requests
        # Neither the prompts nor the labels change.
        table = source.read_text().splitlines()
        source.write_text("\n".join([table[0] + ",ward", *(row + ",north" for row in table[1:])]) + "\n")
        edited = abstain(tmp_path, *arguments, "--resume")
        both = abstain(tmp_path, *arguments, "--resume", "--seed", "5")
    assert edited.returncode == both.returncode == 2
    assert "(the table changed); --resume needs the same table" in edited.stderr
    assert "(--seed, the table changed)" in both.stderr
    assert server.requests == asked


@pytest.mark.slow
def test_two_runs_cannot_write_to_the_same_folder(tmp_path: Path) -> None:
    source = questions(tmp_path, 2)
    with serving_replies() as server:
        arguments = ("run", source, "--model", MODEL, "--base-url", server.address, "-o", "run.json")
        server.hold.clear()
        with subprocess.Popen(command(*arguments), cwd=tmp_path, env=environment()) as first:
            server.wait_for(1)
            second = abstain(tmp_path, *arguments, "--timeout", "1", "--max-retries", "0")
            asked = server.requests
            server.hold.set()
            assert first.wait(timeout=300) == 0
    assert second.returncode == 2
    assert "run-logs: another run is writing to this directory" in second.stderr
    assert asked == 1
    assert len(read(tmp_path / "run.json")) == 2
