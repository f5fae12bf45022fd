"""Options of `abstain run`: arguments of the provider, costs, the cache, and the task of a file."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from inspect_ai.log import read_eval_log, read_eval_log_samples

from abstain import evaluate, read
from abstain.errors import ArgumentError, DataError
from abstain.runs import RunPlan, SignalPlan, execute, prepare, run_content
from runs.counting_server import serving_replies
from runs.serving import MODEL, abstain, command, environment, scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspect_ai.log import EvalSample

TASKS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample

def samples(word):
    return [Sample(input=f"Is {word} {n} prime?", target="yes", id=n, metadata={"choices": ["yes"]}) for n in (1, 2)]

@task
def first():
    return Task(dataset=samples("first"))

@task
def second():
    return Task(dataset=samples("second"))
"""


def questions(folder: Path) -> Path:
    path = folder / "questions.csv"
    path.write_text("id,question,truth,choices\n1,Is 7 prime?,yes,yes|no\n2,Is 9 prime?,no,yes|no\n")
    return path


def digest(source: Path, **settings: Any) -> str:
    plan = RunPlan(source=str(source), model="mockllm/model", log_dir=source.with_name("logs"), **settings)
    return prepare(plan).digests["zero_shot"]


@pytest.mark.slow
def test_arguments_of_the_provider_are_typed_and_recorded_without_keys(tmp_path: Path) -> None:
    arguments = ("--model-arg", "responses-api=false", "--model-arg", "api_key=sk-secret-1")
    with serving_replies() as server:
        address = server.address.replace("http://", "http://user:secret-2@")
        done = abstain(
            tmp_path,
            "run",
            questions(tmp_path),
            "--model",
            MODEL,
            "--base-url",
            address,
            *arguments,
            "-o",
            "run.json",
        )
        paths = {body["path"] for body in server.bodies}
    assert done.returncode == 0, done.stderr
    # As a text, "false" would select the Responses API.
    assert paths == {"/v1/chat/completions"}
    run = (tmp_path / "run.json").read_text()
    provenance = json.loads(run)["experiments"][0]["provenance"]
    assert provenance["model_args"] == {"responses_api": False}
    assert provenance["base_url"] == server.address
    assert "secret" not in run + done.stdout


def test_the_hash_of_a_run_contains_arguments_and_address_but_no_key(tmp_path: Path) -> None:
    source = questions(tmp_path)
    plain = digest(source)
    assert digest(source, model_args={"device": "cpu"}) != plain
    assert digest(source, base_url="http://127.0.0.1/v1") != plain
    assert digest(source, model_args={"api_key": "sk-1", "default_headers": {}}) == digest(
        source, model_args={"default_headers": {"Authorization": "Bearer 2"}}
    )
    assert digest(source, base_url="http://one@host/v1") == digest(source, base_url="http://two@host/v1")


@pytest.mark.slow
def test_one_task_of_a_file_is_selected_by_name(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    with serving_replies() as server:
        arguments = ("--model", MODEL, "--base-url", server.address, "-o", "run.json")
        both = abstain(tmp_path, "run", "tasks.py", *arguments)
        unknown = abstain(tmp_path, "run", "tasks.py@third", *arguments)
        assert server.requests == 0
        done = abstain(tmp_path, "run", "tasks.py@second", *arguments)
    assert both.returncode == unknown.returncode == 2
    assert "tasks.py: contains 2 tasks (first, second); name one of them: tasks.py@first" in both.stderr
    assert "tasks.py: contains no task 'third', but first, second" in unknown.stderr
    assert done.returncode == 0, done.stderr
    assert ["second" in str(body) for body in server.bodies] == [False, True, True]
    assert len(read(tmp_path / "run.json")) == 2


@pytest.mark.slow
def test_an_error_in_the_file_of_a_task_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.replace("Task(dataset", "Task(data=undefined, dataset"))
    with serving_replies() as server:
        arguments = ("--model", MODEL, "--base-url", server.address, "-o", "run.json")
        done = abstain(tmp_path, "run", "tasks.py@first", *arguments)
    assert done.returncode == 2
    assert done.stderr == "abstain: tasks.py: the task cannot be created (NameError at line 10)\n"


OWN_SCORERS = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, choice, match, scorer

@scorer(metrics=[accuracy()])
def generous():
    async def score(state, target):
        return Score(value="C" if state.output.completion in target.text.split("/") else "I")
    return score

@task
def free():
    samples = [Sample(input=f"Capital of {name}?", target=target, id=name)
               for name, target in (("Peru", "Lima/the city of Lima"), ("Chad", "Moundou"), ("Mali", "Bamako"))]
    return Task(dataset=samples, scorer=[generous(), match()])

