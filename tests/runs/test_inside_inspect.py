"""Inside Inspect, metrics have the same values as in abstain, and Inspect finds every name of abstain."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from inspect_ai import score as score_log
from inspect_ai._util.registry import registry_lookup
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log

from abstain import evaluate, read
from abstain.integrations.inspect import METRICS
from abstain.metrics import abstention, calibration, selective
from abstain.runs import ask
from runs.mocked import reply, run_all
from runs.serving import MODEL, abstain, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspect_ai.model import ChatMessage, ModelOutput

# With the first answer, some questions of the model are declined.
SIGNALS = "verbalized,tokens,consistency:3:first"
RANKED = "token_msp"


def model(rated: bool) -> Callable[..., ModelOutput]:
    """Return a model whose replies depend on question and turn; every seventh question has only unreadable replies."""
    answers = [0, 3, 1, None, 2, 2] if rated else ["yes", "no", "yes", None, "yes", "no"]
    turns: Counter[int] = Counter()

    def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
        number = int(messages[0].text.split()[1])
        turns[number] += 1
        turn = number + 2 * turns[number]
        probability = 0.5 + 0.4 * ((37 * turn) % 50) / 50
        tokens = [("a", probability, {"a": probability, "b": 1 - probability})]
        text = "what" if number % 7 == 6 else answers[turn % 6]
        return reply(text, tokens, confidence=1 + turn % 5)

    return answer


def samples(rated: bool) -> list[Sample]:
    return [
        Sample(
            id=f"q{number}",
            input=f"question {number}",
            target=str(number % 4) if rated else ("yes", "no")[number % 2],
            metadata={
                "patient": f"p{number // 4}",
                "should_abstain": number % 3 == 0,
                **({"scale": [0, 3]} if rated else {"choices": ["yes", "no"]}),
            },
        )
        for number in range(24)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("rated", [True, False], ids=["rated", "labelled"])
def test_metrics_in_inspect_equal_those_of_evaluate(tmp_path: Path, rated: bool) -> None:
    log = run_all(tmp_path, ask(SIGNALS), model(rated), samples(rated))
    path = next(tmp_path.glob("*.eval"))
    items = read(path, cluster="patient")
    assert items.counts.failed > 0
    assert items.counts.abstained > 0
    compared = 0
    metrics: list[Any] = [make(RANKED, cluster="patient") for make in METRICS.values()]
    from abstain.runs import answer_scorer  # noqa: PLC0415

    scored = score_log(log, answer_scorer(), metrics=metrics, action="overwrite", display="none")
    assert scored.results is not None
    (scores,) = scored.results.scores
    for name in METRICS:
        inside = {end: scores.metrics[f"{name}{end}"].value for end in ("", "_low", "_high")}
        metric = "answer_rate" if name == "coverage" else name
        outside = evaluate(items, metrics=metric, confidence=RANKED, selective=False)
        estimate = next(iter(outside.systems.values())).estimate(metric)
        for end, expected in (("", estimate.value), ("_low", estimate.low), ("_high", estimate.high)):
            assert inside[end] == pytest.approx(expected, abs=1e-12, nan_ok=True), f"{name}{end}"
        compared += not math.isnan(estimate.value)
    assert compared >= 25


@pytest.mark.slow
def test_the_command_line_and_inspect_agree(tmp_path: Path) -> None:
    log = run_all(tmp_path, ask(SIGNALS), model(rated=True), samples(rated=True))
    path = next(tmp_path.glob("*.eval"))
    done = subprocess.run(
        [sys.executable, "-m", "abstain", "evaluate", str(path), "--confidence", RANKED, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    outside = json.loads(done.stdout)["confidence_variants"][RANKED]
    scores = [
        (sample.id, sample.scores["answer_scorer"])
        for sample in log.samples or []
        if sample.scores is not None and not sample.error
    ]
    from inspect_ai.scorer import SampleScore  # noqa: PLC0415

    sample_scores: Any = [SampleScore(score=score, sample_id=name) for name, score in scores]
    for name, key in (("aurc", "aurc_full"), ("augrc", "augrc_full"), ("eaurc", "eaurc"), ("cmax", "cmax")):
        assert METRICS[name](RANKED)(sample_scores) == pytest.approx(outside[key], abs=1e-12)


def test_every_selective_safety_and_calibration_metric_is_registered() -> None:
    names = {metric.name for module in (selective, abstention, calibration) for metric in module.METRICS}
    assert names <= set(METRICS)
    for name in METRICS:
        assert registry_lookup("metric", f"abstain/{name}") is not None


@pytest.mark.slow
def test_inspect_finds_all_names_through_the_entry_point(tmp_path: Path) -> None:
    """The process does not import abstain itself."""
    task = tmp_path / "mine.py"
    task.write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import Sample\n"
        "from inspect_ai.scorer import match\n"
        "@task\n"
        "def mine():\n"
        "    return Task(dataset=[Sample(input='Is 7 prime?', target='yes', id=1)], scorer=match())\n"
    )
    program = (
        "from inspect_ai._util.registry import registry_lookup\n"
        "import sys\n"
        "assert not any(name.startswith('abstain') for name in sys.modules)\n"
        "kinds = {'solver': ['ask', 'may_abstain', 'verbalized_confidence', 'token_signals', 'consistency', 'p_true',\n"
        "    'semantic_entropy', 'evidence'], 'scorer': ['answer_scorer'], 'metric': ['augrc'],\n"
        "    'task': ['questions']}\n"
        "for kind, names in kinds.items():\n"
        "    for name in names:\n"
        "        assert registry_lookup(kind, f'abstain/{name}') is not None, name\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_inspect_eval_takes_a_solver_by_name(tmp_path: Path, local_server: str) -> None:
    task = tmp_path / "mine.py"
    task.write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.dataset import Sample\n"
        "from inspect_ai.scorer import match\n"
        "@task\n"
        "def mine():\n"
        "    choices = {'choices': ['yes', 'no']}\n"
        "    samples = [Sample(input='Is 7 prime?', target='yes', id=n, metadata=choices) for n in (1, 2)]\n"
        "    return Task(dataset=samples, scorer=match())\n"
    )
    arguments = (
        *("eval", "mine.py", "--solver", "abstain/ask", "-S", "signals=verbalized,tokens", "--model", MODEL),
        *(
            "--model-base-url",
            local_server,
            "--display",
            "none",
            "--log-dir",
            "logs",
            "--no-score",
            "--max-tokens",
            "200",
        ),
    )
    done = subprocess.run(
        [sys.executable, "-m", "inspect_ai", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr + done.stdout
    (log,) = (tmp_path / "logs").glob("*.eval")
    record = read_eval_log(str(log)).samples[0].store["abstain"]  # type: ignore[index]
    assert record["outcome"] in ("answered", "abstained")
    assert record["signals"]["token_msp"] > 0.0
    # `abstain run` with the same task file also scores the answers.
    run = abstain(
        tmp_path,
        *("run", "mine.py", "--model", MODEL, "--base-url", local_server, "--signals", "verbalized,tokens"),
        *("--max-tokens", "200", "-o", "run.json"),
    )
    assert run.returncode == 0, run.stderr
    assert len(read(tmp_path / "run.json")) == 2
    (log,) = (tmp_path / "run-logs").glob("*.eval")
    assert len(read(log)) == 2


@pytest.mark.slow
def test_inspect_score_takes_a_metric_by_name(tmp_path: Path) -> None:
    run_all(tmp_path, ask("tokens"), model(rated=True), samples(rated=True))
    path = next(tmp_path.glob("*.eval"))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "inspect_ai", "score", str(path), "--scorer", "abstain/answer_scorer"),
            *(
                "--metric",
                "abstain/augrc",
                "--action",
                "append",
                "--output-file",
                str(tmp_path / "scored.eval"),
            ),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "augrc" in done.stdout


def test_help_imports_no_heavy_packages() -> None:
    program = (
        "import sys\n"
        "sys.argv = ['abstain', '--help']\n"
        "from abstain.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = [name for name in ('inspect_ai', 'pydantic', 'abstain.runs', 'numpy') if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
