"""Evaluate one system or several, and compare them: `evaluate` and `compare`.

Items of several systems are matched first (see `abstain.matching`). All systems are evaluated with the same weights of
clusters, so that every difference is paired; independent samples have their own weights. Interval and p-value of a
difference come from one statistic (see `abstain.inference`). Holm's correction is for all pairs of systems by one
metric, confidence and group. The verdict follows the rule in `abstain.evaluation._differences`: a system must not look
better because it declines more. A system without answers is neither compared nor ranked, because its areas are 0 only
for lack of answers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from abstain import _validate, readers
from abstain._confidences import VariantConfidence, load_calibrations, stated_confidence, variant_confidences
from abstain.confidence import is_calibrated, select
from abstain.errors import AbstainError, ArgumentError, DataError, ResultWarning, at, list_names
from abstain.evaluation._aggregated import (
    AggregationRequest,
    aggregate_items,
    aggregate_systems,
    ranks_groups,
)
from abstain.evaluation._differences import cycles, deciding, headline, rank, same_coverage
from abstain.evaluation._metric_tables import ALL, Key
from abstain.evaluation._pairs import PairDifferences
from abstain.evaluation._result import Population, Result, Settings, SystemResult
from abstain.evaluation._system import SystemStatistics
from abstain.evaluation._warnings import (
    POSSIBLE_SCALE,
    comparison_warnings,
    few_clusters,
    general_warnings,
    left_out_warnings,
)
from abstain.groups import columns_for_groups
from abstain.inference import JACKKNIFE, NONE, Intervals, resamples_wanted
from abstain.items import GUIDANCE, Items
from abstain.losses import check_loss_name, common_loss, item_loss
from abstain.matching import MATCHES, NAMES, keep_apart
from abstain.matching import match as match_items
from abstain.metrics.abstention import population_table
from abstain.metrics.registry import BUNDLES, CONDITIONAL, GROUPED, METRICS, UNDIRECTED, select_metrics
from abstain.metrics.selective import CONVENTIONS
from abstain.readers import engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain._types import Progress
    from abstain.calibrators import Calibration
    from abstain.evaluation._differences import Difference, Headline, Rank
    from abstain.inference import Replicates
    from abstain.losses import ItemLoss, Loss
    from abstain.matching import Matching
    from abstain.metrics import MetricSpecification
    from abstain.metrics.registry import MetricLike
    from abstain.readers.engines import EngineTable
    from abstain.resampling import Statistic

    OnRead = Callable[[Mapping[str, Items]], None]
    Confidence = str | Sequence[str] | Mapping[str, str] | None

Output = TypeVar("Output")

DEFAULT_GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
DEFAULT_AREA_COVERAGE = 0.5


def evaluate(
    *systems: Any,
    confidence: Confidence = None,
    calibration: CalibrationLike = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    selective: bool | None = None,
    by: str | Sequence[str] | None = None,
    loss: Loss | None = None,
    coverage_grid: Iterable[float] = DEFAULT_GRID,
    area_coverage: float = DEFAULT_AREA_COVERAGE,
    convention: str = "trapezoid",
    reference: str | None = None,
    margin: float | None = None,
    simultaneous: bool = False,
    match: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
    unpaired: bool = False,
    interval: str = "jackknife",
    resamples: int | None = None,
    seed: int = 42,
    level: float = 0.95,
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    progress: Progress | None = None,
    on_read: OnRead | None = None,
    **columns: Any,
) -> Result:
    """Evaluate one system that may abstain, or several on the same items, with one or more confidences.

    Args:
        systems: one or more systems, or a mapping from names to systems. A system is Items, a data frame (pandas,
            polars, Arrow), a path, or any other source of `abstain.read`. A table with a column ``system`` or
            ``model`` contains one system per value of it (see `abstain.readers.read_systems`).
        confidence: names of variants or signals, "default", "all", or a sequence of those; a mapping from systems to
            confidences if they differ. Default: the default of the source. Without any, areas are not computed.
        calibration: the calibration file that calibrated variants need, or its path; a sequence of several.
        metrics: metrics by name, as objects or as import paths; see `abstain.metrics.registry`. Default: the selective
            metrics, or the bundle "answers" if there is no confidence. If metrics are named and no confidence is, only
            these are evaluated, by the first default confidence.
        selective: whether the selective metrics are evaluated in addition to those named. Default: if no metric is
            named, or a confidence is. With False and no metric, the AUGRC is evaluated.
        by: one or more metadata columns; `metrics` are also evaluated by group, for up to 10,000 groups. Default
            metrics: accuracy, selective accuracy and answer rate.
        loss: "abs", "abs_norm", "zero_one", a function of (truth, prediction), or, for one system, one number per item.
            Default: the loss that a declared scale or the kind of labels implies (see `abstain.losses`).
        coverage_grid: coverages at which the selective risk is computed.
        area_coverage: coverage at which the truncated areas end.
        convention: how areas are integrated: "trapezoid", "interpolated", "mean" or "torch-uncertainty".
        reference: the system that all others are compared with. Default: all pairs are compared.
        margin: the smallest difference that would matter. Verdicts then also state whether systems are equivalent, or
            one is not worse than another by more than the margin, and how many clusters are needed to detect it.
        simultaneous: compute intervals of differences that hold for all pairs of systems together, and the band of a
            curve for all thresholds together.
        match: how items of several systems are matched: "names", or "rows" for the order of rows.
        intersection_only: compare only the items that all systems have. Default: items that some systems lack are an
            error.
        truth_may_differ: compare systems even if their labels differ. Default: different labels are an error.
        unpaired: compare the systems as independent samples, with different items. Nothing is matched.
        interval: the method of confidence intervals: "jackknife" over clusters, "percentile" or "bca" for the cluster
            bootstrap, "none" for no intervals.
        resamples: number of bootstrap resamples of the clusters. Default: 10,000 for bootstrap intervals and for run
            files, whose results JSON has bootstrap intervals; otherwise 0.
        seed: the seed of the resamples.
        level: confidence level of the intervals; differences are tested at ``1 - level``.
        engine: "numpy" loads a table, "duckdb" and "spark" aggregate it, with the same numbers. Default: chosen by the
            kind of the source and its number of rows.
        memory: the memory that DuckDB may use, such as "4GB"; beyond that it uses a temporary folder.
        master: the Spark master, such as "local[4]".
        progress: called with the number of resamples done since the last call.
        on_read: called with the items of every system by name when data frames and files have been read.
        columns: for data frames and files, arguments of `abstain.read`: truth="y", prediction="p", cluster="id". If
            systems have different values, pass a mapping: mode={"a": "zero_shot", "b": "few_shot"}.

    >>> from abstain import Items
    >>> truth, prediction, sure = [0, 1, 1, 0], [0, 1, 0, None], [0.9, 0.8, 0.3, 0.1]
    >>> items = Items.from_arrays(truth, prediction, abstained=[0, 0, 0, 1], confidence=sure)
    >>> result = evaluate(items)
    >>> print(result["confidence"].cmax)
    0.750 [0.131, 1.000]
    >>> print(result.loss.rule)
    loss zero_one: whole-number labels, no scale declared
    >>> import polars
    >>> frame = polars.DataFrame({"y": [0, 1, 1], "p": [0, 1, 0], "sure": [0.9, 0.8, 0.3]})
    >>> print(evaluate(frame, truth="y", prediction="p", confidence="sure", interval="none")["sure"].aurc)
    0.056
    """
    sources = _systems_by_name(systems)
    if isinstance(loss, str):
        check_loss_name(loss)
    if margin is not None and not _validate.real(margin, "margin") > 0.0:
        raise ArgumentError(f"margin must be greater than 0, got {margin:g}")
    match_options: dict[str, Any] = {
        "by": _validate.choice(match, "match", MATCHES),
        "intersection_only": intersection_only,
        "truth_may_differ": truth_may_differ,
    }
    if unpaired:
        _check_unpaired(interval, resamples, **match_options)
    settings = Settings(
        coverage_grid=_validate.coverages(coverage_grid, "coverage_grid"),
        area_coverage=_validate.coverage(area_coverage, "area_coverage"),
        interval=interval,
        resamples=resamples_wanted(resamples, interval),
        seed=_validate.seed(seed),
        level=_validate.level(level),
        convention=_validate.choice(convention, "convention", CONVENTIONS),
        reference=reference,
        margin=None if margin is None else float(margin),
        simultaneous=bool(simultaneous),
        unpaired=bool(unpaired),
    )
    chosen = GROUPED if metrics is None and by is not None else metrics
    if chosen is None and selective is False:
        chosen = "augrc"
    requested = () if chosen is None else select_metrics(chosen, coverage=False)
    request = _Request(
        metrics=tuple(metric.in_convention(convention) for metric in requested),
        metrics_named=metrics is not None or by is not None,
        selective=(metrics is None or confidence is not None) if selective is None else bool(selective),
        confidence=confidence,
        calibrations=load_calibrations(calibration),
        by=() if by is None else (by,) if isinstance(by, str) else tuple(by),
        loss=loss,
        settings=settings,
        run_resamples=0 if unpaired else resamples_wanted(resamples, interval, of_a_run=True),
        match_options=match_options,
    )

    def evaluate_opened(opened: Mapping[str, Any]) -> Result:
        systems = _match_systems(opened, request)
        result = _evaluate_systems(systems, request, progress)
        if on_read is not None and _is_aggregated(opened):
            on_read(
                {
                    name: replace(items, provenance=result.systems[name].provenance)
                    for name, items in systems.sources.items()
                }
            )
        return result

    return aggregate_or_load(
        sources,
        evaluate_opened,
        by=request.by,
        engine=engine,
        memory=memory,
        master=master,
        on_read=on_read,
        **columns,
    )


def _check_unpaired(
    interval: str, resamples: int | None, *, by: str, intersection_only: bool, truth_may_differ: bool
) -> None:
    """Reject options that contradict independent samples."""
    if by != NAMES or intersection_only or truth_may_differ:
        raise ArgumentError(
            "unpaired systems have different items, and nothing is matched: omit match, intersection_only and "
            "truth_may_differ (--match, --intersection-only, --truth-may-differ), or unpaired (--unpaired)"
        )
    if interval not in (JACKKNIFE, NONE) or resamples:
        raise ArgumentError(
            "unpaired systems have jackknife intervals only: omit interval and resamples (--interval, --resamples)"
        )


def compare(*systems: Any, **options: Any) -> Result:
    """Evaluate two or more systems on the same items, and the differences between them, right - left.

    One table is enough if a column ``system`` or ``model`` names the system of each row. Items are matched by their
    names; see `evaluate`, whose options these are. With ``unpaired=True`` the systems have different items, such as
    those of two weeks. If metrics are named, systems are compared only by these.

    >>> from abstain import Items
    >>> truth, item = [0, 1] * 20, list(range(40))
    >>> careful = Items.from_arrays(truth, truth, item=item, confidence=[0.9] * 40)
    >>> careless = Items.from_arrays(truth, [0] * 40, item=item, confidence=[0.9] * 40)
    >>> result = compare({"A": careless, "B": careful}, metrics="augrc", resamples=0)
    >>> print(result)
    Result of 2 systems over 40 items
      AUGRC at coverage 1.00: B is better than A by 0.250 [0.165, 0.335]
    >>> result.difference("A", "B").verdict
    'right'
    """
    count = sum(len(system) if isinstance(system, Mapping) else 1 for system in systems)
    if not count or (count == 1 and isinstance(next(iter(_systems_by_name(systems).values())), Items)):
        raise ArgumentError(f"a comparison needs at least two systems, got {count}")
    result = evaluate(*systems, **{"selective": options.get("metrics") is None, **options})
    if len(result.systems) < 2:
        raise ArgumentError(
            "a comparison needs at least two systems, got 1: this source has no column that names the system of each "
            "row (system=, --system), or only one name in it"
        )
    return result


def _systems_by_name(systems: Sequence[Any]) -> dict[str, Any]:
    """Return the systems by name; two without names are called left and right."""
    _check_kinds(systems)
    named: dict[str, Any] = {}
    bare = sum(not isinstance(system, Mapping) for system in systems)
    unnamed = iter(("left", "right") if bare == 2 else [f"system {number + 1}" for number in range(bare)])
    for system in systems:
        for name, items in system.items() if isinstance(system, Mapping) else [(next(unnamed), system)]:
            if name in named:
                raise ArgumentError(f"two systems are called {name!r}; give them different names")
            named[str(name)] = items
    if not named:
        raise ArgumentError("there is no system; pass the items of at least one")
    return named


def _check_kinds(systems: Iterable[Any]) -> None:
    """Reject arguments that are not systems before anything is read, such as a list of systems."""
    for system in systems:
        if isinstance(system, Mapping):
            _check_kinds(system.values())
        elif system is None or isinstance(system, (bool, int, float, list, tuple, np.ndarray)):
            raise ArgumentError(
                "a system must be Items, a data frame, a path, or a mapping from names to them, got "
                f"{_validate.kind(system)}; {_validate.FROM_ARRAYS}"
            )


def aggregate_or_load(
    sources: Mapping[str, Any],
    work: Callable[[Mapping[str, Any]], Output],
    *,
    by: Sequence[str] = (),
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    on_read: OnRead | None = None,
    **reading: Any,
) -> Output:
    """Return the output of `work` for the systems: tables that an engine aggregates, or loaded items.

    Tables are aggregated if the caller names an engine, or if they are large. If `work` needs single rows and no engine
    was named, they are loaded, and `on_read` is called with the items. Data errors name the files. The arguments are
    those of `evaluate`; a source may also be a table that is already open for an engine.
    """
    readers.check_arguments(reading, evaluate)
    for name, source in sources.items():
        if isinstance(source, Items):
            how = {**_reading_of(name, reading), "engine": engine, "memory": memory, "master": master}
            readers.check_not_read(how, name)
    if all(isinstance(source, engines.EngineTable) for source in sources.values()):
        return work(sources)

    def aggregate(tables: Mapping[str, EngineTable]) -> Output:
        with at(*dict.fromkeys(table.label for table in tables.values()), kind=DataError):
            return work(tables)

    def load(reason: str | None) -> Output:
        loaded = {
            name: {"": source}
            if isinstance(source, Items)
            else _read_systems(source, by, _reading_of(name, reading))
            for name, source in sources.items()
        }
        systems = readers.name_systems(loaded)
        if reason is not None:
            systems = {name: items.with_provenance(loaded_because=reason) for name, items in systems.items()}
        if on_read is not None and not all(isinstance(source, Items) for source in sources.values()):
            on_read(systems)
        paths = dict.fromkeys(
            items.provenance["path"]
            for name, source in sources.items()
            for items in loaded[name].values()
            if not isinstance(source, Items) and "path" in items.provenance
        )
        with at(*paths, kind=DataError) if paths else nullcontext():
            return work(systems)

    tables = None
    if not any(isinstance(source, Items) for source in sources.values()):
        shared = {
            key: next((one for one in value.values() if one is not None), None)
            if isinstance(value, Mapping)
            else value
            for key, value in reading.items()
        }
        tables = engines.engine_tables(sources, engine=engine, memory=memory, master=master, **shared)
    return engines.aggregate_or_load_tables(tables, aggregate, load)


def _read_systems(source: Any, by: Sequence[str], reading: Mapping[str, Any]) -> dict[str, Items]:
    """Read the systems of a source; columns of groups are also kept as metadata if they play a role."""
    systems = readers.read_systems(source, **reading)
    items = next(iter(systems.values()))
    roles = items.provenance.get("columns", {}).values()
    columns = [name for name in by if name in roles and name not in columns_for_groups(items)]
    if not columns or reading.get("metadata") is not None:
        return systems
    kept = [name for name in (*by, GUIDANCE) if name in items.metadata]
    return readers.read_systems(source, **{**reading, "metadata": (*columns, *kept)})


def _reading_of(name: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `abstain.read` for one system."""
    return {key: value.get(name) if isinstance(value, Mapping) else value for key, value in reading.items()}


