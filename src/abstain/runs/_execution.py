"""Execute a plan with Inspect AI, one log per mode, or resume the logs of an earlier run.

If a run stops, the logs keep the answers so far. A log belongs to a plan if its metadata contain the plan's hash.
`_run_file` turns finished logs into a run file. Samples are read from a log one at a time.
"""

from __future__ import annotations

import contextlib
import glob
import sqlite3
import traceback
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import inspect_ai
from inspect_ai.log import read_eval_log, read_eval_log_samples

from abstain import _process
from abstain.errors import AbstainError, ArgumentError, DataError
from abstain.runs import _prompts, tasks
from abstain.runs._costs import Usage
from abstain.runs._locking import locked_folder
from abstain.runs._models import check_server, error_name, load_model, load_models
from abstain.runs._plan import changed_parts
from abstain.runs._progress import Monitor, reporting_to
from abstain.runs.scoring import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.scorer import Score

    from abstain.runs._plan import Prepared, RunPlan

PLAN_KEY, PARTS_KEY = "abstain_plan", "abstain_plan_parts"
# The parts of a sample that are not needed to count it, and that are most of its size.
_LARGE_FIELDS = {"events", "messages", "attachments", "store"}
# Settings that may change when a run is resumed.
_RESUMED_SETTINGS = ("max_connections", "max_retries", "timeout", "attempt_timeout")
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
    """The log of one mode, without its samples, and the number of items by outcome.

    Attributes:
        mode: the experiment.
        path: the file.
        log: the header of the log.
        failures: the number of failed items by reason.
        unread: the number of failed items whose reply could not be read.
        usage: the tokens and the duration.
    """

    mode: str
    path: Path
    log: EvalLog
    items: int = 0
    abstained: int = 0
    without_logprobs: int = 0
    unread: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    @property
    def failed(self) -> int:
        """The number of failed items."""
        return self.failures.total()

    def lines(self, plan: RunPlan) -> list[str]:
        """The number of items by outcome, and the usage, as lines of text."""
        answered = self.items - self.failed - self.abstained
        lines = [
            f"{self.mode}: {answered} answered, {self.abstained} abstained, {self.failed} failed   log: {self.path}"
        ]
        lines += [f"  failed, {reason}: {count}" for reason, count in self.failures.most_common()]
        if self.without_logprobs:
            lines.append(
                f"  token signals: null for {self.without_logprobs} items; the backend returned no log-probabilities"
            )
        return [*lines, *self.usage.lines(plan)]

    def samples(self) -> Iterator[EvalSample]:
        """Yield the samples, one at a time."""
        return _read_samples(self.path)


def execute(prepared: Prepared, advance: Callable[[int], None] | None = None) -> list[FinishedLog]:
    """Ask all questions, or the remaining ones with `resume`, and return the log of every mode.

    `advance` is called with 1 whenever a sample is finished.
    """
    plan = prepared.plan
    if plan.is_task:
        _find_task(plan)
    with _explaining_disk_errors(plan), locked_folder(plan.log_dir):
        earlier = _find_earlier_logs(prepared)
        if not plan.resume and any(log.status != "success" for log in earlier.values()):
            raise ArgumentError(
                f"{plan.log_dir}: contains an unfinished run of the same questions; continue it with --resume, or "
                "start another run with another --log-dir"
            )
        finished = {mode: log for mode, log in earlier.items() if plan.resume and _is_complete(log)}
        model = load_models(plan)
        if len(finished) < len(plan.modes):
            check_server(prepared)
        logs = []
        for mode in plan.modes:
            if mode not in finished:
                resumed = earlier.get(mode) if plan.resume else None
                finished[mode] = _run_mode(prepared, mode, model, resumed, advance)
            logs.append(_summarize(plan, mode, finished[mode]))
        return logs


def check_failures(logs: Sequence[FinishedLog], max_failed: float) -> None:
    """Raise if a larger proportion of the items of a mode failed."""
    for log in logs:
        if log.failed > max_failed * log.items:
            reason, count = log.failures.most_common(1)[0]
            remedy = (
                "ask the others again with --resume"
                if log.failed > log.unread
                else "another model or larger --max-tokens may help"
            )
            raise DataError(
                f"{log.path}: {log.failed} of {log.items} items failed ({reason}: {count}), more than the proportion "
                f"{max_failed:g} of --max-failed; {remedy}"
            )


