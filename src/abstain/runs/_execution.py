"""Execute a plan with Inspect AI, one log per mode, or resume the logs of an earlier run.

If a run stops, the logs keep the answers so far. A log belongs to a plan if its metadata contain the plan's hash.
`_run_file` turns finished logs into a run file.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import get_model

from abstain.errors import AbstainError, ArgumentError, DataError
from abstain.runs import _prompts, tasks
from abstain.runs._progress import reporting_to
from abstain.runs.scoring import UNREADABLE, answer_scorer
from abstain.runs.solvers import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspect_ai.log import EvalLog, EvalSample

    from abstain.runs._plan import Prepared, RunPlan

PLAN_KEY = "abstain_plan"
_MARKUP = re.compile(r"\[/?[a-z_ ]+\]")
_ERROR_NAME = re.compile(r"(?:\w+\.)*([A-Z]\w{0,50}(?:Error|Exception|Timeout|Exceeded))(?=\W|$)", re.ASCII)
_DISK_ERRORS = ("OSError", "OperationalError")
_STATUS = re.compile(r"\b(?:Error code|status(?:_code)?)\W{1,3}(\d{3})\b")
# Arguments of every call to Inspect.
_INSPECT_OPTIONS: dict[str, Any] = {
    "log_format": "eval",
    "display": "none",
    "log_level": "critical",
    "fail_on_error": False,
    "ctl_server": False,
}


@dataclass(frozen=True, slots=True)
class FinishedLog:
    """The log of one mode, and the number of failed items by reason."""

    mode: str
    path: Path
    log: EvalLog
    failures: Counter[str]

    @property
    def lines(self) -> list[str]:
        """The number of items by outcome, as lines of text."""
        scores = [(sample.scores or {}).get("answer_scorer") for sample in self.log.samples or []]
        failed = sum(self.failures.values())
        abstained = sum(score is not None and score.value == "N" for score in scores)
        answered = len(scores) - failed - abstained
        lines = [
            f"{self.mode}: {answered} answered, {abstained} abstained, {failed} failed   log: {self.path}"
        ]
        lines += [f"  failed, {reason}: {count}" for reason, count in self.failures.most_common()]
        metadata = [score.metadata or {} for score in scores if score is not None]
        without_logprobs = sum(
            "token_msp" in signals and signals["token_msp"] is None for signals in metadata
        )
        if without_logprobs:
            lines.append(
                f"  token signals: null for {without_logprobs} items; the backend returned no log-probabilities"
            )
        return lines


def execute(prepared: Prepared, advance: Callable[[int], None] | None = None) -> list[FinishedLog]:
    """Ask all questions, or the remaining ones with `resume`, and return the log of every mode.

    `advance` is called with 1 whenever a sample is finished.
    """
    plan = prepared.plan
    earlier = _find_earlier_logs(prepared)
    if not plan.resume and any(log.status != "success" for log in earlier.values()):
        raise ArgumentError(
            f"{plan.log_dir}: contains an unfinished run of the same questions; continue it with --resume, or start "
            "another run with another --log-dir"
        )
    if plan.resume and not earlier and any(plan.log_dir.glob("*.eval")):
        raise ArgumentError(
            f"{plan.log_dir}: contains no run of these questions with these settings; --resume needs the same table, "
            "model, signals and settings as before"
        )
    progress = contextlib.nullcontext() if advance is None else reporting_to(advance)
    with progress, _explaining_disk_errors(plan):
        return [_run_mode(prepared, mode, earlier.get(mode) if plan.resume else None) for mode in plan.modes]


def _find_earlier_logs(prepared: Prepared) -> dict[str, EvalLog]:
    """Return the newest log of this plan in the folder, by mode."""
    modes = {plan_digest: mode for mode, plan_digest in prepared.digests.items()}
    newest: dict[str, EvalLog] = {}
    # The name of a log begins with its starting time.
    for path in sorted(prepared.plan.log_dir.glob("*.eval")):
        try:
            log = read_eval_log(str(path), header_only=True)
        except Exception:
            continue
        mode = modes.get(str((log.eval.metadata or {}).get(PLAN_KEY)))
        if mode is not None:
            newest[mode] = log
    return newest


def _run_mode(prepared: Prepared, mode: str, earlier: EvalLog | None) -> FinishedLog:
    plan = prepared.plan
    log = _start(prepared, mode) if earlier is None else _resume(plan, read_eval_log(earlier.location))
    if log.status == "cancelled":
        raise KeyboardInterrupt
    if log.status != "success":
        raise DataError(
            f"{plan.model}: the run stopped ({_error_name(log.error.message if log.error else '')}); the answers so "
            f"far are in {plan.log_dir}: continue with --resume"
        )
    if plan.is_task:
        log = _score_task(log)
    failures = Counter(filter(None, (_failure_reason(sample) for sample in log.samples or [])))
    if log.samples and sum(failures.values()) == len(log.samples):
        reason, count = failures.most_common(1)[0]
        raise DataError(
            f"{plan.model}: all {len(log.samples)} items failed ({reason}: {count}); the log is in {plan.log_dir}: try "
            "again with --resume"
        )
    return FinishedLog(mode, _local_path(log.location), log, failures)


def _start(prepared: Prepared, mode: str) -> EvalLog:
    plan = prepared.plan
    (log,) = inspect_ai.eval(
        plan.source if plan.is_task else _table_task(plan, mode),
        model=_load_models(plan),
        solver=_task_solver(plan) if plan.is_task else None,
        score=not plan.is_task,
        limit=plan.table_options.get("limit") if plan.is_task else None,
        metadata={PLAN_KEY: prepared.digests[mode], "mode": mode, "prompt_version": _prompts.VERSION},
        log_dir=str(plan.log_dir),
        **_INSPECT_OPTIONS,
        **plan.settings,
    )
    return log


def _resume(plan: RunPlan, log: EvalLog) -> EvalLog:
    if log.status == "success" and not any(sample.error for sample in log.samples or []):
        return log
    _load_models(plan)
    settings = {
        name: value
        for name, value in plan.settings.items()
        if name in ("max_connections", "max_retries", "timeout")
    }
    (resumed,) = inspect_ai.eval_retry(
        log if log.status != "started" else log.location,
        score=not plan.is_task,
        log_dir=str(plan.log_dir),
        **_INSPECT_OPTIONS,
        **settings,
    )
    return resumed


def _table_task(plan: RunPlan, mode: str) -> inspect_ai.Task:
    options = dict(plan.table_options)
    if "format" in options:
        options["table_format"] = options.pop("format")
    return tasks.questions(
        str(Path(plan.source).absolute()),
        signals=plan.signals.text,
        mode=mode,
        examples=str(Path(plan.examples).absolute()) if mode == "few_shot" and plan.examples else None,
        consistency_temperature=plan.sampling_temperature,
        structured=plan.structured,
        seed=plan.seed,
        **options,
    )


def _task_solver(plan: RunPlan) -> Any:
    return ask(
        plan.signals.text,
        text_key=plan.table_options.get("text") or "text",
        temperature=plan.sampling_temperature,
        structured=plan.structured,
        seed=plan.seed,
    )


def _score_task(log: EvalLog) -> EvalLog:
    """Score the answers of an Inspect task with `answer_scorer`, which replaces its scorer, and update its log."""
    scored = inspect_ai.score(log, answer_scorer(), action="overwrite", display="none")
    write_eval_log(scored, log.location)
    scored.location = log.location
    return scored


def _load_models(plan: RunPlan) -> Any:
    """Return the model; unknown names and missing keys, also of the comparing model, are errors before any call."""
    if plan.signals.judge not in (None, plan.model):
        _load_model(plan.signals.judge)
    return _load_model(plan.model, base_url=plan.base_url, **plan.model_args)


def _load_model(name: str | None, **options: Any) -> Any:
    try:
        return get_model(name, **options)
    except AbstainError:
        raise
    except Exception as problem:
        words = " ".join(_MARKUP.sub("", str(problem)).split()) or type(problem).__name__
        raise ArgumentError(f"cannot call the model {name}: {words}") from None


def _local_path(location: str) -> Path:
    """Return the path of a log, which Inspect may give as a file URL."""
    if location.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlparse(location).path))
    return Path(location)


@contextlib.contextmanager
def _explaining_disk_errors(plan: RunPlan) -> Iterator[None]:
    """Turn errors of the disk or of Inspect's database of unfinished samples into an ArgumentError."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        words = getattr(problem, "strerror", None) or type(problem).__name__
        raise ArgumentError(
            f"{plan.log_dir}: cannot be written ({words}); it contains the answers so far: free some space or fix its "
            "permissions, then continue with --resume"
        ) from None


def _failure_reason(sample: EvalSample) -> str | None:
    """Return the reason why an item failed, without its text; None for an item that did not fail."""
    if sample.error is not None:
        return _error_name(sample.error.message)
    score = (sample.scores or {}).get("answer_scorer")
    if score is not None and score.reason == UNREADABLE:
        return f"unread: {(score.metadata or {}).get('unread')}"
    return None


def _error_name(message: str) -> str:
    """Return the HTTP status of an error, or its class name if it has no status, without its text.

    >>> _error_name("Error code: 404 - the prompt was ..."), _error_name("TimeoutError('the prompt was ...')")
    ('HTTP 404', 'TimeoutError')
    """
    status, name = _STATUS.search(message), _ERROR_NAME.match(message)
    if status:
        return f"HTTP {status[1]}"
    error = name[1] if name else "error"
    return f"{error}, perhaps because the disk is full" if error in _DISK_ERRORS else error
