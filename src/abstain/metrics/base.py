"""User-defined metrics: the base class, how they are found, and how they are computed.

A metric object is called with a list of evaluation results. To add a metric, subclass `BaseMetric` and write
``compute()``. A metric is found through an entry point of an installed package (group ``abstain.metrics``), through its
import path (``package.module:Class``), or passed as an object. It receives rows as objects, so a weight repeats a row.
This is slower than cluster sums but uses the same weights. The built-in metrics are functions of arrays in other
modules.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from abstain import _validate
from abstain.errors import AbstainError, ArgumentError, DataError
from abstain.metrics._specification import Family, MetricSpecification
from abstain.resampling import Statistic, WeightBatch
from abstain.results import EvaluationResult, MetricScore, check_results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abstain._types import Floats
    from abstain.metrics._columns import Columns


__all__ = ["ENTRY_POINT_GROUP", "BaseMetric", "entry_point_metrics", "imported_metric", "user_specification"]

ENTRY_POINT_GROUP = "abstain.metrics"


class BaseMetric(ABC):
    """A metric over evaluation results. Subclass it, set `name`, and write `compute`.

    Attributes:
        name: the metric's key on the command line and in files.
        direction: "higher" or "lower", whichever is better; "neither" if there is no better direction.
        unit: the unit of the value. A "proportion" lies in [0, 1], and so does its confidence interval.

    >>> class Verbosity(BaseMetric):
    ...     name = "mean_output_tokens"
    ...     direction = "lower"
    ...     def compute(self, results):
    ...         tokens = [result.output_tokens for result in results if result.output_tokens is not None]
    ...         return MetricScore(self.name, sum(tokens) / len(tokens), n_evaluated=len(tokens))
    >>> Verbosity()([EvaluationResult(1, 1, output_tokens=40), EvaluationResult(0, 1, output_tokens=20)])
    MetricScore(name='mean_output_tokens', value=30.0000, n_evaluated=2, n_abstained=0)
    """

    name: ClassVar[str] = ""
    direction: ClassVar[str] = "neither"
    unit: ClassVar[str] = ""

    @abstractmethod
    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        """Compute the metric. The rows are checked, there is at least one, and each has a ground truth."""

    def __call__(self, results: Iterable[Any]) -> MetricScore:
        """Check the rows and compute the metric; rows that failed or have no ground truth are counted and excluded."""
        rows = check_results(results)
        evaluated = [row for row in rows if row.evaluated]
        if not evaluated:
            raise DataError("there is no row to evaluate: every row failed or has no ground_truth")
        score = self.compute(evaluated)
        if len(evaluated) == len(rows):
            return score
        failed = sum(row.failed for row in rows)
        left_out = {"n_failed": failed, "n_unscored": len(rows) - len(evaluated) - failed}
        return replace(score, details={**score.details, **left_out})

    def specification(self, name: str = "") -> MetricSpecification:
        """Return the registry entry of this metric, which is computed from rows as objects."""
        return MetricSpecification(
            self,
            {"results": "results"},
            self.direction,
            self.unit,
            family=Family.of_one(partial(_results_statistic, metric=self)),
            name=name or self.name or type(self).__name__,
        )


def user_specification(metric: object, name: str = "") -> MetricSpecification:
    """Return the registry entry of a metric object, or of a class that takes no arguments."""
    instance = metric
    if isinstance(metric, type):
        try:
            instance = metric()
        except TypeError as problem:
            raise ArgumentError(
                f"metric {metric.__name__} cannot be created without arguments ({problem})"
            ) from None
    if not isinstance(instance, BaseMetric):
        raise ArgumentError(f"a metric must be a BaseMetric, got {_validate.kind(instance)}")
    return instance.specification(name)


def entry_point_metrics() -> dict[str, Any]:
    """Return the metrics that the entry points of installed packages name, by entry point."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (slow to import, and few calls need it)

    return {entry.name: _loaded(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)}


def imported_metric(path: str) -> Any:
    """Import ``package.module:Class``, also from the working directory, as `python -m` does."""
    module_name, _, attribute = path.partition(":")
    working_directory = os.getcwd()  # noqa: PTH109  (entries of sys.path are text)
    added = working_directory not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, working_directory)
    try:
        module = importlib.import_module(module_name)
    except Exception as problem:
        # Whatever the user's module raises, the argument that named it is wrong.
        reason = f"{type(problem).__name__}: {problem}"
        raise ArgumentError(f"metric {path!r}: cannot import {module_name!r} ({reason})") from problem
    finally:
        if added:
            sys.path.remove(working_directory)
    if not hasattr(module, attribute):
        hint = _validate.suggestion(attribute, vars(module))
        raise ArgumentError(f"metric {path!r}: {module_name} has no {attribute!r}{hint}")
    return getattr(module, attribute)


def _loaded(entry: Any) -> Any:
    try:
        return entry.load()
    except Exception as problem:
        raise ArgumentError(
            f"the entry point {entry.name!r} ({entry.value}) cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem


def _results_statistic(columns: Columns, *, metric: BaseMetric) -> Statistic:
    """Return the statistic of a metric object, which receives every row as many times as its weight.

    If the metric divides by zero or returns NaN for some weights, it is undefined for them.
    """
    if columns.results is None:
        raise ArgumentError(f"metric {metric.name} needs the rows as evaluation results")
    results = columns.results

    def value(weights: Floats) -> float:
        times = weights[columns.cluster] * columns.items_in_rows
        repetitions = times.astype(np.intp)
        fractions = times[repetitions != times]
        if len(fractions):
            raise ArgumentError(
                f"metric {metric.name} is computed from whole rows, and a row cannot count {fractions[0]:g} times; use "
                "whole-number weights"
            )
        rows = [results[row] for row in np.repeat(np.arange(len(columns)), repetitions).tolist()]
        return _computed(metric, rows) if rows else math.nan

    def compute(batch: WeightBatch) -> Floats:
        return np.array([[value(weights)] for weights in batch.weights]).reshape(-1, 1)

    return Statistic((metric.name,), columns.units, max(len(columns), columns.units), compute)


def _computed(metric: BaseMetric, rows: list[EvaluationResult]) -> float:
    try:
        score = metric.compute(rows)
    except ZeroDivisionError:
        return math.nan
    except AbstainError:
        raise
    except Exception as problem:
        # The message may contain the text of a row, so only its type is shown.
        kind = type(problem).__name__
        raise ArgumentError(f"metric {metric.name}: compute() raised {kind}") from problem
    if not isinstance(score, MetricScore):
        raise ArgumentError(
            f"metric {metric.name}: compute() must return a MetricScore, got {_validate.kind(score)}"
        )
    return float(score.value)