def _is_aggregated(systems: Mapping[str, Any]) -> bool:
    return any(isinstance(system, engines.EngineTable) for system in systems.values())


@dataclass(frozen=True, eq=False, slots=True)
class _Request:
    """The checked arguments of `evaluate`.

    `metrics` are those in addition to the selective ones. `metrics_named` is False if the default metrics are
    evaluated. `run_resamples` is the number of resamples if a system is a run file.
    """

    metrics: tuple[MetricSpecification, ...]
    metrics_named: bool
    selective: bool
    confidence: Confidence
    calibrations: tuple[Calibration, ...]
    by: tuple[str, ...]
    loss: Loss | None
    settings: Settings
    run_resamples: int
    match_options: Mapping[str, Any]

    @property
    def confidence_is_implied(self) -> bool:
        """True if metrics were named, and no confidence."""
        return self.confidence is None and not self.selective and not self.calibrations


class _Systems(NamedTuple):
    """The items of every system, those of them that are evaluated, and how they were matched; None for one system."""

    sources: Mapping[str, Items]
    evaluated: Mapping[str, Items]
    matching: Matching | None


def _match_systems(opened: Mapping[str, Any], request: _Request) -> _Systems:
    """Return the items of every system, and those of them that are evaluated: if there are several, matched items."""
    if _is_aggregated(opened):
        metrics = _choose_metrics(request, ranked=True)
        aggregation = AggregationRequest(
            metrics=metrics.evaluated,
            metrics_by_group=metrics.by_group,
            confidence=request.confidence,
            by=request.by,
            loss=request.loss,
            units=request.settings.interval != NONE or request.settings.resamples > 0,
        )
        compared = len(opened) > 1
        if compared and not request.settings.unpaired:
            return _Systems(*aggregate_systems(opened, aggregation, **request.match_options))
        opened = {
            name: aggregate_items(table, aggregation, compared=compared) for name, table in opened.items()
        }
    if len(opened) > 1:
        matched = (
            keep_apart(opened) if request.settings.unpaired else match_items(opened, **request.match_options)
        )
        return _Systems(opened, *matched)
    return _Systems(opened, {name: items.evaluated for name, items in opened.items()}, None)


