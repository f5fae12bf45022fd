"""Evaluation files: the rows of a benchmark run with the scores of its metrics, or only the scores.

The full form has ``evaluation_results``, one object per row, and ``backend_name``, ``suite``, ``metrics`` and
``extras``. The short form has only ``metrics`` and ``execution``. Metrics are keyed by their snake_case names; older
files use display names, which are read as the same metrics. A null value is undefined, and the details have its reason.
Stored scores are never used instead of computed ones.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from abstain import _files, _outputs
from abstain._row_names import rows_named_by
from abstain.errors import ArgumentError, DataError, FormatError, at
from abstain.results import EvaluationResult, MetricScore, check_results, results_to_items

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable
    from pathlib import Path

    from abstain.items import Items
    from abstain.readers._read import ReadArguments

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


class _ScoreRecord(Struct):
    """The stored score of a metric."""

    value: float | None = None
    breakdown: dict[str, Any] | None = None
    n_evaluated: int | None = None
    n_abstained: int | None = None
    details: dict[str, Any] | None = None


class _EvaluationDocument(Struct):
    """Either form of the file."""

    evaluation_results: Annotated[list[EvaluationResult], Meta(min_length=1)] | None = None
    metrics: dict[str, Any] = {}
    backend_name: str | None = ""
    suite: dict[str, Any] = {}
    extras: dict[str, Any] | None = None
    execution: dict[str, Any] = {}
    n_evaluation_results: int | None = None


@dataclass(frozen=True)
class EvaluationFile:
    """The content of an evaluation file.

    Attributes:
        results: the rows; None in the short form.
        metrics: the stored scores by their snake_case names.
        backend_name: the model.
        suite: the description of the benchmark.
        extras: the description of the run; ``execution`` in the short form.
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
    """Read the whole content of an evaluation file, in either form."""
    file = _files.SourceFile(path)
    return _parsed(file.read(), str(file))


def read_items(file: _files.SourceFile, arguments: ReadArguments) -> Items:
    """Read the rows of a file; see `abstain.read`."""
    if arguments.abstain_rule is not None:
        raise ArgumentError(f"{file}: an evaluation file already marks abstentions; omit the abstention rule")
    content, path = file.read(), str(file)
    record = _parsed(content, path)
    if record.results is None:
        raise FormatError(
            f"{path}: contains the scores of {len(record.metrics)} metrics but no rows; evaluation needs the full "
            "form, with evaluation_results"
        )
    with at(path), rows_named_by((), records=True):
        items = results_to_items(
            record.results, cluster=arguments.cluster, item=arguments.item, scale=arguments.scale
        )
    return items.with_provenance(
        path=path,
        sha256=_files.sha256(content),
        run_id=None,
        git_commit=None,
        mode=None,
        backend_name=record.backend_name,
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
    """Write rows and scores in the full form, or only scores in the short form.

    Args:
        path: the file, which is written completely or not at all.
        results: the rows; None for the short form.
        scores: the scores of metrics.
        backend_name: the model.
        suite: the description of the benchmark.
        extras: the description of the run.
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
    text = json.dumps(_strict(content), allow_nan=False, indent=2, sort_keys=True, ensure_ascii=False)
    try:
        return _outputs.write_whole(path, text.encode() + b"\n")
    except UnicodeEncodeError:
        raise DataError(
            "a text contains half of a character (a lone surrogate), which cannot be written; remove it"
        ) from None


def _parsed(content: bytes, path: str) -> EvaluationFile:
    record = _files.parse_json(content, path)
    if not looks_like_evaluation_file(record):
        raise FormatError(
            f"{path}: not an evaluation file; it must have evaluation_results, or metrics and execution"
        )
    file = _files.convert(record, _EvaluationDocument, path)
    rows = file.evaluation_results
    scores = [_score(name, stored, f"{path}: metrics.{name}") for name, stored in file.metrics.items()]
    return EvaluationFile(
        results=None if rows is None else tuple(rows),
        metrics={score.name: score for score in scores},
        backend_name=file.backend_name or "",
        suite=file.suite,
        extras=file.execution if file.extras is None else file.extras,
    )


def _score(name: str, stored: object, location: str) -> MetricScore:
    score = _files.convert(stored, _ScoreRecord, location)
    return MetricScore(
        name=metric_name(name),
        value=math.nan if score.value is None else score.value,
        breakdown=score.breakdown or {},
        n_evaluated=score.n_evaluated or 0,
        n_abstained=score.n_abstained or 0,
        details=score.details or {},
    )


def metric_name(name: str) -> str:
    """Return the snake_case name of a metric that may be stored under its display name; other names are unchanged.

    >>> metric_name("Answer Rate (Coverage)"), metric_name("ECE"), metric_name("My Metric")
    ('answer_rate', 'expected_calibration_error', 'My Metric')
    """
    words = re.sub(r"\(.*?\)", "", name).strip().casefold()
    snake = re.sub(r"[\s-]+", "_", words)
    snake = _SHORT_NAMES.get(snake, snake)
    return snake if snake in METRIC_NAMES else name


def _row_record(row: EvaluationResult) -> dict[str, Any]:
    """Return the keys of the format, and those of abstain only if their values are not the defaults."""
    defaults: dict[str, Any] = {"failed": False, "cluster": None, "item": None, "signals": {}}
    record = {part.name: getattr(row, part.name) for part in fields(row)}
    return {key: value for key, value in record.items() if key not in defaults or value != defaults[key]}


def _strict(value: Any) -> Any:
    """Return a value that strict JSON can contain: None for NaN, Python numbers for numpy's."""
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
