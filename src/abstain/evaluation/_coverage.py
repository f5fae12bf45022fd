"""The evaluation of intervals or sets: its statistics are collected, evaluated with the same weights, and reported.

A quantile of width has Woodruff's interval: the proportion of widths up to the quantile has an interval, and the
quantiles at its ends are the interval of the quantile. Reference: Woodruff, "Confidence Intervals for Medians and Other
Position Measures", 1952.

The interval of the worst coverage of several parts (strata, groups) goes from the lowest of their lower ends to the
lowest of their upper ends; the upper ends are computed to hold simultaneously.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from abstain import _validate
from abstain._units import counted_clusters
from abstain.errors import ArgumentError, ResultWarning
from abstain.evaluation._coverage_results import CoverageResult, CoverageSettings, NominalResult, Stratum
from abstain.evaluation._warnings import few_clusters
from abstain.inference import JACKKNIFE, NONE, Estimate, Intervals, Replicates, coverage_verdict
from abstain.inference.points import lowest_of_parts
from abstain.metrics.coverage import (
    Strata,
    groups_statistic,
    means_statistic,
    quantiles_statistic,
    slab_statistic,
    worst_slab,
)
from abstain.metrics.intervals import ONE_WIDTH
from abstain.metrics.predictions import IntervalRows, Rows, SetRows, named_groups, nominal_coverages
from abstain.metrics.scales import Scale, gap_scale, part_scale, proportion_scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from abstain._types import Floats, Indices, Mask, Progress
    from abstain.inference import CoverageVerdict
    from abstain.metrics.coverage import WorstSlab
    from abstain.resampling import Statistic


CRITERION = "coverage_width_criterion"
# Beyond this, one evaluation of HSIC costs more than all other metrics together; its value stays exact.
MOST_HSIC_CLUSTERS = 20_000

# With fewer clusters that have misses, the interval of an interval score covered too rarely (see simulations).
FEW_MISSES = 20
# With fewer clusters, set sizes that do not occur in the data may have the worst coverage (see simulations).
FEW_FOR_SIZES = 100
SIMULATED_MISSES = (
    "in simulations with 10 to 41 clusters, 95% intervals contained the true value 82 to 99 times in 100"
)

AnyRows = TypeVar("AnyRows", bound=Rows)
Levels = TypeVar("Levels", IntervalRows, SetRows)
# Number of parts of a feature if the number of strata of width is not set.
_FEATURE_BINS = 3
_QUANTILES = (0.5, 0.95)
_WIDTH_GRID = np.linspace(0.0, 1.0, 101)
_REASONS = {
    CRITERION: "all true values are equal, and the criterion divides by their range",
    "hsic": "it needs at least two rows",
    "worst_slab_coverage": "no held-out row falls into the slab",
}


def intervals_over(
    rows: AnyRows, cluster: ArrayLike | None, **settings: Any
) -> tuple[AnyRows, Indices, Intervals]:
    """Return the rows in the units of the intervals, the cluster of every row, and how intervals are computed.

    By default, each row is a cluster. The settings are the interval, the number of resamples, the seed and the level.
    """
    n = len(rows)
    names, index = (np.arange(n), np.arange(n)) if cluster is None else named_groups(cluster, "cluster", n)
    counted, index = counted_clusters(index, rows.weight)
    intervals = Intervals.of(np.asarray(names)[counted], index, rows.mass, **settings)
    return (
        rows.in_units(intervals.unit_of_cluster[index], intervals.units).with_row_weight(),
        index,
        intervals,
    )


@dataclass(frozen=True, eq=False, slots=True)
class RowPart:
    """Some of the rows under a label: a group, or a stratum with the range of its widths.

    `count` is the number of rows, or their weight. There are no `rows` if those of one width are in two strata.
    """

    label: Any
    low: float
    high: float
    count: float
    rows: Mask | None


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A statistic with the scales of its metrics.

    Attributes:
        statistic: the statistic; its first columns are the coverage of each part.
        scales: the range of each metric.
        nominal_index: the index of its nominal coverage; None for all of them.
        parts: the strata or groups.
        heading: the name of the grouping or feature; empty for strata of width.
        proportions: for quantiles, the proportion of rows up to each.
    """

    statistic: Statistic
    scales: list[Scale]
    nominal_index: int | None
    parts: list[RowPart] = field(default_factory=list)
    heading: str = ""
    proportions: Statistic | None = None

    @property
    def statistics(self) -> list[Statistic]:
        """The statistics that need replicates."""
        return [self.statistic] if self.proportions is None else [self.statistic, self.proportions]