# The metrics that describe every system, whatever was requested.
_DESCRIBED = ("answer_rate", "accuracy", "selective_accuracy")


class _Metrics(NamedTuple):
    """The metrics of the metric table, and the selective metrics.

    `unranked` is True if no metric was named, and there is no confidence for the default ones.
    """

    requested: tuple[MetricSpecification, ...]
    selective: tuple[MetricSpecification, ...]
    unranked: bool = False

    @property
    def compared(self) -> tuple[MetricSpecification, ...]:
        """The metrics by which systems are compared."""
        return tuple({metric.key: metric for metric in (*self.selective, *self.requested)}.values())

    @property
    def evaluated(self) -> tuple[MetricSpecification, ...]:
        """Every metric: the compared ones, and coverage and accuracy, which every system has."""
        described = (METRICS[name] for name in _DESCRIBED)
        return tuple({metric.key: metric for metric in (*self.compared, *described)}.values())

    @property
    def by_group(self) -> tuple[MetricSpecification, ...]:
        """The metrics that are also evaluated by group: those of the metric table and the coverage."""
        return (*self.requested, METRICS["answer_rate"])


def _choose_metrics(request: _Request, *, ranked: bool) -> _Metrics:
    """Return the metrics; without a confidence, those selective metrics that need none."""
    if not ranked and not request.metrics_named:
        return _Metrics(select_metrics("answers"), (), unranked=True)
    if not request.selective:
        return _Metrics(request.metrics, ())
    settings = request.settings
    selective = [METRICS[name] for name in BUNDLES["selective"]]
    selective = [each if each.parameter is None else each.at(settings.area_coverage) for each in selective]
    selective += [METRICS["risk_at_coverage"].at(coverage) for coverage in settings.coverage_grid]
    in_convention = (
        each.in_convention(settings.convention) for each in selective if ranked or not each.ranked
    )
    return _Metrics(request.metrics, tuple(in_convention))


