"""The part of the registry that is about intervals and sets: its entries, and their plans from columns.

The figures are those of `abstain.metrics.intervals` and `abstain.metrics.sets`. Those modules have names in
common, so that an entry is called with its module's, as in ``intervals.coverage_score``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.metrics import _reasons as when
from abstain.metrics import intervals, sets
from abstain.metrics._columns import ColumnPlan, Columns, SubsetPlan
from abstain.metrics._coverage import CriterionPlan, Frame, StrataPlan, groups_plan, means_plan
from abstain.metrics._gauss import HsicPlan
from abstain.metrics._predictions import IntervalRows, SetRows
from abstain.metrics._specification import MetricSpecification, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.metrics._plan import Plan

    Build = Callable[..., Plan]

HIGHER, LOWER, NEITHER = "higher", "lower", "neither"

# How hard the width criterion punishes a coverage away from the level.
_ETA = 30.0
_LEVEL = Parameter("level", 0.9, _validate.level)


def _over_intervals(build: Build) -> Build:
    """Let a builder see the rows that have an interval, checked."""

    def over(columns: Columns, **parameters: Any) -> Plan:
        def within(rows: Columns) -> Plan:
            checked = IntervalRows.with_truth(rows.truth_number, rows.intervals)
            return build(checked, Frame(len(rows), rows.weight, rows.cluster), **parameters)

        return SubsetPlan.over(columns, columns.bounded, within)

    return over


def _over_sets(build: Build) -> Build:
    """Let a builder see the rows that have a set, checked."""

    def over(columns: Columns, **parameters: Any) -> Plan:
        def within(rows: Columns) -> Plan:
            checked = SetRows.with_truth(rows.truth_class, rows.sets)
            return build(checked, Frame(len(rows), rows.weight, rows.cluster), **parameters)

        return SubsetPlan.over(columns, columns.gathered, within)

    return over


def _mean(column: Callable[..., Any]) -> Build:
    """A mean over rows of what `column` makes of them."""

    def build(rows: IntervalRows | SetRows, frame: Frame, **parameters: Any) -> Plan:
        return means_plan(("mean",), (column(rows, **parameters),), frame)

    return build


def _hsic(rows: IntervalRows, frame: Frame) -> Plan:
    columns = (rows.width[0], rows.covered[0])
    return HsicPlan.build(*columns, kernel_sizes=(1.0, 1.0), weight=frame.weight, cluster=frame.cluster)


def _criterion(rows: IntervalRows, frame: Frame, *, level: float) -> Plan:
    columns = (rows.known_truth, rows.covered[0], rows.width[0])
    return CriterionPlan.build("coverage_width_criterion", *columns, frame, eta=_ETA, level=level)


def _worst_chunk(rows: IntervalRows, frame: Frame) -> Plan:
    columns = (rows.width[0], rows.covered[0])
    return ColumnPlan(StrataPlan.build(*columns, frame, bins=3, name="size_stratified_coverage"), place=-1)


def _worst_size(rows: SetRows, frame: Frame) -> Plan:
    size = rows.width[0].astype(np.intp)
    return ColumnPlan(groups_plan(rows.covered[0], size, rows.classes + 1, frame, name="worst"), place=-2)


def _worst_label(rows: SetRows, frame: Frame) -> Plan:
    truth = np.zeros(0, np.intp) if rows.truth is None else rows.truth
    return ColumnPlan(groups_plan(rows.covered[0], truth, rows.classes, frame, name="worst"), place=-2)


def _interval_metric(
    function: Callable[..., Any], build: Build, direction: str, unit: str, **others: Any
) -> MetricSpecification:
    arguments = {"y_true": "truth_number", "intervals": "intervals"}
    return MetricSpecification(
        function,
        {"intervals": "intervals"} if function is intervals.mean_width_score else arguments,
        direction,
        unit,
        plan=_over_intervals(build),
        undefined=(when.NO_INTERVALS, *others.pop("undefined", ())),
        rows="bounded",
        answered_only=True,
        name=f"intervals.{function.__name__}",
        **others,
    )


def _set_metric(
    function: Callable[..., Any], build: Build, direction: str, unit: str, *, truth: bool = True
) -> MetricSpecification:
    return MetricSpecification(
        function,
        {"y_true": "truth_class", "sets": "sets"} if truth else {"sets": "sets"},
        direction,
        unit,
        plan=_over_sets(build),
        undefined=(when.NO_SETS,),
        rows="gathered",
        answered_only=True,
        name=f"sets.{function.__name__}",
    )


def _winkler(rows: IntervalRows, *, level: float) -> Any:
    return intervals.winkler_losses(rows, np.array([level]))[0]


def _weighted(rows: IntervalRows, *, level: float) -> Any:
    return intervals.weighted_interval_losses(rows, np.array([level]), None)


CONFORMAL: tuple[MetricSpecification, ...] = (
    _interval_metric(intervals.coverage_score, _mean(lambda rows: rows.covered[0]), NEITHER, "share"),
    _interval_metric(
        intervals.mean_width_score, _mean(lambda rows: rows.width[0]), LOWER, "unit of the truth"
    ),
    _interval_metric(intervals.size_stratified_coverage, _worst_chunk, HIGHER, "share"),
    _interval_metric(intervals.hsic, _hsic, LOWER, "dependence", undefined=(when.SINGLE_INTERVAL,)),
    _interval_metric(
        intervals.coverage_width_criterion,
        _criterion,
        HIGHER,
        "points",
        undefined=(when.CONSTANT_BOUNDED,),
        parameter=_LEVEL,
        settings={"eta": _ETA},
    ),
    _interval_metric(intervals.winkler_score, _mean(_winkler), LOWER, "unit of the truth", parameter=_LEVEL),
    _interval_metric(
        intervals.weighted_interval_score, _mean(_weighted), LOWER, "unit of the truth", parameter=_LEVEL
    ),
    _set_metric(sets.coverage_score, _mean(lambda rows: rows.covered[0]), NEITHER, "share"),
    _set_metric(sets.mean_width_score, _mean(lambda rows: rows.width[0]), LOWER, "classes", truth=False),
    _set_metric(sets.size_stratified_coverage, _worst_size, HIGHER, "share"),
    _set_metric(sets.coverage_by_label, _worst_label, HIGHER, "share"),
    _set_metric(sets.singleton_rate, _mean(lambda rows: rows.width[0] == 1.0), NEITHER, "share", truth=False),
    _set_metric(sets.empty_rate, _mean(lambda rows: rows.width[0] == 0.0), NEITHER, "share", truth=False),
)
