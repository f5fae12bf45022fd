"""Evaluation files: the rows of a benchmark run with the scores of its metrics, or the scores alone.

The full form has ``evaluation_results``, one object per row, beside ``backend_name``, ``suite``, ``metrics`` and
``extras``; the short form has ``metrics`` and ``execution`` only. Metrics are keyed by their snake_case names;
older files use display names, which are read as the same metrics. A null value is undefined, and its reason
stands in the details. What the scores should be is for `abstain.metrics` to say: stored ones are never used in
place of computed ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files
from abstain.errors import DataError, FormatError
from abstain.results import EvaluationResult, MetricScore, check_results, results_to_items

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    from abstain.items import Items

__all__ = [
    "EvaluationFile",
    "load_evaluation_file",
    "looks_like_evaluation_file",
    "read_evaluation_file",
    "write_evaluation_file",
]

METRIC_NAMES = (
    "abstention_rate",
    "accuracy",
    "answer_rate",
    "balanced_accuracy",
    "brier_score",
    "deferral_alignment",
    "expected_calibration_error",
    "selective_accuracy",
)
_SHORT_NAMES = {"ece": "expected_calibration_error", "brier": "brier_score", "coverage": "answer_rate"}
_ROW_KEYS = tuple(part.name for part in fields(EvaluationResult))
_TEXTS = ("raw_response", "prompt_mode")
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


@dataclass(frozen=True)
class EvaluationFile:
    """What an evaluation file holds.

    Attributes:
        results: the rows; None in the short form.
        metrics: the stored scores by their snake_case names.
        backend_name: which model was asked.
        suite: what it was asked.
        extras: how the run went; ``execution`` in the short form.
    """

    results: tuple[EvaluationResult, ...] | None
    metrics: Mapping[str, MetricScore] = field(default_factory=dict)
    backend_name: str = ""
    suite: Mapping[str, Any] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)


def looks_like_evaluation_file(content: object) -> bool:
    """Return True for parsed JSON that has the keys of either form.

    >>> looks_like_evaluation_file({"metrics": {}, "execution": {}}), looks_like_evaluation_file({"experiments": []})
    (True, False)
    """
    if not isinstance(content, dict) or "schema_version" in content or "experiments" in content:
        return False
    rows = isinstance(content.get("evaluation_results"), list)
    scores = isinstance(content.get("metrics"), dict)
    return rows or (scores and ("execution" in content or "n_evaluation_results" in content))


def load_evaluation_file(path: str | os.PathLike[str]) -> EvaluationFile:
    """Read everything that an evaluation file holds, in either form."""
    return _parsed(_files.parse_json(_files.read_bytes(path), path), path)


def read_evaluation_file(
    path: str | os.PathLike[str],
    *,
    cluster: str | None = None,
    item: str | None = None,
    scale: Sequence[float] | None = None,
) -> Items:
    """Read the rows of an evaluation file as items.

    Args:
        path: the file.
        cluster: the metadata key of what rows belong to, such as "patient_id"; each row is a cluster of its
            own when left out.
        item: the metadata key of the rows' names.
        scale: the lowest and highest truth there can be.
    """
    content = _files.read_bytes(path)
    found = _parsed(_files.parse_json(content, path), path)
    if found.results is None:
        raise FormatError(
            f"{path}: holds the scores of {len(found.metrics)} metrics and no rows; evaluation needs the full form, "
            "with evaluation_results"
        )
    try:
        items = results_to_items(found.results, cluster=cluster, item=item, scale=scale)
    except DataError as problem:
        raise type(problem)(f"{path}: {problem}") from None
    return items.with_provenance(
        path=str(path),
        sha256=_files.sha256(content),
        run_id=None,
        git_commit=None,
        mode=None,
        backend_name=found.backend_name,
    )


def write_evaluation_file(
    path: str | os.PathLike[str],
    results: Iterable[EvaluationResult] | None,
    scores: Iterable[MetricScore] = (),
    *,
    backend_name: str = "",
    suite: Mapping[str, Any] | None = None,
    extras: Mapping[str, Any] | None = None,
) -> Path:
    """Write rows and scores in the full form, or the scores alone in the short form.

    Args:
        path: where the file goes; it is whole or it is not there.
        results: the rows; None for the short form.
        scores: what the metrics said of them.
        backend_name: which model was asked.
        suite: what it was asked.
        extras: how the run went.
    """
    metrics = {score.name: dict(score) for score in sorted(scores, key=lambda score: score.name)}
    if results is None:
        content: dict[str, Any] = {"metrics": metrics, "execution": dict(extras or {})}
    else:
        rows = check_results(results)
        content = {
            "backend_name": backend_name,
            "suite": dict(suite or {}),
            "metrics": metrics,
            "n_evaluation_results": len(rows),
            "extras": dict(extras or {}),
            "evaluation_results": [_row_record(row) for row in rows],
        }
    text = json.dumps(_strict(content), allow_nan=False, indent=2, sort_keys=True)
    return _files.write_whole(path, text.encode() + b"\n")


def _parsed(content: Any, path: object) -> EvaluationFile:
    if not looks_like_evaluation_file(content):
        raise FormatError(
            f"{path}: not an evaluation file; it must have evaluation_results, or metrics and execution"
        )
    records = content.get("evaluation_results")
    extras = content.get("extras", content.get("execution", {}))
    stored = _mapping(content.get("metrics", {}), "metrics", path)
    results = None
    if records is not None:
        if not isinstance(records, list) or not records:
            raise FormatError(f"{path}: evaluation_results must be a list with at least one row")
        results = tuple(_row(record, place, path) for place, record in enumerate(records))
    return EvaluationFile(
        results=results,
        metrics={score.name: score for score in (_score(name, stored[name], path) for name in stored)},
        backend_name=str(content.get("backend_name", "")),
        suite=_mapping(content.get("suite", {}), "suite", path),
        extras=_mapping(extras, "extras", path),
    )


def _row(record: object, place: int, path: object) -> EvaluationResult:
    where = f"{path}: evaluation_results[{place}]"
    if not isinstance(record, dict):
        raise FormatError(f"{where} must be an object")
    for key in ("prediction", "ground_truth"):
        if key not in record:
            raise FormatError(f"{where} has no {key}")
        if isinstance(record[key], (list, dict)):
            raise FormatError(f"{where}: {key} must be a number, text or null")
    kinds = {"abstained": bool, "failed": bool, "metadata": dict, "signals": dict, "prompt": list}
    kinds |= dict.fromkeys(_TEXTS, str)
    for key, kind in kinds.items():
        if key in record and not isinstance(record[key], kind):
            raise FormatError(f"{where}: {key} must be a {kind.__name__}, got a {type(record[key]).__name__}")
    for key in ("confidence", *_TOKENS):
        value = record.get(key)
        if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
            raise FormatError(f"{where}: {key} must be a number or null, got a {type(value).__name__}")
    return EvaluationResult(**{key: record[key] for key in _ROW_KEYS if key in record})


def _score(name: str, record: object, path: object) -> MetricScore:
    content = _mapping(record, f"metrics.{name}", path)
    value = content.get("value")
    if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
        raise FormatError(f"{path}: metrics.{name}.value must be a number or null")
    return MetricScore(
        name=metric_name(name),
        value=math.nan if value is None else float(value),
        breakdown=_mapping(content.get("breakdown") or {}, f"metrics.{name}.breakdown", path),
        n_evaluated=int(content.get("n_evaluated") or 0),
        n_abstained=int(content.get("n_abstained") or 0),
        details=_mapping(content.get("details") or {}, f"metrics.{name}.details", path),
    )


def metric_name(name: str) -> str:
    """Return the snake_case name of a metric that may stand under its display name; others stay as they are.

    >>> metric_name("Answer Rate (Coverage)"), metric_name("ECE"), metric_name("My Metric")
    ('answer_rate', 'expected_calibration_error', 'My Metric')
    """
    words = re.sub(r"\(.*?\)", "", name).strip().casefold()
    snake = re.sub(r"[\s-]+", "_", words)
    snake = _SHORT_NAMES.get(snake, snake)
    return snake if snake in METRIC_NAMES else name


def _mapping(value: object, name: str, path: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{path}: {name} must be an object")
    return value


def _row_record(row: EvaluationResult) -> dict[str, Any]:
    """The keys of the format, and ours beyond it only where they say something."""
    ours: dict[str, Any] = {"failed": False, "cluster": None, "item": None, "signals": {}}
    record = {key: getattr(row, key) for key in _ROW_KEYS}
    return {key: value for key, value in record.items() if key not in ours or value != ours[key]}


def _strict(value: Any) -> Any:
    """Return what strict JSON can hold: null for NaN, plain numbers for numpy's."""
    if isinstance(value, Mapping):
        return {str(key): _strict(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise DataError(
        f"a {type(value).__name__} cannot be written to JSON; use numbers, text, lists and mappings"
    )