def _evaluate_systems(systems: _Systems, request: _Request, progress: Progress | None) -> Result:
    """Evaluate all statistics of all systems with the same weights and collect the estimates."""
    sources, evaluated, matching = systems
    if request.settings.reference is not None:
        _validate.choice(request.settings.reference, "reference", sources)
    if matching is None and not all(map(len, sources.values())):
        raise DataError("there is no item to evaluate: the source is empty")
    settings = _settle_resamples(request, systems)
    loss = _evaluated_loss(request.loss, sources) if matching is None else request.loss
    confidences = _common_confidences(request, systems)
    ranked = any(confidences.values())
    metrics = _choose_metrics(request, ranked=ranked)
    losses = _losses(evaluated, metrics.evaluated, loss, ranked=ranked)
    intervals = _intervals(evaluated, settings)
    rank_groups = not request.by or ranks_groups(metrics.by_group, compared=matching is not None)
    statistics = {
        name: SystemStatistics.prepare(
            name,
            sources[name],
            items,
            metrics.evaluated,
            confidences=confidences[name],
            loss=losses[name],
            requested_loss=loss,
            intervals=intervals[name],
            by=request.by,
            metrics_by_group=metrics.by_group,
            recount=None
            if rank_groups or items.aggregation is None
            else partial(_recount_confidence, items, request.calibrations),
        )
        for name, items in evaluated.items()
    }
    pairs = None
    if matching is not None:
        pairs = PairDifferences.prepare(statistics, matching, settings, metrics.compared)
    all_statistics = [
        (system.intervals, each) for system in statistics.values() for each in system.all_statistics
    ]
    replicates = _replicate(all_statistics + (pairs.statistics if pairs else []), progress)
    results = {
        name: _system_result(system, replicates, metrics, request, settings, matching)
        for name, system in statistics.items()
    }
    estimates = {name: result.estimates for name, result in results.items()}
    differences = pairs.differences(replicates, estimates) if pairs else ()
    first = next(iter(statistics.values()))
    by_key = {Key(name, metric.key): metric for name, part in first.metrics.items() for metric in part}
    ranks, cycle_warnings = _ranks(results, by_key, differences) if differences else ({}, [])
    return Result(
        systems=results,
        specifications={key.metric: metric for key, metric in by_key.items()},
        differences=differences,
        ranks=ranks,
        headline=_headline(statistics, differences, metrics) if differences else None,
        matching=matching,
        settings=settings,
        warnings=(*cycle_warnings, *_result_warnings(results, matching, settings)),
    )


