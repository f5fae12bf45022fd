"""Confidence intervals over clusters: the same clusters, method and level for all metrics of an evaluation.

The jackknife over clusters is the default. If resamples are requested, the percentile interval of the bootstrap is
computed in addition, or replaces it. All statistics of an evaluation have the same weights.

With ``g`` groups of clusters left out in turn, of ``m_j`` out of ``n`` clusters (one each, up to 1,000), ``h_j
= n/m_j``, the value ``t`` and the values ``t_j`` without group ``j``::

    pseudo_j = h_j*t - (h_j - 1)*t_j          centre = g*t - sum_j (1 - m_j/n) * t_j
    se^2 = (1/g) * sum_j (pseudo_j - centre)^2 / (h_j - 1)

which for single clusters is ``(n-1)/n * sum (t_j - mean)^2``. Reference: Busing, Meijer and van der Leeden,
"Delete-m Jackknife for Unequal m", Statistics and Computing, 1999. The quantile ``q`` is that of the t distribution.
Its degrees of freedom are the effective number of groups minus one, ``(sum s_j)^2 / sum s_j^2 - 1`` with ``s_j`` items
in group ``j``: the number of groups minus one if all have the same size, and less if a few groups have most items. Only
groups with rows of the metric count.

A difference has the interval ``t +- q * se``, which ends at the largest possible difference. Its p-value comes from the
same statistic: the interval excludes 0 exactly if the p-value is below ``1 - level``. A metric has its interval on its
own scale, see `abstain.metrics.Scale`: that of a bounded metric is Wilson's, which takes into account that the spread
depends on the value, and does not shrink to zero width if few rows are wrong.

If at most one cluster differs from the others, the data do not show how much the rows of a cluster depend on each
other. Then a cluster counts as one row. If at least four clusters differ, their spread shows the dependence.

If a difference is the same without each group, its spread is unknown. If a proportion ``u`` of all clusters differed,
``n`` clusters would all agree with probability ``(1-u)^n``. So ``u`` is at most ``1 - ((1-level)/2)^(1/n)``, and the
interval is an exact bound. A difference is at most ``R`` in size, so that its interval is
``[t - u*(R+t), t + u*(R-t)]``: ``-u*R`` to ``u*R`` if two systems do not differ at all. Its p-value comes from the same
interval.

Against a margin, a few clusters that differ are weak evidence about the others. So the squared standard error grows by
``2 * (y/g)^2`` with ``y`` the largest distance of a pseudo-value from the centre: two more clusters like the one that
differs most. For independent pairs of right and wrong answers this is ``2/n^2``. Reference: Agresti and Min, "Simple
improved confidence intervals for comparing matched proportions", Statistics in Medicine, 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abstain import _validate
from abstain.errors import AggregationError
from abstain.inference._distributions import beta_quantile, normal_quantile, t_quantile
from abstain.inference._estimate import (
    BCA,
    INTERVALS,
    JACKKNIFE,
    NONE,
    DifferenceRange,
    Estimate,
    replicates,
    with_draws,
)
from abstain.inference._weights import BootstrapWeights, JackknifeWeights, degrees_of_freedom
from abstain.resampling import total_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from abstain._types import Floats, Indices, Progress
    from abstain.metrics import Columns, MetricSpecification
    from abstain.metrics.scales import Scale
    from abstain.resampling import Statistic


# The default number of resamples of the bootstrap.
USUAL_RESAMPLES = 10_000


def with_companions(metrics: Sequence[MetricSpecification]) -> list[MetricSpecification]:
    """Return metrics, and after them the debiased forms of those that have one, for their intervals."""
    return [*metrics, *(metric.debiased for metric in metrics if metric.debiased is not None)]


class Replicates(NamedTuple):
    """The values of a statistic without each group of clusters, and in each resample: (vectors, metrics)."""

    left_out: Floats
    drawn: Floats

    def column(self, number: int) -> Replicates:
        """Return one metric."""
        return Replicates(self.left_out[:, number], self.drawn[:, number])

    def less(self, other: Replicates) -> Replicates:
        """Return the differences to other values with the same weights."""
        return Replicates(subtract(self.left_out, other.left_out), subtract(self.drawn, other.drawn))

    def without_rounding(self, largest: float) -> Replicates:
        """Return the same differences, but 0 for those within rounding of the largest possible value."""
        return Replicates(*(np.where(np.abs(each) <= _EPSILON * largest, 0.0, each) for each in self))


def subtract(value: float | Floats, other: float | Floats) -> Floats:
    """Return the difference of two metric values; it is 0 if they are equal within rounding.

    Sums in a different order differ in the last digits, and such a difference must not decide a comparison.

    >>> float(subtract(0.1 + 0.2, 0.3)), float(subtract(0.5, 0.25))
    (0.0, 0.25)
    """
    with np.errstate(invalid="ignore"):  # the difference of two infinite values is NaN
        difference = np.subtract(value, other)
        rounding = _NOISE * np.maximum(np.abs(value), np.abs(other))
        return np.where(np.isfinite(difference) & (np.abs(difference) <= rounding), 0.0, difference)


class Within(NamedTuple):
    """The clusters that have some of the items; see `JackknifeWeights.within`."""

    clusters: Indices
    items: Floats
    members: Floats | None = None

    @classmethod
    def of(cls, cluster_of_row: Indices, weight: Floats) -> Within:
        """Return the clusters of some rows, and how many items each has."""
        clusters, index = np.unique(cluster_of_row, return_inverse=True)
        return cls(clusters, total_by(index, weight, len(clusters)))


def resamples_wanted(resamples: int | None, interval: str, *, of_a_run: bool = False) -> int:
    """Return the number of resamples. Default: 10,000 for a bootstrap interval and for run files, otherwise 0.

    The results JSON of a run file always has a bootstrap block.

    >>> resamples_wanted(None, "jackknife"), resamples_wanted(None, "percentile"), resamples_wanted(500, "bca")
    (0, 10000, 500)
    """
    bootstrapped = _validate.choice(interval, "interval", INTERVALS) not in (JACKKNIFE, NONE)
    if resamples is None:
        return USUAL_RESAMPLES if bootstrapped or (of_a_run and interval != NONE) else 0
    return _validate.whole(resamples, "resamples", least=2 if bootstrapped else 0)


@dataclass(frozen=True, eq=False, slots=True)
class Intervals:
    """The weights over clusters, the method and the level of intervals; make one with `of`."""

    jackknife_weights: JackknifeWeights
    bootstrap_weights: BootstrapWeights
    interval: str
    level: float

    @classmethod
    def of(
        cls,
        cluster_ids: NDArray[Any],
        cluster_of_row: Indices | None = None,
        weight: Floats | None = None,
        *,
        interval: str = JACKKNIFE,
        resamples: int | None = None,
        seed: int = 42,
        level: float = 0.95,
        members: Floats | None = None,
    ) -> Intervals:
        """Prepare the weights over some clusters.

        Args:
            cluster_ids: the names of the clusters.
            cluster_of_row: the index of each row's cluster among them. Default: all clusters have the same size.
            weight: multiplicities of the rows.
            interval: "jackknife", "percentile", "bca" or "none".
            resamples: number of resamples of the clusters; see `resamples_wanted`.
            seed: the seed of the resamples.
            level: confidence level of the intervals.
            members: if an engine put clusters into groups, the number of clusters of each group.
        """
        bootstrap_weights = BootstrapWeights(len(cluster_ids), resamples_wanted(resamples, interval), seed)
        if members is not None and bootstrap_weights.resamples:
            raise AggregationError(
                "the table",
                f"the bootstrap draws single clusters, and {int(members.sum()):,} of them were put into groups",
                way_out="use the jackknife (interval, --interval) without resamples, or ",
            )
        # Percentile ends need no jackknife, and without intervals there are no weights at all.
        by_group = not bootstrap_weights.resamples
        if interval not in (JACKKNIFE, BCA):
            jackknife_weights = JackknifeWeights.nothing(cluster_ids, members, by_group=by_group)
        else:
            items = None if cluster_of_row is None else total_by(cluster_of_row, weight, len(cluster_ids))
            jackknife_weights = JackknifeWeights.of(cluster_ids, items, by_group=by_group, members=members)
        return cls(jackknife_weights, bootstrap_weights, interval, _validate.level(level))

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self.jackknife_weights.clusters

    @property
    def units(self) -> int:
        """Number of units that a statistic must have."""
        return self.jackknife_weights.units

    @property
    def unit_of_cluster(self) -> Indices:
        """The unit of each cluster."""
        return self.jackknife_weights.unit_of_cluster

    def followed_by(self, other: Intervals) -> Intervals:
        """Return how intervals are computed over the clusters of two independent samples, without resamples."""
        weights = self.jackknife_weights.followed_by(other.jackknife_weights)
        return replace(
            self,
            jackknife_weights=weights,
            bootstrap_weights=BootstrapWeights(weights.clusters, 0, self.bootstrap_weights.seed),
        )

    def replicate(
        self, statistics: Iterable[Statistic], progress: Progress | None = None
    ) -> dict[Statistic, Replicates]:
        """Return the values of every statistic without each group of clusters, and in each resample.

        All statistics are evaluated with the same weights; `progress` is called with the resamples done.
        """
        distinct = list(dict.fromkeys(statistics))
        left_out = replicates(distinct, self.jackknife_weights)
        drawn = replicates(distinct, self.bootstrap_weights, progress)
        return {each: Replicates(*values) for each, *values in zip(distinct, left_out, drawn, strict=True)}

    def estimates(
        self,
        values: Floats,
        replicates: Replicates,
        scales: Sequence[Scale],
        *,
        n: int,
        within: Within | None = None,
    ) -> list[Estimate]:
        """Return metrics with their intervals.

        Args:
            values: the metrics.
            replicates: the values of their statistic with each weight vector.
            scales: the range of each metric.
            n: number of evaluated items.
            within: the clusters that have some of the items. Default: all clusters.
        """
        weights, left_out = self.jackknife_weights, replicates.left_out
        kept: Any = slice(None)
        if within is not None and weights.vectors:
            weights, kept = weights.within(*within)
            left_out = left_out[kept]
        scales = [
            scale
            if scale.mass is None
            else replace(scale, mass=self.jackknife_weights.by_group_of_clusters(scale.mass)[kept])
            for scale in scales
        ]
        if self.interval == JACKKNIFE:
            made = jackknife_estimates(values, left_out, weights, scales, n=n, level=self.level)
        else:
            made = [
                Estimate(value, level=self.level, n=n, clusters=weights.clusters) for value in values.tolist()
            ]
        return [
            with_draws(
                each, replicates.drawn[:, column], self.bootstrap_weights, self.interval, left_out[:, column]
            )
            for column, each in enumerate(made)
        ]

    def metrics(
        self,
        columns: Columns,
        metrics: Sequence[MetricSpecification],
        statistic: Statistic,
        replicates: Replicates,
        *,
        n: int,
        within: Within | None = None,
    ) -> list[Estimate]:
        """Return the metrics of a statistic of `with_companions`; the other arguments are those of `estimates`."""
        count, scales = len(metrics), [metric.scale(columns) for metric in with_companions(metrics)]
        estimates = self.estimates(statistic.points, replicates, scales, n=n, within=within)
        companions = iter(estimates[count:])
        return [
            around_debiased(each, next(companions), scale)
            if metric.debiased and self.interval == JACKKNIFE
            else each
            for metric, each, scale in zip(metrics, estimates, scales, strict=False)
        ]

    def difference(
        self, value: float, replicates: Replicates, scales: Sequence[Scale] = (), *, n: int, gap: bool = False
    ) -> Estimate:
        """Return a difference with its interval.

        Args:
            value: the difference over all clusters.
            replicates: the differences with each weight vector.
            scales: the scale of the metric on both sides. Default: the difference can have any size.
            n: number of evaluated items.
            gap: True for a gap between a group and all other rows. A gap that no cluster changes has no bound, because
                the group may have items in few of the clusters.
        """
        limits = difference_range(scales)
        if gap and limits is not None:
            limits = limits._replace(largest=math.nan)
        if limits is not None and math.isfinite(limits.most):
            # Values near 0 that are themselves differences have rounding errors of the size of their terms.
            replicates = replicates.without_rounding(limits.most)
            value = 0.0 if abs(value) <= _EPSILON * limits.most else value
        refused = next((scale.refused for scale in scales if scale.refused), "")
        if refused and self.interval == JACKKNIFE:
            made = Estimate(value, level=self.level, n=n, clusters=self.clusters, reason=refused)
        elif self.interval == JACKKNIFE:
            weights = self.jackknife_weights
            # Only clusters with rows of the metric count, on the side that has fewer of them.
            by_side = [
                degrees_of_freedom(weights.by_group_of_clusters(scale.mass))
                for scale in scales
                if scale.mass is not None
            ]
            weights = replace(weights, degrees=min([weights.degrees, *by_side]))
            made = difference_estimate(
                value, replicates.left_out, weights, n=n, level=self.level, limits=limits
            )
            unseen = math.hypot(*(scale.unseen for scale in scales))
            if unseen and made.se > 0.0:
                how = made.method.partition(", t distribution")[0]
                made = with_error(made, math.hypot(made.se, unseen), f"{how} and unseen wrong rows")
        else:
            made = Estimate(value, level=self.level, n=n, clusters=self.clusters, range=limits)
            if not made.defined:
                made = replace(made, reason="undefined on at least one side")
            elif replicates.drawn.size and (replicates.drawn == value).all() and self.clusters > 1:
                made = _with_interval(replace(made, se=0.0))
        return with_draws(made, replicates.drawn, self.bootstrap_weights, self.interval, replicates.left_out)


# If the value is undefined without more than this proportion of the groups, there is no standard error.
_MOST_UNDEFINED = 0.1
# Smaller relative differences are rounding errors, not spread.
_NOISE = 1e-12
# Smaller differences are rounding errors of values whose range has length 1.
_EPSILON = 1e-15
# If this number of clusters differ, their spread shows how much the rows of a cluster depend on each other.
_ENOUGH_DIFFER = 4.0
# Up to this number, a single cluster differs from the others, which are not exactly alike.
_ONE_DIFFERS = 1.25
# With more events than this times the squared normal quantile, Wilson's lower end is below the exact bound.
_RARE = 6.0


def jackknife_estimates(
    values: Floats,
    left_out: Floats,
    weights: JackknifeWeights,
    scales: Sequence[Scale],
    *,
    n: int,
    level: float = 0.95,
) -> list[Estimate]:
    """Return metrics with their jackknife intervals from the values (groups, metrics) without each group of `weights`.

    >>> from abstain.inference import JackknifeWeights
    >>> from abstain.metrics.scales import Scale
    >>> weights = JackknifeWeights.of(np.arange(10))  # 3 of 10 clusters of one item are right
    >>> without = np.array([[2.0]] * 3 + [[3.0]] * 7) / 9
    >>> print(jackknife_estimates(np.array([0.3]), without, weights, [Scale(0.0, 1.0, 10)], n=10)[0])
    0.300 [0.063, 0.658]
    """
    level = _validate.level(level)
    values_and_errors = zip(
        values.tolist(), _standard_errors(values, left_out, weights).tolist(), strict=True
    )
    base = partial(Estimate, level=level, n=n, clusters=weights.clusters)
    return [
        _metric_estimate(base(value), error, left_out[:, column], weights, scales[column])
        for column, (value, error) in enumerate(values_and_errors)
    ]


def _metric_estimate(
    base: Estimate, error: float, left_out: Floats, weights: JackknifeWeights, scale: Scale
) -> Estimate:
    if base.defined and (scale.fixed or scale.refused):
        fixed = replace(base, low=base.value, high=base.value, se=0.0, method="it cannot vary")
        return fixed if scale.fixed else replace(base, reason=scale.refused)
    made, left_out, weights, scale = _over_counted_clusters(base, error, left_out, weights, scale)
    if math.isnan(made.se):
        return made
    if not scale.upper_only:  # the error of a debiased value, see `around_debiased`
        made = replace(made, se=max(made.se, scale.least_error))
    rounding = _NOISE * (scale.high - scale.low) if scale.bounded else 0.0
    if scale.bounded and scale.low - rounding <= made.value <= scale.high + rounding:
        low, high = _score_ends(made, left_out, weights, scale)
        how = "upper end only" if scale.upper_only else "Wilson's score interval"
        low = scale.low if scale.upper_only else min(low, made.value)
        return replace(made, low=low, high=max(high, made.value), method=f"{made.method}, {how}")
    if scale.low == 0.0 and made.value > 0.0 and (made.se or scale.least_error):
        low, high = _log_ends(made, left_out, weights, scale)
        return replace(made, low=low, high=high, method=f"{made.method}, logarithmic scale")
    if made.se == 0.0:
        reason = "no interval: it is the same without each cluster, and its range is unbounded"
        return replace(made, method="none", reason=reason)
    return _with_interval(made)


def _over_counted_clusters(
    base: Estimate, error: float, left_out: Floats, weights: JackknifeWeights, scale: Scale
) -> tuple[Estimate, Floats, JackknifeWeights, Scale]:
    """Return an estimate with its standard error over the clusters that have counted rows.

    Clusters without a counted row, whose omission changes nothing, are not a part of the sample.
    """
    if not base.defined or scale.mass is None or weights.vectors < 2:
        return _with_error(base, error, weights), left_out, weights, scale
    with np.errstate(invalid="ignore"):  # the difference of infinite values is not a number
        changed = ~(np.abs(left_out - base.value) <= _NOISE * abs(base.value))
    kept = changed | (scale.mass > 0.0)
    counted = weights.only(kept, scale.mass)
    if not kept.all():
        left_out = left_out[kept] if counted.vectors else left_out[:0]
        scale = replace(scale, mass=scale.mass[kept])
        error = _standard_error(base.value, left_out, counted)
    made = _with_error(base, error, counted)
    if not math.isnan(made.se):
        made = replace(made, method=_method(weights))
    return made, left_out, counted, scale


def _with_error(base: Estimate, error: float, weights: JackknifeWeights) -> Estimate:
    """Return the value with its standard error, or with the reason why there is none."""
    if not base.defined:
        return base
    if weights.vectors < 2:
        return replace(base, reason="there is only one cluster, so there is no confidence interval")
    if math.isnan(error):
        return replace(
            base, reason="no confidence interval: the value is undefined without some of the clusters"
        )
    return replace(base, se=error, degrees=weights.degrees, method=_method(weights))


def _score_ends(
    made: Estimate, left_out: Floats, weights: JackknifeWeights, scale: Scale
) -> tuple[float, float]:
    """Return Wilson's interval on the range of the metric; the number of trials matches the jackknife's variance."""
    width, root = scale.high - scale.low, 1.0 / scale.power
    point, se = _without_noise((made.value - scale.low) / width) ** root, made.se / width
    if scale.power != 1.0:
        se = _standard_error(point, np.clip((left_out - scale.low) / width, 0.0, 1.0) ** root, weights)
    spread = point * (1.0 - point)
    if spread <= 0.0 or math.isnan(se):
        se = 0.0
    independence, few = _independence(scale.mass, weights.sizes), _few_differ(made, left_out, weights)
    tail = (1.0 - made.level) / 2.0
    ends = []
    for side, beyond in ((-1.0, tail), (1.0, tail / scale.chosen)):
        t, z = t_quantile(made.degrees, 1.0 - beyond), normal_quantile(1.0 - beyond)
        slack = z * z / max(scale.trials, 1.0) * ((t / z) ** 2 / independence) ** few
        if se > 0.0:
            slack = max(slack, (t * se) ** 2 / spread)
        elif not slack:  # the number of independent rows has no limit, and no cluster differs
            rows = float(weights.vectors) if scale.mass is None else float(scale.mass.sum())
            slack = t * t / (rows * independence)
        centre = (point + slack / 2.0) / (1.0 + slack)
        reach = math.sqrt(slack * spread + slack * slack / 4.0) / (1.0 + slack)
        end = centre + side * reach
        end += side * _rare_shift(
            side * (end - point), point if side < 0.0 else 1.0 - point, z * z / slack, beyond
        )
        ends.append(min(max(end, 0.0), 1.0) ** scale.power)
    return scale.low + width * ends[0], scale.low + width * ends[1]


def _without_noise(proportion: float) -> float:
    """Return a proportion within [0, 1], and exactly 0 or 1 if it differs from that by no more than rounding."""
    if proportion < _NOISE:
        return 0.0
    return 1.0 if proportion > 1.0 - _NOISE else proportion


def _rare_shift(reach: float, proportion: float, trials: float, tail: float) -> float:
    """Return how much further an end must reach towards 0, because few trials differ.

    Wilson's lower end is too close after few errors, whose distribution is skewed. The exact bound of Clopper and
    Pearson has the whole error probability, because the upper end is never missed by so few. It fades out from a
    quarter to a half.
    """
    events = proportion * trials
    if not 0.0 < events < _RARE * normal_quantile(1.0 - tail) ** 2 or proportion >= 0.5:
        return 0.0
    bound = beta_quantile(events, trials - events + 1.0, 2.0 * tail)
    return max(proportion - bound - reach, 0.0) * min(2.0 - 4.0 * proportion, 1.0)


def _independence(mass: Floats | None, sizes: Floats) -> float:
    """Return the proportion of the rows that Kish's effective number of clusters is; `mass` is the rows of each group.

    As long as at most one cluster differs from the others, a cluster may be wholly right or wrong, so it counts as one.
    """
    if mass is None:
        return 1.0
    total, squares = float(mass.sum()), float((mass**2 / sizes).sum())
    return min(total / squares, 1.0) if squares > 0.0 else 1.0


def _few_differ(made: Estimate, left_out: Floats, weights: JackknifeWeights) -> float:
    """Return 1 if at most one cluster differs from the others, 0 if at least four do, and numbers between.

    If ``k`` of ``g`` clusters differ from the others by the same amount, the squared skewness of the pseudo-values is
    ``1/(p(1 - p)) - 4`` with ``p = k/g``. So the skewness gives the number of clusters that differ.
    """
    if not made.se:
        return 1.0
    kept = np.isfinite(left_out)
    deviations = _deviations(np.array([made.value]), left_out[None, kept], weights.sizes[kept])[0]
    with np.errstate(over="ignore", invalid="ignore"):
        skewness = float((deviations**3).mean() / (deviations**2).mean() ** 1.5)
    product = 1.0 / (skewness**2 + 4.0) if math.isfinite(skewness) else 0.0
    differ = len(deviations) * (0.5 - math.sqrt(0.25 - product))
    return min(max((_ENOUGH_DIFFER - differ) / (_ENOUGH_DIFFER - _ONE_DIFFERS), 0.0), 1.0)


def _log_ends(
    made: Estimate, left_out: Floats, weights: JackknifeWeights, scale: Scale
) -> tuple[float, float]:
    relative = made.se / made.value
    if (left_out[np.isfinite(left_out)] > 0.0).all():
        relative = _standard_error(math.log(made.value), np.log(left_out), weights)
    relative = max(relative, scale.least_error / made.value)
    reach = min(t_quantile(made.degrees, (1.0 + made.level) / 2.0) * relative, 700.0)
    # For a very uncertain value, the exponential would be far too large; from there on, the end grows linearly.
    return made.value / math.exp(reach), made.value * (math.exp(reach) if reach < 1.0 else math.e * reach)


def _unseen(estimate: Estimate, clusters: float) -> float:
    """Return the largest proportion of clusters that could differ although no observed cluster does."""
    tail = (1.0 - estimate.level) / 2.0
    return 1.0 - tail ** (1.0 / clusters)


def difference_estimate(
    value: float,
    left_out: Floats,
    weights: JackknifeWeights,
    *,
    n: int,
    level: float = 0.95,
    limits: DifferenceRange | None = None,
) -> Estimate:
    """Return a difference with its jackknife interval.

    Args:
        value: the difference over all clusters.
        left_out: the differences without each group of `weights`.
        weights: the weights that leave out each group.
        n: number of evaluated items.
        level: confidence level of the interval.
        limits: how large the difference can be. Default: unknown.

    >>> from abstain.inference import JackknifeWeights
    >>> weights = JackknifeWeights.of(np.arange(4))  # the mean of 1, 2, 3 and 6, each left out
    >>> print(difference_estimate(3.0, np.array([11.0, 10.0, 9.0, 6.0]) / 3, weights, n=4))
    3.000 [-0.437, 6.437]
    """
    if limits is not None and limits.clusters is not None and weights.vectors:
        # With more than a few hundred clusters, units are groups of them.
        limits = limits._replace(clusters=limits.clusters * weights.clusters / weights.vectors)
    base = Estimate(value, level=_validate.level(level), n=n, clusters=weights.clusters, range=limits)
    if not base.defined:
        return replace(base, reason="undefined on at least one side")
    made = _with_error(base, _standard_error(value, left_out, weights), weights)
    if math.isnan(made.se):
        return made
    return _with_interval(replace(made, margin_se=_margin_error(made.se, value, left_out, weights)))


def difference_range(scales: Sequence[Scale]) -> DifferenceRange | None:
    """Return how large the difference of two values on these scales can be; None if it can have any size."""
    if not scales or not all(scale.bounded for scale in scales):
        return None
    units = [scale.units for scale in scales if scale.units is not None]
    largest = 0.0 if all(scale.fixed for scale in scales) else max(scale.high - scale.low for scale in scales)
    most = max((scale.high if math.isnan(scale.largest) else scale.largest) - scale.low for scale in scales)
    return DifferenceRange(largest, min(units, default=None), most)


def against_margin(difference: Estimate) -> Estimate:
    """Return a difference with the interval that is compared with a margin other than 0.

    >>> against_margin(Estimate(0.0, -0.1, 0.1, se=0.05, degrees=40, margin_se=0.06)).high > 0.12
    True
    """
    if difference.interval is None or not difference.margin_se > difference.se:
        return difference
    widened = replace(difference, se=difference.margin_se, method=f"{difference.method}, against a margin")
    return _with_interval(widened)


def with_error(estimate: Estimate, error: float, how: str) -> Estimate:
    """Return an estimate without known ends with another standard error; `how` is what that comes from."""
    margin_se = math.sqrt(max(estimate.margin_se**2 - estimate.se**2, 0.0) + error**2)
    method = f"{how}, t distribution"
    return _with_interval(replace(estimate, se=error, margin_se=margin_se, method=method, reason=""))


def around_debiased(plain: Estimate, debiased: Estimate, scale: Scale) -> Estimate:
    """Return a metric that is biased upwards by binning, with an interval around its debiased form.

    The estimated bias is itself uncertain, so it widens the lower half. The interval always contains the value.
    """
    if plain.interval is None or math.isnan(debiased.se):
        return plain
    quantile = t_quantile(debiased.degrees or 1.0, (1.0 + debiased.level) / 2.0)
    bias, error = plain.value - debiased.value, max(debiased.se, scale.least_error)
    low = max(debiased.value - quantile * math.hypot(error, bias), 0.0)
    high = max(debiased.value + quantile * error, plain.value)
    method = f"{debiased.method.partition(', Wilson')[0]}, around the debiased value"
    return replace(plain, low=min(low, plain.value), high=min(high, 1.0), se=debiased.se, method=method)


def with_uncertain_bias(difference: Estimate, bias: float) -> Estimate:
    """Return a difference of debiased values with an interval that includes the uncertainty of the estimated bias."""
    if not difference.se > 0.0:
        return difference
    how = difference.method.partition(", t distribution")[0]
    return with_error(difference, math.hypot(difference.se, bias), f"{how}, around the debiased value")


def at_level(estimate: Estimate, level: float) -> Estimate:
    """Return a difference with its interval at another level."""
    if estimate.interval is None:
        return estimate
    if estimate.drawn is not None:
        low, high = estimate.drawn.ends(level)
        return replace(estimate, level=level, low=low, high=high)
    return _with_interval(replace(estimate, level=level))


def _with_interval(estimate: Estimate) -> Estimate:
    value = estimate.value
    if estimate.se > 0.0:
        reach = t_quantile(estimate.degrees, (1.0 + estimate.level) / 2.0) * estimate.se
        most = math.inf if estimate.range is None else max(estimate.range.most, abs(value))
        return replace(estimate, low=max(value - reach, -most), high=min(value + reach, most))
    limits = estimate.range
    if limits is None or math.isnan(limits.largest):
        if value == 0.0:
            reason = "no interval: no cluster shows a difference, and its largest possible size is unknown"
            return replace(estimate, method="none", reason=reason)
        # In unobserved clusters, the difference could have the opposite sign.
        limits = DifferenceRange(abs(value))
    clusters = _effective_clusters(estimate, limits)
    unseen = _unseen(estimate, clusters)
    low, high = value - unseen * (limits.largest + value), value + unseen * (limits.largest - value)
    method = f"exact bound: all of {round(clusters):,} clusters agree"
    return replace(estimate, low=low + 0.0, high=high + 0.0, method=method)  # adding 0 turns -0.0 into 0.0


def _effective_clusters(estimate: Estimate, limits: DifferenceRange) -> float:
    return float(estimate.clusters) if limits.clusters is None else limits.clusters


def p_value(difference: Estimate, bound: float = 0.0) -> float:
    """Return the two-sided p-value of a difference being `bound`, from the statistic that its interval comes from.

    NaN if the difference has no interval. It is 1 if the difference is the bound itself. If every cluster agrees, it is
    the smallest ``1 - level`` whose exact bound excludes `bound`: ``2^(1 - clusters)`` against 0 for a difference that
    is as large as it can be.

    >>> p_value(Estimate(0.0, -0.1, 0.1, se=0.05, degrees=40))
    1.0
    >>> p_value(Estimate(0.5, 0.4, 0.6, se=0.05, degrees=40)) < 1e-9
    True
    >>> p_value(Estimate(1.0, 0.5, 1.0, se=0.0, degrees=9, clusters=10))
    0.001953125
    """
    distance = abs(difference.value - bound)
    same = distance <= _NOISE * max(abs(difference.value), abs(bound))
    if same and difference.se == 0.0:
        return 1.0
    if difference.interval is None or math.isnan(difference.se):
        return math.nan
    if difference.drawn is not None:
        return difference.drawn.p_value(bound)
    if same:
        return 1.0
    if difference.se == 0.0:
        limits = difference.range
        if limits is None or math.isnan(limits.largest):
            limits = DifferenceRange(abs(difference.value))
        towards = difference.value if bound > difference.value else -difference.value
        reach = limits.largest - towards
        unseen = min(distance / reach, 1.0) if reach > 0.0 else 1.0
        return float(min(2.0 * (1.0 - unseen) ** _effective_clusters(difference, limits), 1.0))
    from scipy.special import stdtr  # noqa: PLC0415

    return float(2.0 * stdtr(difference.degrees, -distance / difference.se))


def _margin_error(error: float, value: float, left_out: Floats, weights: JackknifeWeights) -> float:
    """Return the standard error of a difference if two more clusters were like the one that changes it most."""
    kept = np.isfinite(left_out)
    sizes, without = weights.sizes[kept], left_out[kept]
    groups, inverse = len(sizes), float(sizes.sum()) / sizes
    with np.errstate(over="ignore", invalid="ignore"):  # errors of the largest numbers overflow
        centre = groups * value - float(((1.0 - 1.0 / inverse) * without).sum())
        away = np.abs(inverse * value - (inverse - 1.0) * without - centre)
        # Groups may have different numbers of clusters.
        largest = float((away * np.sqrt((groups - 1.0) / (inverse - 1.0))).max())
    return math.hypot(error, math.sqrt(2.0) * largest / groups)


def _standard_error(value: float, left_out: Floats, weights: JackknifeWeights) -> float:
    return float(_standard_errors(np.array([value]), left_out[:, None], weights)[0])


def _standard_errors(values: Floats, left_out: Floats, weights: JackknifeWeights) -> Floats:
    """Return the standard errors of values from the values without each group; NaN if too many of those are NaN."""
    # One row per value, so that the order of its sum does not depend on the other values.
    rows = np.ascontiguousarray(left_out.T)
    finite = np.isfinite(rows)
    proportion = finite.mean(axis=1) if weights.vectors else np.zeros(len(rows))
    errors = np.full(len(values), math.nan)
    defined = np.isfinite(values) & (proportion >= 1.0 - _MOST_UNDEFINED) & (finite.sum(axis=1) >= 2)
    complete = defined & (proportion == 1.0)
    if complete.any():
        errors[complete] = _errors_of(values[complete], rows[complete], weights.sizes)
    for row in np.flatnonzero(defined & ~complete).tolist():
        kept = finite[row]
        errors[row] = _errors_of(values[[row]], rows[[row]][:, kept], weights.sizes[kept])[0]
    return errors


def _errors_of(values: Floats, left_out: Floats, sizes: Floats) -> Floats:
    """Return the standard errors of values from `left_out`: (values, groups), at least two groups."""
    with np.errstate(over="ignore", invalid="ignore"):  # errors of the largest numbers overflow
        errors = np.sqrt((_deviations(values, left_out, sizes) ** 2).mean(axis=1))
    noise = _NOISE * np.maximum(np.abs(values), np.abs(left_out).max(axis=1))
    return np.where(errors <= noise, 0.0, errors)


def _deviations(values: Floats, left_out: Floats, sizes: Floats) -> Floats:
    """Return the deviations of pseudo-values, (values, groups), whose mean square is the squared standard error."""
    groups, total = len(sizes), float(sizes.sum())
    inverse = total / sizes
    with np.errstate(over="ignore", invalid="ignore"):  # errors of the largest numbers overflow
        centre = groups * values - ((1.0 - sizes / total) * left_out).sum(axis=1)
        pseudo = inverse * values[:, None] - (inverse - 1.0) * left_out
        return np.asarray((pseudo - centre[:, None]) / np.sqrt(inverse - 1.0))


def _method(weights: JackknifeWeights) -> str:
    over = f"{weights.clusters:,} clusters"
    if weights.vectors != weights.clusters:
        over = f"{weights.vectors} groups of {over}"
    return f"jackknife over {over}, t distribution"


def simultaneous_level(left_out: Floats, weights: JackknifeWeights, level: float) -> float:
    """Return the level at which intervals of several correlated values hold simultaneously at `level`.

    The largest of correlated t statistics is drawn 2,000 times, with the correlation of the jackknife values.

    >>> from abstain.inference import JackknifeWeights
    >>> alike, weights = np.arange(8.0)[:, None] * np.ones(5), JackknifeWeights.of(np.arange(8))
    >>> round(simultaneous_level(alike, weights, 0.95), 2)  # perfectly correlated values need no correction
    0.95
    """
    from scipy.special import stdtr  # noqa: PLC0415

    away = left_out - left_out.mean(axis=0)
    spread = np.sqrt((away**2).sum(axis=0))
    moving = np.isfinite(spread) & (spread > 0.0)
    if len(away) < 2 or not moving.any():
        return level
    generator = np.random.default_rng(0)
    drawn = generator.standard_normal((2000, len(away))) @ (away[:, moving] / spread[moving])
    scale = np.sqrt(generator.chisquare(weights.degrees, 2000) / weights.degrees)
    largest = float(np.quantile(np.abs(drawn).max(axis=1) / scale, level))
    return max(float(2.0 * stdtr(weights.degrees, largest) - 1.0), level)
