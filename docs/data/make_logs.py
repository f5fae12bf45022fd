"""Make two logs for the tutorial with Inspect AI itself: make_logs.py FOLDER.

Forty texts with three sums each are put to two models, a small and a large one, which may say that they do not know.
The models are Inspect's mock model: what they answer, and how likely they find it, is drawn here, so that nobody needs
a key or a network. Everything else is what `inspect eval` does.
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
# How often each model answers rightly where it is as sure as can be, and how often it declines.
SKILLS = {"small": 0.75, "large": 0.95}
DECLINES = {"small": 0.05, "large": 0.2}


def samples() -> list[Sample]:
    """Return sums whose results are known; three of them belong to one text."""
    made = []
    for number in range(TEXTS * SUMS):
        first, second = 11 + (7 * number) % 83, 13 + (5 * number) % 71
        made.append(
            Sample(
                id=number,
                input=f"{first} + {second} = ?",
                target=str(first + second),
                metadata={"text": f"text {number // SUMS}", "digits": len(str(first + second))},
            )
        )
    return made


def model(name: str) -> object:
    """Return a model that answers each sum as its skill allows, and is less sure where it is wrong."""

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
        # Without it, tokens would be counted with a table that is fetched.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        output.choices[0].logprobs = Logprobs(content=[Logprob(token=text, logprob=math.log(sure))])
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answer)


@scorer(metrics=[accuracy()])
def exact() -> Scorer:
    """Judge a sum: right, wrong, or no answer."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        if "know" in said:
            return Score(value=NOANSWER, answer=said)
        return Score(value="C" if said == target.text else "I", answer=said)

    return score


def main(folder: Path) -> None:
    """Ask both models, and write small.eval and large.eval."""
    for name in SKILLS:
        task = Task(dataset=samples(), solver=generate(), scorer=exact(), name="sums")
        log = eval(task, model=model(name), log_dir=str(folder), display="none")[0]  # type: ignore[arg-type]
        Path(log.location).rename(folder / f"{name}.eval")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