def _settle_resamples(request: _Request, systems: _Systems) -> Settings:
    """Return the settings: run files are resampled by default, and without evaluated items there are no intervals."""
    if not any(map(len, systems.evaluated.values())):
        return replace(request.settings, interval=NONE, resamples=0)
    if any(items.provenance.get("format") == "run" for items in systems.sources.values()):
        return replace(request.settings, resamples=request.run_resamples)
    return request.settings


def _evaluated_loss(loss: Loss | None, sources: Mapping[str, Items]) -> Loss | None:
    """Return the loss of one system; if it is one number per item of the source, those of evaluated items."""
    if loss is None or isinstance(loss, str) or callable(loss):
        return loss
    (items,) = sources.values()
    return item_loss(items, loss).values[items.is_evaluated]


# The common name of confidences that differ between systems.
OWN = "own"


def _common_confidences(request: _Request, systems: _Systems) -> dict[str, dict[str, VariantConfidence]]:
    """Return by system the confidences that all systems have, by the names under which estimates are known."""
    if isinstance(request.confidence, Mapping):
        for name in request.confidence:
            _validate.choice(name, "system", systems.sources)
    by_system = {name: _system_confidences(request, systems, name) for name in systems.evaluated}
    names = dict.fromkeys(name for own in by_system.values() for name in own)
    if request.confidence_is_implied:
        # No confidence was requested: metrics of a system that has none are undefined, with a reason.
        return {
            system: {name: own.get(name) or _unstated(name, systems.evaluated[system]) for name in names}
            for system, own in by_system.items()
        }
    common = [name for name in names if all(name in own for own in by_system.values())]
    if names and not common:
        raise DataError(
            "the systems have no confidence in common; name one that all of them have, or one for each"
        )
    return {system: {name: own[name] for name in common} for system, own in by_system.items()}