def _find_task(plan: RunPlan) -> str:
    """Return the name of the task; raise if its file contains several and the plan names none, or not this one."""
    path = plan.path.absolute()
    found = inspect_ai.list_tasks([glob.escape(path.name)], absolute=True, root_dir=path.parent)
    names = [task.name for task in found]
    listed = ", ".join(names)
    if not names:
        raise ArgumentError(f"{plan.path}: contains no function with the decorator @task of Inspect")
    if plan.task_name is None and len(names) > 1:
        raise ArgumentError(
            f"{plan.path}: contains {len(names)} tasks ({listed}); name one of them: {plan.path}@{names[0]}"
        )
    if plan.task_name is not None and plan.task_name not in names:
        raise ArgumentError(f"{plan.path}: contains no task {plan.task_name!r}, but {listed}")
    return plan.task_name or names[0]


def _find_earlier_logs(prepared: Prepared) -> dict[str, EvalLog]:
    """Return the newest log of this plan in the folder, by mode; raise if `resume` would mix two different plans."""
    plan = prepared.plan
    newest: dict[str, EvalLog] = {}
    others: dict[str, dict[str, str]] = {}
    # The name of a log begins with its starting time.
    for path in sorted(plan.log_dir.glob("*.eval")):
        try:
            log = read_eval_log(str(path), header_only=True)
        except Exception:
            continue
        metadata = log.eval.metadata or {}
        mode = str(metadata.get("mode"))
        if metadata.get(PLAN_KEY) == prepared.digests.get(mode, ""):
            newest[mode] = log
        else:
            others[mode] = metadata.get(PARTS_KEY) or {}
    changes = {
        mode: changed_parts(others[mode], prepared.parts[mode])
        for mode in plan.modes
        if mode in others and mode not in newest
    }
    # A folder may contain runs of several models.
    changed = [names for names in changes.values() if not newest or "the model" not in names]
    if plan.resume and (changed or (others and not newest)):
        names = f" ({', '.join(changed[0])} changed)" if changed else ""
        raise ArgumentError(
            f"{plan.log_dir}: contains no run of these questions with these settings{names}; --resume needs the same "
            "table, model, signals and settings as before"
        )
    return newest


def _is_complete(log: EvalLog) -> bool:
    """Return whether every sample of a log was finished without an error."""
    if log.status != "success":
        return False
    samples, failed = 0, 0
    for sample in _read_samples(_local_path(log.location)):
        samples += 1
        failed += sample.error is not None
    planned = len(log.eval.dataset.sample_ids or []) * (log.eval.config.epochs or 1)
    return not failed and samples >= planned


def _run_mode(
    prepared: Prepared,
    mode: str,
    model: Any,
    earlier: EvalLog | None,
    advance: Callable[[int], None] | None,
) -> EvalLog:
    """Run or resume one mode, and return the header of its log."""
    plan = prepared.plan
    with _process.cancelling_event_loop() as connect:
        monitor = Monitor(connect, _error_reason, advance, plan.max_failures)
        with reporting_to(monitor):
            try:
                log = _start(prepared, mode, model) if earlier is None else _resume(plan, earlier)
            except KeyboardInterrupt:
                if monitor.stopped_by is None:
                    raise
                log = None
    # A signal that comes while the log is finished does not change its status.
    if _process.stop_code() is not None:
        raise KeyboardInterrupt
    if monitor.stopped_by is not None:
        raise DataError(
            f"{plan.model}: stopped after {plan.max_failures} equal failures in a row ({monitor.stopped_by}); the "
            f"answers so far are in {plan.log_dir}: check the server, then continue with --resume, or set another "
            "--max-failures"
        )
    if log is None or log.status == "cancelled":
        raise KeyboardInterrupt
    if log.status != "success":
        raise DataError(
            f"{plan.model}: the run stopped ({error_name(log.error.message if log.error else '')}); the answers so "
            f"far are in {plan.log_dir}: continue with --resume"
        )
    return read_eval_log(log.location, header_only=True)


def _start(prepared: Prepared, mode: str, model: Any) -> EvalLog:
    plan = prepared.plan
    logs = inspect_ai.eval(
        _file_task(plan) if plan.is_task else _table_task(plan, mode),
        model=model,
        limit=plan.table_options.get("limit") if plan.is_task else None,
        metadata={
            PLAN_KEY: prepared.digests[mode],
            PARTS_KEY: prepared.parts[mode],
            "mode": mode,
            "prompt_version": _prompts.VERSION,
        },
        log_dir=str(plan.log_dir),
        log_header_only=True,
        **_INSPECT_OPTIONS,
        **_generation_settings(plan),
    )
    return _only_log(logs)


