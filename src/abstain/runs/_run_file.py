"""Write finished logs as a run file: one experiment per mode, with its provenance.

The logs are read by `abstain.read`. A table of questions becomes records by cluster, with an outcome for every item.
For an instrument, the run file follows the system that introduced the format: a participant with a failed item has
failed as a whole, and a successful participant has every item in every map.
"""

from __future__ import annotations

import math
import platform
import subprocess
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

import abstain
from abstain import _validate
from abstain._export import experiment_of, run_file
from abstain.confidence import confidence_values
from abstain.errors import SignalError
from abstain.items import Items, Outcome, Signal, identifiers, signals_of_row
from abstain.readers import read
from abstain.runs import _prompts
from abstain.runs.measures import AGREEMENT, ANSWER_PROBABILITY, CONSISTENCY_KEYS, TOKEN_KEYS
from abstain.runs.questions import examples_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from abstain.runs._execution import FinishedLog
    from abstain.runs._plan import Prepared, RunPlan
    from abstain.runs._signal_plan import SignalPlan
    from abstain.runs.questions import QuestionSet

# Columns that the log reader adds, and parts of prompts: neither belongs in a run file.
_LOG_COLUMNS = ("answer", "target", "grade", "text", "choices", "scale", "item", "mode")
_SAMPLES = "consistency_samples"
_COUNTS = ("retrieval_reference_count", "consistency_modal_count", "consistency_unread", "semantic_meanings")
_RETRIEVAL_SIGNALS = ("retrieval_similarity_mean", "retrieval_similarity_max")


def run_content(prepared: Prepared, logs: Sequence[FinishedLog]) -> bytes:
    """Return the run file of finished logs."""
    first = logs[0].log.eval
    commit, dirty = _git()
    metadata = {
        "run_id": first.run_id,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        "git_commit": commit,
        "git_dirty": dirty,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "abstain_version": abstain.__version__,
        "inspect_version": version("inspect_ai"),
    }
    return run_file(metadata, [_experiment(prepared, log) for log in logs])


def items_of_log(prepared: Prepared, log: FinishedLog) -> Items:
    """Return the items of one mode as in its log, with answers on a scale as numbers."""
    questions = prepared.questions
    key = (prepared.plan.table_options if questions is None else questions.columns).get("cluster")
    items = read(log.path, cluster=key, scorer="answer_scorer")
    ids = [str(name) for name in items.item.tolist()]
    samples = _consistency_samples(log, ids) if prepared.plan.signals.consistency else {}
    if questions is None:
        items = replace(items, metadata={**items.metadata, **samples})
        return _with_run_signals(items, prepared.plan.signals)
    question_of = {question.id: question for question in questions.questions}
    ordered = [question_of[name] for name in ids]
    metadata = {name: column for name, column in items.metadata.items() if name not in _LOG_COLUMNS}
    changes: dict[str, Any] = {
        "item": identifiers([question.item for question in ordered]),
        "metadata": metadata | samples,
    }
    if questions.scale is not None:
        answers = zip(items.metadata["answer"].tolist(), items.outcome.tolist(), strict=True)
        changes["prediction"] = np.array(
            [float(answer) if outcome == Outcome.ANSWERED else math.nan for answer, outcome in answers]
        )
        changes["truth"] = np.array(
            [math.nan if question.truth is None else float(question.truth) for question in ordered]
        )
        changes["scale"] = questions.scale
    if key is None:
        changes["cluster"] = changes["item"]
    return _with_run_signals(replace(items, **changes), prepared.plan.signals)


def confidences_of(path: Path, plan: RunPlan) -> tuple[list[str], dict[str, str]]:
    """Return the confidences that a run provides in every mode, and why others are not available."""
    unavailable: dict[str, str] = {}
    for mode in plan.modes:
        items = read(path, mode=mode)
        for name in plan.signals.confidences:
            try:
                confidence_values(items, name)
            except SignalError as problem:
                unavailable.setdefault(name, str(problem).partition("; this source")[0])
    return [name for name in plan.signals.confidences if name not in unavailable], unavailable


def _consistency_samples(log: FinishedLog, ids: Sequence[str]) -> dict[str, Any]:
    """Return the column of sampled answers, if there are any: lists cannot be signals."""
    samples_of = {}
    for sample in log.samples():
        score = (sample.scores or {}).get("answer_scorer")
        samples = (score.metadata or {}).get(_SAMPLES) if score is not None else None
        if samples is not None:
            samples_of[str(sample.id)] = samples
    return {_SAMPLES: _validate.objects([samples_of.get(name) for name in ids])} if samples_of else {}


