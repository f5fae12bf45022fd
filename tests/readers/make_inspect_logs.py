"""Write logs with Inspect AI; run as a program: make_inspect_logs.py FOLDER.

The model is Inspect's mock model with log-probabilities. Its answers alternate between yes, no and "I don't know".
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from inspect_ai import Epochs, Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import ChatMessage, Logprob, Logprobs, ModelOutput, ModelUsage, TopLogprob, get_model
from inspect_ai.scorer import NOANSWER, Score, Scorer, Target, accuracy, includes, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from abstain.integrations.inspect import augrc, aurc, coverage, selective_accuracy, token_confidence

WORDS = ("yes", "no", "I don't know")


def reply(text: str, probability: float, *, top: bool = True) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    alternatives = [
        TopLogprob(token="a", logprob=math.log(probability)),
        TopLogprob(token="b", logprob=math.log(1.0 - probability)),
    ]
    token = Logprob(token="a", logprob=math.log(probability), top_logprobs=alternatives if top else None)
    output.choices[0].logprobs = Logprobs(content=[token])
    return output


def model_saying(*texts: str, top: bool = True) -> object:
    """Return a mock model that always answers question n with the text number n % len(texts)."""
    asked: dict[str, int] = {}

    def answer(messages: list[ChatMessage], *_: object) -> ModelOutput:
        question = messages[-1].text
        asked[question] = asked.get(question, -1) + 1
        number = int(question.split()[-1]) + asked[question]
        return reply(texts[number % len(texts)], 0.5 + 0.4 * ((7 * number) % 50) / 50, top=top)

    return get_model("mockllm/model", custom_outputs=answer)


@scorer(
    metrics=[
        accuracy(),
        coverage(),
        selective_accuracy(),
        aurc("token_msp"),
        augrc("token_msp"),
    ]
)
def careful() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        metadata = token_confidence(state) | {"length": len(answer), "note": "text"}
        if state.metadata.get("ungraded"):
            return Score.unscored(reason="grader_failed", answer=answer, metadata=metadata)
        if "know" in answer:
            if state.metadata["doc"] % 2:
                return Score(value="I", reason="refusal", answer=answer, metadata=metadata)
            return Score(value=NOANSWER, answer=answer, metadata=metadata)
        return Score(value="C" if answer == target.text else "I", answer=answer, metadata=metadata)

    return score


@scorer(metrics=[])
def graded() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"style": 0.25, "content": len(state.output.completion) / 12})

    return score


@solver
def sometimes_failing() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.metadata.get("broken"):
            raise RuntimeError("the patient said something private")
        return await generate(state)

    return solve


def samples(count: int) -> list[Sample]:
    return [
        Sample(
            id=f"q{number}",
            input=f"question {number}",
            target="yes",
            metadata={
                "doc": number // 3,
                "broken": number % 10 == 9,
                "ungraded": number % 10 == 8,
                "nested": {"a": 1},
            },
        )
        for number in range(count)
    ]


def run(folder: Path, task: Task, model: object) -> EvalLog:
    return eval(
        task,
        model=model,  # type: ignore[arg-type]
        log_dir=str(folder),
        display="none",
        fail_on_error=False,
        max_samples=1,
        max_connections=1,
    )[0]


def main(folder: Path) -> None:
    once = run(
        folder,
        Task(dataset=samples(30), solver=sometimes_failing(), scorer=careful(), name="once"),
        model_saying(*WORDS),
    )
    Path(once.location).rename(folder / "once.eval")
    write_eval_log(read_eval_log(str(folder / "once.eval")), str(folder / "once.json"))
    epochs = run(
        folder,
        Task(
            dataset=samples(12),
            solver=sometimes_failing(),
            scorer=careful(),
            epochs=Epochs(3, "mean"),
            name="epochs",
        ),
        model_saying("yes", "yes", "no", "I don't know"),
    )
    Path(epochs.location).rename(folder / "epochs.eval")
    plain = run(
        folder,
        Task(dataset=samples(6), solver=generate(), scorer=[includes(), graded()], name="plain"),
        model_saying("surely yes", "no", top=False),
    )
    Path(plain.location).rename(folder / "plain.eval")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
