"""Select the step of a risk table that answers most and whose risk is guaranteed.

If there is none, `reason_for_none` and `alternative` explain why, which risk could have been guaranteed, and how many
clusters would be enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain.inference import clusters_needed
from abstain.resampling import total_by
from abstain.thresholds import _search
from abstain.thresholds._answered_rows import hash_names
from abstain.thresholds._policy import Alternative
from abstain.thresholds._risk_table import JOINT, RiskTable

if TYPE_CHECKING:
    from abstain._types import Floats
    from abstain.thresholds._answered_rows import AnsweredRows
    from abstain.thresholds._request import ThresholdRequest


# Coverage at which a fixed sequence begins. Above it, there are too few answers to show anything.
_START = 0.2
# Maximum number of thresholds. With more, the sequence is more likely to end early by chance.
_MOST_THRESHOLDS = 100
# The betting test finds its thresholds on this proportion of the clusters, at least `_LEAST_SPLIT`, and tests them on
# the others. It begins at `_ERROR_MARGIN` times the coverage at which answers without an error would be enough.
_SPLIT, _LEAST_SPLIT, _ERROR_MARGIN = 0.1, 10, 1.75
_HALVINGS = 30


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """The risk tables of a request.

    Attributes:
        request: the request, with its method.
        table: the rows that are tested.
        start_coverage: coverage of every step, which determines where a fixed sequence begins; None if it cannot begin.
        group_tables: one per group, if one threshold must hold for every group.
        deferral_table: right answers that are deferred, least confident first, if those are limited.
        full_table: all rows, if the thresholds were found on a part of them.
    """

    request: ThresholdRequest
    table: RiskTable
    start_coverage: Floats | None
    group_tables: tuple[RiskTable, ...] = ()
    deferral_table: RiskTable | None = None
    full_table: RiskTable | None = None

    @classmethod
    def of_rows(cls, request: ThresholdRequest, rows: AnsweredRows) -> Selection:
        """Sum rows at the thresholds that are tested."""
        if request.method != "betting" or request.grid is not None:
            table = _sum_rows(request, rows, request.grid)
            return cls._with_parts(request, rows, table, table.coverage)
        # The thresholds and the start are found on a few clusters, and tested on the others.
        order = np.argsort(hash_names(rows.names, "grid"), kind="stable")
        few = min(max(round(_SPLIT * len(order)), min(_LEAST_SPLIT, len(order) // 3)), len(order) - 1)
        is_pilot = np.zeros(len(order), np.bool_)
        is_pilot[order[: max(few, 1)]] = True
        pilot, others = rows.take(is_pilot[rows.cluster]), rows.take(~is_pilot[rows.cluster])
        if not pilot.answered.any() or not others.answered.any():
            return cls._with_parts(request, rows, _sum_rows(request, rows, None), None)
        pilot_table = _sum_rows(request, pilot, None)
        table = _sum_rows(request, others, pilot_table.thresholds)
        selection = cls._with_parts(request, others, table, pilot_table.coverage)
        return replace(selection, full_table=_sum_rows(request, rows, pilot_table.thresholds))

    @classmethod
    def _with_parts(
        cls, request: ThresholdRequest, rows: AnsweredRows, table: RiskTable, start_coverage: Floats | None
    ) -> Selection:
        parts = rows.by_group().values() if request.worst else ()
        group_tables = tuple(_sum_rows(request, part, table.thresholds) for part in parts)
        deferral_table = None
        if request.needless is not None:
            # Deferred confidences are at most the number just below the threshold. With the sign reversed they are at
            # least its negative, and a right answer becomes a loss of 1.
            just_below = -np.nextafter(table.thresholds[::-1], -np.inf)
            reversed_rows = replace(rows, confidence=-rows.confidence, loss=1.0 - rows.loss)
            deferral_table = _sum_rows(replace(request, risk_type=JOINT), reversed_rows, just_below)
        return cls(request, table, start_coverage, group_tables, deferral_table)

    def with_risk(self, risk: float) -> Selection:
        """Return the same tables with another risk limit."""
        return replace(self, request=replace(self.request, risk=risk))

    @property
    def start(self) -> int:
        """The step at which a fixed sequence begins; it does not depend on which answers are wrong."""
        request, coverage = self.request, self.start_coverage
        if coverage is None:
            return len(self.table)
        if request.risk_type == JOINT or not len(coverage):
            return 0  # the joint risk only falls towards the top
        reach = float(coverage[-1])
        wanted = request.start
        if wanted is None:
            # The coverage at which answers without an error, or as many clusters of the largest size, are just enough.
            # A larger coverage leaves a margin for errors, but must not leave only a few steps.
            units = self.table.largest if request.method in ("betting", "hoeffding-bentkus") else 1.0
            needed = request.least_answers * units / self.table.items
            wanted = min(max(_START, min(_ERROR_MARGIN * needed, (needed + reach) / 2.0)), 0.9 * reach)
        return min(int(np.searchsorted(coverage, min(wanted, reach) - 1e-9)), len(coverage) - 1)

    def p_values(self) -> Floats:
        """Return the p-value of every step; the largest over groups if one threshold must hold for all of them."""
        request = self.request
        tables = self.group_tables or (self.table,)
        return np.max(
            [table.p_values(request.method, request.risk, request.delta) for table in tables], axis=0
        )

    def select_step(self) -> tuple[int | None, Floats]:
        """Return the selected step, None if there is none, and all p-values."""
        request, table = self.request, self.table
        if request.method == "crc":
            mean_losses = _mean_losses(table)
            step = _search.conformal_risk_control(mean_losses, table.clusters, request.risk)
            return step, np.full(len(table), np.nan)
        if request.method == "sgr":
            errors, answered = np.rint(table.loss), np.rint(table.answered)
            step, _ = _search.selection_with_guaranteed_risk(errors, answered, request.risk, request.delta)
            return step, table.binomial(request.risk)
        p_values = self.p_values()
        if self.deferral_table is not None:
            return self._select_within_both_limits(p_values), p_values
        if request.search == "holm":
            return _search.holm_search(p_values, request.delta), p_values
        return _search.fixed_sequence(p_values, request.delta, self.start), p_values

    def _select_within_both_limits(self, p_values: Floats) -> int | None:
        """Return the last step at which the risk and the needless deferrals are both guaranteed.

        Holm's method takes the larger p-value at each step. The two fixed sequences have half of delta each: one begins
        at the top, the other, about deferrals, at the bottom. Steps that both have passed are guaranteed.
        """
        request = self.request
        assert self.deferral_table is not None
        assert request.needless is not None
        # Beginning at the last step, which defers least.
        deferral_p_values = self.deferral_table.p_values(request.method, request.needless, request.delta)
        if request.search == "holm":
            return _search.holm_search(np.maximum(p_values, deferral_p_values[::-1]), request.delta)
        last = _search.fixed_sequence(p_values, request.delta / 2.0, self.start)
        reached = _search.fixed_sequence(deferral_p_values, request.delta / 2.0)
        if last is None or reached is None:
            return None
        return last if last >= len(p_values) - 1 - reached else None


def _sum_rows(request: ThresholdRequest, rows: AnsweredRows, thresholds: Floats | None) -> RiskTable:
    betting = request.method == "betting"
    independent = not rows.clustered and not betting
    answered = rows.answered
    return RiskTable.of_rows(
        rows.confidence[answered],
        rows.loss[answered],
        cluster=None if independent else rows.cluster[answered],
        asked=np.array([float(len(rows))]) if independent else rows.asked,
        weight=None if rows.weight is None or independent else rows.weight[answered],
        # A search without p-values may use every confidence.
        most=None if request.search in ("binary-search", "none") else _MOST_THRESHOLDS,
        thresholds=thresholds,
        order=np.argsort(hash_names(rows.names, "order"), kind="stable") if betting else None,
        largest=request.largest_cluster_of(rows),
        risk_type=request.risk_type,
    )


def _mean_losses(table: RiskTable) -> Floats:
    """Return the mean loss per item at each step; with clusters, the mean over clusters of these means."""
    if table.independent:
        return table.loss / table.items
    sums, steps = table.cluster_sums, len(table)
    cluster_means = sums.sums[1] / table.asked[sums.unit]
    return np.cumsum(total_by(sums.key, cluster_means, steps + 1)[:steps]) / table.clusters


def reason_for_none(selection: Selection, rows: AnsweredRows) -> str:
    """Return why no step is selected: too few data even without errors, or observed risks that are too high."""
    request, table = selection.request, selection.full_table or selection.table
    if request.method == "crc":
        return "with one more wrong answer, the average risk would be above the limit at every threshold"
    by_cluster = request.method in ("betting", "hoeffding-bentkus") and not table.independent
    count = table.clusters if by_cluster else float(table.answered[-1])
    least = math.ceil(request.least_answers)
    if count < least:
        units = f"{rows.cluster_noun}s" if by_cluster else "answers"
        return f"even without a single error, {least:,} {units} are needed, and there are {count:,.0f}"
    if rows.constant_confidence:
        return "every answer has the same confidence, and the risk of all answers is not shown to be within the limit"
    if request.needless is not None:
        return "no threshold is shown to be within both limits"
    if np.isfinite(table.risk).any() and float(np.nanmin(table.risk)) > request.risk:
        return "the observed risk is above the limit at every threshold"
    return "there are too few data to show that the risk is within the limit at any threshold"


def alternative(selection: Selection) -> Alternative:
    """Return the smallest risk that could have been guaranteed, and the number of clusters that would be enough."""
    clusters = _clusters_needed(selection)
    low, high = selection.request.risk, 1.0 - 1e-9
    if selection.with_risk(high).select_step()[0] is None:
        return Alternative(risk=None, clusters=clusters)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if selection.with_risk(middle).select_step()[0] is None:
            low = middle
        else:
            high = middle
    # Rounded up to tenths of a percent, so that the printed risk itself could have been guaranteed.
    rounded = math.ceil(high * 1000.0 - 1e-6) / 1000.0
    return Alternative(risk=rounded if rounded < 1.0 else None, clusters=clusters)


def _clusters_needed(selection: Selection) -> int | None:
    """Return how many clusters like these would show the step that comes closest; None if no number would."""
    request, table = selection.request, selection.table
    if request.sure is None or request.delta >= 0.5 or request.needless is not None:
        return None
    margin = request.risk - table.risk
    # Without an observed error, the standard error is replaced by half of that at the risk limit.
    floor = np.sqrt(request.risk * (1.0 - request.risk) / np.maximum(table.count, 1.0)) / 2.0
    error = np.fmax(table.standard_error(), floor)
    with np.errstate(invalid="ignore"):
        score = np.where(table.answered > 0, margin / error, -np.inf)
    best = int(np.nanargmax(score))
    if not margin[best] > 0.0:
        return None
    # A fixed sequence has to pass its first test before any other.
    start = selection.start
    if request.search == "fixed-sequence" and start < len(margin) and margin[start] > 0.0:
        best = start
    clusters = (selection.full_table or table).clusters
    if request.method == "cluster-t":
        level = max(1.0 - 2.0 * request.delta, 1e-6)
        needed = clusters_needed(float(margin[best]), float(error[best]), clusters, level=level)
    else:
        # The logarithms of these p-values are proportional to the number of clusters.
        p_value = float(selection.p_values()[best])
        needed = clusters * math.log(request.delta) / math.log(p_value) if p_value < 1.0 else math.inf
    return max(math.ceil(needed), clusters + 1) if math.isfinite(needed) else None
