"""The plan of a run: the questions, the model and the signals, checked before the first call.

Nothing here needs Inspect AI, so `abstain run --dry-run` works without it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.runs import _prompts
from abstain.runs._replies import ReplyForm
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import (
    MODES,
    Example,
    QuestionSet,
    digest,
    read_examples,
    read_questions,
    read_template,
    with_examples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The arguments of `abstain run`.

    Attributes:
        source: a table of questions, or a Python file with an Inspect task.
        examples: the table of examples.
        table_options: columns and format of the table: arguments of `read_questions`.
        structured: False for a server that does not accept a schema.
        model_args: further arguments of the provider.
        settings: generation settings: temperature, max_tokens, max_connections, max_retries, timeout.
        resume: continue the logs of an earlier call.
    """

    source: str
    model: str
    log_dir: Path
    signals: SignalPlan = field(default_factory=SignalPlan)
    modes: tuple[str, ...] = field(default=("zero_shot",), repr=False)
    examples: str | None = None
    table_options: dict[str, Any] = field(default_factory=dict, repr=False)
    structured: bool = True
    seed: int | None = None
    base_url: str | None = None
    model_args: dict[str, Any] = field(default_factory=dict, repr=False)
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    resume: bool = False

    @property
    def is_task(self) -> bool:
        """True if the source is an Inspect task and not a table."""
        return self.source.endswith(".py")

    @property
    def sampling_temperature(self) -> float | None:
        """The temperature of further samples; None if none are drawn."""
        return self.signals.temperature if self.signals.samples else None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checked plan and its questions.

    Attributes:
        questions: None for an Inspect task, which has its own.
        examples: the examples shown before each question, by mode.
        digests: the hash of all questions and settings, by mode.
    """

    plan: RunPlan
    questions: QuestionSet | None
    examples: dict[str, list[Example]] = field(repr=False)
    digests: dict[str, str] = field(repr=False)

    @property
    def samples(self) -> int:
        """Number of items in all modes together; 0 for an Inspect task."""
        return 0 if self.questions is None else len(self.questions.questions) * len(self.plan.modes)

    @property
    def costs(self) -> list[str]:
        """The number of calls that the run needs, as lines of text."""
        signals = self.plan.signals
        if self.questions is None:
            return [f"{signals.calls} calls of {self.plan.model} per sample; no model was called"]
        lines = [
            f"{len(self.questions.questions):,} items x {len(self.plan.modes)} modes x {signals.calls} calls = "
            f"{self.samples * signals.calls:,} calls of {self.plan.model}, and one more for each unreadable reply"
        ]
        if signals.judge:
            judge_calls = self.samples * signals.judge_calls
            lines.append(f"at most {judge_calls:,} calls of {signals.judge}, which compares the samples")
        return [*lines, "no model was called"]


def prepare(plan: RunPlan) -> Prepared:
    """Check a plan and read its questions; no model is called."""
    if plan.is_task:
        return _prepare_task(plan)
    if not plan.modes:
        raise ArgumentError("no mode; pass at least one")
    for mode in plan.modes:
        _validate.choice(mode, "mode", MODES)
    if len(set(plan.modes)) < len(plan.modes):
        raise ArgumentError("duplicate mode; pass each mode once")
    if plan.examples is not None and "few_shot" not in plan.modes:
        raise ArgumentError("--examples needs --mode few_shot")
    if plan.table_options.get("instrument") and "few_shot" in plan.modes:
        raise ArgumentError("an instrument supports only the mode zero_shot; omit --mode few_shot")
    options = {**plan.table_options, "template": read_template(plan.table_options.get("template"))}
    questions = read_questions(plan.source, needs_text=plan.signals.evidence, **options)
    examples: dict[str, list[Example]] = {mode: [] for mode in plan.modes}
    if "few_shot" in plan.modes:
        if plan.examples is None:
            raise ArgumentError("the mode few_shot needs examples; pass their table with --examples")
        examples["few_shot"] = read_examples(plan.examples, questions, **options)
    digests = {mode: _plan_digest(plan, mode, digest(questions, examples[mode])) for mode in plan.modes}
    return Prepared(plan, questions, examples, digests)


def _prepare_task(plan: RunPlan) -> Prepared:
    if plan.modes != ("zero_shot",) or plan.examples is not None:
        raise ArgumentError(f"{plan.source}: an Inspect task has its own prompts; omit --mode and --examples")
    for name, value in plan.table_options.items():
        if value is not None and name not in ("cluster", "limit", "text"):
            raise ArgumentError(
                f"{plan.source}: {name} applies to a table of questions, but this is an Inspect task; omit it"
            )
    path = Path(plan.source)
    if not path.is_file():
        raise ArgumentError(f"{plan.source}: no such file")
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return Prepared(plan, None, {"zero_shot": []}, {"zero_shot": _plan_digest(plan, "zero_shot", content)})


def _plan_digest(plan: RunPlan, mode: str, questions_digest: str) -> str:
    """Return the hash of everything that can change the replies of a model."""
    settings = {name: plan.settings.get(name) for name in ("temperature", "max_tokens")}
    signals = asdict(plan.signals)
    parts = [plan.model, plan.base_url, mode, signals, plan.structured, plan.seed, settings, questions_digest]
    return hashlib.sha256(json.dumps([*parts, _prompts.sha256()], sort_keys=True).encode()).hexdigest()


def shown_prompts(prepared: Prepared, most: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the full prompt of the first questions of every mode."""
    if prepared.questions is None:
        return
    signals = prepared.plan.signals
    for mode in prepared.plan.modes:
        for question in prepared.questions.questions[:most]:
            form = ReplyForm(
                choices=question.choices,
                scale=prepared.questions.scale,
                confidence=signals.verbalized,
                quotes=signals.evidence,
            )
            prompt = with_examples(question.prompt, prepared.examples[mode])
            yield f"{mode}, item {question.id}", f"{prompt}\n\n{form.instructions}"
