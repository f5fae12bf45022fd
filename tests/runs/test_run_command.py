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

from abstain import read
from abstain.errors import AbstainError
from offline import local_model
from runs.serving import MODEL, abstain, command, environment, failing

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
    assert all(item["token_pe"] > 0.0 and item["token_energy"] <= 0.0 for item in signals)
    assert all(len(item["consistency_samples"]) == 4 for item in signals)
    assert any(len(set(item["consistency_samples"])) > 1 for item in signals)
    assert any(item["semantic_entropy"] > 0.0 for item in signals)
    # The same seed gives the same answers.
    assert [record["predicted_items"] for record in runs[0]["results"]["results"]] == [
        record["predicted_items"] for record in runs[1]["results"]["results"]
    ]
    provenance = runs[0]["provenance"]
    assert provenance["prompts"]["version"] == "1"
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
def test_a_model_that_is_unknown_to_the_server(tmp_path: Path, local_server: str) -> None:
    with failing(local_server, lambda number, body: 404) as (address, _):
        done = abstain(tmp_path, *ARGUMENTS, "--base-url", address, "--limit", "3", "-o", "run.json")
    assert done.returncode == 3
    assert "all 3 items failed (HTTP 404: 3); the log is in run-logs" in done.stderr
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