@task
def letters():
    samples = [Sample(input=f"Capital of {name}?", target=target, id=name, choices=["Lima", "Moundou"])
               for name, target in (("Peru", "A"), ("Chad", "B"), ("Mali", "A"))]
    return Task(dataset=samples, scorer=choice())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "answers", "kept"),
    [
        ("free", {"Peru": "the city of Lima", "Chad": "Sarh", "Mali": None}, ["generous", "match"]),
        ("letters", {"Peru": "A", "Chad": "A", "Mali": None}, ["choice"]),
    ],
)
def test_a_task_keeps_its_scorers(
    tmp_path: Path, name: str, answers: dict[str, str | None], kept: list[str]
) -> None:
    """The first scorer of the task decides that Peru is right and Chad is wrong; Mali is declined."""
    (tmp_path / "tasks.py").write_text(OWN_SCORERS)

    def message(request: dict[str, Any]) -> dict[str, Any]:
        country = next(each for each in answers if each in json.dumps(request))
        return {"content": json.dumps({"answer": answers[country]})}

    with scripted(message) as (address, _):
        done = abstain(
            tmp_path, "run", f"tasks.py@{name}", "--model", MODEL, "--base-url", address, "-o", "run.json"
        )
    assert done.returncode == 0, done.stderr
    counts = read(tmp_path / "run.json").counts
    assert (counts.answered, counts.abstained, counts.failed) == (2, 1, 0)
    (path,) = (tmp_path / "run-logs").glob("*.eval")
    scores_of = {sample.id: sample.scores or {} for sample in read_eval_log(str(path)).samples or []}
    assert {each: scores["answer_scorer"].value for each, scores in scores_of.items()} == {
        "Peru": "C",
        "Chad": "I",
        "Mali": "N",
    }
    for country in ("Peru", "Chad"):
        assert list(scores_of[country]) == [*kept, "answer_scorer"]
        assert scores_of[country][kept[0]].value == scores_of[country]["answer_scorer"].value
        assert (scores_of[country]["answer_scorer"].metadata or {})["scorer"] == kept[0]
    accuracy = evaluate(path, scorer="answer_scorer", metrics="selective_accuracy", selective=False)
    assert next(iter(accuracy.systems.values())).estimate("selective_accuracy").value == 0.5


@pytest.mark.slow
def test_the_grades_of_a_task_survive_an_interruption(tmp_path: Path) -> None:
    """The signal arrives while a model grades the first answers; its tokens are counted."""
    (tmp_path / "tasks.py").write_text(OWN_SCORERS)

    def reply(_number: int, body: dict[str, Any]) -> tuple[int, str]:
        if body["model"] != "grader":
            return 200, json.dumps({"answer": "a city"})
        server.hold.clear()
        return 200, json.dumps({"grade": "incorrect"})

    with serving_replies(reply) as server:
        arguments = (
            *("run", "tasks.py@free", "--model", MODEL, "--base-url", server.address, "-o", "run.json"),
            *("--grader", "openai-api/local/grader"),
        )
        variables = environment(LOCAL_BASE_URL=server.address)
        with subprocess.Popen(
            command(*arguments), cwd=tmp_path, env=variables, stderr=subprocess.PIPE
        ) as process:
            with server.arrivals:
                assert server.arrivals.wait_for(
                    lambda: any(body["model"] == "grader" for body in server.bodies), timeout=300
                )
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=300) == 128 + signal.SIGTERM
        server.bodies.clear()
        server.hold.set()
        server.hold.clear = lambda: None  # type: ignore[method-assign]
        resumed = abstain(tmp_path, *arguments, "--resume", LOCAL_BASE_URL=server.address)
    assert resumed.returncode == 0, resumed.stderr
    items = read(tmp_path / "run.json")
    assert (items.counts.answered, items.counts.unscored) == (3, 0)
    usage = json.loads((tmp_path / "run.json").read_text())["experiments"][0]["provenance"]["usage"]
    assert usage["tokens"]["openai-api/local/grader"] == {"input": 30, "output": 15}


@pytest.mark.slow
def test_tokens_and_costs_are_those_of_the_server(tmp_path: Path) -> None:
    with serving_replies() as server:
        arguments = ("run", questions(tmp_path), "--model", MODEL, "--base-url", server.address)
        done = abstain(tmp_path, *arguments, "--price", "1000,4000", "-o", "run.json")
    assert done.returncode == 0, done.stderr
    # Two questions with 10 input tokens ($0.001 each) and 5 output tokens ($0.004 each).
    assert f"used: 20 input and 10 output tokens of {MODEL} in " in done.stdout
    assert ", $0.06\n" in done.stdout
    usage = json.loads((tmp_path / "run.json").read_text())["experiments"][0]["provenance"]["usage"]
    assert usage["tokens"] == {MODEL: {"input": 20, "output": 10}}
    assert usage["cost"] == pytest.approx(0.06)
    assert usage["seconds"] >= 0


