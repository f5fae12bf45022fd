"""Select the step of a risk table that answers most and whose risk is guaranteed.

If there is none, `reason_for_none` and `find_alternative` explain why, which risk could have been guaranteed, and how
many clusters would be enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from abstain.resampling import total_by
from abstain.thresholds import _search
from abstain.thresholds._policy import Alternative
from abstain.thresholds._risk_table import CLUSTER_TESTS, JOINT, RiskTable

if TYPE_CHECKING:
    from abstain._types import Floats
    from abstain.thresholds._answered_rows import AnsweredRows
    from abstain.thresholds._request import ThresholdRequest


# Coverage at which a fixed sequence begins. Above it, there are too few answers to show anything.
_START = 0.2
# Maximum number of thresholds. With more, the sequence is more likely to end early by chance.
_MOST_THRESHOLDS = 100
# A fixed sequence begins at this multiple of the coverage at which answers without an error would be enough.
_ERROR_MARGIN = 1.75
_HALVINGS = 20
_MOST_REPEATS = 1e6


@dataclass(frozen=True, eq=False, slots=True)
class Selection:
    """The risk tables of a request.

    Attributes:
        request: the request, with its method.
        table: the rows that are tested.
        group_tables: one per group, if one threshold must hold for every group.
        deferral_table: right answers that are deferred, least confident first, if those are limited.
    """

    request: ThresholdRequest
    table: RiskTable
    group_tables: tuple[RiskTable, ...] = ()
    deferral_table: RiskTable | None = None

    @classmethod
    def of_rows(cls, request: ThresholdRequest, rows: AnsweredRows) -> Selection:
        """Sum rows at the thresholds that are tested."""
        table = _sum_rows(request, rows, request.grid)
        parts = rows.by_group().values() if request.worst else ()
        group_tables = tuple(_sum_rows(request, part, table.thresholds) for part in parts)
        deferral_table = None
        if request.needless is not None:
            # Deferred confidences are at most the number just below the threshold. With the sign reversed they are at
            # least its negative, and a right answer becomes a loss of 1.
            just_below = -np.nextafter(table.thresholds[::-1], -np.inf)
            reversed_rows = replace(rows, confidence=-rows.confidence, loss=1.0 - rows.loss)
            deferral_table = _sum_rows(replace(request, risk_type=JOINT), reversed_rows, just_below)
        return cls(request, table, group_tables, deferral_table)

    def with_risk(self, risk: float) -> Selection:
        """Return the same tables with another risk limit."""
        return replace(self, request=replace(self.request, risk=risk))

    @property
    def start(self) -> int:
        """The step at which a fixed sequence begins; it does not depend on which answers are wrong."""
        request, coverage = self.request, self.table.coverage
        if request.risk_type == JOINT or not len(coverage):
            return 0  # the joint risk only falls towards the top
        reach = float(coverage[-1])
        wanted = request.start
        if wanted is None:
            # The coverage at which answers without an error, or as many clusters of the largest size, are just enough.
            # A larger coverage leaves a margin for errors, but must not leave only a few steps.
            units = self.table.largest if request.method in ("gaffke", "hoeffding-bentkus") else 1.0
            needed = request.least_answers * units / self.table.items
            wanted = min(max(_START, min(_ERROR_MARGIN * needed, (needed + reach) / 2.0)), 0.9 * reach)
        return min(int(np.searchsorted(coverage, min(wanted, reach) - 1e-9)), len(coverage) - 1)

    def p_values(self, steps: range | None = None, repeats: float = 1.0) -> Floats:
        """Return the p-values of `RiskTable.p_values`; the largest over groups if one threshold must hold for all."""
        request = self.request
        tables = self.group_tables or (self.table,)
        return np.max(
            [table.p_values(request.method, request.risk, steps, repeats) for table in tables], axis=0
        )

    def has_guarantee(self) -> bool:
        """Return whether a step can be selected; a fixed sequence only has to pass its first test."""
        if self.request.search == "fixed-sequence" and self.deferral_table is None and len(self.table):
            p_values = self.p_values(range(self.start, self.start + 1))
            return _search.fixed_sequence(p_values, self.request.delta) is not None
        return self.select_step()[0] is not None

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
        deferral_p_values = self.deferral_table.p_values(request.method, request.needless)
        if request.search == "holm":
            return _search.holm_search(np.maximum(p_values, deferral_p_values[::-1]), request.delta)
        last = _search.fixed_sequence(p_values, request.delta / 2.0, self.start)
        reached = _search.fixed_sequence(deferral_p_values, request.delta / 2.0)
        if last is None or reached is None:
            return None
        return last if last >= len(p_values) - 1 - reached else None


def _sum_rows(request: ThresholdRequest, rows: AnsweredRows, thresholds: Floats | None) -> RiskTable:
    independent = not rows.clustered and request.method not in CLUSTER_TESTS
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
    request, table = selection.request, selection.table
    if request.method == "crc":
        return "with one more wrong answer, the average risk would be above the limit at every threshold"
    by_cluster = request.method in ("gaffke", "hoeffding-bentkus") and not table.independent
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


def find_alternative(selection: Selection) -> Alternative:
    """Return the smallest risk that could have been guaranteed, and the number of clusters that would be enough."""
    alternative = Alternative(
        clusters=_clusters_needed(selection),
        available=selection.table.clusters,
        finite_sample_power=_finite_sample_power(selection),
    )
    low, high = selection.request.risk, 1.0 - 1e-9
    if not selection.with_risk(high).has_guarantee():
        return alternative
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if selection.with_risk(middle).has_guarantee():
            high = middle
        else:
            low = middle
    # Rounded up to tenths of a percent, so that the printed risk itself could have been guaranteed.
    rounded = math.ceil(high * 1000.0 - 1e-6) / 1000.0
    return msgspec.structs.replace(alternative, risk=rounded if rounded < 1.0 else None)


def _clusters_needed(selection: Selection) -> int | None:
    """Return how many clusters like these would show the step that comes closest; None if no number would."""
    request, table = selection.request, selection.table
    if request.sure is None or request.delta >= 0.5 or request.needless is not None:
        return None
    margin = np.where(table.answered > 0, request.risk - table.risk, -np.inf)
    p_values = np.where(margin > 0.0, selection.p_values(), np.inf)
    # A fixed sequence has to pass its first test before any other.
    step = selection.start
    if request.search == "holm" or not margin[step] > 0.0:
        step = int(np.argmin(p_values))
    if not margin[step] > 0.0:
        return None
    if request.method in CLUSTER_TESTS:
        repeats = _repeats_needed(selection, step)
    else:
        # The logarithms of the other p-values are proportional to the number of clusters.
        p_value = float(p_values[step])
        repeats = math.log(request.delta) / math.log(p_value) if p_value < 1.0 else math.inf
    return max(math.ceil(repeats * table.clusters), table.clusters + 1) if math.isfinite(repeats) else None


def _repeats_needed(selection: Selection, step: int) -> float:
    """Return how many times as many clusters like these would pass the test at a step; infinite if no number would."""

    def is_enough(repeats: float) -> bool:
        return bool(selection.p_values(range(step, step + 1), repeats)[0] <= selection.request.delta)

    low, high = 1.0, 2.0
    while not is_enough(high):
        low, high = high, 2.0 * high
        if high > _MOST_REPEATS:
            return math.inf
    while high - low > 1e-3 * low:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _finite_sample_power(selection: Selection) -> float | None:
    """Return the largest probability with which a finite-sample test can give this guarantee; None without clusters.

    Replace a proportion q of the clusters by wholly wrong ones of the largest size m, so that the risk r becomes the
    limit a: ``q / (1 - q) = (a - r) k / (1 - a)``, with k the mean number of answers per cluster divided by m. With
    probability ``(1 - q) ** G``, none of G clusters is a replaced one. The data then look as before, but a test may
    give the guarantee with a probability of at most delta, so before it was at most ``delta * (1 - q) ** -G``. Here r
    and k are those of the step at which this is largest.
    """
    request, table = selection.request, selection.table
    if request.sure is None or table.independent or request.needless is not None:
        return None
    gains = (request.risk * table.count - table.loss) / (
        table.clusters * table.largest * (1.0 - request.risk)
    )
    return min(request.delta * (1.0 + max(float(gains.max()), 0.0)) ** table.clusters, 1.0)