def _system_confidences(request: _Request, systems: _Systems, name: str) -> dict[str, VariantConfidence]:
    requested, items = request.confidence, systems.evaluated[name]
    if isinstance(requested, Mapping):
        own = variant_confidences(requested.get(name, "default"), items, request.calibrations)
        if len(own) > 1 and name in requested:
            raise ArgumentError(
                f"{name}: a system is ranked by one confidence, got {list_names(own)}; pass it several times, as "
                "separate systems"
            )
        return {OWN: next(iter(own.values()))} if own else {}
    if request.confidence_is_implied:
        default = next(iter(select("default", items)), None)
        # Several systems are also compared at matched coverage, which needs a ranking.
        needed = len(systems.evaluated) > 1 or any(metric.ranked for metric in request.metrics)
        return {default: stated_confidence(items, default)} if default and needed else {}
    return variant_confidences("default" if requested is None else requested, items, request.calibrations)


def _recount_confidence(
    items: Items, calibrations: Sequence[Calibration], name: str, **split: NDArray[np.intp]
) -> VariantConfidence:
    """Return a confidence of an aggregated table after aggregating its rows again; see `Aggregation.view`."""
    assert items.aggregation is not None
    again = replace(
        items, aggregation=replace(items.aggregation, view=partial(items.aggregation.view, **split))
    )
    return variant_confidences(name, again, calibrations if is_calibrated(name) else ())[name]