def _with_run_signals(items: Items, plan: SignalPlan) -> Items:
    """Return items with null for requested signals that could not be measured, and without retrieved references.

    Confidences made of similarities count missing references as 0.
    """
    rows = len(items)
    nulls, not_absent = np.full(rows, np.nan), np.zeros(rows, np.bool_)
    signals = dict(items.signals)
    for name in (*_recorded_signals(plan), *_RETRIEVAL_SIGNALS):
        values = signals[name].values if name in signals else nulls
        signals[name] = Signal(values, not_absent)
    signals["retrieval_reference_count"] = Signal(np.zeros(rows), not_absent)
    return replace(items, signals=signals)


def _recorded_signals(plan: SignalPlan) -> tuple[str, ...]:
    """Return the signals that a plan records."""
    return (
        *(("verbalized_confidence",) if plan.verbalized is not None else ()),
        *((*TOKEN_KEYS, ANSWER_PROBABILITY) if plan.tokens else ()),
        *((*CONSISTENCY_KEYS, AGREEMENT) if plan.consistency else ()),
        *(("p_true",) if plan.p_true else ()),
        *(("semantic_entropy",) if plan.equivalence is not None else ()),
        *(("llm_evidence_count", "evidence_unsupported_share") if plan.evidence else ()),
    )


def _experiment(prepared: Prepared, log: FinishedLog) -> dict[str, Any]:
    items = items_of_log(prepared, log)
    questions = prepared.questions
    if questions is not None and questions.instrument is not None:
        experiment = _instrument_experiment(prepared, questions, log, items)
    else:
        experiment = experiment_of(items, mode=log.mode)
    experiment["provenance"] |= _provenance(prepared, log, items)
    experiment["results"] |= _summary(prepared, log, experiment["results"]["results"], items)
    return experiment


def _provenance(prepared: Prepared, log: FinishedLog, items: Items) -> dict[str, Any]:
    plan, questions = prepared.plan, prepared.questions
    ignored = _ignored_settings(plan, log)
    sampling_temperature = None if "temperature" in ignored else plan.signals.temperature
    consistency = (
        {"consistency_n_samples": plan.signals.samples, "consistency_temperature": sampling_temperature}
        if plan.signals.samples
        else {}
    )
    return {
        "mode": log.mode,
        "split": None,
        "quantitative_model": plan.model,
        "participants_requested": len(items.cluster_ids),
        "participants_evaluated": len(set(items.cluster[items.outcome != Outcome.FAILED].tolist())),
        "consistency_enabled": plan.signals.consistency,
        **consistency,
        **({"consistency_answer": plan.signals.answer} if plan.signals.consistency else {}),
        "signals": plan.signals.text,
        "grader": plan.grader,
        "seed": None if "seed" in ignored else plan.seed,
        "structured_output": plan.structured,
        "settings": {
            name: value for name, value in plan.settings.items() if value is not None and name not in ignored
        },
        "ignored_settings": ignored,
        "prompts": {
            "version": _prompts.VERSION,
            "sha256": _prompts.sha256(),
            "texts": _prompts.PROMPTS,
            "wording": asdict(plan.wording),
            "template": None if questions is None else questions.template,
            "examples": _examples_per_prompt(prepared, log.mode),
        },
        "questions": {"path": plan.source, "sha256": None if questions is None else questions.sha256},
        "instrument": plan.table_options.get("instrument"),
        "log": str(log.path),
        "failures": dict(log.failures),
        "base_url": plan.public_base_url,
        "model_args": plan.public_model_args,
        "usage": log.usage.content(plan),
    }


def _ignored_settings(plan: RunPlan, log: FinishedLog) -> list[str]:
    """Return the requested settings that were not sent, because the model does not support them.

    Inspect omits such settings. It logs the first requests of every sample as they were sent, so mostly one sample is
    read. Replies from a cache have no request.
    """
    from inspect_ai.log import read_eval_log_samples  # noqa: PLC0415

    temperatures = (plan.settings.get("temperature"), plan.sampling_temperature)
    unknown = {"seed"} if plan.seed is not None else set()
    unknown |= {"temperature"} if any(value is not None for value in temperatures) else set()
    ignored: set[str] = set()
    samples = read_eval_log_samples(
        str(log.path), all_samples_required=False, exclude_fields={"messages", "store", "attachments"}
    )
    while unknown and (sample := next(samples, None)) is not None:
        for event in sample.events:
            if event.event != "model" or event.model != log.log.eval.model or event.call is None:
                continue
            seen = {name for name in unknown if getattr(event.config, name) is not None}
            ignored |= {name for name in seen if not _has_key(event.call.request, name)}
            unknown -= seen
    return sorted(ignored)


