"""Metrics of the user's: the class to write one with, where they come from, and how they are measured.

A metric object is called with a list of evaluation results. Adding one means subclassing `BaseMetric` and writing
``compute()``; it is found by an entry point of an installed package (group ``abstain.metrics``), by its import path
(``package.module:Class``), or by being handed over. It sees rows as objects, so a weight repeats a row:
slower than cluster sums, with the same weights. The built-in metrics are functions of arrays and stand elsewhere.
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
    """A metric over evaluation results; subclass it, set `name`, and write `compute`.

    Attributes:
        name: the metric's key on the command line and in files.
        direction: "higher" or "lower" where that is better, "neither" where it depends.
        unit: what one unit of the value is, such as "share", which lies in [0, 1], and so does its interval.

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
        """Compute the metric; the rows are checked, there is at least one, and each has a truth."""

    def __call__(self, results: Iterable[Any]) -> MetricScore:
        """Check the rows and compute the metric; failed rows and those without a truth are counted and left out."""
        rows = check_results(results)
        evaluated = [row for row in rows if row.evaluated]
        if not evaluated:
            raise DataError("there is no row to judge: every row failed or has no ground_truth")
        score = self.compute(evaluated)
        if len(evaluated) == len(rows):
            return score
        failed = sum(row.failed for row in rows)
        left_out = {"n_failed": failed, "n_unscored": len(rows) - len(evaluated) - failed}
        return replace(score, details={**score.details, **left_out})

    def specification(self, name: str = "") -> MetricSpecification:
        """Return the registry's entry of this metric; a metric of the user's is measured on rows, as objects."""
        return MetricSpecification(
            self,
            {"results": "results"},
            self.direction,
            self.unit,
            family=Family.of_one(partial(_results_statistic, metric=self)),
            name=name or self.name or type(self).__name__,
        )


def user_specification(metric: object, name: str = "") -> MetricSpecification:
    """Return the entry of a metric object, or of a class that can be made without arguments."""
    made = metric
    if isinstance(metric, type):
        try:
            made = metric()
        except TypeError as problem:
            raise ArgumentError(
                f"metric {metric.__name__} cannot be made without arguments ({problem})"
            ) from None
    if not isinstance(made, BaseMetric):
        raise ArgumentError(f"a metric must be a BaseMetric, got {_validate.kind(made)}")
    return made.specification(name)


def entry_point_metrics() -> dict[str, Any]:
    """Return what the entry points of installed packages name, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (it reads the environment; few calls need it)

    return {entry.name: _loaded(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)}


def imported_metric(path: str) -> Any:
    """Import ``package.module:Class``, looking in the working directory too, as `python -m` does."""
    module_name, _, attribute = path.partition(":")
    here = os.getcwd()  # noqa: PTH109  (what goes onto the path is text)
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as problem:
        # Any exception that the user's module raises is an error of the argument that named it.
        reason = f"{type(problem).__name__}: {problem}"
        raise ArgumentError(f"metric {path!r}: cannot import {module_name!r} ({reason})") from problem
    finally:
        if added:
            sys.path.remove(here)
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
    """Return the statistic of a metric object, which sees every row as often as its weight says.

    Weights for which the metric divides by zero, or says NaN, are weights for which it is undefined.
    """
    if columns.results is None:
        raise ArgumentError(f"metric {metric.name} needs the rows as evaluation results")
    results = columns.results

    def value(weights: Floats) -> float:
        times = weights[columns.cluster] * columns.weight
        repetitions = times.astype(np.intp)
        fractions = times[repetitions != times]
        if len(fractions):
            raise ArgumentError(
                f"metric {metric.name} is written for rows, and a row cannot count {fractions[0]:g} times; use whole "
                "weights"
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
