"""The settings (`Settings`), the data (`Population`) and the frozen `Result` of an evaluation.

Every estimate has its interval, and a reason if it is undefined. Estimates are identified by system, confidence, metric
and group, differences by a pair of systems in addition. The views (`result["llm"].aurc`, `result.deltas["llm"].augrc`,
`result.left`) read the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._text import few_lines
from abstain.confidence import is_calibrated
from abstain.errors import ArgumentError, list_names
from abstain.evaluation._frames import result_frame, system_frame
from abstain.evaluation._metric_tables import ALL, Key
from abstain.evaluation._shown import Shown
from abstain.losses import LOSS_NAMES
from abstain.metrics.registry import find_metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from abstain._types import Progress
    from abstain.calibrators import Calibration
    from abstain.errors import ResultWarning
    from abstain.evaluation._differences import Difference, Headline, Rank
    from abstain.evaluation._metric_tables import MetricTable
    from abstain.evaluation._profile import Profile
    from abstain.evaluation._system import SystemStatistics
    from abstain.inference import Estimate
    from abstain.losses import ItemLoss
    from abstain.matching import Matching
    from abstain.metrics import MetricSpecification, RiskCoverageCurve, TieSensitivity
    from abstain.thresholds import Policy


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an evaluation; the same settings on the same items give the same numbers.

    Attributes:
        coverage_grid: coverages at which the selective risk is computed.
        area_coverage: coverage at which the truncated areas end.
        interval: the method of confidence intervals: "jackknife", "percentile", "bca" or "none".
        resamples: number of bootstrap resamples of the clusters.
        seed: the seed of the resamples.
        level: confidence level of the intervals; differences are tested at ``1 - level``.
        convention: how areas are integrated.
        reference: the system that all others are compared with; None if all pairs are compared.
        margin: the smallest difference that would matter, or None.
        simultaneous: True if the intervals of differences hold for a whole family together.
        unpaired: True if the systems are compared as independent samples, with different items.
    """

    coverage_grid: tuple[float, ...]
    area_coverage: float
    interval: str
    resamples: int
    seed: int
    level: float
    convention: str
    reference: str | None = None
    margin: float | None = None
    simultaneous: bool = False
    unpaired: bool = False


@dataclass(frozen=True, slots=True)
class Population:
    """The number of clusters (such as participants) and items that were evaluated.

    Attributes:
        total: clusters in the source.
        included: clusters with at least one evaluated item.
        failed: clusters without an evaluated item.
        items: N, the evaluated items.
        answered: K, the answered ones among them.
        abstained: the declined ones among them.
        items_failed: items for which the run produced no output.
        items_unscored: items without a label.
        right: the answered items whose prediction equals the label.
    """

    total: int
    included: int
    failed: int
    items: int
    answered: int
    abstained: int
    items_failed: int
    items_unscored: int
    right: int

    @property
    def wrong(self) -> int:
        """The answered items whose prediction differs from the label."""
        return self.answered - self.right

    @property
    def accuracy(self) -> float:
        """The proportion of all evaluated items with a right answer; NaN without items."""
        return self.right / self.items if self.items else math.nan

    @property
    def error_rate(self) -> float:
        """The proportion of answers that are wrong; NaN without answers."""
        return self.wrong / self.answered if self.answered else math.nan


class _EstimatesByCoverage(dict[float, Any]):
    """Estimates by coverage; a coverage is looked up with the digits of metric names."""

    def __missing__(self, coverage: float) -> Any:
        named = float(f"{_validate.real(coverage, 'coverage'):g}")
        if named in self:
            return self[named]
        grid = f"the coverages are {list_names(f'{each:g}' for each in self)}" if self else "there is none"
        raise ArgumentError(
            f"risk_at_coverage has no coverage {coverage:g}: {grid}; add it with coverage_grid="
        )


