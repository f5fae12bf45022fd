"""Tables that are scanned and not loaded: rows that are alike become one row with a weight.

Point estimates of the risk-coverage metrics only need to know how often each truth, prediction and confidence
occur together, and how many items came to each outcome. DuckDB counts both, within a fixed memory and on disk
beyond it; what comes back is as large as there are different kinds of rows, not as there are rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _sql
from abstain._export import OUTCOMES
from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome, OutcomeCounts, Signal, checked_weight
from abstain.sources._columns import agree_on_labels, check_label_kinds
from abstain.sources._roles import Roles, assign_columns, declared, provenance
from abstain.sources._values import FLAGS, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.sources._tables import DuckTable

__all__ = ["ScannedTable", "scan_table"]

# Intervals and sets are judged row by row, which only a table in memory can be.
_LOADED_ONLY = ("low", "high", "set")


@dataclass(frozen=True, eq=False, slots=True)
class ScannedTable:
    """The judged rows of a table, each kind of row once.

    Attributes:
        items: one answered item for each truth, prediction and confidence that occur together, and one
            abstained item for all that are; its weight says how many rows each stands for.
        counts: how many rows came to each outcome.
        clusters: how many clusters there are.
        judged_clusters: how many of them have a judged row.
    """

    items: Items
    counts: OutcomeCounts
    clusters: int
    judged_clusters: int


def scan_table(table: DuckTable, roles: Roles) -> ScannedTable:
    """Count the rows of a table; see `abstain.scan`."""
    columns = assign_columns(table, roles)
    for role in _LOADED_ONLY:
        if role in columns:
            raise ArgumentError(f"{table.label}: {role} is not scanned; read the table and evaluate it")
    if "confidence" not in columns:
        raise ArgumentError(
            f"{table.label}: which column is the confidence? Name it (confidence, --confidence)"
        )
    agree_on_labels(table, columns)
    rows = _ScanStatements(table, columns, roles)
    counts, clusters, declined_weight = rows.population()
    truth, prediction, confidence, weight = rows.kinds()
    check_label_kinds(truth, prediction, columns, table)
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
        **declared(table, columns, roles),
        provenance=provenance(table, columns, roles),
        weight=checked_weight(
            np.append(weight, declined_weight) if declined else weight, answered + declined
        ),
    )
    return ScannedTable(items, counts, *clusters)


def _with_one_more(column: NDArray[Any], more: int) -> NDArray[Any]:
    """Room for the abstained item, whose values mean nothing."""
    missing = np.full(more, np.nan) if column.dtype.kind == "f" else np.full(more, None, dtype=object)
    return np.concatenate([column, missing]) if more else column


class _ScanStatements:
    """The statements of one scan; names from the file stand in them as quoted identifiers only."""

    def __init__(self, table: DuckTable, columns: Mapping[str, str], roles: Roles) -> None:
        self.table = table
        self.columns = columns
        self.roles = roles
        kinds = {
            role: table.kinds[columns[role]]
            for role in ("truth", "prediction", "confidence")
            if role in columns
        }
        if kinds["confidence"] not in ("whole", "number"):
            raise DataError(
                f"{table.label}: the column {columns['confidence']!r} holds {kinds['confidence']}, and a confidence "
                "needs numbers"
            )
        self.numeric = [role for role, kind in kinds.items() if kind in ("whole", "number", "boolean")]

    def population(self) -> tuple[OutcomeCounts, tuple[int, int], float]:
        """Return how many rows came to each outcome, how many clusters there are, and the weight of the abstained.

        Clusters are counted in all, and those with a judged row.
        """
        tests = [f"count(*) FILTER (WHERE outcome = {code})" for code in range(4)]
        clusters = ["count(DISTINCT cluster)", "count(DISTINCT cluster) FILTER (WHERE outcome <= 1)"]
        wrong = [
            "count(*) FILTER (WHERE silent)",
            "count(*) FILTER (WHERE unclear)",
            "count(*) FILTER (WHERE outcome = 0 AND NOT coalesce(isfinite(confidence), false))",
            "count(*) FILTER (WHERE NOT coalesce(isfinite(weight) AND weight >= 0, false))",
        ]
        declined = "coalesce(sum(weight) FILTER (WHERE outcome = 1), 0)"
        with self.table.explained():
            row = self._prepared().aggregate(", ".join([*tests, *clusters, *wrong, declined])).fetchall()[0]
        *outcomes, total, judged, silent, unclear, unranked, unweighed = (int(value) for value in row[:-1])
        if silent and self.roles.null_prediction is None:
            raise DataError(
                f"{self.table.label}: the prediction ({self.columns[self.answer]}) is missing in {silent} rows and "
                "nothing says why; name a column of abstentions (abstained, --abstained), or say what it means "
                "(null_prediction, --null-prediction: abstained or failed)"
            )
        if unclear:
            or_right = ", or right" if self.answer == "correct" else ""
            raise DataError(
                f"{self.table.label}: {unclear} rows do not say true or false whether they are answered{or_right}"
            )
        if unranked:
            raise DataError(
                f"{self.table.label}: the confidence ({self.columns['confidence']}) is missing or not finite for "
                f"{unranked} answered rows"
            )
        if unweighed:
            raise DataError(
                f"{self.table.label}: the weight ({self.columns['weight']}) is missing, negative or not finite in "
                f"{unweighed} rows"
            )
        if "cluster" not in self.columns:
            total, judged = sum(outcomes), outcomes[0] + outcomes[1]
        if not sum(outcomes):
            raise DataError(f"{self.table.label}: the table has no rows")
        return OutcomeCounts(*outcomes), (total, judged), float(row[-1])

    def kinds(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64], NDArray[np.float64]]:
        """Return truth, prediction, confidence and count of every kind of answered row."""
        names = "truth, prediction, confidence"
        with self.table.explained():
            answered = self._prepared().filter("outcome = 0")
            found = answered.aggregate(f"{names}, sum(weight) AS total", names).fetchnumpy()
        truth, prediction = (_column(found[role]) for role in ("truth", "prediction"))
        return truth, prediction, _column(found["confidence"]), np.asarray(found["total"], dtype=np.float64)

    @property
    def answer(self) -> str:
        """The role that says what was predicted, or whether that was right."""
        return "correct" if "correct" in self.columns else "prediction"

    def _prepared(self) -> Any:
        """The rows with the columns truth, prediction, confidence, cluster, weight, outcome, silent and unclear."""
        roles = {role: self.table.expression(name) for role, name in self.columns.items() if role != "item"}
        verdict = roles.pop("correct", None)
        if verdict is not None:
            roles |= {"truth": "CAST(1 AS DOUBLE)", "prediction": _coded(_plain(verdict), VERDICTS)}
        roles.setdefault("cluster", "NULL")
        roles["weight"] = f"CAST({roles.get('weight', '1')} AS DOUBLE)"
        for role in self.numeric:
            # NaN is how many tools write a missing number.
            roles[role] = f"nullif(CAST({roles[role]} AS DOUBLE), 'nan'::DOUBLE)"
        for role in ("abstained", "failed"):
            roles[role] = f"({_coded(_plain(roles[role]), FLAGS)} = 1)" if role in roles else "false"
        said = roles.pop("outcome", None)
        roles |= {"said": said or "NULL", "verdict": verdict or "NULL"}
        inner = self.table.relation.project(
            ", ".join(f"{expression} AS {_sql.identifier(role)}" for role, expression in roles.items())
        )
        declined, broken = "coalesce(abstained, false)", "coalesce(failed, false)"
        silent = f"(prediction IS NULL AND NOT {declined} AND NOT {broken})"
        meant = 1 if self.roles.null_prediction == "abstained" else 2
        outcome = (
            f"CASE WHEN {broken} THEN 2 WHEN {silent} AND {meant} = 2 THEN 2 WHEN truth IS NULL THEN 3 "
            f"WHEN {declined} OR {silent} THEN 1 ELSE 0 END"
        )
        odd = "(verdict IS NOT NULL AND prediction IS NULL)"
        unclear = f"({odd} OR abstained IS NULL OR failed IS NULL OR ({declined} AND {broken}))"
        if said:
            outcome = _coded("said", {name: code for code, name in enumerate(OUTCOMES)})
            silent, unclear = "false", f"({outcome} IS NULL)"
        return inner.project(f"*, {outcome} AS outcome, {silent} AS silent, {unclear} AS unclear")


def _coded(expression: str, codes: Mapping[str, float]) -> str:
    """Return SQL that gives the number that a word stands for, and null for any other."""
    cases = " ".join(f"WHEN {_sql.literal(word)} THEN {code}" for word, code in codes.items())
    return f"CASE {expression} {cases} END::DOUBLE"


def _plain(expression: str) -> str:
    return f"lower(trim(CAST({expression} AS VARCHAR)))"


def _column(found: Any) -> NDArray[Any]:
    """Return a column of answered rows, in which nothing is null."""
    values = np.asarray(found)
    return values if values.dtype.kind == "f" else values.astype(object)
