"""Write samples with lm-evaluation-harness, without torch; run as a program: make_lm_eval_samples.py FOLDER.

The model draws its log-likelihoods and answers from a seeded generator.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker

GENERATIONS = ("so #### 1", "2", "I don't know")


class Drawn(LM):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.random = random.Random(0)

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [(-abs(self.random.gauss(3, 2)), False) for _ in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[tuple[float, bool]]:
        return [(-1.0, False) for _ in requests]

    def generate_until(self, requests: list[Any]) -> list[str]:
        return [self.random.choice(GENERATIONS) for _ in requests]


def task(folder: Path, name: str, count: int, **settings: Any) -> dict[str, Any]:
    data = folder / f"{name}_docs.jsonl"
    with data.open("w") as file:
        for number in range(count):
            doc: dict[str, Any] = {
                "q": f"q{number}",
                "choices": ["a", "b", "c", "not sure"],
                "label": number % 4,
                "patient": number // 3,
            }
            file.write(json.dumps(doc | {"word": doc["choices"][number % 4]}) + "\n")
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}, "cache_dir": str(folder / "cache")},
        "test_split": "test",
        "doc_to_text": "Q: {{q}}\nA:",
        **settings,
    }


def main(folder: Path) -> None:
    choice = {
        "output_type": "multiple_choice",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "label",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }
    generation = {
        "output_type": "generate_until",
        "doc_to_target": "The answer is {{label}}.",
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", "regexes_to_ignore": ["The answer is ", r"\."]}],
    }
    strict = {
        "name": "strict",
        "filter": [{"function": "regex", "regex_pattern": r"#### (\d+)"}, {"function": "take_first"}],
    }
    flexible = {
        "name": "flexible",
        "filter": [{"function": "regex", "regex_pattern": r"(\d+)"}, {"function": "take_first"}],
    }
    tasks = [
        task(folder, "choices", 24, **choice),
        task(folder, "words", 24, **choice | {"doc_to_target": "word"}),
        task(folder, "answers", 24, **generation),
        task(folder, "repeated", 24, **generation, repeats=3, filter_list=[strict, flexible]),
    ]
    results = lm_eval.simple_evaluate(model=Drawn(), tasks=tasks, log_samples=True, bootstrap_iters=0)
    samples = results.pop("samples")
    tracker = EvaluationTracker(output_path=str(folder))
    tracker.save_results_aggregated(results=results, samples=samples)
    for name, found in samples.items():
        tracker.save_results_samples(task_name=name, samples=found)
    for path in folder.rglob("samples_*.jsonl"):
        path.rename(folder / f"samples_{path.name.split('_')[1]}.jsonl")
    (folder / "accuracy.json").write_text(
        json.dumps(
            {name: found["acc,none"] for name, found in results["results"].items() if "acc,none" in found}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
