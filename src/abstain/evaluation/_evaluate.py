"""Evaluate one system or many: what was asked, and the one `Result` that answers it.

Systems that are compared are matched first (see `abstain.matching`). Clusters are left out, and drawn, once for
all systems, and every difference is paired: right - left with the same weights. A difference gets its interval
and p-value from one statistic (see `abstain.inference`), Holm's correction within its family (all pairs of systems
by one metric, confidence and group), and its verdict by the rule in `abstain.evaluation._differences`: a system must
not look better because it declines more. A system that answered nothing is not compared and not ranked: the area over
an empty range is 0, and 0 must not win.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from abstain import _validate, readers
from abstain._confidences import (
    VariantConfidence,
    load_calibrations,
    stated_confidence,
    variant_confidences,
)
from abstain.confidence import select
from abstain.errors import AbstainError, ArgumentError, DataError, ResultWarning, at
from abstain.evaluation._differences import DifferenceWork, cycles, deciding, headline, rank
from abstain.evaluation._metric_tables import ALL, Key
from abstain.evaluation._result import Population, Result, Settings, SystemResult
from abstain.evaluation._system import ResultData, SystemWork
from abstain.evaluation._warnings import (
    POSSIBLE_SCALE,
    comparison_warnings,
    few_clusters,
    general_warnings,
    left_out_warnings,
)
from abstain.inference import NONE, Intervals, resamples_wanted
from abstain.items import Items
from abstain.losses import check_loss_name, common_loss, item_loss
from abstain.matching import MATCHES
from abstain.matching import match as match_items
from abstain.metrics.abstention import population_table
from abstain.metrics.registry import BUNDLES, CONDITIONAL, GROUPED, METRICS, UNDIRECTED, select_metrics
from abstain.readers import engines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from abstain._confidences import CalibrationLike
    from abstain._types import Progress
    from abstain.calibrators import Calibration
    from abstain.evaluation._counted import Wanted
    from abstain.evaluation._differences import Difference, Headline, Rank
    from abstain.inference import Replicates
    from abstain.losses import ItemLoss, Loss
    from abstain.matching import Matching
    from abstain.metrics import MetricSpecification
    from abstain.metrics.registry import MetricLike
    from abstain.readers.engines import Countable
    from abstain.resampling import Statistic

    OnRead = Callable[[Mapping[str, Items]], None]
    Confidence = str | Sequence[str] | Mapping[str, str] | None

Found = TypeVar("Found")

DEFAULT_GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Told of every system, whatever is asked for.
COVERAGE = METRICS["answer_rate"]


def evaluate(
    *systems: Any,
    confidence: Confidence = None,
    calibration: CalibrationLike = None,
    metrics: MetricLike | Iterable[MetricLike] | None = None,
    selective: bool | None = None,
    by: str | Sequence[str] | None = None,
    loss: Loss | None = None,
    coverage_grid: Iterable[float] = DEFAULT_GRID,
    area_coverage: float = 0.5,
    convention: str = "trapezoid",
    reference: str | None = None,
    margin: float | None = None,
    simultaneous: bool = False,
    match: str = "names",
    intersection_only: bool = False,
    truth_may_differ: bool = False,
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
    """Judge one system that may abstain, or several on the same items, under one or more confidences.

    Args:
        systems: the items of one system; of several, each by itself or by name in a mapping. A data frame (pandas,
            polars, Arrow), a path, or anything else that `abstain.read` takes, does as well. A table with a column
            ``system`` or ``model`` holds one system per value of it (see `abstain.readers.read_systems`).
        confidence: names of variants or signals, "default", "all", or a sequence of those; a mapping gives each
            system its own one. When left out, the default of the source; where it has none, areas are not computed.
        calibration: the artifact that calibrated variants need, or its path; several in a sequence.
        metrics: metrics by name, as objects or as import paths; see `abstain.metrics.registry`. Default: the selective
            metrics, or the bundle "answers" if there is no confidence. If metrics are named and no confidence is, only
            these are evaluated, by the first default confidence.
        selective: whether the selective metrics are evaluated in addition to those named. Default: if no metric is
            named, or a confidence is. With False and no metric, the AUGRC is evaluated.
        by: one or more metadata columns; every one of the metrics is also given by group. Default metrics: accuracy,
            selective accuracy and answer rate.
        loss: "abs", "abs_norm", "zero_one", a function of (truth, prediction), or, for one system, one number per item.
            When left out: what a declared scale or the kind of labels imply (see `abstain.losses`).
        coverage_grid: coverages at which the selective risk is asked for.
        area_coverage: coverage at which the truncated areas end.
        convention: how areas are integrated: "trapezoid", "interpolated", "mean" or "torch-uncertainty".
        reference: the system that all others are compared with; every pair when left out.
        margin: the smallest difference that would matter: whether systems are within it, or one not worse than another
            by more than it, is then said too, and how many clusters would tell a difference of that size.
        simultaneous: let the intervals of differences hold for all pairs of systems together, and the band of a curve
            for all thresholds.
        match: how items of several systems are matched: "names", or "rows" where the order of rows is the match.
        intersection_only: compare the items that all systems have when some lack some; an error otherwise.
        truth_may_differ: compare although systems disagree about the truth of items; an error otherwise.
        interval: how intervals are made: "jackknife" over clusters, "percentile" or "bca" for those of the cluster
            bootstrap, "none" for none.
        resamples: how many times the clusters are drawn for the bootstrap. When left out, 10,000 where a bootstrap
            interval is asked for and for run files, whose artifact has one; else none.
        seed: the same seed gives the same intervals.
        level: confidence level of the intervals; a difference is told at ``1 - level``.
        engine: what reads a table: "numpy" loads it, "duckdb" and "spark" count its rows where they are, with the same
            numbers; when left out, what fits the source and its size.
        memory: how much memory DuckDB may take, such as "4GB"; it goes on on disk beyond.
        master: where Spark runs, such as "local[4]".
        progress: called with the number of resamples done since the last call.
        on_read: called with the items of every system by name when data frames and files have been read.
        columns: of data frames and files, the arguments of `abstain.read`: truth="y", prediction="p", cluster="id". A
            mapping gives each system its own value: mode={"a": "zero_shot", "b": "few_shot"}.

    >>> from abstain import Items
    >>> truth, prediction, sure = [0, 1, 1, 0], [0, 1, 0, None], [0.9, 0.8, 0.3, 0.1]
    >>> items = Items.from_arrays(truth, prediction, abstained=[0, 0, 0, 1], confidence=sure)
    >>> result = evaluate(items)
    >>> print(result["confidence"].cmax)
    0.750 [0.131, 0.984]
    >>> print(result.loss.rule)
    loss zero_one: whole-number labels, no scale declared
    >>> import polars
    >>> frame = polars.DataFrame({"y": [0, 1, 1], "p": [0, 1, 0], "sure": [0.9, 0.8, 0.3]})
    >>> print(evaluate(frame, truth="y", prediction="p", confidence="sure", interval="none")["sure"].aurc)
    0.056
    """
    given = _given(systems)
    if isinstance(loss, str):
        check_loss_name(loss)
    settings = Settings.checked(
        coverage_grid=coverage_grid,
        area_coverage=area_coverage,
        interval=interval,
        resamples=resamples_wanted(resamples, interval),
        seed=seed,
        level=level,
        convention=convention,
        reference=reference,
        margin=margin,
        simultaneous=simultaneous,
    )
    chosen = GROUPED if metrics is None and by is not None else metrics
    if chosen is None and selective is False:
        chosen = "augrc"
    asked = () if chosen is None else select_metrics(chosen, coverage=False)
    request = _Request(
        asked=tuple(metric.in_convention(convention) for metric in asked),
        selective=(metrics is None or confidence is not None) if selective is None else bool(selective),
        confidence=confidence,
        calibrations=load_calibrations(calibration),
        by=() if by is None else (by,) if isinstance(by, str) else tuple(by),
        loss=loss,
        settings=settings,
        by_name=metrics is not None or by is not None,
    )
    matching = {
        "by": _validate.choice(match, "match", MATCHES),
        "intersection_only": intersection_only,
        "truth_may_differ": truth_may_differ,
    }

    def evaluate_systems(opened: Mapping[str, Any]) -> Result:
        named, kept, matched = _match_systems(opened, request, matching)
        if reference is not None:
            _validate.choice(reference, "reference", named)
        asked = request
        if any(map(_is_run, named.values())):
            drawn = resamples_wanted(resamples, interval, of_a_run=True)
            asked = replace(request, settings=replace(settings, resamples=drawn))
        if matched is None:
            name, items = next(iter(named.items()))
            result = _Job.alone(asked, name, items).run(progress)
        else:
            result = _Job.prepare(asked, named, kept, matched).run(progress)
        if on_read is not None and _is_aggregated(opened):
            on_read(named)
        return result

    return aggregate_or_load(
        given, evaluate_systems, engine=engine, memory=memory, master=master, on_read=on_read, **columns
    )


def compare(*systems: Any, **options: Any) -> Result:
    """Judge two or more systems on the same items, and the differences between them, right - left.

    One table is enough if a column ``system`` or ``model`` names the system of each row. Items are matched by their
    names; see `evaluate`, whose options these are. If metrics are named, systems are compared only by these.

    >>> from abstain import Items
    >>> truth, item = [0, 1] * 20, list(range(40))
    >>> careful = Items.from_arrays(truth, truth, item=item, confidence=[0.9] * 40)
    >>> careless = Items.from_arrays(truth, [0] * 40, item=item, confidence=[0.9] * 40)
    >>> result = compare({"A": careless, "B": careful}, metrics="augrc", resamples=0)
    >>> print(result)
    Result of 2 systems over 40 items
      AUGRC at coverage 1.00: B is better than A by 0.250 [0.169, 0.331]
    >>> result.difference("A", "B").verdict
    'right'
    """
    _check_kinds(systems)
    count = sum(len(system) if isinstance(system, Mapping) else 1 for system in systems)
    if not count or (count == 1 and isinstance(next(iter(_given(systems).values())), Items)):
        raise ArgumentError(f"a comparison needs at least two systems, got {count}")
    result = evaluate(*systems, **{"selective": options.get("metrics") is None, **options})
    if len(result.systems) < 2:
        raise ArgumentError(
            "a comparison needs at least two systems, got 1: this source has no column that names the system of each "
            "row (system=, --system), or only one name in it"
        )
    return result


def _is_run(items: Items) -> bool:
    return items.provenance.get("format") == "run"


def _given(systems: Sequence[Any]) -> dict[str, Any]:
    """Return the systems by name: left and right where two have none."""
    _check_kinds(systems)
    named: dict[str, Any] = {}
    bare = sum(not isinstance(system, Mapping) for system in systems)
    unnamed = iter(("left", "right") if bare == 2 else [f"system {place + 1}" for place in range(bare)])
    for system in systems:
        for name, items in system.items() if isinstance(system, Mapping) else [(next(unnamed), system)]:
            if name in named:
                raise ArgumentError(f"two systems are called {name!r}; give them different names")
            named[str(name)] = items
    if not named:
        raise ArgumentError("no system was given; pass the items of at least one")
    return named


def _check_kinds(systems: Iterable[Any]) -> None:
    """Refuse what is no system before anything is read: a list may be systems that lack their stars, or paths."""
    for system in systems:
        if isinstance(system, Mapping):
            _check_kinds(system.values())
        elif system is None or isinstance(system, (bool, int, float, list, tuple, np.ndarray)):
            raise ArgumentError(
                "a system must be Items, a data frame, a path, or a mapping from names to them, got "
                f"{_validate.kind(system)}; {_validate.FROM_ARRAYS}"
            )


class _Systems(NamedTuple):
    """The items of every system, those that are compared, and how they were matched; None where there is but one."""

    named: Mapping[str, Items]
    kept: Mapping[str, Items]
    matching: Matching | None


def aggregate_or_load(
    sources: Mapping[str, Any],
    work: Callable[[Mapping[str, Any]], Found],
    *,
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    on_read: OnRead | None = None,
    **reading: Any,
) -> Found:
    """Return what `work` computes from the systems: tables that an engine aggregates, or loaded items.

    Tables are aggregated if the caller names an engine, or if they are large. If `work` needs single rows and no engine
    was named, they are loaded. Data errors name the files.

    Args:
        sources: by system, Items, a data frame, a path, or a table that is already open for an engine.
        work: the computation.
        engine: as for `evaluate`.
        memory: as for `evaluate`.
        master: as for `evaluate`.
        on_read: called with the items of every system after they are loaded.
        **reading: arguments of `abstain.read`; a mapping gives each system its own value.
    """
    readers.check_arguments(reading, evaluate)
    for name, source in sources.items():
        if isinstance(source, Items):
            how = {**_reading_of(name, reading), "engine": engine, "memory": memory, "master": master}
            readers.check_not_read(how, name)
    if all(isinstance(source, engines.Countable) for source in sources.values()):
        return work(sources)

    def aggregate(tables: Mapping[str, Countable]) -> Found:
        with at(*dict.fromkeys(table.label for table in tables.values()), kind=DataError):
            return work(tables)

    def load() -> Found:
        loaded = {
            name: {"": source}
            if isinstance(source, Items)
            else readers.read_systems(source, **_reading_of(name, reading))
            for name, source in sources.items()
        }
        systems = readers.name_systems(loaded)
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
        tables = engines.countables(sources, engine=engine, memory=memory, master=master, **shared)
    return engines.counted_or_loaded(tables, aggregate, load)


def _reading_of(name: str, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `abstain.read` for one system."""
    return {key: value.get(name) if isinstance(value, Mapping) else value for key, value in reading.items()}