def _resume(plan: RunPlan, log: EvalLog) -> EvalLog:
    # Inspect loads the model with these arguments, and gets the object whose client does not retry.
    load_model(
        log.eval.model,
        config=log.eval.model_generate_config,
        base_url=log.eval.model_base_url,
        **log.eval.model_args,
    )
    settings = {
        name: value for name, value in _generation_settings(plan).items() if name in _RESUMED_SETTINGS
    }
    logs = inspect_ai.eval_retry(
        log.location,
        log_dir=str(plan.log_dir),
        **_INSPECT_OPTIONS,
        **settings,
    )
    return _only_log(logs)


def _only_log(logs: list[EvalLog]) -> EvalLog:
    """Return the log of the only task; Inspect returns none if it was interrupted."""
    if not logs:
        raise KeyboardInterrupt
    return logs[0]


def _generation_settings(plan: RunPlan) -> dict[str, Any]:
    """Return the settings by their names in Inspect, whose timeout only ends retries, and not a request."""
    return {**plan.settings, "attempt_timeout": plan.settings.get("timeout")}


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
        **asdict(plan.wording),
        grader=plan.grader,
        **options,
    )


def _file_task(plan: RunPlan) -> inspect_ai.Task:
    try:
        return tasks.samples_of_file(
            f"{plan.path.absolute()}@{_find_task(plan)}",
            signals=plan.signals.text,
            text_key=plan.table_options.get("text") or "text",
            consistency_temperature=plan.sampling_temperature,
            structured=plan.structured,
            seed=plan.seed,
            **asdict(plan.wording),
            grader=plan.grader,
        )
    except AbstainError:
        raise
    except Exception as problem:
        frames = traceback.extract_tb(problem.__traceback__)
        lines = [frame.lineno for frame in frames if Path(frame.filename) == plan.path.absolute()]
        line = f" at line {lines[-1]}" if lines else ""
        raise ArgumentError(
            f"{plan.path}: the task cannot be created ({type(problem).__name__}{line})"
        ) from None


def _summarize(plan: RunPlan, mode: str, log: EvalLog) -> FinishedLog:
    """Count the outcomes and tokens of a finished log; raise if every item failed."""
    path = _local_path(log.location)
    usage, failures, unread = Usage(seconds=_duration(log)), Counter[str](), 0
    items, abstained, without_logprobs = 0, 0, 0
    for sample in _read_samples(path):
        items += 1
        usage.add(
            {
                model: (
                    tokens.input_tokens
                    + (tokens.input_tokens_cache_read or 0)
                    + (tokens.input_tokens_cache_write or 0),
                    tokens.output_tokens,
                )
                for model, tokens in sample.model_usage.items()
            }
        )
        reason = _failure_reason(sample)
        score = _score_of(sample)
        if reason is not None:
            failures[reason] += 1
            unread += sample.error is None
        elif score is not None:
            abstained += score.value == "N"
        signals = (score.metadata or {}) if score is not None else {}
        without_logprobs += "token_msp" in signals and signals["token_msp"] is None
    if items and failures.total() == items:
        reason, count = failures.most_common(1)[0]
        remedy = (
            "no reply has the requested form, so another model or larger --max-tokens may help"
            if unread == items
            else "try again with --resume"
        )
        raise DataError(
            f"{plan.model}: all {items} items failed ({reason}: {count}); the log is in {plan.log_dir}: {remedy}"
        )
    return FinishedLog(mode, path, log, items, abstained, without_logprobs, unread, failures, usage)


def _duration(log: EvalLog) -> float:
    try:
        began, ended = map(datetime.fromisoformat, (log.stats.started_at, log.stats.completed_at))
    except ValueError:
        return 0.0
    return (ended - began).total_seconds()


def _read_samples(path: Path) -> Iterator[EvalSample]:
    return read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=_LARGE_FIELDS)


def _score_of(sample: EvalSample) -> Score | None:
    return (sample.scores or {}).get("answer_scorer")


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
    score = _score_of(sample)
    if sample.error is None and score is not None and score.reason == UNREADABLE:
        return f"unread: {(score.metadata or {}).get('unread')}"
    return _error_reason(sample)


def _error_reason(sample: EvalSample) -> str | None:
    """Return the reason why a request for an item failed; None if the server replied, even if it is unreadable."""
    return None if sample.error is None else error_name(sample.error.message)
