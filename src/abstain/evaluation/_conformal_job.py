"""One judgement of intervals or sets under way: plans are collected, weighed together, and put in their places.

Every figure is a plan over the same clusters, so that all of them share their draws. Which figures there are is
known to `abstain.evaluation.conformal`; this module knows how plans become results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.evaluation._cautions import FEW_CLUSTERS
from abstain.evaluation._conformal_results import ConformalEvaluation, ConformalSettings, LevelResult, Stratum
from abstain.evaluation._results import Caution
from abstain.inference import Draws, Trials, coverage_verdict, estimates, points, replicates
from abstain.metrics._coverage import Frame, QuantilePlan, StrataPlan, groups_plan
from abstain.metrics._predictions import named_groups, nominal
from abstain.metrics._slab import Search, slab_plan, worst_slab

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from abstain.inference import CoverageVerdict, Estimate
    from abstain.metrics._plan import Plan
    from abstain.metrics._predictions import IntervalRows, SetRows
    from abstain.metrics._slab import WorstSlab

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]

# How many parts a feature is cut into where the strata of width do not say.
FEATURE_BINS = 3
# Beyond this, one resample of HSIC costs more than all other figures together; its value stays exact.
MOST_HSIC_CLUSTERS = 20_000

_WIDTH_GRID = np.linspace(0.0, 1.0, 101)
_REASONS = {
    "coverage_width_criterion": "all truths are alike, and it divides by their range",
    "hsic": "it needs at least two rows",
    "worst_slab_coverage": "no held-out row falls into the slab",
}


@dataclass(frozen=True, eq=False, slots=True)
class Part:
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
class Entry:
    """A plan, the level that it belongs to (None: all levels), and the parts that its first columns stand for.

    `heading` is empty for strata of width, and the name of the grouping for groups and features.
    """

    plan: Plan
    place: int | None
    parts: list[Part] = field(default_factory=list)
    heading: str = ""


@dataclass(eq=False, slots=True)
class Job:
    """The rows, the entries collected so far, and what was asked for."""

    rows: IntervalRows | SetRows
    levels: Floats
    frame: Frame
    cluster: Indices | None
    clusters: int
    groups: Mapping[str, tuple[list[Any], Indices]]
    features: Mapping[str, Floats]
    settings: ConformalSettings
    entries: list[Entry] = field(default_factory=list)
    slabs: dict[int, WorstSlab] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        rows: IntervalRows | SetRows,
        level: float | Sequence[float],
        clusters: ArrayLike | None,
        groups: Mapping[str, ArrayLike],
        features: Mapping[str, ArrayLike],
        settings: ConformalSettings,
    ) -> Job:
        """Check levels, clusters and groups against the rows."""
        levels = nominal(level, len(rows.covered))
        if len(set(levels.tolist())) != len(levels):
            raise ArgumentError("level names a level twice; give each level of the predictions its own")
        n = rows.covered.shape[1]
        cluster = None if clusters is None else named_groups(clusters, "clusters", n)[1]
        count = n if cluster is None else int(cluster.max()) + 1
        # Without resamples there is nothing to weigh, and the figures need no sums by cluster.
        weighed = np.arange(n) if cluster is None else cluster
        frame = Frame(n, rows.weight, weighed if settings.resamples else None)
        named = {name: named_groups(labels, f"groups[{name!r}]", n) for name, labels in groups.items()}
        finite = {name: _validate.finite(values, f"features[{name!r}]") for name, values in features.items()}
        _validate.same_length(n, **{f"features[{name!r}]": values for name, values in finite.items()})
        return cls(rows, levels, frame, cluster, count, named, finite, settings)

    def add(self, plan: Plan, place: int | None, parts: list[Part] | None = None, heading: str = "") -> None:
        """Collect a plan."""
        self.entries.append(Entry(plan, place, parts or [], heading))

    def add_groups(self, place: int) -> None:
        """Collect coverage within every grouping."""
        for name, (labels, index) in self.groups.items():
            covered, target = self.rows.covered[place], float(self.levels[place])
            plan = groups_plan(
                covered, index, len(labels), self.frame, name=f"worst_coverage[{name}]", level=target
            )
            parts = [self.part(label, math.nan, math.nan, index == k) for k, label in enumerate(labels)]
            self.add(plan, place, parts, name)

    def add_features(self, place: int) -> None:
        """Collect coverage by each feature, and the worst slab: found once on some clusters, weighed on the others."""
        covered = self.rows.covered[place]
        for name, key in self.features.items():
            figure = f"feature_stratified_coverage[{name}]"
            plan = StrataPlan.build(
                key, covered, self.frame, bins=self.settings.bins or FEATURE_BINS, name=figure
            )
            self.add(plan, place, self.key_parts(plan, key), f"feature {name}")
        if self.features:
            search = Search(share=0.1, directions=1000, held_out=0.75, seed=self.settings.seed)
            frame = Frame(len(covered), self.rows.weight, self.cluster)
            table = np.column_stack(list(self.features.values()))
            self.slabs[place], inside = worst_slab(table, covered, frame, search)
            self.add(slab_plan(covered, inside, self.frame), place)

    def part(self, label: Any, low: float, high: float, rows: Mask) -> Part:
        """Return a part with whole rows."""
        weight = self.rows.weight
        count = float(np.count_nonzero(rows) if weight is None else weight[rows].sum())
        return Part(label, low, high, count, rows)

    def key_parts(self, plan: StrataPlan, key: Floats) -> list[Part]:
        """Return the chunks of a key; one that shares rows with its neighbour has no rows of its own."""
        low, high, size = plan.ends()
        parts = []
        for k, (first, last, count) in enumerate(
            zip(low.tolist(), high.tolist(), size.tolist(), strict=True)
        ):
            apart = not (k and high[k - 1] >= first) and not (k + 1 < len(low) and low[k + 1] <= last)
            rows = (key >= first) & (key <= last) if apart and count else None
            parts.append(Part(in_words(first, last, ".4g"), first, last, count, rows))
        return parts

    def finish(self, kind: str, progress: Callable[[int], None] | None) -> ConformalEvaluation:
        """Weigh all plans with the same draws and put the estimates in their places."""
        settings = self.settings
        draws = Draws(self.clusters, settings.resamples, settings.seed)
        weighed = [
            entry.plan for entry in self.entries if draws.resamples and entry.plan.clusters == draws.clusters
        ]
        replicated = dict(zip(map(id, weighed), replicates(weighed, draws, progress), strict=True))
        found = [self._estimates(entry.plan, replicated.get(id(entry.plan)), draws) for entry in self.entries]
        levels = tuple(self._level(place, found) for place in range(len(self.levels)))
        together = self._figures(None, found)
        rows = self.rows.covered.shape[1]
        return ConformalEvaluation(
            kind, rows, self.clusters, levels, together, settings, self._cautions(levels)
        )

    def _estimates(self, plan: Plan, replicated: Floats | None, draws: Draws) -> list[Estimate]:
        if replicated is None:
            draws = Draws(draws.clusters, 0, draws.seed)
            replicated = np.empty((0, len(plan.names)))
        n, level = self.rows.covered.shape[1], self.settings.confidence_level
        columns = estimates(points(plan), replicated, draws, n=n, level=level)
        return [_explained(name, column) for name, column in zip(plan.names, columns, strict=True)]

    def _figures(self, place: int | None, found: list[list[Estimate]]) -> dict[str, Estimate]:
        figures = {}
        for entry, columns in zip(self.entries, found, strict=True):
            if entry.place == place:
                named = list(zip(entry.plan.names, columns, strict=True))[len(entry.parts) :]
                for name, estimate in named:
                    if name != "coverage_gap":
                        figures[name] = estimate
                    elif entry.heading:
                        figures[f"coverage_gap[{entry.heading}]"] = estimate
        return figures

    def _level(self, place: int, found: list[list[Estimate]]) -> LevelResult:
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
        everyone = Frame(self.frame.rows, self.frame.weight)
        widths = QuantilePlan.build(self.rows.width[place], everyone, probabilities=_WIDTH_GRID, name="width")
        return LevelResult(
            level=float(self.levels[place]),
            figures=self._figures(place, found),
            verdict=self._verdict(place, None),
            strata=strata,
            groups=groups,
            width_quantiles=points(widths),
            slab=self.slabs.get(place),
        )

    def _stratum(self, place: int, part: Part, estimate: Estimate) -> Stratum:
        verdict = None if part.rows is None or not part.count else self._verdict(place, part.rows)
        rows = round(part.count) if part.rows is None else int(np.count_nonzero(part.rows))
        count = int(part.count) if part.count.is_integer() else part.count
        return Stratum(part.label, part.low, part.high, count, replace(estimate, n=rows), verdict)

    def _verdict(self, place: int, rows: Mask | None) -> CoverageVerdict:
        covered, weight, cluster = self.rows.covered[place], self.rows.weight, self.cluster
        if rows is not None:
            covered = covered[rows]
            weight = None if weight is None else weight[rows]
            cluster = None if cluster is None else cluster[rows]
        settings, target = self.settings, float(self.levels[place])
        trials = Trials.of_rows(covered, weight, cluster, level=settings.confidence_level)
        return coverage_verdict(trials, target, margin=settings.margin, level=settings.confidence_level)

    def _cautions(self, levels: tuple[LevelResult, ...]) -> tuple[Caution, ...]:
        cautions = []
        if self.clusters < FEW_CLUSTERS:
            rest = f"intervals rest on {self.clusters} cluster{'s' * (self.clusters != 1)}"
            message = f"{rest}; with fewer than {FEW_CLUSTERS} those of the bootstrap are too narrow"
            cautions.append(Caution("few_clusters", message))
        if "hsic" in levels[0] and self.settings.resamples and self.clusters > MOST_HSIC_CLUSTERS:
            message = f"hsic has no interval: it is not resampled beyond {MOST_HSIC_CLUSTERS:,} clusters"
            cautions.append(Caution("hsic_without_interval", message))
        for result, width in zip(levels, self.rows.width, strict=True):
            share = float(np.isinf(width).mean())
            if share:
                message = f"{100 * share:.3g}% of the intervals at level {result.level:g} are infinite"
                cautions.append(Caution("infinite_intervals", f"{message}, and so are their means"))
        return tuple(cautions)


def in_words(low: float, high: float, form: str) -> str:
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