class _ByMetric:
    """Estimates by metric, read as attributes: ``aurc``, ``aurc_at_coverage``, ``risk_at_coverage[0.5]``."""

    __slots__ = ()

    name: str
    estimates: Mapping[str, Estimate]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "estimates":
            raise AttributeError(name)
        by_coverage = {
            float(key.partition("@")[2]): estimate
            for key, estimate in self.estimates.items()
            if key.startswith(f"{name}@") and not math.isnan(_number(key.partition("@")[2]))
        }
        if name == "risk_at_coverage":
            return _EstimatesByCoverage(by_coverage)
        if name in self.estimates:
            return self.estimates[name]
        if len(by_coverage) == 1:
            return next(iter(by_coverage.values()))
        raise AttributeError(f"metric {name!r} was not requested; there are {list_names(self.estimates)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key.partition("@")[0] for key in self.estimates)]

    def __repr__(self) -> str:
        lines = [f"{name}: {estimate}" for name, estimate in self.estimates.items()]
        return few_lines(f"{type(self).__name__} of {self.name or 'all items'}", lines)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class ConfidenceResult(_ByMetric):
    """All selective metrics of one confidence, each an `Estimate`, by name as attributes.

    Attributes:
        name: the confidence.
        estimates: the metrics by key, such as "aurc" or "risk_at_coverage@0.5".
        curve: the risk-coverage curve with its operating points.
        ties: how much the order within ties could change the AURC.
        warnings: warnings that apply to these numbers.
    """

    name: str
    estimates: Mapping[str, Estimate]
    curve: RiskCoverageCurve
    ties: TieSensitivity
    warnings: tuple[ResultWarning, ...]

    @property
    def aurc_gap_pct(self) -> float:
        """Excess AURC in percent of the optimal AURC; 0 if that is 0."""
        return _percent(self.eaurc.value, self.aurc_optimal.value)

    @property
    def augrc_gap_pct(self) -> float:
        """Excess AUGRC in percent of the optimal AUGRC; 0 if that is 0."""
        return _percent(self.eaugrc.value, self.augrc_optimal.value)

    @property
    def achievable_gain_pct(self) -> float:
        """Reduction of the AURC by the convex hull, in percent of the AURC; 0 if that is 0."""
        return _percent(self.aurc.value - self.aurc_achievable.value, self.aurc.value)


@dataclass(frozen=True, eq=False, slots=True)
class SystemResult(Mapping[str, ConfidenceResult]):
    """The result of one system; a mapping from its confidences to their selective metrics.

    Attributes:
        name: the name of the system.
        population: the number of clusters and items.
        loss: the loss of each item, and why this loss; None if no metric needs one.
        settings: the settings of the evaluation.
        provenance: the origin of the items.
        warnings: warnings that apply to all of its numbers.
        cluster_noun: the noun for a cluster; "row" if the source names none.
        design_effect: the variance of the mean loss, divided by that of independent answers; NaN if no cluster has
            several answers, and without intervals.
        calibrations: the calibration files of calibrated confidences.
        confidences: the confidence behind each name, which may differ between systems.
        estimates: every estimate by (confidence, metric, group).
        variants: the selective metrics of each confidence.
        metrics: the table of the requested metrics, or None.
        basis: the statistics of the system, with its evaluated items, rows and confidences.
    """

    name: str
    population: Population
    loss: ItemLoss | None
    settings: Settings
    provenance: Mapping[str, Any]
    warnings: tuple[ResultWarning, ...]
    cluster_noun: str
    design_effect: float
    calibrations: tuple[Calibration, ...]
    confidences: Mapping[str, str]
    estimates: Mapping[Key, Estimate]
    variants: Mapping[str, ConfidenceResult]
    metrics: MetricTable | None
    basis: SystemStatistics = field(repr=False)

    @property
    def coverage(self) -> Estimate:
        """The proportion of items that the system answered."""
        return self.estimates[Key(ALL, "answer_rate")]

    @property
    def accuracy(self) -> Estimate:
        """The proportion of all items that it answered correctly."""
        return self.estimates[Key(ALL, "accuracy")]

    @property
    def error_rate(self) -> Estimate:
        """The proportion of its answers that are wrong: 1 - selective accuracy."""
        selective = self.estimates[Key(ALL, "selective_accuracy")]
        return replace(
            selective, value=1.0 - selective.value, low=1.0 - selective.high, high=1.0 - selective.low
        )

    def estimate(self, metric: str, *, confidence: str | None = None, group: str = ALL) -> Estimate:
        """Return one estimate. Default confidence: the first one with this metric."""
        metrics = {key.metric for key in self.estimates}
        name = metric if metric in metrics else find_metric(metric).key
        for key, estimate in self.estimates.items():
            if (key.metric, key.group) == (name, group) and confidence in (None, key.confidence):
                return estimate
        raise ArgumentError(f"{metric} was not requested; there are {list_names(sorted(metrics))}")

    def profile(self, *, most: int = 400, progress: Progress | None = None) -> Profile:
        """Return the data of charts: operating points with intervals, reference curves, contrasts and reliability.

        The intervals come from the same resamples as those of the metrics.

        Args:
            most: approximate maximum number of operating points per confidence; a longer curve is thinned.
            progress: called with the number of resamples done since the last call.
        """
        from abstain.evaluation._profile import profile_of  # noqa: PLC0415

        most = _validate.whole(most, "most", least=2)
        return profile_of(self.basis, self.settings, most=most, progress=progress)

    def policy(self, risk: float | str = 0.05, *, confidence: str | None = None, **options: Any) -> Policy:
        """Return the policy that answers most with a risk guarantee; see `abstain.choose_threshold`.

        Args:
            risk: the largest acceptable risk, fixed before looking at the data.
            confidence: one of the system's confidences. Default: the first one.
            **options: further arguments of `abstain.choose_threshold`.
        """
        name = next(iter(self.variants), None) if confidence is None else self[confidence].name
        if name is None or self.loss is None:
            raise ArgumentError(
                f"{self.name}: a threshold needs a confidence and a loss, and this result has none; evaluate with "
                "selective=True"
            )
        self.basis.evaluated.row_by_row("a threshold with a risk guarantee")
        used = self.calibrations if is_calibrated(self[name].name) else None
        loss = self.loss.name if self.loss.name in LOSS_NAMES else self.basis.columns.loss
        from abstain.thresholds import choose_threshold  # noqa: PLC0415  (few results need it)

        return choose_threshold(
            self.basis.evaluated,
            risk=risk,
            confidence=self[name].name,
            calibration=used,
            loss=loss,
            **options,
        )

    def __getitem__(self, name: str) -> ConfidenceResult:
        return self.variants[_validate.choice(name, "confidence", self.variants)]

    def __contains__(self, name: object) -> bool:
        return name in self.variants

    def __iter__(self) -> Iterator[str]:
        return iter(self.variants)

    def __len__(self) -> int:
        return len(self.variants)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """Return the estimates as a data frame with one row each.

        Args:
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.
        """
        return system_frame(self, backend)

    def __repr__(self) -> str:
        return few_lines(f"{self.name}: {self.population.items} items", self._lines())

    def _lines(self) -> list[str]:
        lines = [f"{name}: AURC {result.aurc}, AUGRC {result.augrc}" for name, result in self.items()]
        return lines + [f"{name}: {estimate}" for name, estimate in (self.metrics or {}).items()]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Deltas(_ByMetric):
    """The differences of two systems by one confidence, right - left: an `Estimate` per metric, as attributes.

    Attributes:
        name: the confidence.
        differences: the differences by metric, each with its verdict.
        estimates: their estimates.
    """

    name: str
    differences: Mapping[str, Difference]
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, eq=False, slots=True)
class Result(Shown, Mapping[str, ConfidenceResult]):
    """The result of `evaluate` and `compare`: every system, every difference, settings and warnings.

    With one system, it has the attributes of that system: ``result["llm"].aurc``. With two, there are ``result.left``,
    ``result.right`` and ``result.deltas["llm"].augrc``. With any number, there are ``result.systems[name]`` and
    ``result.difference(one, other)``.

    Attributes:
        systems: each system, by name.
        specifications: the specification of each metric, by key.
        differences: every pair, metric, confidence and group; those at matched coverage after those over all items.
        ranks: by system, confidence and metric: the range of its rank among the systems; None if it has none.
        headline: the conclusion of a comparison; None for one system, and if no requested metric has a direction.
        matching: how the compared items were matched, or that they were not; None for one system.
        settings: the settings of the evaluation.
        warnings: the warnings of all systems.
    """

    systems: Mapping[str, SystemResult]
    specifications: Mapping[str, MetricSpecification]
    differences: tuple[Difference, ...]
    ranks: Mapping[tuple[str, str, str], Rank | None]
    headline: Headline | None
    matching: Matching | None
    settings: Settings
    warnings: tuple[ResultWarning, ...]

    @property
    def only(self) -> SystemResult:
        """The only system; an error if there are several."""
        if len(self.systems) != 1:
            raise ArgumentError(
                f"there are {len(self.systems)} systems; name one: {list_names(self.systems)}"
            )
        return next(iter(self.systems.values()))

    @property
    def left(self) -> SystemResult:
        """The first of two systems."""
        return self._pair()[0]

    @property
    def right(self) -> SystemResult:
        """The second of two systems."""
        return self._pair()[1]

    def _pair(self) -> tuple[SystemResult, SystemResult]:
        if len(self.systems) != 2:
            raise ArgumentError(
                f"left and right are for two systems, and there are {len(self.systems)}; name one: "
                f"{list_names(self.systems)}"
            )
        left, right = self.systems.values()
        return left, right

    @property
    def first(self) -> SystemResult:
        """The first system."""
        return next(iter(self.systems.values()))

    @property
    def deltas(self) -> dict[str, Deltas]:
        """The differences of two systems over all items, by confidence; each includes metrics that need none."""
        left, right = self._pair()
        over_all_items = [each for each in self.differences if not each.group and not each.matched]
        unranked = {each.metric: each for each in over_all_items if not each.confidence}
        deltas = {}
        for name in [name for name in left.confidences if name in right.confidences] or [ALL]:
            own = {each.metric: each for each in over_all_items if each.confidence == name}
            by_metric = {**unranked, **own}
            deltas[name] = Deltas(name, by_metric, {key: each.estimate for key, each in by_metric.items()})
        return deltas

    def difference(
        self,
        left: str,
        right: str,
        metric: str | None = None,
        *,
        confidence: str | None = None,
        group: str = ALL,
        matched: bool | None = None,
    ) -> Difference:
        """Return one difference.

        Args:
            left: one system.
            right: the other.
            metric: the metric. Default: the first one.
            confidence: the confidence. Default: the first one.
            group: the group of items. Default: all items.
            matched: True for the difference at matched coverage, False for the one over all items or whole curves.
                Default: the one that the verdict comes from.
        """
        for name in (left, right):
            _validate.choice(name, "system", self.systems)
        key = metric
        if metric is not None and not any(each.metric == metric for each in self.differences):
            key = find_metric(metric).key
        candidates = [
            each
            for each in self.differences
            if {each.left, each.right} == {left, right}
            and matched in (None, each.matched)
            and each.group == group
            and key in (None, each.metric)
            and confidence in (None, each.confidence)
        ]
        if not candidates:
            basis = " at matched coverage" if matched else ""
            raise ArgumentError(f"{left} and {right} were not compared by {metric or 'any metric'}{basis}")
        of_metric = [each for each in candidates if each.metric == candidates[0].metric]
        return next((each for each in of_metric if not each.no_verdict), of_metric[0])

    @property
    def sentences(self) -> tuple[str, ...]:
        """Every finding as a sentence; each names its confidence if there are several."""
        several = len({each.confidence for each in self.differences} - {ALL}) > 1
        return tuple(f"{each.subject(confidence=several)}: {each.finding}" for each in self.differences)

    @property
    def population(self) -> Population:
        """The population of the first system; systems that are compared have the same clusters."""
        return self.first.population

    @property
    def loss(self) -> ItemLoss | None:
        """The loss of the items of the first system; None if no metric needs one."""
        return self.first.loss

    @property
    def provenance(self) -> Mapping[str, Any]:
        """The origin of the items of the only system."""
        return self.only.provenance

    @property
    def cluster_noun(self) -> str:
        """The noun for a cluster."""
        return self.first.cluster_noun

    @property
    def metrics(self) -> MetricTable | None:
        """The table of the requested metrics of the only system."""
        return self.only.metrics

    def profile(self, **options: Any) -> Profile:
        """Return the data of charts of the only system; see `SystemResult.profile`."""
        return self.only.profile(**options)

    def __getitem__(self, name: str) -> ConfidenceResult:
        return self.only[name]

    def __contains__(self, name: object) -> bool:
        return name in self.only

    def __iter__(self) -> Iterator[str]:
        return iter(self.only)

    def __len__(self) -> int:
        return len(self.only)

    def __bool__(self) -> bool:
        return True

    def to_frame(self, what: str = "estimates", *, backend: str | None = None) -> Any:
        """Return the estimates, or the differences, as a data frame with one row each.

        Args:
            what: "estimates" or "differences".
            backend: "pandas", "polars" or "pyarrow". Default: the first of these that is installed.
        """
        return result_frame(self, what, backend)

    def methods(self) -> str:
        """Return a paragraph for the methods section of a paper, about the data, metrics, intervals and comparisons.

        >>> from abstain import Items, evaluate
        >>> items = Items.from_arrays([1, 0] * 10, [1, 0] * 5 + [0, 1] * 5, confidence=[0.9] * 10 + [0.5] * 10)
        >>> print(evaluate(items, metrics="accuracy", interval="none").methods())
        The evaluation included 20 items, treated as independent. The system answered all of them. The metrics were
        accuracy, answer rate and selective accuracy. No confidence intervals were computed. All numbers were
        computed with abstain ...
        """
        return self._methods()

    def __repr__(self) -> str:
        if len(self.systems) == 1:
            only = self.only
            return few_lines(f"Result of {only.population.items} items", only._lines())
        evaluated = 0 if self.matching is None else self.matching.evaluated
        head = f"Result of {len(self.systems)} systems over {evaluated} items"
        first = [] if self.headline is None else [self.headline.sentence]
        return few_lines(head, list(dict.fromkeys([*first, *self.sentences])), "more differences")


def _percent(part: float, total: float) -> float:
    return 100.0 * part / total if total else 0.0
