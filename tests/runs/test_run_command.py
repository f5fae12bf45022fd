"""`abstain run` against a real server: interrupted and resumed, with failing requests, and with invalid input."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log

from abstain import read
from abstain.errors import AbstainError
from offline import local_model
from runs.serving import MODEL, abstain, command, environment, failing, scripted

HERE = Path(local_model.__file__).parent
QUESTIONS = HERE / "questions.csv"
ARGUMENTS = (
    "run",
    QUESTIONS,
    "--scale",
    "0,3",
    "--model",
    MODEL,
    "--max-tokens",
    "300",
    "--max-connections",
    "4",
)
SIGNALS = ("--signals", "verbalized,tokens,consistency:1,evidence")


def logged(folder: Path) -> int:
    """Return the number of samples in the newest log."""
    logs = sorted(folder.glob("*.eval"))
    try:
        return len(read(logs[-1])) if logs else 0
    except AbstainError:
        return 0


def answered_once(run: dict[str, Any]) -> list[tuple[str, str]]:
    records = run["experiments"][0]["results"]["results"]
    return [(record["participant_id"], item) for record in records for item in record["outcomes"]]


@pytest.mark.nightly
def test_a_killed_run_can_be_resumed(tmp_path: Path, local_server: str) -> None:
    arguments = (*ARGUMENTS, *SIGNALS, "--base-url", local_server, "-o", "run.json")
    with subprocess.Popen(command(*arguments), cwd=tmp_path, env=environment()) as process:
        deadline = time.monotonic() + 300
        while logged(tmp_path / "run-logs") < 5 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    before = logged(tmp_path / "run-logs")
    assert 5 <= before < 40
    assert not (tmp_path / "run.json").exists()
    refused = abstain(tmp_path, *arguments)
    assert refused.returncode == 2
    assert "continue it with --resume" in refused.stderr
    done = abstain(tmp_path, *arguments, "--resume")
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    pairs = answered_once(run)
    assert len(pairs) == len(set(pairs)) == 40
    # Questions that were answered before the kill were not asked again.
    first, second = sorted((tmp_path / "run-logs").glob("*.eval"))
    old, new = read(first), read(second)
    kept = dict(zip(new.item.tolist(), new.metadata["answer"].tolist(), strict=True))
    assert all(
        kept[name] == answer
        for name, answer in zip(old.item.tolist(), old.metadata["answer"].tolist(), strict=True)
    )
    evaluated = abstain(
        tmp_path, "evaluate", "run.json", "--confidence", "all", "--json", "--bootstrap-resamples", "0"
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert len(json.loads(evaluated.stdout)["confidence_variants"]) == 13
    again = abstain(tmp_path, *arguments, "--resume")
    assert again.returncode == 0, again.stderr
    assert len(list((tmp_path / "run-logs").glob("*.eval"))) == 2


@pytest.mark.slow
def test_failed_items_are_counted_and_resumed(tmp_path: Path, local_server: str) -> None:
    broken = [True]

    def status(number: int, body: bytes) -> int:
        if broken and b"went back to running" in body and b"How bad is this person's sleep" in body:
            return 404
        return 500 if number % 20 == 0 else 0

    with failing(local_server, status) as (address, statuses):
        arguments = (*ARGUMENTS, *SIGNALS, "--base-url", address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, "--compute-aurc")
        evaluated = read(tmp_path / "run.json")
        requests = len(statuses)
        broken.clear()
        resumed = abstain(tmp_path, *arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert statuses.count(500) >= 3
    assert "failed, HTTP 404: 1" in done.stdout
    assert "AURC" in done.stdout
    items = evaluated
    assert len(items) == 40
    assert items.counts.failed == 1
    assert (items.cluster[items.outcome == 2].tolist(), items.item[items.outcome == 2].tolist()) == (
        ["note-1"],
        ["Sleep"],
    )
    assert "patient" not in done.stdout + done.stderr + (tmp_path / "run.json").read_text()
    # Only the failed item is repeated.
    assert resumed.returncode == 0, resumed.stderr
    assert read(tmp_path / "run.json").counts.failed == 0
    assert len(statuses) - requests <= 8


@pytest.mark.slow
def test_sampling_and_log_probabilities_with_a_real_server(tmp_path: Path, local_server: str) -> None:
    arguments = (*ARGUMENTS, "--base-url", local_server, "--seed", "3", "--limit", "4")
    runs = []
    for name in ("one.json", "two.json"):
        done = abstain(
            tmp_path, *arguments, "--signals", "tokens,consistency:4,p_true,semantic_entropy", "-o", name
        )
        assert done.returncode == 0, done.stderr
        runs.append(json.loads((tmp_path / name).read_text())["experiments"][0])
    signals = [item for record in runs[0]["results"]["results"] for item in record["item_signals"].values()]
    assert all(0.0 < item["token_msp"] < 1.0 for item in signals)
    assert all(0.0 < item["answer_token_probability"] <= 1.0 for item in signals)
    assert all(item["token_pe"] > 0.0 and item["token_energy"] <= 0.0 for item in signals)
    assert all(len(item["consistency_samples"]) == 4 for item in signals)
    assert any(len(set(item["consistency_samples"])) > 1 for item in signals)
    assert any(item["semantic_entropy"] > 0.0 for item in signals)
    # The same seed gives the same answers.
    assert [record["predicted_items"] for record in runs[0]["results"]["results"]] == [
        record["predicted_items"] for record in runs[1]["results"]["results"]
    ]
    provenance = runs[0]["provenance"]
    assert provenance["prompts"]["version"] == "2"
    assert provenance["consistency_n_samples"] == 4
    assert provenance["consistency_temperature"] == 0.7
    assert provenance["seed"] == 3


@pytest.mark.slow
def test_modes_become_experiments_of_one_run_file(tmp_path: Path, local_server: str) -> None:
    modes = ("--mode", "zero_shot", "--mode", "few_shot", "--examples", HERE / "shots.csv", "--limit", "4")
    done = abstain(
        tmp_path,
        *ARGUMENTS,
        *modes,
        "--signals",
        "verbalized",
        "--base-url",
        local_server,
        "-o",
        "run.json",
        "--compute-aurc",
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "run.json").read_text())
    assert [experiment["provenance"]["mode"] for experiment in run["experiments"]] == [
        "zero_shot",
        "few_shot",
    ]
    assert [experiment["provenance"]["prompts"]["examples"] for experiment in run["experiments"]] == [0, 3]
    assert len(read(tmp_path / "run.json", mode="few_shot")) == 4
    assert run["run_metadata"]["run_id"]
    assert run["run_metadata"]["python_version"]


@pytest.mark.slow
def test_an_instrument_writes_the_original_run_file_format(tmp_path: Path, local_server: str) -> None:
    arguments = (
        *(
            "run",
            HERE / "interviews.csv",
            "--instrument",
            "PHQ-8",
            "--model",
            MODEL,
            "--base-url",
            local_server,
        ),
        *(
            "--signals",
            "verbalized,tokens,consistency:1,evidence",
            "--max-tokens",
            "300",
            "--limit",
            "2",
            "-o",
            "run.json",
        ),
    )
    done = abstain(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    (experiment,) = json.loads((tmp_path / "run.json").read_text())["experiments"]
    assert "abstain" not in experiment["provenance"]
    records = experiment["results"]["results"]
    assert [record["participant_id"] for record in records] == [300, 301]
    for record in records:
        for name in ("ground_truth_items", "predicted_items", "item_signals", "evidence_counts"):
            assert list(record[name]) == [
                *(
                    "NoInterest",
                    "Depressed",
                    "Sleep",
                    "Tired",
                    "Appetite",
                    "Failure",
                    "Concentrating",
                    "Moving",
                )
            ]
        assert all(isinstance(count, int) for count in record["evidence_counts"].values())
        assert all(type(score) in (int, type(None)) for score in record["predicted_items"].values())
    evaluated = abstain(
        tmp_path, "evaluate", "run.json", "--confidence", "all", "--json", "--bootstrap-resamples", "0"
    )
    assert evaluated.returncode == 0, evaluated.stderr
    assert experiment["results"]["total_subjects"] == 2
    assert experiment["provenance"]["participants_requested"] == 2
    totals = abstain(
        tmp_path, "evaluate", "run.json", "--instrument", "PHQ-8", "--metric", "severity_tier_accuracy"
    )
    assert totals.returncode == 0, totals.stderr


@pytest.mark.slow
def test_zero_shot_and_few_shot_of_an_instrument_can_be_compared(tmp_path: Path) -> None:
    """The model rates 1, or 2 if it sees examples; the examples are two other participants."""
    people = (HERE / "interviews.csv").read_text().splitlines(keepends=True)
    (tmp_path / "people.csv").write_text("".join(people[:3]))
    (tmp_path / "others.csv").write_text("".join([people[0], *people[3:5]]))

    def message(request: dict[str, Any]) -> dict[str, Any]:
        rating = 2 if "Examples:" in json.dumps(request) else 1
        return {"content": json.dumps({"answer": str(rating)})}

    with scripted(message) as (address, requests):
        done = abstain(
            tmp_path,
            *("run", "people.csv", "--instrument", "PHQ-8", "--model", MODEL, "--base-url", address),
            *("--mode", "zero_shot", "--mode", "few_shot", "--examples", "others.csv", "-o", "run.json"),
        )
    assert done.returncode == 0, done.stderr
    assert len(requests) == 2 * 8 * 2
    experiments = json.loads((tmp_path / "run.json").read_text())["experiments"]
    for experiment, mode, rating, examples in zip(
        experiments, ("zero_shot", "few_shot"), (1, 2), (0, 2), strict=True
    ):
        assert experiment["provenance"]["mode"] == mode
        assert experiment["provenance"]["prompts"]["examples"] == examples
        for record in experiment["results"]["results"]:
            assert set(record["predicted_items"].values()) == {rating}
    compared = abstain(
        tmp_path,
        *(
            "compare",
            "--input",
            "run.json",
            "--mode",
            "zero_shot",
            "--input",
            "run.json",
            "--mode",
            "few_shot",
        ),
        *("--metric", "mean_absolute_error"),
    )
    assert compared.returncode in (0, 4), compared.stderr


def test_a_dry_run_calls_no_model(tmp_path: Path) -> None:
    done = abstain(tmp_path, *ARGUMENTS, *SIGNALS, "--dry-run", "-o", "run.json")
    assert done.returncode == 0, done.stderr
    assert "How bad is this person's sleep?" in done.stdout
    assert "40 items x 1 modes x 2 calls = 80 calls" in done.stdout
    assert list(tmp_path.iterdir()) == []


def table(folder: Path, text: str) -> Path:
    path = folder / "mine.csv"
    path.write_text(text)
    return path


SOUND = "id,question,truth,choices\n1,Is 7 prime?,yes,yes|no\n2,Is 9 prime?,no,yes|no\n"


@pytest.mark.parametrize(
    ("content", "options", "code", "message"),
    [
        (SOUND, ("--model", "nosuch/model"), 2, "cannot call the model nosuch/model"),
        (SOUND, ("--model", "openai/gpt-4o-mini"), 2, "OPENAI_API_KEY"),
        (
            SOUND,
            ("--template", "{question} {nowhere}"),
            2,
            "the template names 'nowhere', which is not a column",
        ),
        (SOUND, ("--template", "{question.__class__}"), 2, "which is not a column"),
        (SOUND, ("--template", "{question"), 2, "an unmatched brace"),
        (SOUND + "2,Is 11 prime?,yes,yes|no\n", (), 3, "duplicate item 2 .rows 1 and 2"),
        (
            SOUND + "3,Is 11 prime?,perhaps,yes|no\n",
            (),
            3,
            r"item 3: the truth is not one of its 2 choices",
        ),
        (SOUND, ("--signals", "verbalised"), 2, "unknown signal 'verbalised' .did you mean 'verbalized'"),
        (SOUND, ("--signals", "consistency:0"), 2, "must be from 1 to"),
        (SOUND, ("--signals", "evidence"), 2, "evidence needs the text"),
        (SOUND, ("--mode", "few_shot"), 2, "few_shot needs examples"),
        (SOUND, ("--mode", "chain"), 2, "unknown mode 'chain'"),
        (SOUND, ("--signals", "consistency:5", "--consistency-samples", "3"), 2, "pass only one of them"),
        (SOUND, ("--question", "quest"), 2, "has no column 'quest' .did you mean 'question'"),
        (SOUND, ("--resume",), 2, "name it with --output"),
        (SOUND, ("--scale", "0,3"), 2, "both choices and a scale"),
        ("id,question\n1,Is 7 prime?\n", (), 2, "which column is the truth"),
        ("id,question,truth\n1,,yes\n", (), 3, "'question' is part of the prompt, but is empty at line 2"),
        (SOUND, ("--grader", "mockllm/grader"), 2, "every question has choices or a scale"),
        (SOUND, ("--confidence-target", "75"), 2, "--confidence-target must be between 0 and 1"),
        (SOUND, ("--system-message", "@nowhere.txt"), 2, "nowhere.txt"),
        (SOUND, ("--limit", "0"), 2, "limit must be at least 1"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    tmp_path: Path, content: str, options: tuple[str, ...], code: int, message: str
) -> None:
    path = table(tmp_path, content)
    model = () if "--model" in options else ("--model", "mockllm/model")
    done = abstain(tmp_path, "run", path, *model, *options)
    assert done.returncode == code, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    import re  # noqa: PLC0415

    assert re.search(message, done.stderr), done.stderr
    assert "perhaps" not in done.stderr
    assert list(tmp_path.glob("*-run.json")) == []


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["chat completions", "responses"])
def test_refusals_of_the_model_are_abstentions(tmp_path: Path, interface: str) -> None:
    """Of two questions, the model refuses the second; its refusal does not leave N."""

    def message(request: dict[str, Any]) -> dict[str, Any]:
        if "Is 9 prime" in json.dumps(request):
            return {"refusal": "I cannot help with that."}
        return {"content": '{"answer": "yes"}'}

    path = table(tmp_path, SOUND)
    model = {
        "chat completions": ("--model", MODEL),
        "responses": ("--model", "openai/gpt-4o-mini", "--model-arg", "responses_api=true"),
    }
    with scripted(message) as (address, requests):
        done = abstain(
            tmp_path,
            *("run", path, *model[interface], "--base-url", address, "-o", "run.json"),
            OPENAI_API_KEY="none",
        )
    assert done.returncode == 0, done.stderr
    assert all(("input" in request) == (interface == "responses") for request in requests)
    assert len(requests) == 2
    counts = read(tmp_path / "run.json").counts
    assert (counts.answered, counts.abstained, counts.failed) == (1, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "ignored"),
    [("openai/o3-mini", ["seed", "temperature"]), (MODEL, [])],
    ids=["reasoning", "other"],
)
def test_the_provenance_has_only_settings_that_were_sent(
    tmp_path: Path, model: str, ignored: list[str]
) -> None:
    """A reasoning model accepts no temperature, and its interface no seed."""
    path = table(tmp_path, SOUND)
    with scripted(lambda request: {"content": '{"answer": "yes"}'}) as (address, requests):
        done = abstain(
            tmp_path,
            *("run", path, "--model", model, "--base-url", address, "-o", "run.json", "--temperature", "0.5"),
            *("--seed", "3", "--signals", "consistency:1", "--consistency-temperature", "0.9"),
            OPENAI_API_KEY="none",
        )
    assert done.returncode == 0, done.stderr
    assert {"temperature" in request for request in requests} == {not ignored}
    provenance = json.loads((tmp_path / "run.json").read_text())["experiments"][0]["provenance"]
    assert provenance["ignored_settings"] == ignored
    assert provenance["settings"].get("temperature") == (None if ignored else 0.5)
    assert provenance["consistency_temperature"] == (None if ignored else 0.9)
    assert provenance["seed"] == (None if ignored else 3)


@pytest.mark.slow
def test_the_wording_is_part_of_the_provenance_and_of_the_dry_run(tmp_path: Path) -> None:
    path = table(tmp_path, SOUND)
    (tmp_path / "system.txt").write_text("You know numbers.")
    wording = ("--system-message", "@system.txt", "--confidence-target", "0.9", "--reasoning")
    shown = abstain(tmp_path, "run", path, "--model", MODEL, *wording, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert (
        "System: You know numbers.\n\nIs 7 prime?\n\nAnswer only if you are more than 90% sure"
        in shown.stdout
    )
    with scripted(lambda request: {"content": '{"reasoning": "...", "answer": "yes"}'}) as (
        address,
        requests,
    ):
        arguments = ("run", path, "--model", MODEL, "--base-url", address, "-o", "run.json")
        done = abstain(tmp_path, *arguments, *wording)
        other = abstain(tmp_path, *arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert len(requests) == 2
    assert requests[0]["messages"][0] == {"role": "system", "content": "You know numbers."}
    prompts = json.loads((tmp_path / "run.json").read_text())["experiments"][0]["provenance"]["prompts"]
    assert prompts["version"] == "2"
    assert prompts["wording"] == {
        "system_message": "You know numbers.",
        "decline_instruction": None,
        "confidence_target": 0.9,
        "reasoning": True,
    }
    # Another wording is another run, so --resume refuses to continue this one.
    assert other.returncode == 2
    assert "--resume" in other.stderr


FREE_TEXT = (
    "id,question,truth\n1,Capital of France?,Paris\n2,Capital of Peru?,Lima\n3,Capital of Chad?,N'Djamena\n"
    "4,Capital of Oman?,Muscat\n5,Capital of Mali?,Bamako\n6,Capital of Laos?,Vientiane\n"
)


@pytest.mark.slow
def test_a_model_grades_free_text(tmp_path: Path) -> None:
    """One answer of each kind: right, right in other words, wrong, a hedge, declined, and without a readable grade."""
    answers = {
        "France": "Paris",
        "Peru": "the city of Lima",
        "Chad": "Moundou",
        "Oman": "a city at the sea",
        "Mali": None,
        "Laos": "perhaps",
    }
    grades = {"Peru": "correct", "Chad": "incorrect", "Oman": "not_attempted", "Laos": "unsure"}

    def message(request: dict[str, Any]) -> dict[str, Any]:
        prompt = json.dumps(request["messages"])
        country = next(name for name in answers if f"Capital of {name}" in prompt)
        if request["model"] == "grader":
            return {"content": json.dumps({"grade": grades[country]})}
        return {"content": json.dumps({"answer": answers[country]})}

    path = table(tmp_path, FREE_TEXT)
    with scripted(message) as (address, requests):
        done = abstain(
            tmp_path,
            *("run", path, "--model", MODEL, "--grader", "openai-api/local/grader", "-o", "run.json"),
            LOCAL_BASE_URL=address,
        )
    assert done.returncode == 0, done.stderr
    items = read(tmp_path / "run.json")
    outcomes = dict(zip(items.item.tolist(), items.outcome.tolist(), strict=True))
    # 0 answered, 1 abstained, 3 unscored
    assert outcomes == {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 3}
    right = {
        name
        for name, truth, answer in zip(
            items.item.tolist(), items.truth.tolist(), items.prediction.tolist(), strict=True
        )
        if outcomes[name] == 0 and truth == answer
    }
    assert right == {1, 2}
    # The exact answer, the declined one and the right words need no grade; an unreadable grade is requested twice.
    assert sum(request["model"] == "grader" for request in requests) == 3 + 2
    provenance = json.loads((tmp_path / "run.json").read_text())["experiments"][0]["provenance"]
    assert provenance["grader"] == "openai-api/local/grader"
    (log,) = (tmp_path / "run-logs").glob("*.eval")
    header = read_eval_log(str(log), header_only=True)
    assert header.eval.scorers is not None
    assert header.eval.scorers[0].options == {"grader": "openai-api/local/grader"}


@pytest.mark.slow
def test_a_model_that_is_unknown_to_the_server(tmp_path: Path, local_server: str) -> None:
    with failing(local_server, lambda number, body: 404) as (address, _):
        done = abstain(tmp_path, *ARGUMENTS, "--base-url", address, "--limit", "3", "-o", "run.json")
    assert done.returncode == 3
    assert (
        "the first call failed (HTTP 404), and no question was sent; check the name of the model"
        in done.stderr
    )
    assert "patient" not in done.stderr
    assert not (tmp_path / "run.json").exists()


@pytest.mark.nightly
def test_a_full_disk_loses_no_answers(tmp_path: Path, local_server: str) -> None:
    arguments = (
        *ARGUMENTS,
        "--signals",
        "tokens",
        "--base-url",
        local_server,
        "--limit",
        "12",
        "-o",
        "run.json",
    )

    def limit_file_size() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, 130_000))

    full = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=environment(),
        preexec_fn=limit_file_size,
    )
    assert full.returncode in (2, 3), full.stderr
    assert "disk is full" in full.stderr or "cannot be written" in full.stderr
    assert "--resume" in full.stderr
    assert "Traceback" not in full.stderr
    assert not (tmp_path / "run.json").exists()
    done = abstain(tmp_path, *arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "run.json")) == 12
