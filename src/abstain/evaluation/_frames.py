"""Results as data frames: one row per estimate, per difference, or per part of the rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._export import frame_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abstain.evaluation._coverage_results import CoverageResult
    from abstain.evaluation._differences import Difference
    from abstain.evaluation._metric_tables import MetricTable
    from abstain.evaluation._result import Result, SystemResult
    from abstain.inference import Estimate

    Row = tuple[Any, ...]

_ESTIMATE = (
    *("value", "low", "high", "level", "se", "method", "n", "clusters"),
    *("if_wrong", "if_right", "reason"),
)
_OF_SYSTEM = ("system", "confidence", "metric", "group", *_ESTIMATE)
_DIFFERENCES = (
    *("metric", "confidence", "group", "left", "right", "left_value", "right_value", "difference"),
    *("low", "high", "level", "se", "method", "matched", "basis", "coverage", "p", "p_adjusted", "verdict"),
    *("clusters", "reason"),
)
_STRATA = ("nominal", "by", "part", "rows", "verdict", *_ESTIMATE)


def result_frame(result: Result, what: str, backend: str | None) -> Any:
    """Return the estimates or the differences of a result; see `Result.to_frame`."""
    _validate.choice(what, "what", ("estimates", "differences"))
    if what == "differences":
        return _frame(_DIFFERENCES, map(_difference, result.differences), backend)
    rows = [row for system in result.systems.values() for row in _of_system(system)]
    return _frame(_OF_SYSTEM, rows, backend)


def system_frame(system: SystemResult, backend: str | None) -> Any:
    """Return the estimates of one system; see `SystemResult.to_frame`."""
    return _frame(_OF_SYSTEM, _of_system(system), backend)


def table_frame(table: MetricTable, backend: str | None) -> Any:
    """Return the metrics over all items and by group; see `MetricTable.to_frame`."""
    rows = [(name, "", *_estimate(each)) for name, each in table.items()]
    rows += [
        (name, group.label, *_estimate(group.estimates[name])) for group in table.groups for name in table
    ]
    return _frame(("metric", "group", *_ESTIMATE), rows, backend)


def coverage_frame(result: CoverageResult, what: str, backend: str | None) -> Any:
    """Return the estimates by nominal coverage, or the coverage of every part; see `CoverageResult.to_frame`."""
    _validate.choice(what, "what", ("estimates", "strata"))
    if what == "strata":
        return _frame(_STRATA, _strata(result), backend)
    rows: list[Row] = [
        (nominal.nominal, name, *_estimate(each))
        for nominal in result.by_nominal
        for name, each in nominal.items()
    ]
    rows += [(None, name, *_estimate(each)) for name, each in result.metrics.items()]
    return _frame(("nominal", "metric", *_ESTIMATE), rows, backend)


def _frame(names: Sequence[str], rows: Iterable[Row], backend: str | None) -> Any:
    columns = zip(*rows, strict=True)
    return frame_of({name: list(next(columns, ())) for name in names}, backend)


def _of_system(system: SystemResult) -> list[Row]:
    return [(system.name, *key, *_estimate(each)) for key, each in system.estimates.items()]


def _estimate(estimate: Estimate) -> Row:
    if_wrong, if_right = estimate.bounds or (math.nan, math.nan)
    values = {"if_wrong": if_wrong, "if_right": if_right}
    return tuple(_cell(values[name] if name in values else getattr(estimate, name)) for name in _ESTIMATE)


def _difference(difference: Difference) -> Row:
    estimate = difference.estimate
    values = {name: getattr(estimate, name) for name in ("low", "high", "level", "se", "method", "clusters")}
    values |= {"difference": estimate.value, "reason": estimate.reason or difference.no_verdict}
    return tuple(
        _cell(values[name] if name in values else getattr(difference, name)) for name in _DIFFERENCES
    )


def _strata(result: CoverageResult) -> list[Row]:
    size = "width" if result.kind == "intervals" else "set size"
    return [
        (
            *(nominal.nominal, by, str(part.label), part.count),
            *(None if part.verdict is None else part.verdict.verdict, *_estimate(part.coverage)),
        )
        for nominal in result.by_nominal
        for by, parts in ((size, nominal.strata), *nominal.groups.items())
        for part in parts
    ]


def _cell(value: Any) -> Any:
    """Return a value, or None for an undefined number."""
    return None if isinstance(value, float) and math.isnan(value) else value
