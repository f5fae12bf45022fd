"""A result as a data frame: one row per estimate, or per difference."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._export import frame_of

if TYPE_CHECKING:
    from abstain.evaluation._result import Result

__all__ = ["result_frame"]


def result_frame(result: Result, what: str, backend: str | None) -> Any:
    """Return the estimates or the differences of a result; see `Result.to_frame`."""
    _validate.choice(what, "what", ("estimates", "differences"))
    rows = _estimates(result) if what == "estimates" else _differences(result)
    names = _ESTIMATES if what == "estimates" else _DIFFERENCES
    return frame_of({name: [row[place] for row in rows] for place, name in enumerate(names)}, backend)


_ESTIMATES = (
    *("system", "confidence", "metric", "group", "value", "low", "high", "level", "se"),
    *("method", "n", "clusters", "if_wrong", "if_right", "reason"),
)
_DIFFERENCES = (
    *(
        "metric",
        "confidence",
        "group",
        "left",
        "right",
        "left_value",
        "right_value",
        "difference",
        "low",
        "high",
    ),
    *("level", "se", "method", "coverage", "p", "p_adjusted", "verdict", "clusters", "reason"),
)


def _estimates(result: Result) -> list[tuple[Any, ...]]:
    rows = []
    for name, system in result.systems.items():
        for key, each in system.estimates.items():
            numbers = (each.value, each.low, each.high, each.level, each.se)
            bounds = each.bounds or (math.nan, math.nan)
            rows.append(
                (
                    *(name, *key, *map(_number, numbers), each.method, each.n, each.clusters),
                    *(*map(_number, bounds), each.reason),
                )
            )
    return rows


def _differences(result: Result) -> list[tuple[Any, ...]]:
    rows = []
    for each in result.differences:
        estimate = each.estimate
        ends = (each.left_value, each.right_value, estimate.value, estimate.low, estimate.high)
        rows.append(
            (
                *(each.metric, each.confidence, each.group, each.left, each.right),
                *map(_number, (*ends, estimate.level, estimate.se)),
                estimate.method,
                *map(_number, (each.coverage, each.p, each.p_adjusted)),
                *(each.verdict, estimate.clusters, estimate.reason),
            )
        )
    return rows


def _number(value: float) -> float | None:
    """Undefined is null in a frame."""
    return None if math.isnan(value) else value
