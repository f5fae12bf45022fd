"""A run: what is asked of which model, checked before the first call, asked through Inspect, and gone on with.

`prepare` reads everything and calls nobody. `execute` lets Inspect ask, one log per mode, and returns where the logs
are; what was answered stands in them, whatever happens. With ``resume`` the logs of an earlier call are gone on with: a
log belongs to a plan by the hash of what was asked and how, which stands in its metadata. What is made of finished logs
is known to `_run_file`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import AbstainError, ArgumentError, DataError
from abstain.runs import _prompts
from abstain.runs._signal_plan import SignalPlan
from abstain.runs.questions import MODES, Example, QuestionSet, digest, read_questions, read_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspect_ai.log import EvalLog, EvalSample

PLAN_KEY = "abstain_plan"
_MARKUP = re.compile(r"\[/?[a-z_ ]+\]")
_ERROR_NAME = re.compile(r"(?:\w+\.)*([A-Z]\w{0,50}(?:Error|Exception|Timeout|Exceeded))(?=\W|$)", re.ASCII)
_OF_A_DISK = ("OSError", "OperationalError")
_STATUS = re.compile(r"\b(?:Error code|status(?:_code)?)\W{1,3}(\d{3})\b")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What `abstain run` is asked to do.

    Attributes:
        source: a table of questions, or a file with a task of Inspect.
        model: the model under test, as Inspect names it.
        log_dir: where the logs are.
        signals: what is recorded beside each answer.
        modes: the experiments, in order.
        examples: the table of examples.
        named: the columns and the form of the table: the arguments of `read_questions`.
        structured: False for a server that takes no schema.
        seed: passed to the provider.
        base_url: where the model is served.
        model_args: further arguments of the provider.
        settings: how the model is asked: temperature, max_tokens, max_connections, max_retries, timeout.
        resume: go on with the logs of an earlier call.
    """

    source: str
    model: str
    log_dir: Path
    signals: SignalPlan = field(default_factory=SignalPlan)
    modes: tuple[str, ...] = field(default=("zero_shot",), repr=False)
    examples: str | None = None
    named: dict[str, Any] = field(default_factory=dict, repr=False)
    structured: bool = True
    seed: int | None = None
    base_url: str | None = None
    model_args: dict[str, Any] = field(default_factory=dict, repr=False)
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    resume: bool = False

    @property
    def is_task(self) -> bool:
        """True where the source is a task of Inspect and not a table."""
        return self.source.endswith(".py")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan that was checked, with what it asks.

    Attributes:
        plan: the plan.
        questions: the questions; None for a task of Inspect, which has its own.
        examples: what is shown before each question, by mode.
        digests: the hash of what is asked and how, by mode.
    """

    plan: RunPlan
    questions: QuestionSet | None
    examples: dict[str, list[Example]] = field(repr=False)
    digests: dict[str, str] = field(repr=False)

    @property
    def samples(self) -> int:
        """How many items are asked for, in all modes together; 0 where only the task knows."""
        return 0 if self.questions is None else len(self.questions.questions) * len(self.plan.modes)

    @property
    def costs(self) -> list[str]:
        """What the run costs in calls, in words."""
        signals = self.plan.signals
        if self.questions is None:
            return [f"{signals.calls} calls of {self.plan.model} per sample; nobody was asked"]
        lines = [
            f"{len(self.questions.questions):,} items x {len(self.plan.modes)} modes x {signals.calls} calls = "
            f"{self.samples * signals.calls:,} calls of {self.plan.model}, and one more for each reply that cannot be "
            "read"
        ]
        if signals.judge:
            lines.append(f"at most {self.samples * signals.judge_calls:,} calls of the judge {signals.judge}")
        return [*lines, "nobody was asked"]


@dataclass(frozen=True, slots=True)
class FinishedLog:
    """The log of one mode.

    Attributes:
        mode: which experiment.
        path: where it is.
        log: what Inspect says of it.
        failures: why items failed, and how many for each reason.
    """

    mode: str
    path: Path
    log: EvalLog
    failures: Counter[str]

    @property
    def lines(self) -> list[str]:
        """What became of the items, in words."""
        scores = [(sample.scores or {}).get("judged") for sample in self.log.samples or []]
        failed = sum(self.failures.values())
        abstained = sum(score is not None and score.value == "N" for score in scores)
        answered = len(scores) - failed - abstained
        lines = [
            f"{self.mode}: {answered} answered, {abstained} abstained, {failed} failed   log: {self.path}"
        ]
        lines += [f"  failed, {reason}: {count}" for reason, count in self.failures.most_common()]
        return [*lines, *self._missing(scores)]

    def _missing(self, scores: list[Any]) -> list[str]:
        """Say of log-probabilities that were asked for and not given."""
        told = [score.metadata for score in scores if score is not None and score.metadata]
        nothing = sum("token_msp" in found and found["token_msp"] is None for found in told)
        return (
            [f"  token signals: null for {nothing} items; the backend gave no log-probabilities"]
            if nothing
            else []
        )


@dataclass(slots=True)
class Running:
    """What a caller is told while a run goes on.

    Attributes:
        advance: called with how many were done since the last call.
    """

    advance: Callable[[int], None] | None = None


def prepare(plan: RunPlan) -> Prepared:
    """Check a plan and read what it asks; nobody is called."""
    if plan.is_task:
        return _prepared_task(plan)
    if not plan.modes:
        raise ArgumentError("name at least one mode")
    for mode in plan.modes:
        _validate.choice(mode, "mode", MODES)
    if len(set(plan.modes)) < len(plan.modes):
        raise ArgumentError("a mode is named twice")
    if plan.examples is not None and "few_shot" not in plan.modes:
        raise ArgumentError("--examples goes with --mode few_shot")
    if plan.named.get("instrument") and "few_shot" in plan.modes:
        raise ArgumentError("an instrument is asked zero_shot alone; leave --mode few_shot out")
    examples: dict[str, list[Example]] = {}
    named = {**plan.named, "template": read_template(plan.named.get("template"))}
    questions = read_questions(plan.source, needs_text=plan.signals.evidence, **named)
    for mode in plan.modes:
        examples[mode] = _examples(plan, mode, questions, named)
    digests = {mode: _digest(plan, mode, digest(questions, examples[mode])) for mode in plan.modes}
    return Prepared(plan, questions, examples, digests)


def execute(prepared: Prepared, running: Running | None = None) -> list[FinishedLog]:
    """Ask, or go on asking, and return the log of every mode."""
    plan = prepared.plan
    found = _earlier(prepared)
    if found and not plan.resume and any(_unfinished(log) for log in found.values()):
        raise ArgumentError(
            f"{plan.log_dir}: holds a run of the same questions that did not end; --resume goes on with it, and "
            "another --log-dir begins anew"
        )
    if plan.resume and not found and any(plan.log_dir.glob("*.eval")):
        raise ArgumentError(
            f"{plan.log_dir}: holds no run of these questions asked in this way; --resume needs the same table, model, "
            "signals and settings as before"
        )
    told = running or Running()
    with _listening(told), _said(plan):
        return [_mode_log(prepared, mode, found.get(mode) if plan.resume else None) for mode in plan.modes]


def local_path(location: str) -> Path:
    """Return where a log is; Inspect names it as an address."""
    if location.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlparse(location).path))
    return Path(location)


def _prepared_task(plan: RunPlan) -> Prepared:
    if plan.modes != ("zero_shot",) or plan.examples is not None:
        raise ArgumentError(
            f"{plan.source}: a task of Inspect has its own prompts; leave --mode and --examples out"
        )
    given = [
        name
        for name, value in plan.named.items()
        if value is not None and name not in ("cluster", "limit", "text")
    ]
    if given:
        raise ArgumentError(
            f"{plan.source}: {given[0]} is for a table of questions, and this is a task of Inspect"
        )
    path = Path(plan.source)
    if not path.is_file():
        raise ArgumentError(f"{plan.source}: no such file")
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return Prepared(plan, None, {"zero_shot": []}, {"zero_shot": _digest(plan, "zero_shot", content)})


def _examples(plan: RunPlan, mode: str, questions: QuestionSet, named: dict[str, Any]) -> list[Example]:
    from abstain.runs.questions import read_examples  # noqa: PLC0415

    if mode != "few_shot":
        return []
    if plan.examples is None:
        raise ArgumentError("the mode few_shot needs examples; name their table with --examples")
    return read_examples(plan.examples, questions, **named)


def _digest(plan: RunPlan, mode: str, asked: str) -> str:
    """Return the hash of everything that changes what a model says."""
    settings = {name: plan.settings.get(name) for name in ("temperature", "max_tokens")}
    told = [plan.model, plan.base_url, mode, plan.signals.told(), plan.structured, plan.seed, settings, asked]
    return hashlib.sha256(json.dumps([*told, _prompts.sha256()], sort_keys=True).encode()).hexdigest()


def _earlier(prepared: Prepared) -> dict[str, EvalLog]:
    """Return the newest log of each mode in the folder that was made by this plan."""
    folder = prepared.plan.log_dir
    if not folder.is_dir() or not any(folder.glob("*.eval")):
        return {}
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    modes = {found: mode for mode, found in prepared.digests.items()}
    newest: dict[str, EvalLog] = {}
    # The name of a log begins with the time at which it was begun.
    for path in sorted(folder.glob("*.eval")):
        try:
            log = read_eval_log(str(path), header_only=True)
        except Exception:
            continue
        mode = modes.get(str((log.eval.metadata or {}).get(PLAN_KEY)))
        if mode is not None:
            newest[mode] = log
    return newest


def _unfinished(log: EvalLog) -> bool:
    return log.status != "success"


def _mode_log(prepared: Prepared, mode: str, earlier: EvalLog | None) -> FinishedLog:
    from inspect_ai.log import read_eval_log  # noqa: PLC0415

    if earlier is None:
        log = _begin(prepared, mode)
    else:
        whole = read_eval_log(earlier.location)
        log = whole if _complete(whole) else _go_on(prepared, whole)
    if log.status == "cancelled":
        raise KeyboardInterrupt
    if log.status != "success":
        raise DataError(
            f"{prepared.plan.model}: the run stopped ({_named_error(log.error.message if log.error else '')}); what "
            f"was answered is kept in {prepared.plan.log_dir}, and --resume goes on with it"
        )
    if prepared.plan.is_task:
        log = _scored(log)
    failures = Counter(filter(None, (_failure(sample) for sample in log.samples or [])))
    if log.samples and sum(failures.values()) == len(log.samples):
        reason, count = failures.most_common(1)[0]
        raise DataError(
            f"{prepared.plan.model}: every one of {len(log.samples)} items failed ({reason}: {count}); the log is kept "
            f"in {prepared.plan.log_dir}, and --resume asks again"
        )
    return FinishedLog(mode, local_path(log.location), log, failures)


def _complete(log: EvalLog) -> bool:
    """True where nothing is left to ask: the run ended, and no sample broke."""
    return log.status == "success" and not any(sample.error for sample in log.samples or [])


def _begin(prepared: Prepared, mode: str) -> EvalLog:
    import inspect_ai  # noqa: PLC0415

    plan = prepared.plan
    (log,) = inspect_ai.eval(
        _task(plan, mode),
        model=_model(plan),
        solver=_solver(plan) if plan.is_task else None,
        score=not plan.is_task,
        limit=plan.named.get("limit") if plan.is_task else None,
        metadata={PLAN_KEY: prepared.digests[mode], "mode": mode, "prompt_version": _prompts.VERSION},
        log_dir=str(plan.log_dir),
        log_format="eval",
        display="none",
        log_level="critical",
        fail_on_error=False,
        ctl_server=False,
        **plan.settings,
    )
    return log


def _go_on(prepared: Prepared, log: EvalLog) -> EvalLog:
    import inspect_ai  # noqa: PLC0415

    from abstain.runs import registered  # noqa: F401, PLC0415

    plan = prepared.plan
    _model(plan)
    given = {
        name: value
        for name, value in plan.settings.items()
        if name in ("max_connections", "max_retries", "timeout")
    }
    (found,) = inspect_ai.eval_retry(
        log if log.status != "started" else log.location,
        log_dir=str(plan.log_dir),
        log_format="eval",
        display="none",
        log_level="critical",
        fail_on_error=False,
        score=not plan.is_task,
        ctl_server=False,
        **given,
    )
    return found


def _task(plan: RunPlan, mode: str) -> Any:
    if plan.is_task:
        return plan.source
    from abstain.runs.tasks import questions  # noqa: PLC0415

    named = {name: value for name, value in plan.named.items() if value is not None and name != "format"}
    if plan.named.get("format") is not None:
        named["table_format"] = plan.named["format"]
    for name in ("scale",):
        if name in named:
            named[name] = list(named[name])
    return questions(
        str(Path(plan.source).absolute()),
        signals=plan.signals.text,
        mode=mode,
        examples=str(Path(plan.examples).absolute()) if mode == "few_shot" and plan.examples else None,
        consistency_temperature=plan.signals.temperature if plan.signals.samples else None,
        structured=plan.structured,
        seed=plan.seed,
        **named,
    )


def _solver(plan: RunPlan) -> Any:
    from abstain.runs.solvers import ask  # noqa: PLC0415

    return ask(
        plan.signals.text,
        text_key=plan.named.get("text") or "text",
        temperature=plan.signals.temperature if plan.signals.samples else None,
        structured=plan.structured,
        seed=plan.seed,
    )


def _scored(log: EvalLog) -> EvalLog:
    """Judge the answers of a task that has a scorer of its own, and keep that in the log."""
    from inspect_ai import score  # noqa: PLC0415
    from inspect_ai.log import write_eval_log  # noqa: PLC0415

    from abstain.runs.scoring import judged  # noqa: PLC0415

    found = score(log, judged(), action="overwrite", display="none")
    write_eval_log(found, log.location)
    found.location = log.location
    return found


def _model(plan: RunPlan) -> Any:
    """Return the model, or say what is wrong with its name or the key: before anything is asked."""
    from inspect_ai.model import get_model  # noqa: PLC0415

    for name in filter(None, (plan.signals.judge, plan.model)):
        own = name == plan.model
        try:
            found = get_model(
                name, base_url=plan.base_url if own else None, **(plan.model_args if own else {})
            )
        except AbstainError:
            raise
        except Exception as problem:
            words = " ".join(_MARKUP.sub("", str(problem)).split()) or type(problem).__name__
            raise ArgumentError(f"the model {name} cannot be asked: {words}") from None
    return found


@contextlib.contextmanager
def _said(plan: RunPlan) -> Iterator[None]:
    """Say what the system refuses, and that nothing is lost; Inspect keeps what is under way in a small database."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        words = getattr(problem, "strerror", None) or type(problem).__name__
        raise ArgumentError(
            f"{plan.log_dir}: the system refuses it ({words}); what was answered "
            "before is kept there, and --resume goes on with it"
        ) from None