def _has_key(record: Any, key: str) -> bool:
    """Return whether an object or an object inside it has a key; lists, such as messages, are not searched."""
    return isinstance(record, dict) and (
        key in record or any(_has_key(value, key) for value in record.values())
    )


def _examples_per_prompt(prepared: Prepared, mode: str) -> int:
    """Return the number of examples that each prompt shows."""
    if prepared.questions is None:
        return 0
    return len(examples_of(prepared.questions.questions[0], prepared.examples[mode]))


def _summary(
    prepared: Prepared, log: FinishedLog, records: list[dict[str, Any]], items: Items
) -> dict[str, Any]:
    succeeded = sum(record["success"] for record in records)
    counts = items.counts
    evaluated = counts.answered + counts.abstained
    return {
        "mode": log.mode,
        "model": prepared.plan.model,
        "total_subjects": len(records),
        "successful_subjects": succeeded,
        "failed_subjects": len(records) - succeeded,
        "prediction_coverage": counts.answered / evaluated if evaluated else None,
        "item_mae_weighted": _mean_error(items),
    }


def _mean_error(items: Items) -> float | None:
    """Return the mean absolute error of answers on a scale; None for labels or without answers."""
    rows = items.answered
    if items.scale is None or not rows.any():
        return None
    return float(np.abs(items.truth[rows] - items.prediction[rows]).mean())


def _instrument_experiment(
    prepared: Prepared, questions: QuestionSet, log: FinishedLog, items: Items
) -> dict[str, Any]:
    rows: dict[str, list[int]] = {}
    for row, participant in enumerate(items.cluster.tolist()):
        rows.setdefault(str(participant), []).append(row)
    participants = dict.fromkeys(question.cluster for question in questions.questions)
    records = [
        _participant(participant, rows[str(participant)], items, questions, prepared.plan.signals)
        for participant in participants
    ]
    low, high = items.scale or (0.0, 3.0)
    return {
        "provenance": {"mode": log.mode, "scale": [low, high]},
        "results": {"results": records},
    }


def _participant(
    participant: Any, rows: Sequence[int], items: Items, questions: QuestionSet, plan: SignalPlan
) -> dict[str, Any]:
    assert questions.instrument is not None
    failed = sum(items.outcome[row] == Outcome.FAILED for row in rows)
    record: dict[str, Any] = {"participant_id": participant, "success": not failed}
    if failed:
        return record | {"error": f"{failed} of {len(rows)} items failed"}
    row_of = {str(items.item[row]): row for row in rows}
    names = [name for name in questions.instrument.instrument.items if name in row_of]
    signals = {name: _signals(items, row_of[name], plan) for name in names}
    record |= {
        "ground_truth_items": {name: _number(items.truth[row_of[name]]) for name in names},
        "predicted_items": {name: _number(items.prediction[row_of[name]]) for name in names},
        "item_signals": signals,
    }
    if plan.evidence:
        record["evidence_counts"] = {name: signals[name]["llm_evidence_count"] for name in names}
    return record


def _signals(items: Items, row: int, plan: SignalPlan) -> dict[str, Any]:
    """Return the signals of an item; requested signals that could not be measured are null."""
    signals: dict[str, Any] = signals_of_row(items, row)
    if plan.consistency:
        signals[_SAMPLES] = items.metadata[_SAMPLES][row]
    if plan.evidence:
        signals["llm_evidence_count"] = int(signals.get("llm_evidence_count") or 0)
    return {
        name: int(value) if name in _COUNTS and value is not None else value
        for name, value in signals.items()
    }


def _number(value: float) -> float | int | None:
    if math.isnan(value):
        return None
    return int(value) if float(value).is_integer() else float(value)


def _git() -> tuple[str | None, bool | None]:
    """Return the commit of the working directory and whether it has changes; None outside a repository."""
    try:
        commit, changes = (
            subprocess.run(["git", *command], capture_output=True, text=True, check=True, timeout=10).stdout
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    return commit.strip(), bool(changes.strip())
