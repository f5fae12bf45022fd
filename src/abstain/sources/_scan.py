"""Tables that are scanned and not loaded: rows that are alike become one row with a weight.

Point estimates of the risk-coverage figures only need to know how often each truth, prediction and confidence
occur together, and how many items came to each outcome. DuckDB counts both, within a fixed memory and on disk
beyond it; what comes back is as large as there are different kinds of rows, not as there are rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome, OutcomeCounts, Signal
from abstain.sources._columns import Roles, agree_on_labels, assign_columns, cluster_noun
from abstain.sources._recognise import FORMATS, digest, expand, recognise
from abstain.sources._tables import DuckTable, open_table, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["ScannedTable", "scan_table"]

_TABLES = ("csv", "parquet", "jsonl")


@dataclass(frozen=True, eq=False, slots=True)
class ScannedTable:
    """The judged rows of a table, each kind of row once.

    Attributes:
        items: one answered item for each truth, prediction and confidence that occur together, and one
            abstained item for all that are.
        weight: how many rows each item stands for.
        counts: how many rows came to each outcome.
        clusters: how many clusters there are.
        judged_clusters: how many of them have a judged row.
    """

    items: Items
    weight: NDArray[np.float64]
    counts: OutcomeCounts
    clusters: int
    judged_clusters: int


def scan_table(source: Any, roles: Roles, kind: str | None = None) -> ScannedTable:
    """Scan files of one format; see `abstain.scan`."""
    paths = expand(source)
    found = {kind or recognise(path) for path in paths}
    if len(found) > 1 or not found <= set(_TABLES):
        listed = ", ".join(FORMATS[name] for name in sorted(found))
        raise ArgumentError(f"only tables of one format are scanned, not {listed}; read and evaluate others")
    table = open_table(paths, name := found.pop())
    columns = assign_columns(table, roles)
    if "confidence" not in columns:
        raise ArgumentError(
            f"{table.label}: which column is the confidence? Name it (confidence, --confidence)"
        )
    agree_on_labels(table, columns)
    rows = _Rows(table, columns, roles)
    counts, clusters = rows.population()
    truth, prediction, confidence, weight = rows.kinds()
    declined = int(counts.abstained > 0)
    answered = len(weight)
    items = Items(
        truth=_with_one_more(truth, declined),
        prediction=_with_one_more(prediction, declined),
        outcome=np.array([Outcome.ANSWERED] * answered + [Outcome.ABSTAINED] * declined, dtype=np.uint8),
        cluster=np.zeros(answered + declined, np.int8),
        item=np.zeros(answered + declined, np.int8),
        signals={
            columns["confidence"]: Signal(
                _with_one_more(confidence, declined), np.zeros(answered + declined, np.bool_)
            )
        },
        scale=table.declared.get("scale") if roles.scale is None else _validate.scale(roles.scale),
        cluster_noun=table.declared.get("cluster_noun") or cluster_noun(columns.get("cluster")),
        provenance={
            "path": table.label,
            "sha256": digest(paths),
            "format": name,
            "columns": columns,
            "guessed": tuple(role for role in columns if role not in roles.named()),
        },
    )
    weights = np.append(weight, counts.abstained) if declined else weight
    return ScannedTable(items, weights, counts, *clusters)


def _with_one_more(column: NDArray[Any], more: int) -> NDArray[Any]:
    """Room for the abstained item, whose values mean nothing."""
    missing = np.full(more, np.nan) if column.dtype.kind == "f" else np.full(more, None, dtype=object)
    return np.concatenate([column, missing]) if more else column


class _Rows:
    """The statements of one scan; names from the file stand in them as quoted identifiers only."""

    def __init__(self, table: DuckTable, columns: Mapping[str, str], roles: Roles) -> None:
        self.table = table
        self.columns = columns
        self.roles = roles
        kinds = {role: table.kinds[columns[role]] for role in ("truth", "prediction", "confidence")}
        if kinds["confidence"] not in ("whole", "number"):
            raise DataError(
                f"{table.label}: the column {columns['confidence']!r} holds {kinds['confidence']}, and a confidence "
                "needs numbers"
            )
        self.numeric = [role for role, kind in kinds.items() if kind in ("whole", "number", "boolean")]

    def population(self) -> tuple[OutcomeCounts, tuple[int, int]]:
        """Return how many rows came to each outcome, and how many clusters there are, in all and judged."""
        tests = [f"count(*) FILTER (WHERE outcome = {code})" for code in range(4)]
        clusters = ["count(DISTINCT cluster)", "count(DISTINCT cluster) FILTER (WHERE outcome <= 1)"]
        wrong = [
            "count(*) FILTER (WHERE silent)",
            "count(*) FILTER (WHERE unclear)",
            "count(*) FILTER (WHERE outcome = 0 AND NOT coalesce(isfinite(confidence), false))",
        ]
        row = self._prepared().aggregate(", ".join(tests + clusters + wrong)).fetchall()[0]
        *outcomes, total, judged, silent, unclear, unranked = (int(value) for value in row)
        if silent and self.roles.null_prediction is None:
            raise DataError(
                f"{self.table.label}: the prediction ({self.columns['prediction']}) is missing in {silent} rows and "
                "nothing says why; name a column of abstentions (abstained, --abstained), or say what it means "
                "(null_prediction, --null-prediction: abstained or failed)"
            )
        if unclear:
            raise DataError(
                f"{self.table.label}: {unclear} rows do not say true or false whether they are answered"
            )
        if unranked:
            raise DataError(
                f"{self.table.label}: the confidence ({self.columns['confidence']}) is missing or not finite for "
                f"{unranked} answered rows"
            )
        if "cluster" not in self.columns:
            total, judged = sum(outcomes), outcomes[0] + outcomes[1]
        if not sum(outcomes):
            raise DataError(f"{self.table.label}: the table has no rows")
        return OutcomeCounts(*outcomes), (total, judged)

    def kinds(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Return truth, prediction, confidence and count of every kind of answered row."""
        names = "truth, prediction, confidence"
        answered = self._prepared().filter("outcome = 0")
        found = answered.aggregate(f"{names}, count(*) AS weight", names).fetchnumpy()
        truth, prediction = (_column(found[role]) for role in ("truth", "prediction"))
        return truth, prediction, _column(found["confidence"]), np.asarray(found["weight"], dtype=np.float64)

    def _prepared(self) -> Any:
        """The rows with the columns truth, prediction, confidence, cluster, outcome, silent and unclear."""
        roles = {role: self.table.expression(name) for role, name in self.columns.items() if role != "item"}
        roles.setdefault("cluster", "NULL")
        for role in ("abstained", "failed"):
            roles.setdefault(role, "false")
        for role in self.numeric:
            # NaN is how many tools write a missing number.
            roles[role] = f"nullif(CAST({roles[role]} AS DOUBLE), 'nan'::DOUBLE)"
        for role in ("abstained", "failed"):
            roles[role] = f"TRY_CAST({roles[role]} AS BOOLEAN)"
        said = roles.pop("outcome", None)
        inner = self.table.relation.project(
            ", ".join(f"{expression} AS {quote(role)}" for role, expression in roles.items())
            + (f", {said} AS said" if said else ", NULL AS said")
        )
        declined, broken = "coalesce(abstained, false)", "coalesce(failed, false)"
        silent = f"(prediction IS NULL AND NOT {declined} AND NOT {broken})"
        meant = 1 if self.roles.null_prediction == "abstained" else 2
        outcome = (
            f"CASE WHEN {broken} THEN 2 WHEN {silent} AND {meant} = 2 THEN 2 WHEN truth IS NULL THEN 3 "
            f"WHEN {declined} OR {silent} THEN 1 ELSE 0 END"
        )
        unclear = f"(abstained IS NULL OR failed IS NULL OR ({declined} AND {broken}))"
        if said:
            outcome = (
                "CASE said WHEN 'answered' THEN 0 WHEN 'abstained' THEN 1 WHEN 'failed' THEN 2 WHEN 'unscored' THEN 3 "
                "END"
            )
            silent, unclear = "false", f"({outcome} IS NULL)"
        return inner.project(f"*, {outcome} AS outcome, {silent} AS silent, {unclear} AS unclear")


def _column(found: Any) -> NDArray[Any]:
    """Return a column of answered rows, in which nothing is null."""
    values = np.asarray(found)
    return values if values.dtype.kind == "f" else values.astype(object)
