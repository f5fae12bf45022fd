"""Evaluation results as one object per row, the form that evaluation harnesses use, and scores of metrics on them.

`EvaluationResult` and `Items` contain the same facts, one by row and one by column, and can be converted into each
other without loss, including the raw response, the redacted prompt, the prompt mode, the metadata and the token counts.
Text of a model or a patient is never part of a representation or an error. The metrics are in `abstain.metrics`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError, list_names
from abstain.items import Items, Outcome, columns_from_rows, signals_from_rows, signals_of_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["EvaluationResult", "MetricScore", "items_to_results", "results_to_items"]

# Further fields of a result; as columns of items their names have a prefix that no metadata key may have.
CARRIED = ("raw_response", "prompt", "prompt_mode", "input_tokens", "output_tokens", "total_tokens")
PREFIX = "result."
# A column cannot distinguish an absent key from a null, nor an abstention from an answer if there is no truth.
_NULLS = PREFIX + "null_metadata"
_DECLINED = PREFIX + "declined"


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The output of a model for one record.

    Attributes:
        prediction: the model's answer: a number, text, or None; an answered None is wrong.
        ground_truth: the ground truth; None if it is unknown, and then no metric evaluates the row.
        abstained: True if the model declined. An abstention is not a wrong answer and is scored separately.
        confidence: the confidence that the model stated, in [0, 1]; None if it stated none.
        raw_response: the model's whole response; stored, never shown.
        prompt: the redacted prompt; stored, never shown.
        prompt_mode: "single" or "batch".
        metadata: facts about the record, for groups and for guidance (``should_abstain``).
        input_tokens: tokens of the prompt.
        output_tokens: tokens of the response.
        total_tokens: the sum of both.
        failed: True if the run produced nothing for the record.
        cluster: the cluster of the record, such as a patient. Default: each row is a cluster.
        item: the record's name. Default: its row number.
        signals: further numbers from which a confidence can be computed.

    >>> EvaluationResult(1, 0, confidence=0.9, raw_response="Mrs. Example has ...", metadata={"sex": "F"})
    EvaluationResult(prediction=1, ground_truth=0, abstained=False, confidence=0.9)
    """

    prediction: bool | int | float | str | None
    ground_truth: bool | int | float | str | None
    _: KW_ONLY
    abstained: bool = False
    confidence: float | None = None
    raw_response: str = field(default="", repr=False)
    prompt: Sequence[Any] = field(default_factory=list, repr=False)
    prompt_mode: str = field(default="", repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False)
    input_tokens: float | None = field(default=None, repr=False)
    output_tokens: float | None = field(default=None, repr=False)
    total_tokens: float | None = field(default=None, repr=False)
    failed: bool = field(default=False, repr=False)
    cluster: int | str | None = field(default=None, repr=False)
    item: int | str | None = field(default=None, repr=False)
    signals: Mapping[str, float | None] = field(default_factory=dict, repr=False)

    @property
    def evaluated(self) -> bool:
        """True if metrics evaluate the row: it did not fail and there is a truth."""
        return not self.failed and not labels.is_missing(self.ground_truth)


@dataclass(frozen=True)
class MetricScore(Mapping[str, Any]):
    """The score of a metric on a list of results; also a mapping of its fields, which some harnesses expect.

    Attributes:
        name: the metric.
        value: the score; NaN if it is undefined, and then ``details["reason"]`` is the reason.
        breakdown: the score by group, or by bin.
        n_evaluated: the number of scored rows.
        n_abstained: the number of abstentions, however the metric treats them.
        details: counts and tables of the metric.

    >>> score = MetricScore("accuracy", 0.75, n_evaluated=4)
    >>> score
    MetricScore(name='accuracy', value=0.7500, n_evaluated=4, n_abstained=0)
    >>> score["value"], list(score)
    (0.75, ['name', 'value', 'breakdown', 'n_evaluated', 'n_abstained', 'details'])
    """

    name: str
    value: float
    breakdown: Mapping[str, float] = field(default_factory=dict)
    n_evaluated: int = 0
    n_abstained: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """The reason why the value is undefined; empty if it is defined."""
        return str(self.details.get("reason", ""))

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)

    def __repr__(self) -> str:
        return (
            f"MetricScore(name={self.name!r}, value={self.value:.4f}, n_evaluated={self.n_evaluated}, "
            f"n_abstained={self.n_abstained})"
        )