def _unstated(name: str, items: Items) -> VariantConfidence:
    return VariantConfidence(name, np.full(len(items), np.nan), (), items)


def _losses(
    evaluated: Mapping[str, Items], metrics: Sequence[MetricSpecification], loss: Loss | None, *, ranked: bool
) -> dict[str, ItemLoss | None]:
    """Return the loss of every system, by one rule for all; None if no metric needs one."""
    needed = any("loss" in metric.needs for metric in metrics)
    if len(evaluated) == 1:
        return {name: item_loss(items, loss) if needed else None for name, items in evaluated.items()}
    if needed or ranked:
        try:
            return dict(zip(evaluated, common_loss(list(evaluated.values()), loss), strict=True))
        except AbstainError:  # comparisons at matched coverage can do without
            if needed:
                raise
    return dict.fromkeys(evaluated)


def _intervals(evaluated: Mapping[str, Items], settings: Settings) -> dict[str, Intervals]:
    """Return by system how intervals are computed: over its own clusters, or those that all have in common."""

    def over(items: Items) -> Intervals:
        return Intervals.of(
            items.cluster_ids,
            items.cluster_index,
            items.weight,
            interval=settings.interval,
            resamples=settings.resamples,
            seed=settings.seed,
            level=settings.level,
            members=items.members,
        )

    if settings.unpaired:
        return {name: over(items) for name, items in evaluated.items()}
    return dict.fromkeys(evaluated, over(next(iter(evaluated.values()))))


def _replicate(
    statistics: Iterable[tuple[Intervals, Statistic]], progress: Progress | None
) -> dict[Statistic, Replicates]:
    """Return the replicates of every statistic; those with the same weights are evaluated together."""
    by_intervals: dict[Intervals, list[Statistic]] = defaultdict(list)
    for intervals, statistic in statistics:
        by_intervals[intervals].append(statistic)
    replicates: dict[Statistic, Replicates] = {}
    for intervals, own in by_intervals.items():
        replicates |= intervals.replicate(own, progress)
    return replicates