def test_a_dry_run_estimates_tokens_time_and_costs(tmp_path: Path) -> None:
    source = questions(tmp_path)
    options = (
        "--signals",
        "consistency:4",
        "--max-tokens",
        "10",
        "--max-connections",
        "2",
        "--price",
        "0,100000",
    )
    done = abstain(tmp_path, "run", source, "--model", MODEL, *options, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "2 items x 1 modes x 5 calls = 10 calls" in done.stdout
    # Ten replies of at most 10 tokens, and 10 calls of 2 s on two connections.
    assert "100 output tokens: $10.00" in done.stdout
    assert "about 10 s, if a call takes 2 s and 2 run at a time" in done.stdout


@pytest.mark.slow
def test_the_cache_answers_equal_requests(tmp_path: Path) -> None:
    with serving_replies() as server:
        arguments = ("run", questions(tmp_path), "--model", MODEL, "--base-url", server.address, "--cache")
        runs = []
        for name in ("one.json", "two.json"):
            done = abstain(tmp_path, *arguments, "-o", name, INSPECT_CACHE_DIR=str(tmp_path / "cache"))
            assert done.returncode == 0, done.stderr
            runs.append(server.requests)
    # Each run checks the server, and only the first asks the two questions.
    assert runs == [1 + 2, 1 + 2 + 1]


def test_a_cache_without_a_seed_would_make_samples_agree(tmp_path: Path) -> None:
    source = questions(tmp_path)
    signals = SignalPlan.parse("consistency:3")
    with pytest.raises(ArgumentError, match="same reply for every sample of an answer"):
        digest(source, signals=signals, settings={"cache": True})
    assert digest(source, signals=signals, settings={"cache": True}, seed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--price", "1"), "--price needs two numbers"),
        (("--price", "1,-1"), "price must be two numbers of at least 0"),
        (("--max-failed", "1.5"), "--max-failed must be a proportion from 0 to 1"),
        (("--max-failures", "-1"), "max_failures must be at least 0"),
        (("--max-connections", "0"), "max_connections must be at least 1"),
        (("--max-tokens", "0"), "max_tokens must be at least 1"),
        (("--max-retries", "-1"), "max_retries must be at least 0"),
        (("--timeout", "0"), "timeout must be at least 1"),
        (("--model-arg", "key=[1"), "--model-arg key: the value is not valid YAML"),
    ],
)
def test_invalid_options_are_reported_before_any_call(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = abstain(tmp_path, "run", questions(tmp_path), "--model", MODEL, *options, "--dry-run")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def plan_for(source: Path, address: str, **options: Any) -> RunPlan:
    return RunPlan(
        source=str(source), model=MODEL, base_url=address, log_dir=source.with_name("logs"), **options
    )


@pytest.mark.slow
def test_the_server_is_also_checked_inside_an_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook has a running event loop."""
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    source = questions(tmp_path)

    async def run(address: str) -> None:
        execute(prepare(plan_for(source, address)))

    with (
        serving_replies(lambda _number, _body: (401, "")) as server,
        pytest.raises(DataError, match=r"first call failed \(HTTP 401\)"),
    ):
        asyncio.run(run(server.address))
    assert server.requests == 1


@pytest.mark.slow
def test_the_events_of_few_samples_show_which_settings_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are most of the size of a log."""
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    samples_read = []

    def counting(*arguments: Any, **options: Any) -> Iterator[EvalSample]:
        for sample in read_eval_log_samples(*arguments, **options):
            samples_read.append(sample.id)
            yield sample

    monkeypatch.setattr("inspect_ai.log.read_eval_log_samples", counting)
    with serving_replies() as server:
        prepared = prepare(plan_for(questions(tmp_path), server.address, seed=3))
        content = json.loads(run_content(prepared, execute(prepared)))
    assert content["experiments"][0]["provenance"]["seed"] == 3
    assert len(samples_read) == 1


@pytest.mark.slow
def test_the_garbage_of_a_run_is_collected_as_in_other_processes(tmp_path: Path) -> None:
    """With the threshold of short commands, the memory of a run grew by 0.1 MB per item."""
    (tmp_path / "tasks.py").write_text(
        "import gc, pathlib\npathlib.Path('thresholds').write_text(str(gc.get_threshold()))\n" + OWN_SCORERS
    )
    with serving_replies() as server:
        arguments = ("run", "tasks.py@letters", "--model", MODEL, "--base-url", server.address)
        abstain(tmp_path, *arguments, "-o", "run.json")
    usual = subprocess.run(
        [sys.executable, "-c", "import gc; print(gc.get_threshold(), end='')"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "thresholds").read_text() == usual.stdout