@contextlib.contextmanager
def _listening(running: Running) -> Iterator[None]:
    """Tell a caller of every sample that is done."""
    if running.advance is None:
        yield
        return
    from abstain.runs import _progress  # noqa: PLC0415

    with _progress.reporting_to(running.advance):
        yield


def _failure(sample: EvalSample) -> str | None:
    """Return why an item failed, without a word of what was asked or said; None where it did not."""
    if sample.error is not None:
        return _named_error(sample.error.message)
    score = (sample.scores or {}).get("judged")
    unread = (score.metadata or {}).get("unread") if score is not None else None
    if score is not None and score.reason == "invalid_response_format":
        return f"unread: {unread}"
    return None


def _named_error(message: str) -> str:
    """Return the HTTP status of an error, or else its name, and nothing of its text.

    >>> _named_error("Error code: 404 - the prompt was ..."), _named_error("TimeoutError('the prompt was ...')")
    ('HTTP 404', 'TimeoutError')
    """
    status, name = _STATUS.search(message), _ERROR_NAME.match(message)
    if status:
        return f"HTTP {status[1]}"
    found = name[1] if name else "error"
    return f"{found}, as where a disk is full" if found in _OF_A_DISK else found


def shown_prompts(prepared: Prepared, most: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the whole prompt of the first questions of every mode, as the model would get them."""
    from abstain.runs._replies import ReplyForm  # noqa: PLC0415
    from abstain.runs.questions import with_examples  # noqa: PLC0415

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