def _system_result(
    system: SystemStatistics,
    replicates: Mapping[Statistic, Replicates],
    metrics: _Metrics,
    request: _Request,
    settings: Settings,
    matching: Matching | None,
) -> SystemResult:
    source, evaluated = system.source, system.evaluated
    counts, own = evaluated.counts, source.counts
    outcomes = replace(population_table(evaluated), failed=own.failed, unscored=own.unscored)
    matched = matching if matching is not None and matching.paired else None
    clusters = source.clusters if matched is None else matched.clusters_shared
    population = Population(
        total=clusters,
        included=evaluated.clusters,
        failed=clusters - evaluated.clusters,
        items=counts.n,
        answered=counts.answered,
        abstained=counts.abstained,
        items_failed=own.failed,
        items_unscored=own.unscored,
        right=outcomes.right,
    )
    estimates = system.estimates(replicates)
    if matched is None:
        estimates = system.with_bounds(estimates)
    table = None
    if metrics.requested:
        # Next to metrics of answered rows, the table shows the coverage.
        listed = select_metrics(metrics.requested)
        table = system.table(listed, estimates, replicates, outcomes=outcomes)
    ranking_wanted = (
        request.selective or metrics.unranked or any(metric.ranked for metric in metrics.requested)
    )
    general = general_warnings(
        source,
        population,
        settings,
        ranked=bool(system.confidences) or not ranking_wanted,
        loss_named=request.loss is not None,
    )
    selective = request.selective and system.loss is not None
    return SystemResult(
        name=system.name,
        population=population,
        loss=system.loss,
        settings=settings,
        provenance={**source.provenance, **system.percent_provenance},
        warnings=(*general, *left_out_warnings(estimates, population)),
        cluster_noun=evaluated.unit_noun,
        design_effect=math.nan if settings.interval == NONE else system.design_effect(),
        calibrations=request.calibrations,
        confidences={name: confidence.name for name, confidence in system.confidences.items()},
        estimates=estimates,
        variants=system.variants(estimates, settings) if selective else {},
        metrics=table,
        basis=system,
    )


def _headline(
    statistics: Mapping[str, SystemStatistics], differences: Sequence[Difference], metrics: _Metrics
) -> Headline | None:
    """Return the conclusion by the first requested metric that has a direction.

    With selective metrics it is the AUGRC. Without a confidence it is the SimpleQA F.
    """
    requested = metrics.requested
    if metrics.unranked or metrics.selective:
        requested = (METRICS["simpleqa_f" if metrics.unranked else "augrc"],)
    metric = next((metric for metric in requested if metric.comparison != UNDIRECTED), None)
    if metric is None:
        return None
    confidences = next(iter(statistics.values())).confidences
    confidence_name = next(iter(confidences), ALL) if metric.ranked else ALL
    return headline(list(statistics), differences, Key(confidence_name, metric.key))


def _result_warnings(
    systems: Mapping[str, SystemResult], matching: Matching | None, settings: Settings
) -> tuple[ResultWarning, ...]:
    first = next(iter(systems.values()))
    if matching is None:
        return first.warnings
    warnings = [*comparison_warnings(systems), *matching.warnings]
    if matching.paired:
        warnings += few_clusters(matching.clusters, first.cluster_noun, settings.interval)
    codes = {warning.code for warning in warnings}
    for name, side in systems.items():
        for each in side.warnings:
            # Independent samples have their own numbers of items.
            own = not matching.paired and any(each not in other.warnings for other in systems.values())
            if own:
                warnings.append(replace(each, message=f"{name}: {each.message}"))
            elif each.code not in codes:
                warnings.append(each)
    return tuple(sorted(dict.fromkeys(warnings), key=lambda each: each.code != POSSIBLE_SCALE))


def _ranks(
    systems: Mapping[str, SystemResult],
    metrics: Mapping[Key, MetricSpecification],
    differences: Sequence[Difference],
) -> tuple[dict[tuple[str, str, str], Rank | None], list[ResultWarning]]:
    """Return the range of ranks of every system by every metric over all items, and a warning for every cycle."""
    ranks: dict[tuple[str, str, str], Rank | None] = {}
    warnings = []
    for key, metric in metrics.items():
        names = [
            name
            for name, system in systems.items()
            if system.population.answered and system.estimates[key].defined
        ]
        decided = list(deciding(differences, key.metric, key.confidence).values())
        ranked = metric.comparison != UNDIRECTED
        if metric.comparison == CONDITIONAL:
            ranked = same_coverage(*(systems[name].coverage.value for name in names))
        for name in systems:
            system_rank = rank(name, names, decided) if ranked and name in names else None
            ranks[name, key.confidence, key.metric] = system_rank
        for cycle in cycles(names, decided) if ranked else []:
            message = f"{key.metric}: {list_names(cycle)} beat each other in a cycle, so they have no rank"
            warnings.append(ResultWarning("rank_cycle", message))
    return ranks, warnings
