"""Create two logs for the tutorial with Inspect AI: make_logs.py FOLDER.

Two models, a small and a large one, answer three sums for each of forty texts and may decline. Both are Inspect's mock
model with random answers and log-probabilities, so no key and no network is needed. `inspect eval` does the rest.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, Logprob, Logprobs, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import NOANSWER, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate

TEXTS, SUMS = 40, 3
# The accuracy of each model at its highest confidence, and how often it declines.
SKILLS = {"small": 0.75, "large": 0.95}
DECLINES = {"small": 0.05, "large": 0.2}


def create_samples() -> list[Sample]:
    """Return sums with known results; three consecutive sums belong to one text."""
    samples = []
    for number in range(TEXTS * SUMS):
        first, second = 11 + (7 * number) % 83, 13 + (5 * number) % 71
        samples.append(
            Sample(
                id=number,
                input=f"{first} + {second} = ?",
                target=str(first + second),
                metadata={"text": f"text {number // SUMS}", "digits": len(str(first + second))},
            )
        )
    return samples


def model(name: str) -> object:
    """Return a model with the accuracy of `SKILLS`, which is lower for answers of low confidence."""

    def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
        question = messages[-1].text
        draws = random.Random(f"{name} {question}")
        first, second = (int(part) for part in question.removesuffix(" = ?").split(" + "))
        sure = draws.uniform(0.4, 1.0)
        right = draws.random() < SKILLS[name] * sure**0.5
        text = str(first + second + (0 if right else draws.choice((-10, -1, 1, 10))))
        if draws.random() < DECLINES[name] * 2 * (1.0 - sure) + 0.02:
            text = "I don't know"
        output = ModelOutput.from_content(f"mockllm/{name}", text)
        # Without a usage, Inspect would download a table to count tokens.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        output.choices[0].logprobs = Logprobs(content=[Logprob(token=text, logprob=math.log(sure))])
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answer)


@scorer(metrics=[accuracy()])
def exact() -> Scorer:
    """Grade a sum: right, wrong, or no answer."""

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.output.completion
        if "know" in reply:
            return Score(value=NOANSWER, answer=reply)
        return Score(value="C" if reply == target.text else "I", answer=reply)

    return score


def main(folder: Path) -> None:
    """Run both models and write small.eval and large.eval."""
    for name in SKILLS:
        task = Task(dataset=create_samples(), solver=generate(), scorer=exact(), name="sums")
        log = eval(task, model=model(name), log_dir=str(folder), display="none")[0]  # type: ignore[arg-type]
        Path(log.location).rename(folder / f"{name}.eval")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