def _is_aggregated(systems: Mapping[str, Any]) -> bool:
    return any(isinstance(system, engines.Countable) for system in systems.values())


def _match_systems(systems: Mapping[str, Any], request: _Request, options: Mapping[str, Any]) -> _Systems:
    """Return the items of every system, and those of them that are compared."""
    if not _is_aggregated(systems):
        matched = match_items(systems, **options) if len(systems) > 1 else (systems, None)
        return _Systems(systems, *matched)
    from abstain.evaluation._counted import counted_items, counted_systems  # noqa: PLC0415

    if len(systems) > 1:
        return _Systems(*counted_systems(systems, request.wanted, **options))
    named = {name: counted_items(name, table, request.wanted) for name, table in systems.items()}
    return _Systems(named, named, None)


@dataclass(frozen=True, eq=False, slots=True)
class _Request:
    """What was requested of every system.

    `by_name` is True if metrics were named; `unranked` if none were, and there is no confidence for the default ones.
    """

    asked: tuple[MetricSpecification, ...]
    selective: bool
    confidence: Confidence
    calibrations: tuple[Calibration, ...]
    by: tuple[str, ...]
    loss: Loss | None
    settings: Settings
    by_name: bool = True
    unranked: bool = False

    @property
    def listed(self) -> tuple[MetricSpecification, ...]:
        """The metrics of the table: those asked for, with the coverage beside those over answered rows only."""
        return select_metrics(self.asked) if self.asked else ()

    @property
    def bundle(self) -> tuple[MetricSpecification, ...]:
        """The selective metrics, at the coverages asked for."""
        settings = self.settings
        found = [METRICS[name] for name in BUNDLES["selective"]]
        found = [
            metric if metric.parameter is None else metric.at(settings.area_coverage) for metric in found
        ]
        found += [METRICS["risk_at_coverage"].at(coverage) for coverage in settings.coverage_grid]
        return tuple(metric.in_convention(settings.convention) for metric in found)

    def metrics(self, *, ranked: bool) -> tuple[MetricSpecification, ...]:
        """Every metric that is measured; of the selective ones those alone that need no confidence if there is none."""
        return tuple({metric.key: metric for metric in (*self.told(ranked=ranked), COVERAGE)}.values())

    def told(self, *, ranked: bool) -> tuple[MetricSpecification, ...]:
        """The metrics that were asked for, and whose differences are told."""
        bundle = [metric for metric in self.bundle if ranked or not metric.ranked] if self.selective else []
        return tuple({metric.key: metric for metric in (*bundle, *self.asked)}.values())

    @property
    def wanted(self) -> Wanted:
        """What is asked of a table before it is read."""
        from abstain.evaluation._counted import Wanted  # noqa: PLC0415

        return Wanted(
            metrics=self.metrics(ranked=True),
            confidence=self.confidence,
            by=self.by,
            loss=self.loss,
            units=self.settings.interval != NONE,
        )

    @property
    def by_default(self) -> bool:
        """True where metrics were asked for by name, and a confidence was not."""
        return self.confidence is None and not self.selective and not self.calibrations

    def confidences(self, name: str, items: Items, *, several: bool) -> dict[str, VariantConfidence]:
        """Return the confidences of one system by the names under which its estimates are known."""
        asked = self.confidence
        if isinstance(asked, Mapping):
            one = variant_confidences(asked.get(name, "default"), items, self.calibrations)
            if len(one) > 1 and name in asked:
                raise ArgumentError(
                    f"{name}: one confidence ranks a system, got {', '.join(one)}; compare them as systems of their own"
                )
            return {OWN: next(iter(one.values()))} if one else {}
        if self.by_default:
            chosen = next(iter(select("default", items)), None)
            # Several systems are compared at matched coverage, too, whatever the metrics need.
            needed = several or any(metric.ranked for metric in self.asked)
            return {chosen: stated_confidence(items, chosen)} if chosen and needed else {}
        return variant_confidences("default" if asked is None else asked, items, self.calibrations)


