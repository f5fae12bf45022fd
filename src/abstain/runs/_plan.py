"""The plan of a run: the questions, the model and the signals, checked before the first call.

A plan consists of parts, such as the table, the model and the seed. The hash of all parts identifies a run, and the
hashes of single parts show what changed between two runs.

Nothing here needs Inspect AI, so `abstain run --dry-run` works without it.
"""

from __future__ import annotations

import hashlib
import json
import re
import urllib.parse
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.runs import _prompts
from abstain.runs._prompts import Wording
from abstain.runs._replies import ReplyForm
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import (
    MODES,
    Example,
    QuestionSet,
    digest,
    examples_of,
    read_examples,
    read_questions,
    read_template,
    with_examples,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# A Python file with Inspect tasks, and the name of one of them.
_TASK = re.compile(r"(?P<path>.*\.py)(?:@(?P<name>\w+))?", re.DOTALL)
_SECRET = re.compile(r"key$|token$|secret|passw|^auth|credential|cookie|^aws_", re.IGNORECASE)
_PART_DIGITS = 16
# With no connection, Inspect would wait for ever.
_LEAST_SETTINGS = {"max_connections": 1, "max_tokens": 1, "max_retries": 0, "timeout": 1}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The arguments of `abstain run`.

    Attributes:
        source: a table of questions, or a Python file with an Inspect task: ``task.py`` or ``task.py@name``.
        examples: the table of examples.
        table_options: columns and format of the table: arguments of `read_questions`.
        structured: False for a server that does not accept a schema.
        model_args: further arguments of the provider.
        settings: generation settings: temperature, max_tokens, max_connections, max_retries, timeout, cache, batch.
        resume: continue the logs of an earlier call.
        max_failures: the number of equal failures in a row that stops the run; 0 for no limit.
        price: dollars per million input tokens and per million output tokens.
        wording: the parts of the prompt that the user changed.
        grader: the model that grades free text; None compares it with the truth.
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
    max_failures: int = 10
    price: tuple[float, float] | None = field(default=None, repr=False)
    wording: Wording = field(default_factory=Wording, repr=False)
    grader: str | None = None

    @property
    def is_task(self) -> bool:
        """True if the source is an Inspect task and not a table."""
        return _TASK.fullmatch(self.source) is not None

    @property
    def path(self) -> Path:
        """The file of the source."""
        task = _TASK.fullmatch(self.source)
        return Path(self.source if task is None else task["path"])

    @property
    def task_name(self) -> str | None:
        """The name of the Inspect task; None if the source does not name one."""
        task = _TASK.fullmatch(self.source)
        return None if task is None else task["name"]

    @property
    def public_base_url(self) -> str | None:
        """The address of the server, without a user, a password and a query, which may be secret."""
        if self.base_url is None:
            return None
        parts = urllib.parse.urlsplit(self.base_url)
        return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def public_model_args(self) -> dict[str, Any]:
        """The arguments of the provider, without API keys and other secrets."""
        public: dict[str, Any] = json.loads(json.dumps(_without_secrets(self.model_args), default=str))
        return public

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
        parts: the hash of every part of the plan by its name, by mode.
    """

    plan: RunPlan
    questions: QuestionSet | None
    examples: dict[str, list[Example]] = field(repr=False)
    parts: dict[str, dict[str, str]] = field(repr=False)

    @property
    def digests(self) -> dict[str, str]:
        """The hash of everything that can change the replies of the model, by mode."""
        return {mode: _hash(parts) for mode, parts in self.parts.items()}

    @property
    def samples(self) -> int:
        """Number of items in all modes together; 0 for an Inspect task."""
        return 0 if self.questions is None else len(self.questions.questions) * len(self.plan.modes)


def prepare(plan: RunPlan) -> Prepared:
    """Check a plan and read its questions; no model is called."""
    _check_settings(plan)
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
    options = {**plan.table_options, "template": read_template(plan.table_options.get("template"))}
    questions = read_questions(plan.source, needs_text=plan.signals.evidence, **options)
    if plan.grader is not None and not questions.has_free_text:
        raise ArgumentError("--grader grades free text, but every question has choices or a scale; omit it")
    examples: dict[str, list[Example]] = {mode: [] for mode in plan.modes}
    if "few_shot" in plan.modes:
        if plan.examples is None:
            raise ArgumentError("the mode few_shot needs examples; pass their table with --examples")
        examples["few_shot"] = read_examples(plan.examples, questions, **options)
    parts = {
        mode: _plan_parts(
            plan,
            {
                "the mode": mode,
                "the table": questions.sha256,
                "the questions": digest(questions),
                "the examples": digest(questions, examples[mode]),
            },
        )
        for mode in plan.modes
    }
    return Prepared(plan, questions, examples, parts)


def _check_settings(plan: RunPlan) -> None:
    _validate.whole(plan.max_failures, "max_failures", least=0)
    for name, least in _LEAST_SETTINGS.items():
        if plan.settings.get(name) is not None:
            _validate.whole(plan.settings[name], name, least=least)
    if plan.price is not None and not all(_validate.real(each, "price") >= 0 for each in plan.price):
        raise ArgumentError(
            "price must be two numbers of at least 0: dollars per million input and output tokens"
        )
    if plan.settings.get("cache") and plan.signals.samples and plan.seed is None:
        raise ArgumentError(
            "a cache returns the same reply for every sample of an answer, so they would always agree; pass a seed "
            "(--seed), or omit the cache or the signals consistency and semantic_entropy"
        )


def _prepare_task(plan: RunPlan) -> Prepared:
    if plan.modes != ("zero_shot",) or plan.examples is not None:
        raise ArgumentError(f"{plan.source}: an Inspect task has its own prompts; omit --mode and --examples")
    for name, value in plan.table_options.items():
        if value is not None and name not in ("cluster", "limit", "text"):
            raise ArgumentError(
                f"{plan.source}: {name} applies to a table of questions, but this is an Inspect task; omit it"
            )
    if not plan.path.is_file():
        raise ArgumentError(f"{plan.path}: no such file")
    content = hashlib.sha256(plan.path.read_bytes()).hexdigest()
    limits = {"--limit": plan.table_options.get("limit"), "--text": plan.table_options.get("text")}
    own_parts = {"the mode": "zero_shot", "the task file": content, "the task": plan.task_name, **limits}
    return Prepared(plan, None, {"zero_shot": []}, {"zero_shot": _plan_parts(plan, own_parts)})


def _plan_parts(plan: RunPlan, own_parts: dict[str, Any]) -> dict[str, str]:
    """Return the hash of everything that can change the replies of a model, by the name of the option or file."""
    parts = {
        "the model": plan.model,
        "--base-url": plan.public_base_url,
        "--model-arg": plan.public_model_args,
        "--signals": asdict(plan.signals),
        "--structured": plan.structured,
        "--seed": plan.seed,
        "--temperature": plan.settings.get("temperature"),
        "--max-tokens": plan.settings.get("max_tokens"),
        "the wording": asdict(plan.wording),
        "--grader": plan.grader,
        "the prompts of abstain": _prompts.sha256(),
        **own_parts,
    }
    return {name: _hash(part)[:_PART_DIGITS] for name, part in parts.items()}


def changed_parts(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return the names of the parts that differ between two plans.

    >>> changed_parts({"the table": "a1", "--seed": "b2"}, {"the table": "c3", "--seed": "b2"})
    ['the table']
    """
    changed = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    # Another table changes the questions, and the hash of the examples contains the questions.
    for cause, effect in (("the questions", "the examples"), ("the table", "the questions")):
        if cause in changed:
            changed = [name for name in changed if name != effect]
    return changed


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(each) for name, each in value.items() if not _SECRET.search(str(name))}
    return value


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
                reasoning=prepared.plan.wording.reasoning,
                declining=prepared.plan.wording.declining,
            )
            prompt = with_examples(question.prompt, examples_of(question, prepared.examples[mode]))
            system = prepared.plan.wording.system_message
            shown = f"{prompt}\n\n{form.instructions}"
            yield f"{mode}, item {question.id}", shown if system is None else f"System: {system}\n\n{shown}"