def check_results(results: Iterable[Any]) -> list[EvaluationResult]:
    """Return the checked rows of a list; the error names the first wrong row.

    Objects of another harness are accepted, too, if they have a ``prediction`` and a ``ground_truth`` and use the names
    of `EvaluationResult` for further fields.
    """
    if not isinstance(results, Iterable):
        raise DataError(f"results must be a list of EvaluationResult, got {_validate.kind(results)}")
    rows = [_as_result(result, row) for row, result in enumerate(results)]
    if not rows:
        raise DataError("results is empty; pass at least one EvaluationResult")
    for row, result in enumerate(rows):
        _check_row(result, row)
    return rows


def results_to_items(
    results: Iterable[Any],
    *,
    cluster: str | None = None,
    item: str | None = None,
    scale: Sequence[float] | None = None,
) -> Items:
    """Return results as the table that every metric reads.

    Args:
        results: the rows.
        cluster: the metadata key of the cluster, such as "patient_id". Default: the `cluster` of the rows; if they have
            none, each row is a cluster.
        item: the metadata key of the rows' names. Default: the `item` of the rows.
        scale: the lowest and highest possible truth.

    >>> results_to_items([EvaluationResult(1, 1, confidence=0.8), EvaluationResult(None, 0, abstained=True)])
    Items(2 items in 2 rows: 1 answered, 1 abstained, 0 failed, 0 unscored)
    """
    rows = check_results(results)
    items = Items.from_arrays(
        [row.ground_truth for row in rows],
        [row.prediction for row in rows],
        abstained=[row.abstained for row in rows],
        failed=[row.failed for row in rows],
        cluster=_identifiers(rows, "cluster", cluster),
        item=_identifiers(rows, "item", item),
        metadata=_metadata_columns(rows),
        scale=scale,
        null_prediction="answered",
    )
    signals = [
        {**row.signals, **({} if row.confidence is None else {"confidence": row.confidence})} for row in rows
    ]
    own_rows = cluster is None and rows[0].cluster is None
    return replace(
        items,
        signals=signals_from_rows(signals, items.describe_row),
        cluster_noun="row" if own_rows else "cluster",
    )


def items_to_results(items: Items) -> list[EvaluationResult]:
    """Return items as one object per row: the inverse of `results_to_items`.

    >>> results = [EvaluationResult(1, 1, confidence=0.8, metadata={"sex": "F"}, raw_response="...")]
    >>> items_to_results(results_to_items(results)) == results
    True
    """
    truth, prediction = _label_values(items.truth), _label_values(items.prediction)
    cluster, names = _without_row_numbers(items.cluster), _without_row_numbers(items.item)
    metadata = {
        name: column.tolist() for name, column in items.metadata.items() if not name.startswith(PREFIX)
    }
    carried = {
        name: items.metadata[PREFIX + name].tolist() for name in CARRIED if PREFIX + name in items.metadata
    }
    nulls = items.metadata[_NULLS].tolist() if _NULLS in items.metadata else [()] * len(items)
    declined = items.metadata.get(_DECLINED, np.zeros(len(items), np.bool_))
    return [
        EvaluationResult(
            prediction[row],
            truth[row],
            abstained=bool(items.outcome[row] == Outcome.ABSTAINED or declined[row]),
            failed=bool(items.outcome[row] == Outcome.FAILED),
            cluster=cluster[row],
            item=names[row],
            metadata={
                name: column[row]
                for name, column in metadata.items()
                if column[row] is not None or name in nulls[row]
            },
            **_signals_of(items, row),
            **{name: column[row] for name, column in carried.items()},
        )
        for row in range(len(items))
    ]