# The name of a confidence that is another one in every system.
OWN = "own"


@dataclass(frozen=True, eq=False, slots=True)
class _Job:
    """One evaluation under way."""

    request: _Request
    sources: Mapping[str, Items]
    works: Mapping[str, SystemWork]
    matching: Matching | None
    intervals: Intervals

    @classmethod
    def alone(cls, request: _Request, name: str, items: Items) -> _Job:
        """Prepare one system over all of its judged items."""
        judged = items.judged
        if not len(items):
            raise DataError("there is no item to judge: the source is empty")
        if not len(judged):  # everything is undefined, and says so
            request = replace(request, settings=replace(request.settings, interval="none", resamples=0))
        loss = request.loss
        if loss is not None and not isinstance(loss, str) and not callable(loss):
            # One number per item of the source: those of the judged ones are kept.
            measured = item_loss(items, loss)
            loss = measured.values[items.outcome <= 1]
        return cls.prepare(replace(request, loss=loss), {name: items}, {name: judged}, None)

    @classmethod
    def prepare(
        cls,
        request: _Request,
        sources: Mapping[str, Items],
        kept: Mapping[str, Items],
        matching: Matching | None,
    ) -> _Job:
        """Prepare every system: its loss, its confidences, its measures."""
        if isinstance(request.confidence, Mapping):
            for name in request.confidence:
                _validate.choice(name, "system", sources)
        confidences = {
            name: request.confidences(name, items, several=len(kept) > 1) for name, items in kept.items()
        }
        slots = dict.fromkeys(slot for own in confidences.values() for slot in own)
        if request.by_default:
            # Where nobody asked for a confidence, a system that has none is undefined by it, and says so.
            confidences = {
                name: {slot: own.get(slot) or _unstated(slot, kept[name]) for slot in slots}
                for name, own in confidences.items()
            }
        common = [slot for slot in slots if all(slot in own for own in confidences.values())]
        ranked = bool(common)
        if slots and not ranked:
            raise DataError(
                "the systems have no confidence in common; name one that all can serve, or one for each"
            )
        if not ranked and not request.by_name:
            request = replace(request, asked=select_metrics("answers"), selective=False, unranked=True)
        metrics = request.metrics(ranked=ranked)
        losses = _losses(kept, metrics, request.loss, ranked=ranked)
        intervals = _intervals(next(iter(kept.values())), request.settings)
        works = {
            name: SystemWork.prepare(
                name,
                sources[name],
                items,
                metrics,
                confidences={slot: confidences[name][slot] for slot in common},
                loss=losses[name],
                asked_loss=request.loss,
                intervals=intervals,
                by=request.by,
            )
            for name, items in kept.items()
        }
        return cls(request, sources, works, matching, intervals)

    def run(self, progress: Progress | None) -> Result:
        """Evaluate all statistics with the same weights and collect the estimates."""
        first = next(iter(self.works.values()))
        work = None
        if self.matching is not None:
            told = self.request.told(ranked=bool(first.confidences))
            work = DifferenceWork.prepare(
                self.works, self.matching, self.request.settings, told, self.intervals
            )
        statistics = [each for side in self.works.values() for each in side.all_statistics]
        if work is not None:
            statistics += work.statistics
        replicates = self.intervals.replicate(statistics, progress)
        systems = {name: self._system(name, replicates) for name in self.works}
        differences = () if work is None else work.differences(replicates)
        metrics = {Key(slot, metric.key): metric for slot, part in first.metrics.items() for metric in part}
        ranks, circles = _ranks(systems, metrics, differences) if differences else ({}, [])
        return Result(
            systems=systems,
            specifications={key.metric: metric for key, metric in metrics.items()},
            differences=differences,
            ranks=ranks,
            headline=self._headline(differences) if differences else None,
            matching=self.matching,
            settings=self.request.settings,
            warnings=(*circles, *self._warnings(systems)),
        )

    def _headline(self, differences: Sequence[Difference]) -> Headline | None:
        """The conclusion by the first requested metric that has a direction.

        Of the selective metrics, which come first, it is the AUGRC; without a confidence it is the SimpleQA F.
        """
        first = next(iter(self.works.values()))
        requested = self.request.asked
        if self.request.unranked or self.request.selective:
            requested = (METRICS["simpleqa_f" if self.request.unranked else "augrc"],)
        slots = {metric.key: slot for slot, part in first.metrics.items() for metric in part if slot}
        for metric in requested:
            if metric.comparison != UNDIRECTED:
                slot = next((slot for slot in first.confidences if metric.key in slots), ALL)
                return headline(list(self.works), differences, Key(slot, metric.key))
        return None

    def _system(self, name: str, replicates: Mapping[Statistic, Replicates]) -> SystemResult:
        request, work, source = self.request, self.works[name], self.sources[name]
        settings = request.settings
        counts = source.counts
        outcomes = replace(population_table(work.judged), failed=counts.failed, unscored=counts.unscored)
        population = self._population(name, outcomes.right)
        found = work.estimates(replicates)
        if self.matching is None:
            found = work.with_bounds(found)
        table = None
        if request.asked:
            table = work.table(request.listed, found, replicates, by=request.by, outcomes=outcomes)
        selective = request.selective and work.loss is not None
        wanted = request.selective or request.unranked or any(metric.ranked for metric in request.asked)
        return SystemResult(
            name=name,
            population=population,
            loss=work.loss,
            settings=settings,
            provenance={**source.provenance, **work.found},
            warnings=(
                *general_warnings(
                    source,
                    population,
                    settings,
                    ranked=bool(work.confidences) or not wanted,
                    loss_named=request.loss is not None,
                ),
                *left_out_warnings(found, population),
            ),
            cluster_noun=work.judged.cluster_noun,
            design_effect=math.nan if settings.interval == NONE else work.design_effect(),
            calibrations=request.calibrations,
            confidences={slot: confidence.name for slot, confidence in work.confidences.items()},
            estimates=found,
            variants=work.variants(found, settings) if selective else {},
            metrics=table,
            basis=ResultData.of(work, settings),
        )

    def _population(self, name: str, right: int) -> Population:
        source, judged = self.sources[name], self.works[name].judged
        own, counts = source.counts, judged.counts
        total, included = source.clusters, judged.clusters
        if self.matching is not None:
            total = self.matching.clusters_shared
        return Population(
            total=total,
            included=included,
            failed=total - included,
            items=counts.n,
            answered=counts.answered,
            abstained=counts.abstained,
            items_failed=own.failed,
            items_unscored=own.unscored,
            right=right,
        )

    def _warnings(self, systems: Mapping[str, SystemResult]) -> tuple[ResultWarning, ...]:
        if self.matching is None:
            return next(iter(systems.values())).warnings
        first = next(iter(systems.values()))
        found = [*comparison_warnings(systems), *self.matching.warnings]
        found += few_clusters(self.matching.clusters, first.cluster_noun, self.request.settings.interval)
        codes = {warning.code for warning in found}
        found += [each for side in systems.values() for each in side.warnings if each.code not in codes]
        return tuple(sorted(dict.fromkeys(found), key=lambda each: each.code != POSSIBLE_SCALE))


