"""Judging intervals and sets: does coverage hold, where does it fail, and how certain is that?

`evaluate_intervals` and `evaluate_sets` take truths and predictions with one or several claims, with clusters and
groups, and give every metric of `abstain.metrics.intervals` and `abstain.metrics.sets` an interval over clusters.
Coverage also gets the exact binomial interval, and a verdict: covered, under-covered or undecided. All metrics are
measures over the same clusters, so that they share their weights. What the metrics are is known to
`abstain.metrics`; how intervals are made and a verdict is reached, to `abstain.inference`.

A quantile of width has the interval of Woodruff: the share of widths up to it has an interval, whose ends are read back
as quantiles. Reference: Woodruff, "Confidence Intervals for Medians and Other Position Measures", 1952.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, ResultWarning
from abstain.evaluation._coverage_results import (
    ClaimResult,
    CoverageResult,
    CoverageSettings,
    PitBin,
    QuantileResult,
    Stratum,
)
from abstain.evaluation._warnings import few_clusters
from abstain.inference import Estimate, Intervals, Trials, Weighed, coverage_verdict
from abstain.metrics.coverage import (
    Search,
    Strata,
    criterion_measure,
    groups_measure,
    hsic_measure,
    means_measure,
    quantiles_measure,
    size_borders,
    size_stratum,
    slab_measure,
    worst_slab,
)
from abstain.metrics.intervals import weighted_interval_losses, winkler_losses
from abstain.metrics.predictions import IntervalRows, QuantileRows, SetRows, named_groups, nominal
from abstain.metrics.quantiles import pinball_measure, pit_measure
from abstain.metrics.scales import DEPENDENCE, WIDTH_CRITERION, Scale, units_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain.inference import CoverageVerdict
    from abstain.metrics.coverage import WorstSlab
    from abstain.tally import Measure

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]
    Progress = Callable[[int], None]
    Groups = Mapping[str, ArrayLike]

__all__ = [
    "ClaimResult",
    "CoverageResult",
    "CoverageSettings",
    "PitBin",
    "QuantileResult",
    "Stratum",
    "evaluate_intervals",
    "evaluate_quantiles",
    "evaluate_sets",
]

TRUE_CLASS = "true class"
CRITERION = "coverage_width_criterion"
# How many parts a feature is cut into where the strata of width do not say.
FEATURE_BINS = 3
# Beyond this, one weighing of HSIC costs more than all other metrics together; its value stays exact.
MOST_HSIC_CLUSTERS = 20_000

AnyRows = TypeVar("AnyRows", IntervalRows, SetRows)
_QUANTILES = (0.5, 0.95)
_WIDTH_GRID = np.linspace(0.0, 1.0, 101)
_REASONS = {
    CRITERION: "all truths are alike, and it divides by their range",
    "hsic": "it needs at least two rows",
    "worst_slab_coverage": "no held-out row falls into the slab",
}


def evaluate_intervals(
    y_true: ArrayLike,
    intervals: ArrayLike,
    *,
    claim: float | Sequence[float],
    cluster: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    sample_weight: ArrayLike | None = None,
    bins: int = 3,
    eta: float = 30.0,
    margin: float = 0.0,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> CoverageResult:
    """Judge prediction intervals by one or several claims.

    Args:
        y_true: the truths.
        intervals: (rows, 2), or (rows, 2, claims) for several claims.
        claim: the coverage that the intervals claim, such as 0.9; one per set of bounds.
        cluster: ids of what belongs together; each row is a cluster of its own when left out.
        groups: labels by the name of the grouping, such as ``{"site": [...]}``, to see where coverage fails.
        features: numbers by the name of the feature: coverage by each, and the slab of worst coverage in all.
        sample_weight: multiplicities.
        bins: how many strata of width.
        eta: how hard the width criterion punishes a coverage away from the claim.
        margin: how far below its claim a coverage still counts as covered.
        interval: how the intervals around the metrics are made: "jackknife", "percentile", "bca" or "none".
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same intervals.
        level: the level of the intervals around the metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(200.0)
    >>> bounds = np.column_stack([truth - 1, truth + 1])
    >>> bounds[:60] += 5                                    # the first 60 miss
    >>> result = evaluate_intervals(truth, bounds, claim=0.9)
    >>> print(result.claims[0]["coverage"], result.claims[0].verdict)
    0.700 [0.633, 0.760] under-covered
    """
    bins = _validate.whole(bins, "bins", least=1)
    settings = CoverageSettings.checked(
        bins=bins, eta=eta, margin=margin, interval=interval, resamples=resamples, seed=seed, level=level
    )
    rows = IntervalRows.with_truth(y_true, intervals, sample_weight)
    job = _Judgement.prepare(rows, claim, cluster, groups or {}, features or {}, settings)
    rows = job.rows
    losses, positive = winkler_losses(rows, job.claims), Scale(low=0.0)
    for place, target in enumerate(job.claims.tolist()):
        covered, width = rows.covered[place], rows.width[place]
        names = ("coverage", "mean_width", "winkler_score")
        job.add(
            means_measure(names, (covered, width, losses[place]), rows),
            [job.share, positive, positive],
            place,
        )
        criterion = (rows.known_truth, covered, width)
        criterion_ = criterion_measure(CRITERION, *criterion, rows, eta=settings.eta, level=target)
        job.add(criterion_, WIDTH_CRITERION, place)
        strata = Strata.of_rows(width, covered, rows, bins=bins)
        by_width = strata.measure("size_stratified_coverage")
        job.add(by_width, job.share, place, job.chunks(strata, width))
        weighed = rows if job.clusters <= MOST_HSIC_CLUSTERS else rows.in_units(None)
        job.add(hsic_measure(width, covered, weighed), DEPENDENCE, place)
        job.add_quantiles(place)
        job.add_groups(place)
        job.add_features(place)
    if len(job.claims) > 1:
        loss = weighted_interval_losses(rows, job.claims, None)
        job.add(means_measure(("weighted_interval_score",), (loss,), rows), positive, None)
    return job.finish("intervals", progress)


def evaluate_sets(
    y_true: ArrayLike,
    sets: ArrayLike,
    *,
    claim: float | Sequence[float],
    cluster: ArrayLike | None = None,
    groups: Groups | None = None,
    features: Groups | None = None,
    labels: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
    bins: int | None = None,
    margin: float = 0.0,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> CoverageResult:
    """Judge prediction sets by one or several claims; coverage by true class is always among the groups.

    Args:
        y_true: class indices.
        sets: booleans (rows, classes), or (rows, classes, claims) for several claims.
        claim: the coverage that the sets claim, one per set of booleans.
        cluster: ids of what belongs together; each row is a cluster of its own when left out.
        groups: labels by the name of the grouping, to see where coverage fails.
        features: numbers by the name of the feature: coverage by each, and the slab of worst coverage in all.
        labels: the names of the classes, for the report.
        sample_weight: multiplicities.
        bins: None for one stratum per set size, else how many groups of neighbouring sizes.
        margin: how far below its claim a coverage still counts as covered.
        interval: how the intervals around the metrics are made: "jackknife", "percentile", "bca" or "none".
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same intervals.
        level: the level of the intervals around the metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = [0, 1] * 50
    >>> result = evaluate_sets(truth, [[True, True]] * 100, claim=0.9)
    >>> print(result.claims[0]["mean_width"], result.claims[0].verdict)
    2.000 [1.928, 2.000] covered
    """
    settings = CoverageSettings.checked(
        bins=bins, eta=0.0, margin=margin, interval=interval, resamples=resamples, seed=seed, level=level
    )
    rows = SetRows.with_truth(y_true, sets, sample_weight)
    borders = size_borders(rows.classes, bins)
    uppers = np.r_[borders[1:] - 1, rows.classes]
    names = _class_names(labels, rows.classes)
    by_class = np.array([names[place] for place in rows.known_truth], dtype=object)
    groupings = {TRUE_CLASS: by_class, **(groups or {})}
    job = _Judgement.prepare(rows, claim, cluster, groupings, features or {}, settings)
    rows = job.rows
    for place in range(len(job.claims)):
        covered, size = rows.covered[place], rows.width[place]
        metrics = ("coverage", "mean_width", "singleton_rate", "empty_rate")
        kinds = [job.share, Scale(0.0, float(rows.classes), units=job.share.units), job.share, job.share]
        job.add(means_measure(metrics, (covered, size, size == 1.0, size == 0.0), rows), kinds, place)
        stratum = size_stratum(size, borders)
        parts = [
            job.part(_in_words(low, high, ".0f"), float(low), float(high), stratum == number)
            for number, (low, high) in enumerate(zip(borders.tolist(), uppers.tolist(), strict=True))
        ]
        sizes = groups_measure(covered, stratum, len(borders), rows, name="size_stratified_coverage")
        job.add(sizes.only(*range(len(borders) + 1)), job.share, place, parts)
        job.add_quantiles(place)
        job.add_groups(place)
        job.add_features(place)
    return job.finish("sets", progress)


def evaluate_quantiles(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    *,
    probabilities: Sequence[float],
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> QuantileResult:
    """Judge predictive distributions given as quantiles: pinball losses and the histogram of ``F(y)``.

    Args:
        y_true: the truths.
        quantiles: (rows, probabilities), not descending within a row.
        probabilities: the probabilities of the columns, ascending.
        cluster: ids of what belongs together; each row is a cluster of its own when left out.
        sample_weight: multiplicities.
        interval: how the intervals around the metrics are made: "jackknife", "percentile", "bca" or "none".
        resamples: how many times the clusters are drawn, where a bootstrap interval is asked for.
        seed: the same seed gives the same intervals.
        level: the level of the intervals around the metrics.
        progress: called with the number of resamples done since the last call.

    >>> truth = np.arange(100.0)
    >>> result = evaluate_quantiles(truth, np.full((100, 1), 49.5), probabilities=[0.5])
    >>> print(result.pinball[0.5], result.pit[0].share)
    12.500 [11.141, 14.025] 0.500 [0.402, 0.598]
    """
    rows = QuantileRows.checked(y_true, quantiles, probabilities, sample_weight)
    n = len(rows)
    index, intervals = _intervals(n, cluster, rows.weight, interval, resamples, seed, level)
    rows = rows.in_units(intervals.unit_of_cluster[index], intervals.units)
    measures = [pinball_measure(rows), pit_measure(rows)]
    kinds = (Scale(low=0.0), Scale(0.0, 1.0, float(rows.masses.sum())))
    pinball, shares = (
        intervals.estimates(measure.points, values, [kind] * len(measure.names), n=n)
        for measure, values, kind in zip(measures, intervals.weigh(measures, progress), kinds, strict=True)
    )
    edges = rows.edges.tolist()
    pit = tuple(PitBin(*bounds) for bounds in zip(edges[:-1], edges[1:], shares, strict=True))
    return QuantileResult(dict(zip(rows.probabilities.tolist(), pinball, strict=True)), pit)


def _class_names(labels: Sequence[Any] | None, classes: int) -> list[Any]:
    names = list(range(classes)) if labels is None else list(labels)
    if len(names) != classes or len(set(names)) != classes:
        raise ArgumentError(
            f"labels must name each of the {classes} classes once, got {len(set(names))} names"
        )
    return names


def _intervals(
    n: int,
    cluster: ArrayLike | None,
    weight: Floats | None,
    interval: str,
    resamples: int | None,
    seed: int,
    level: float,
) -> tuple[Indices, Intervals]:
    """The cluster of every row, and how intervals are made over them; each row is its own where none are named."""
    names, index = (np.arange(n), np.arange(n)) if cluster is None else named_groups(cluster, "cluster", n)
    items = np.bincount(index, weights=weight, minlength=len(names)).astype(np.float64)
    settings = {"interval": interval, "resamples": resamples, "seed": seed, "level": level}
    return index, Intervals.of(np.asarray(names), items, **settings)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """Some of the rows under a label: a stratum or a group.

    Attributes:
        label: the group, or the range of widths in words.
        low: the smallest width; NaN for a group.
        high: the largest width; NaN for a group.
        count: how many rows, or how much weight.
        rows: which rows; None when rows of one width are spread over two strata.
    """

    label: Any
    low: float
    high: float
    count: float
    rows: Mask | None


@dataclass(frozen=True, eq=False, slots=True)
class _Entry:
    """A measure, what its metrics can be, the place of its claim (None for all), and the parts of its first columns.

    `heading` is empty for strata of width, and the name of the grouping for groups and features. `shares` is, for
    quantiles, the measure of the shares of rows up to each.
    """

    measure: Measure
    scales: list[Scale]
    place: int | None
    parts: list[_Part] = field(default_factory=list)
    heading: str = ""
    shares: Measure | None = None

    @property
    def measures(self) -> list[Measure]:
        """What must be weighed."""
        return [self.measure] if self.shares is None else [self.measure, self.shares]


@dataclass(eq=False, slots=True)
class _Judgement(Generic[AnyRows]):
    """One judgement under way: its measures are collected, weighed together, and put in their places."""

    rows: AnyRows
    claims: Floats
    index: Indices
    clustered: bool
    intervals: Intervals
    groups: Mapping[str, tuple[list[Any], Indices]]
    features: Mapping[str, Floats]
    settings: CoverageSettings
    entries: list[_Entry] = field(default_factory=list)
    slabs: dict[int, WorstSlab] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        rows: AnyRows,
        claim: float | Sequence[float],
        cluster: ArrayLike | None,
        groups: Mapping[str, ArrayLike],
        features: Mapping[str, ArrayLike],
        settings: CoverageSettings,
    ) -> _Judgement[AnyRows]:
        """Check claims, clusters and groups against the rows."""
        claims = nominal(claim, rows.levels, "claim")
        if len(set(claims.tolist())) != len(claims):
            raise ArgumentError("claim names a coverage twice; give each of the predictions its own")
        n = len(rows)
        kind = (settings.interval, settings.resamples, settings.seed, settings.level)
        index, intervals = _intervals(n, cluster, rows.weight, *kind)
        rows = rows.in_units(intervals.unit_of_cluster[index], intervals.units)
        named = {name: named_groups(labels, f"groups[{name!r}]", n) for name, labels in groups.items()}
        finite = {name: _validate.finite(values, f"features[{name!r}]") for name, values in features.items()}
        _validate.same_length(n, **{f"features[{name!r}]": values for name, values in finite.items()})
        return cls(rows, claims, index, cluster is not None, intervals, named, finite, settings)

    def add(
        self,
        measure: Measure,
        scales: Scale | list[Scale],
        place: int | None,
        parts: list[_Part] | None = None,
        heading: str = "",
    ) -> None:
        """Collect a measure; one scale serves all of its metrics."""
        several = scales if isinstance(scales, list) else [scales] * len(measure.names)
        if parts:  # the worst of several parts is worth as many rows as one of them
            several = [
                scale
                if place < len(parts)
                else replace(
                    scale, trials=scale.trials / len(parts), chosen=1 if scale.upper_only else len(parts)
                )
                for place, scale in enumerate(several)
            ]
        self.entries.append(_Entry(measure, several, place, parts or [], heading))

    @property
    def share(self) -> Scale:
        """What a share of the rows can be."""
        mass = self._mass(None)
        return Scale(0.0, 1.0, float(mass.sum()), units=units_of(mass))

    def _mass(self, rows: Mask | None) -> Floats:
        """How much weight each unit has, of some rows or of all."""
        index, weight = self.intervals.unit_of_cluster[self.index], self.rows.weight
        if rows is not None:
            index, weight = index[rows], None if weight is None else weight[rows]
        return np.bincount(index, weights=weight, minlength=self.intervals.units).astype(np.float64)

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return self.intervals.clusters

    def add_quantiles(self, place: int) -> None:
        """Collect the quantiles of width or size that are estimated."""
        width = self.rows.width[place]
        measure = quantiles_measure(width, self.rows, probabilities=_QUANTILES, name="width_quantile")
        below = means_measure(measure.names, [width <= value for value in measure.points], self.rows)
        scales = [Scale() for _ in measure.names]
        self.entries.append(_Entry(measure, scales, place, shares=below))

    def add_groups(self, place: int) -> None:
        """Collect coverage within every grouping."""
        for name, (labels, index) in self.groups.items():
            measure = groups_measure(
                self.rows.covered[place],
                index,
                len(labels),
                self.rows,
                name=f"worst_coverage[{name}]",
                gap=f"coverage_gap[{name}]",
                level=float(self.claims[place]),
            )
            parts = [self.part(label, math.nan, math.nan, index == k) for k, label in enumerate(labels)]
            # Last comes the mean distance from the claim, which chance alone makes positive.
            scales = [self.share] * (len(labels) + 1) + [replace(self.share, upper_only=True)]
            self.add(measure, scales, place, parts, name)

    def add_features(self, place: int) -> None:
        """Collect coverage by each feature, and the worst slab: found once on some clusters, weighed on the others."""
        covered = self.rows.covered[place]
        for name, key in self.features.items():
            strata = Strata.of_rows(key, covered, self.rows, bins=self.settings.bins or FEATURE_BINS)
            measure = strata.measure(f"feature_stratified_coverage[{name}]")
            self.add(measure, self.share, place, self.chunks(strata, key), f"feature {name}")
        if self.features:
            search = Search(share=0.1, directions=1000, held_out=0.75, seed=self.settings.seed)
            table = np.column_stack(list(self.features.values()))
            self.slabs[place], inside = worst_slab(
                table, covered, self.rows, search, cluster=self.index if self.clustered else None
            )
            self.add(slab_measure(covered, inside, self.rows), self.share, place)

    def part(self, label: Any, low: float, high: float, rows: Mask) -> _Part:
        """Return a part with whole rows."""
        weight = self.rows.weight
        count = float(np.count_nonzero(rows) if weight is None else weight[rows].sum())
        return _Part(label, low, high, count, rows)

    def chunks(self, strata: Strata, key: Floats) -> list[_Part]:
        """Return the chunks of a key; one that shares rows with its neighbour has no rows of its own."""
        low, high, size = strata.ends()
        parts = []
        ends = zip(low.tolist(), high.tolist(), size.tolist(), strict=True)
        for k, (first, last, count) in enumerate(ends):
            apart = not (k and high[k - 1] >= first) and not (k + 1 < len(low) and low[k + 1] <= last)
            rows = (key >= first) & (key <= last) if apart and count else None
            parts.append(_Part(_in_words(first, last, ".4g"), first, last, count, rows))
        return parts

    def finish(self, kind: str, progress: Progress | None) -> CoverageResult:
        """Weigh all measures with the same draws and put the estimates in their places."""
        # What was measured over other units than those that are weighed has no interval.
        measures = [
            each
            for entry in self.entries
            for each in entry.measures
            if each.units == self.intervals.units and entry.measure.units == self.intervals.units
        ]
        weighed = dict(zip(map(id, measures), self.intervals.weigh(measures, progress), strict=True))
        found = [self._estimates(entry, weighed) for entry in self.entries]
        claims = tuple(self._claim(place, found) for place in range(len(self.claims)))
        return CoverageResult(
            kind=kind,
            rows=len(self.rows),
            clusters=self.clusters,
            claims=claims,
            metrics=self._metrics(None, found),
            settings=self.settings,
            warnings=self._warnings(claims),
        )

    def _estimates(self, entry: _Entry, weighed: Mapping[int, Weighed]) -> list[Estimate]:
        """The metrics of an entry with their intervals."""
        measure, n, level = entry.measure, len(self.rows), self.settings.level
        values = weighed.get(id(measure))
        if values is None:
            found = [
                Estimate(value, level=level, n=n, clusters=self.clusters) for value in measure.points.tolist()
            ]
        elif entry.shares is not None and self.settings.interval == "jackknife":
            found = self._quantiles(entry, weighed[id(entry.shares)])
        else:
            found = self.intervals.estimates(measure.points, values, entry.scales, n=n)
            for place, part in enumerate(entry.parts):
                if part.rows is not None:
                    found[place] = self._of_part(entry, place, part, values)
        return [_explained(name, column) for name, column in zip(measure.names, found, strict=True)]

    def _of_part(self, entry: _Entry, place: int, part: _Part, values: Weighed) -> Estimate:
        """The metric of some of the rows, over the clusters that have any of them."""
        weight = None if self.rows.weight is None else self.rows.weight[part.rows]
        items = np.bincount(self.index[part.rows], weights=weight, minlength=self.clusters).astype(np.float64)
        one = Weighed(values.left_out[:, [place]], values.drawn[:, [place]])
        scale = replace(entry.scales[place], trials=part.count, units=units_of(self._mass(part.rows)))
        return self.intervals.estimates(
            entry.measure.points[[place]], one, [scale], n=len(self.rows), items=items
        )[0]

    def _quantiles(self, entry: _Entry, weighed: Weighed) -> list[Estimate]:
        """Woodruff's intervals: those of the shares of rows up to each quantile, read back as quantiles."""
        assert entry.shares is not None
        assert entry.place is not None
        width, n = self.rows.width[entry.place], len(self.rows)
        shares = self.intervals.estimates(entry.shares.points, weighed, [self.share] * len(_QUANTILES), n=n)
        together, found = self.rows.in_units(None), []
        for value, probability, share in zip(entry.measure.points.tolist(), _QUANTILES, shares, strict=True):
            made = replace(share, value=value, low=math.nan, high=math.nan, se=math.nan)
            if share.interval is not None:
                # Ties can lift the share at a quantile above its probability; the interval is moved back onto it.
                ends = np.clip(probability + np.array(share.interval) - share.value, 0.0, 1.0)
                low, high = quantiles_measure(width, together, probabilities=ends, name="end").points.tolist()
                # Beyond the largest there is, nothing is known.
                high = math.inf if ends[1] > 1.0 - 1.0 / self.share.trials else high
                made = replace(made, low=low, high=high, method=f"{share.method}, Woodruff's interval")
            found.append(made)
        return found

    def _metrics(self, place: int | None, found: list[list[Estimate]]) -> dict[str, Estimate]:
        return {
            name: estimate
            for entry, columns in zip(self.entries, found, strict=True)
            if entry.place == place
            for name, estimate in list(zip(entry.measure.names, columns, strict=True))[len(entry.parts) :]
        }

    def _claim(self, place: int, found: list[list[Estimate]]) -> ClaimResult:
        strata: tuple[Stratum, ...] = ()
        groups: dict[str, tuple[Stratum, ...]] = {}
        for entry, columns in zip(self.entries, found, strict=True):
            if entry.place != place or not entry.parts:
                continue
            judged = tuple(self._stratum(place, *pair) for pair in zip(entry.parts, columns, strict=False))
            if entry.heading:
                groups[entry.heading] = judged
            else:
                strata = judged
        together = self.rows.in_units(None)
        widths = quantiles_measure(self.rows.width[place], together, probabilities=_WIDTH_GRID, name="width")
        return ClaimResult(
            claim=float(self.claims[place]),
            metrics=self._metrics(place, found),
            verdict=self._verdict(place, None),
            strata=strata,
            groups=groups,
            width_quantiles=widths.points,
            slab=self.slabs.get(place),
        )

    def _stratum(self, place: int, part: _Part, estimate: Estimate) -> Stratum:
        verdict = None if part.rows is None or not part.count else self._verdict(place, part.rows)
        rows = round(part.count) if part.rows is None else int(np.count_nonzero(part.rows))
        count = int(part.count) if part.count.is_integer() else part.count
        return Stratum(part.label, part.low, part.high, count, replace(estimate, n=rows), verdict)

    def _verdict(self, place: int, rows: Mask | None) -> CoverageVerdict:
        covered, weight = self.rows.covered[place], self.rows.weight
        cluster = self.index if self.clustered else None
        if rows is not None:
            covered = covered[rows]
            weight = None if weight is None else weight[rows]
            cluster = None if cluster is None else cluster[rows]
        settings, claim = self.settings, float(self.claims[place])
        trials = Trials.of_rows(covered, weight, cluster, level=settings.level)
        return coverage_verdict(trials, claim, margin=settings.margin, level=settings.level)

    def _warnings(self, claims: tuple[ClaimResult, ...]) -> tuple[ResultWarning, ...]:
        warnings = few_clusters(self.clusters, "cluster", self.settings.interval)
        if "hsic" in claims[0] and self.settings.interval != "none" and self.clusters > MOST_HSIC_CLUSTERS:
            message = f"hsic has no interval: it is not weighed beyond {MOST_HSIC_CLUSTERS:,} clusters"
            warnings.append(ResultWarning("hsic_without_interval", message))
        for result, width in zip(claims, self.rows.width, strict=True):
            share = float(np.isinf(width).mean())
            if share:
                message = f"{100 * share:.3g}% of the intervals that claim {result.claim:g} are infinite"
                warnings.append(ResultWarning("infinite_intervals", f"{message}, and so are their means"))
        return tuple(warnings)


def _in_words(low: float, high: float, form: str) -> str:
    """Return a range such as ``1 to 3``, or ``1`` when both ends read alike, or ``none``."""
    if math.isnan(low):
        return "none"
    first, last = format(low, form), format(high, form)
    return first if first == last else f"{first} to {last}"


def _explained(name: str, estimate: Estimate) -> Estimate:
    """The estimate with the reason why it is undefined or infinite."""
    if not estimate.defined:
        return replace(estimate, reason=_REASONS.get(name, "no row falls here"))
    if math.isinf(estimate.value):
        return replace(estimate, reason="at least one interval is infinite")
    return estimate