def _as_result(result: Any, row: int) -> EvaluationResult:
    if isinstance(result, EvaluationResult):
        return result
    names = [name for name in EvaluationResult.__dataclass_fields__ if hasattr(result, name)]
    if "prediction" not in names or "ground_truth" not in names:
        raise DataError(
            f"results must hold EvaluationResult objects, got {_validate.kind(result)} at {row_name(row)}"
        )
    return EvaluationResult(**{name: getattr(result, name) for name in names})


def _check_row(result: EvaluationResult, row: int) -> None:
    for name in ("abstained", "failed"):
        if not isinstance(getattr(result, name), (bool, np.bool_)):
            kind = _validate.kind(getattr(result, name))
            raise DataError(f"{name} must be True or False, got {kind} at {row_name(row)}")
    if not isinstance(result.metadata, Mapping):
        raise DataError(
            f"metadata must be a mapping, got {_validate.kind(result.metadata)} at {row_name(row)}"
        )
    confidence = result.confidence
    if confidence is None:
        return
    kind = _validate.kind(confidence)
    if kind != "a number":
        raise DataError(f"confidence must be a number or None, got {kind} at {row_name(row)}")
    if math.isnan(confidence):
        raise DataError(f"confidence is NaN at {row_name(row)}; use None if the model stated no confidence")
    if not 0.0 <= confidence <= 1.0:
        raise DataError(f"confidence must lie in [0, 1], got {confidence:g} at {row_name(row)}")


def _identifiers(rows: list[EvaluationResult], field_name: str, key: str | None) -> list[Any] | None:
    if key is None:
        own = [getattr(row, field_name) for row in rows]
        if all(value is None for value in own):
            return None
        if None in own:
            raise DataError(f"{row_name(own.index(None))} has no {field_name}, although other rows do")
        return own
    keys = dict.fromkeys(name for row in rows for name in row.metadata)
    if key not in keys:
        listed = list_names(map(str, keys)) or "none"
        raise ArgumentError(
            f"unknown {field_name} key {key!r}{_validate.suggestion(key, keys)}; metadata keys: {listed}"
        )
    values = [row.metadata.get(key) for row in rows]
    if None in values:
        raise DataError(
            f"{row_name(values.index(None))} has no {key!r} in its metadata, but each row needs a {field_name}"
        )
    return values


def _metadata_columns(rows: list[EvaluationResult]) -> dict[str, list[Any]]:
    named = [{str(name): value for name, value in row.metadata.items()} for row in rows]
    columns = columns_from_rows(named, "the metadata of results")
    reserved = next((name for name in columns if name.startswith(PREFIX)), None)
    if reserved is not None:
        raise DataError(
            f"metadata has the key {reserved!r}; keys that begin with {PREFIX!r} are reserved, so rename it"
        )
    nulls = [tuple(sorted(name for name, value in row.metadata.items() if value is None)) for row in rows]
    if any(nulls):
        columns[_NULLS] = nulls
    declined = [row.abstained and not row.evaluated for row in rows]
    if any(declined):
        columns[_DECLINED] = declined
    blank = EvaluationResult(None, None)
    for name in CARRIED:
        values = [getattr(row, name) for row in rows]
        if any(value != getattr(blank, name) for value in values):
            columns[PREFIX + name] = values
    return columns


def _label_values(column: NDArray[Any]) -> list[Any]:
    """Return labels as Python values: whole numbers as int, None if missing."""
    if column.dtype.kind != "f":
        return column.tolist()
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in column.tolist()
    ]


def _without_row_numbers(identifiers: NDArray[Any]) -> list[Any]:
    """Return identifiers as a list; None for each if they are only row numbers."""
    if identifiers.dtype.kind in "iu" and np.array_equal(identifiers, np.arange(len(identifiers))):
        return [None] * len(identifiers)
    return identifiers.tolist()


def _signals_of(items: Items, row: int) -> dict[str, Any]:
    signals = signals_of_row(items, row)
    return {"confidence": signals.pop("confidence", None), "signals": signals}