def _intervals(items: Items, settings: Settings) -> Intervals:
    """How intervals are made over the clusters that all systems share."""
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


def _unstated(slot: str, items: Items) -> VariantConfidence:
    return VariantConfidence(slot, np.full(len(items), np.nan), (), items)


def _losses(
    kept: Mapping[str, Items], metrics: Sequence[MetricSpecification], loss: Loss | None, *, ranked: bool
) -> dict[str, ItemLoss | None]:
    """The loss of every system, by one rule for all; none where no metric needs one."""
    if not any("loss" in metric.needs for metric in metrics):
        if len(kept) == 1 or not ranked:
            return dict.fromkeys(kept)
        try:  # several systems are compared at matched coverage, too, where the labels have a loss
            return dict(zip(kept, common_loss(list(kept.values()), loss), strict=True))
        except AbstainError:
            return dict.fromkeys(kept)
    if len(kept) == 1:
        return {name: item_loss(items, loss) for name, items in kept.items()}
    return dict(zip(kept, common_loss(list(kept.values()), loss), strict=True))


def _ranks(
    systems: Mapping[str, SystemResult],
    metrics: Mapping[Key, MetricSpecification],
    differences: Sequence[Difference],
) -> tuple[dict[tuple[str, str, str], Rank | None], list[ResultWarning]]:
    """The range of ranks of every system by every metric over all items, and a warning for every circle."""
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
            ranked = len({systems[name].coverage.value for name in names}) < 2
        for name in systems:
            place = rank(name, names, decided) if ranked and name in names else None
            ranks[name, key.confidence, key.metric] = place
        for circle in cycles(names, decided) if ranked else []:
            message = f"{key.metric}: {', '.join(circle)} beat each other in a circle, and have no rank"
            warnings.append(ResultWarning("rank_cycle", message))
    return ranks, warnings