@dataclass(eq=False, slots=True)
class CoverageEvaluation(Generic[Levels]):
    """One evaluation of intervals or sets: collect statistics with `add`, then call `finish`."""

    rows: Levels
    by_nominal: Floats
    index: Indices
    clustered: bool
    intervals: Intervals
    groups: Mapping[str, tuple[list[Any], Indices]]
    features: Mapping[str, Floats]
    settings: CoverageSettings
    entries: list[Entry] = field(default_factory=list)
    slabs: dict[int, WorstSlab] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        rows: Levels,
        nominal: float | Sequence[float],
        cluster: ArrayLike | None,
        groups: Mapping[str, ArrayLike],
        features: Mapping[str, ArrayLike],
        settings: CoverageSettings,
    ) -> CoverageEvaluation[Levels]:
        """Check nominal coverages, clusters and groups against the rows."""
        by_nominal = nominal_coverages(nominal, rows.levels, "nominal")
        if len(set(by_nominal.tolist())) != len(by_nominal):
            raise ArgumentError("nominal has a duplicate coverage; each must be different")
        n = len(rows)
        rows, index, intervals = intervals_over(
            rows,
            cluster,
            interval=settings.interval,
            resamples=settings.resamples,
            seed=settings.seed,
            level=settings.level,
        )
        named = {name: named_groups(labels, f"groups[{name!r}]", n) for name, labels in groups.items()}
        finite = {name: _validate.finite(values, f"features[{name!r}]") for name, values in features.items()}
        _validate.same_length(n, **{f"features[{name!r}]": values for name, values in finite.items()})
        return cls(rows, by_nominal, index, cluster is not None, intervals, named, finite, settings)

    def add(
        self,
        statistic: Statistic,
        scales: Scale | list[Scale],
        nominal_index: int | None,
        parts: list[RowPart] | None = None,
        heading: str = "",
    ) -> None:
        """Collect a statistic; a single scale is used for all of its metrics."""
        all_scales = scales if isinstance(scales, list) else [scales] * len(statistic.names)
        self.entries.append(Entry(statistic, all_scales, nominal_index, parts or [], heading))

    @property
    def _one_width(self) -> list[int]:
        """The indices of the nominal coverages whose intervals, at least two, all have the same width."""
        rows = self.rows
        if isinstance(rows, SetRows) or len(rows) < 2:
            return []
        return [
            nominal_index for nominal_index, width in enumerate(rows.ranked_width) if rows.have_one(width)
        ]

    @property
    def proportion(self) -> Scale:
        """The range of a proportion of the rows."""
        return proportion_scale(self.rows)

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self.intervals.clusters

    def add_quantiles(self, nominal_index: int) -> None:
        """Collect the quantiles of width or set size."""
        width = self.rows.width[nominal_index]
        statistic = quantiles_statistic(width, self.rows, probabilities=_QUANTILES, name="width_quantile")
        below = means_statistic(statistic.names, [width <= value for value in statistic.points], self.rows)
        scales = [Scale() for _ in statistic.names]
        self.entries.append(Entry(statistic, scales, nominal_index, proportions=below))

    def add_groups(self, nominal_index: int) -> None:
        """Collect coverage within every grouping."""
        for name, (labels, index) in self.groups.items():
            statistic = groups_statistic(
                self.rows.covered[nominal_index],
                index,
                len(labels),
                self.rows,
                name=f"worst_coverage[{name}]",
                gap=f"coverage_gap[{name}]",
                level=float(self.by_nominal[nominal_index]),
            )
            parts = [self.part(label, math.nan, math.nan, index == k) for k, label in enumerate(labels)]
            level = float(self.by_nominal[nominal_index])
            scales = [self.proportion] * (len(labels) + 1) + [gap_scale(self.rows, index, level)]
            self.add(statistic, scales, nominal_index, parts, name)

    def add_features(self, nominal_index: int) -> None:
        """Collect coverage by each feature, and the worst slab: found once on some clusters, evaluated on others."""
        covered = self.rows.covered[nominal_index]
        for name, key in self.features.items():
            bins = 1 if self.rows.have_one(key) else self.settings.bins or _FEATURE_BINS
            strata = Strata.of_rows(key, covered, self.rows, bins=bins)
            statistic = strata.statistic(f"feature_stratified_coverage[{name}]")
            self.add(statistic, self.proportion, nominal_index, self.chunks(strata, key), f"feature {name}")
        if self.features:
            table = np.column_stack(list(self.features.values()))
            cluster = self.index if self.clustered else None
            self.slabs[nominal_index], inside = worst_slab(
                table, covered, self.rows, seed=self.settings.seed, cluster=cluster
            )
            self.add(slab_statistic(covered, inside, self.rows), self.proportion, nominal_index)

    def part(self, label: Any, low: float, high: float, rows: Mask) -> RowPart:
        """Return a part with whole rows."""
        return RowPart(label, low, high, float(self.rows.weight[rows].sum()), rows)

    def chunks(self, strata: Strata, key: Floats) -> list[RowPart]:
        """Return the chunks of a key; a chunk has no `rows` if some of them are also in its neighbour."""
        low, high, _ = strata.ends()
        return [
            RowPart(describe_range(first, last, ".4g"), first, last, count, rows)
            for first, last, (count, rows) in zip(low.tolist(), high.tolist(), strata.parts(key), strict=True)
        ]

    def finish(self, kind: str, progress: Progress | None) -> CoverageResult:
        """Evaluate all statistics with the same weights and collect the estimates."""
        # A statistic over other units than those of the intervals has no interval.
        replicates = self.intervals.replicate(
            (
                statistic
                for entry in self.entries
                for statistic in entry.statistics
                if statistic.units == entry.statistic.units == self.intervals.units
            ),
            progress,
        )
        estimates = [self._estimates(entry, replicates) for entry in self.entries]
        by_nominal = tuple(
            self._nominal_result(nominal_index, estimates) for nominal_index in range(len(self.by_nominal))
        )
        return CoverageResult(
            kind=kind,
            rows=len(self.rows),
            clusters=self.clusters,
            by_nominal=by_nominal,
            metrics=self._metrics(None, estimates),
            settings=self.settings,
            warnings=self._warnings(by_nominal),
        )

    def _estimates(self, entry: Entry, replicates: Mapping[Statistic, Replicates]) -> list[Estimate]:
        """Return the metrics of an entry with their intervals."""
        statistic, n, level = entry.statistic, len(self.rows), self.settings.level
        values = replicates.get(statistic)
        if values is None:
            estimates = [
                Estimate(value, level=level, n=n, clusters=self.clusters)
                for value in statistic.points.tolist()
            ]
        elif entry.proportions is not None and self.settings.interval == JACKKNIFE:
            estimates = self._quantiles(entry, replicates[entry.proportions])
        else:
            estimates = self.intervals.estimates(statistic.points, values, entry.scales, n=n)
            if entry.parts:
                estimates[: len(entry.parts)] = self._of_parts(entry, values)
                estimates[len(entry.parts)] = self._worst(entry, values, estimates)
        if "hsic" in statistic.names and entry.nominal_index in self._one_width:
            return [replace(column, reason=ONE_WIDTH) for column in estimates]
        return [_explained(name, column) for name, column in zip(statistic.names, estimates, strict=True)]

    def _of_parts(self, entry: Entry, values: Replicates, *, together: int = 1) -> list[Estimate]:
        """Return the coverage of each part over the clusters that have rows of it.

        The upper ends hold simultaneously for `together` parts.
        """
        estimates = []
        for number, part in enumerate(entry.parts):
            one = Replicates(values.left_out[:, [number]], values.drawn[:, [number]])
            scale = replace(part_scale(self.rows, part.count, part.rows), chosen=together)
            point = entry.statistic.points[[number]]
            (estimate,) = self.intervals.estimates(point, one, [scale], n=len(self.rows))
            if part.rows is not None:
                estimate = replace(estimate, clusters=len(np.unique(self.index[part.rows])))
            estimates.append(estimate)
        return estimates

    def _worst(self, entry: Entry, values: Replicates, estimates: list[Estimate]) -> Estimate:
        """Return the worst coverage of the parts that have rows; its interval comes from their intervals."""
        worst = estimates[len(entry.parts)]
        if self.intervals.interval != JACKKNIFE or not worst.defined:
            return worst
        occurring = [number for number, part in enumerate(entry.parts) if part.count]
        upper = self._of_parts(entry, values, together=len(occurring))
        return lowest_of_parts(
            worst, [estimates[number] for number in occurring], [upper[number] for number in occurring]
        )

    def _quantiles(self, entry: Entry, replicates: Replicates) -> list[Estimate]:
        """Return quantiles with Woodruff's intervals, from the intervals of the proportions of rows up to each."""
        assert entry.proportions is not None
        assert entry.nominal_index is not None
        width, n = self.rows.width[entry.nominal_index], len(self.rows)
        proportions = self.intervals.estimates(
            entry.proportions.points, replicates, [self.proportion] * len(_QUANTILES), n=n
        )
        together, estimates = self.rows.in_units(None), []
        for value, probability, proportion in zip(
            entry.statistic.points.tolist(), _QUANTILES, proportions, strict=True
        ):
            estimate = replace(proportion, value=value, low=math.nan, high=math.nan, se=math.nan)
            if proportion.interval is not None:
                # With ties, the proportion at a quantile can exceed its probability; the interval is moved back.
                ends = np.clip(probability + np.array(proportion.interval) - proportion.value, 0.0, 1.0)
                # Nothing is known between two ranks either, so each end is taken at the rank beyond it.
                steps = max(self.proportion.trials - 1.0, 1.0)
                outer = np.clip(
                    [np.floor(ends[0] * steps) / steps, np.ceil(ends[1] * steps) / steps], 0.0, 1.0
                )
                low, high = quantiles_statistic(
                    width, together, probabilities=outer, name="end"
                ).points.tolist()
                # The quantile may lie beyond the largest observed width.
                beyond = proportion.value == 1.0 and proportion.low <= probability
                high = math.inf if beyond or ends[1] > 1.0 - 1.0 / self.proportion.trials else high
                estimate = replace(
                    estimate, low=low, high=high, method=f"{proportion.method}, Woodruff's interval"
                )
            estimates.append(estimate)
        return estimates

    def _metrics(self, nominal_index: int | None, estimates: list[list[Estimate]]) -> dict[str, Estimate]:
        return {
            name: estimate
            for entry, columns in zip(self.entries, estimates, strict=True)
            if entry.nominal_index == nominal_index
            for name, estimate in list(zip(entry.statistic.names, columns, strict=True))[len(entry.parts) :]
        }

    def _nominal_result(self, nominal_index: int, estimates: list[list[Estimate]]) -> NominalResult:
        strata: tuple[Stratum, ...] = ()
        groups: dict[str, tuple[Stratum, ...]] = {}
        for entry, columns in zip(self.entries, estimates, strict=True):
            if entry.nominal_index != nominal_index or not entry.parts:
                continue
            evaluated = tuple(
                self._stratum(nominal_index, *pair) for pair in zip(entry.parts, columns, strict=False)
            )
            if entry.heading:
                groups[entry.heading] = evaluated
            else:
                strata = evaluated
        together = self.rows.in_units(None)
        widths = quantiles_statistic(
            self.rows.width[nominal_index], together, probabilities=_WIDTH_GRID, name="width"
        )
        metrics = self._metrics(nominal_index, estimates)
        return NominalResult(
            nominal=float(self.by_nominal[nominal_index]),
            metrics=metrics,
            verdict=self._verdict(nominal_index, metrics["coverage"]),
            strata=strata,
            groups=groups,
            width_quantiles=widths.points,
            slab=self.slabs.get(nominal_index),
        )

    def _stratum(self, nominal_index: int, part: RowPart, estimate: Estimate) -> Stratum:
        rows = round(part.count) if part.rows is None else int(np.count_nonzero(part.rows))
        count = int(part.count) if part.count.is_integer() else part.count
        coverage = replace(estimate, n=rows)
        verdict = None if part.rows is None or not part.count else self._verdict(nominal_index, coverage)
        return Stratum(part.label, part.low, part.high, count, coverage, verdict)

    def _verdict(self, nominal_index: int, coverage: Estimate) -> CoverageVerdict:
        return coverage_verdict(coverage, float(self.by_nominal[nominal_index]), margin=self.settings.margin)

    def _warnings(self, by_nominal: tuple[NominalResult, ...]) -> tuple[ResultWarning, ...]:
        warnings = few_clusters(self.clusters, "cluster", self.settings.interval)
        defined = any("hsic" in each and each["hsic"].defined for each in by_nominal)
        if defined and self.settings.interval != NONE and self.clusters > MOST_HSIC_CLUSTERS:
            message = (
                f"hsic has no confidence interval: it is computed for at most {MOST_HSIC_CLUSTERS:,} clusters"
            )
            warnings.append(ResultWarning("hsic_without_interval", message))
        for result, width in zip(by_nominal, self.rows.width, strict=True):
            proportion = float(np.isinf(width).mean())
            if proportion:
                message = (
                    f"{100 * proportion:.3g}% of the intervals with nominal coverage {result.nominal:g} are infinite, "
                    "and so are their means"
                )
                warnings.append(ResultWarning("infinite_intervals", message))
        for nominal_index in self._one_width:
            nominal = by_nominal[nominal_index].nominal
            message = f"the intervals with nominal coverage {nominal:g} have {ONE_WIDTH}"
            warnings.append(ResultWarning("one_width", message))
        for result, covered in zip(by_nominal, self.rows.covered, strict=True):
            missed = len(np.unique(self.index[~covered]))
            score = result.metrics.get("winkler_score")
            if score is not None and score.interval and math.isfinite(score.value) and missed < FEW_MISSES:
                message = (
                    f"the intervals with nominal coverage {result.nominal:g} miss true values in only {missed} "
                    f"clusters; with fewer than {FEW_MISSES}, the confidence interval of winkler_score can be too low"
                )
                warnings.append(ResultWarning("few_misses", f"{message}: {SIMULATED_MISSES}"))
        for result in by_nominal if self.clusters < FEW_FOR_SIZES else ():
            if "empty_rate" not in result:  # no sets
                continue
            unseen = sum(not part.count for part in result.strata)
            if unseen and self.settings.interval != NONE:
                message = (
                    f"{unseen} of {len(result.strata)} strata of set size have no set with nominal coverage "
                    f"{result.nominal:g}; size_stratified_coverage is the worst of the other strata, and would be "
                    "lower if sets of these sizes occurred and had a lower coverage"
                )
                warnings.append(ResultWarning("unseen_sizes", message))
        return tuple(warnings)


def describe_range(low: float, high: float, form: str) -> str:
    """Return a range such as ``1 to 3``, or ``1`` if both ends have the same digits, or ``none``."""
    if math.isnan(low):
        return "none"
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"


def _explained(name: str, estimate: Estimate) -> Estimate:
    """Return the estimate with the reason why it is undefined or infinite."""
    if not estimate.defined:
        return replace(estimate, reason=_REASONS.get(name, "there are no such rows"))
    if math.isinf(estimate.value):
        return replace(estimate, reason="at least one interval is infinite")
    return estimate
