"""The outcomes, clusters, ties, confidences and possible metrics of a source.

`check` reads a source like `abstain.read`, but does not stop at the first problem: it lists every problem with its
rows. A kind of metric is possible if `evaluate`, without intervals, gives a number for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.confidence import confidence_values, no_confidence, select, signals_needed, variants
from abstain.errors import AbstainError, DataError, SignalError, list_names
from abstain.evaluation._evaluate import evaluate
from abstain.evaluation._warnings import nothing_evaluated
from abstain.items import GUIDANCE
from abstain.losses import item_loss
from abstain.metrics.registry import find_metric
from abstain.readers import FORMATS, Problems, read_systems, stack
from abstain.readers.engines import aggregate_or_load_tables, engine_tables
from abstain.readers.profiling import cluster_sizes, column_profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items, OutcomeCounts
    from abstain.readers.aggregation import AggregatedTable
    from abstain.readers.engines import EngineTable


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """The number of clusters, and how many items they have."""

    noun: str
    count: int
    smallest: int
    median: float
    largest: int


@dataclass(frozen=True, slots=True)
class SignalSummary:
    """One numeric column among the answered items.

    Attributes:
        distinct: number of different values.
        tied_proportion: proportion of items that have the same value as another item.
        missing: number of items without a value.
        low: the smallest value; NaN if there is no value.
        high: the largest value; NaN if there is no value.
    """

    distinct: int
    tied_proportion: float
    missing: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether something can be computed. `reason` is why not, or the option that it needs."""

    possible: bool
    reason: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class SourceCheck:
    """The result of `check`.

    Attributes:
        source: the path, or "items".
        format: the format of the source, in words.
        columns: the column of each role, for a table.
        guessed: the roles whose column was guessed.
        counts: number of items by outcome.
        clusters: the clusters and their sizes.
        signals: the numeric columns.
        metadata: the names of the other columns.
        confidences: every variant, and whether it can be computed from this source.
        metrics: every kind of metric, and whether it is possible for this source.
        defaults: the default confidence and loss, and the rule for the loss.
        problems: the problems of the source, with their rows.
        items: the items of all systems.
        systems: the items of each system, by name. The name is empty if the source has one system.
    """

    source: str
    format: str
    columns: Mapping[str, str] = field(repr=False)
    guessed: tuple[str, ...] = field(repr=False)
    counts: OutcomeCounts
    clusters: ClusterSizes
    signals: Mapping[str, SignalSummary] = field(repr=False)
    metadata: tuple[str, ...] = field(repr=False)
    confidences: Mapping[str, Availability] = field(repr=False)
    metrics: Mapping[str, Availability] = field(repr=False)
    defaults: Mapping[str, str] = field(repr=False)
    problems: tuple[str, ...] = field(repr=False)
    items: Items = field(repr=False)
    systems: Mapping[str, Items] = field(repr=False)

    @property
    def servable(self) -> tuple[str, ...]:
        """The names of the variants that can be computed from this source."""
        return tuple(name for name, availability in self.confidences.items() if availability.possible)


def check(
    source: Any,
    *,
    engine: str | None = None,
    memory: str | None = None,
    master: str | None = None,
    **options: Any,
) -> SourceCheck:
    """Check a source: its format, its problems, and the confidences and metrics that can be computed from it.

    Args:
        source: any source of `abstain.read`, or a Spark DataFrame.
        engine: "numpy" loads a table, "duckdb" and "spark" aggregate it. Default: chosen by the kind of the source
            and its number of rows.
        memory: the memory that DuckDB may use, such as "4GB".
        master: the Spark master, such as "local[4]".
        **options: further arguments of `abstain.read`.

    >>> checked = check("tests/data/examples/run_a.json", mode="few_shot")
    >>> checked.format, checked.counts.abstained, checked.clusters.count
    ('run file', 66, 30)
    >>> checked.confidences["token_msp"].possible
    True
    """
    reading = {"engine": engine, "memory": memory, "master": master}
    tables = engine_tables({"": source}, **reading, **options)
    return aggregate_or_load_tables(
        tables,
        lambda opened: _check_aggregated(opened[""]),
        lambda reason: _check_loaded(source, options, reason),
    )


def _check_loaded(source: Any, options: Mapping[str, Any], reason: str | None) -> SourceCheck:
    problems = Problems()
    # Text columns are not read, so that a table of long answers is checked as quickly as one of numbers.
    systems = read_systems(source, **{"metadata": (), **options}, problems=problems)
    if GUIDANCE in next(iter(systems.values())).provenance.get("unread", ()):
        systems = read_systems(source, **{"metadata": (GUIDANCE,), **options}, problems=Problems())
    items = stack(list(systems.values())) if len(systems) > 1 else next(iter(systems.values()))
    if reason is not None:
        items = items.with_provenance(loaded_because=reason)
    return _source_check(
        items,
        systems,
        problems,
        clusters=_cluster_sizes(items),
        signals={name: _signal_summary(systems.values(), name) for name in items.signals},
        metadata=(*items.metadata, *items.provenance.get("unread", ())),
    )


def _check_aggregated(table: EngineTable) -> SourceCheck:
    """Check a table that an engine aggregates."""
    problems = Problems()
    aggregated = table.aggregate(further=(GUIDANCE,), problems=problems)
    items = aggregated.items(np.arange(len(aggregated.row_types)))
    assert items.aggregation is not None
    # Many metrics are evaluated with one confidence. Only the last cells are kept, because the engine finds the row of
    # an error only for those.
    items = replace(
        items, aggregation=replace(items.aggregation, view=lru_cache(maxsize=1)(items.aggregation.view))
    )
    columns = [name for name in aggregated.query.signals if name in aggregated.query.table.kinds]
    signals = {name: _aggregated_summary(aggregated, name) for name in columns}
    confidence = aggregated.columns.get("confidence")
    if confidence in signals:
        signals.setdefault("confidence", signals[confidence])
    clusters, smallest, median, largest = cluster_sizes(aggregated)
    return _source_check(
        items,
        {"": items},
        problems,
        clusters=ClusterSizes(items.cluster_noun, clusters, smallest, median, largest),
        signals=signals,
        metadata=(*items.metadata, *aggregated.unread),
    )


def _aggregated_summary(aggregated: AggregatedTable, name: str) -> SignalSummary:
    profile = column_profile(aggregated, name)
    scale = 100.0 if name in aggregated.percent else 1.0
    tied = profile.tied / profile.known if profile.known else 0.0
    return SignalSummary(profile.distinct, tied, profile.missing, profile.low / scale, profile.high / scale)


def _source_check(
    items: Items,
    systems: Mapping[str, Items],
    problems: Problems,
    *,
    clusters: ClusterSizes,
    signals: Mapping[str, SignalSummary],
    metadata: tuple[str, ...],
) -> SourceCheck:
    provenance = items.provenance
    evaluated = items.evaluated
    if not len(evaluated):
        problems.report(nothing_evaluated(items))
    confidences = {variant.name: _confidence(evaluated, variant.name) for variant in variants()}
    servable = [name for name, state in confidences.items() if state.possible]
    return SourceCheck(
        source=str(provenance.get("path", "items")),
        format=FORMATS[provenance["format"]].title if provenance.get("format") in FORMATS else "data frame",
        columns=provenance.get("columns", {}),
        guessed=tuple(provenance.get("guessed", ())),
        counts=items.counts,
        clusters=clusters,
        signals=signals,
        metadata=metadata,
        confidences=confidences,
        metrics=_metrics_of_all(systems, servable),
        defaults=_defaults(evaluated),
        problems=tuple(dict.fromkeys(problems.found)),
        items=items,
        systems=systems,
    )


def _defaults(evaluated: Items) -> dict[str, str]:
    """Return the default confidence, and the default loss with its rule."""
    try:
        loss = item_loss(evaluated)
        chosen = {"loss": loss.name, "loss_rule": loss.rule}
    except AbstainError as problem:
        chosen = {"loss": "none", "loss_rule": str(problem)}
    return {"confidence": ", ".join(select("default", evaluated)) or "none", **chosen}


def _confidence(evaluated: Items, name: str) -> Availability:
    try:
        _values(evaluated, name)
    except (SignalError, DataError) as problem:
        return Availability(False, str(problem).partition("; this source can serve")[0])
    return Availability(True)


def _values(evaluated: Items, name: str) -> NDArray[np.float64]:
    """Return the confidence of every answered item; an aggregated table is aggregated again for its signals."""
    needed = signals_needed(name) or ()
    items = evaluated.under(needed) if set(needed) <= set(evaluated.signals) else evaluated
    values = confidence_values(items, name)
    return values[items.answered]


def _cluster_sizes(items: Items) -> ClusterSizes:
    counted = items.counted
    sizes = np.bincount(counted.cluster_index) if len(counted) else np.zeros(1, np.intp)
    return ClusterSizes(
        items.cluster_noun,
        len(counted.cluster_ids),
        int(sizes.min()),
        float(np.median(sizes)),
        int(sizes.max()),
    )


def _signal_summary(systems: Iterable[Items], name: str) -> SignalSummary:
    """Return the summary of a signal. Items of different systems are not tied."""
    parts = [items.signals[name].values[items.answered & items.is_counted] for items in systems]
    stated = [values[~np.isnan(values)] for values in parts]
    sizes = [np.unique(values, return_counts=True)[1] for values in stated]
    pooled = np.concatenate(stated)
    if not len(pooled):
        return SignalSummary(0, 0.0, sum(map(len, parts)), float("nan"), float("nan"))
    tied = sum(int(each[each > 1].sum()) for each in sizes) / len(pooled)
    missing = sum(map(len, parts)) - len(pooled)
    return SignalSummary(len(np.unique(pooled)), tied, missing, float(pooled.min()), float(pooled.max()))


# The metrics that are evaluated for each kind of metric.
_METRICS: dict[str, tuple[str, ...]] = {
    "coverage, abstention rate": ("answer_rate", "abstention_rate"),
    "accuracy, selective accuracy (zero_one)": ("accuracy", "selective_accuracy"),
    "mean absolute error (abs)": ("mean_absolute_error",),
    "risk-coverage curve, AURC, AUGRC": ("aurc", "augrc"),
    "balanced accuracy": ("balanced_accuracy",),
    "calibration (ECE, smooth ECE)": ("expected_calibration_error", "smooth_calibration_error"),
    "Brier score": ("brier_score",),
    "abstention safety, deferral alignment": ("abstention_accuracy", "deferral_alignment"),
}
_NORMALIZED = "normalized absolute error (abs_norm)"
_INTERVALS, _COVERAGE = "intervals over clusters", "interval and set coverage"
_ONE_CLUSTER = "there are fewer than two clusters, and intervals are computed over clusters"
# Kinds of metrics for which any confidence that is a probability is tried.
_OF_PROBABILITIES = ("calibration (ECE, smooth ECE)", "Brier score")


def _metrics_of_all(systems: Mapping[str, Items], servable: Sequence[str]) -> dict[str, Availability]:
    """Return the availability of every kind of metric: possible if it is possible for each of the systems."""
    availabilities: dict[str, Availability] = {}
    for name, items in systems.items():
        for kind, state in _metrics(items, servable).items():
            if availabilities.setdefault(kind, state).possible and not state.possible:
                availabilities[kind] = Availability(False, f"{name}: {state.reason}")
    return availabilities


def _metrics(items: Items, servable: Sequence[str]) -> dict[str, Availability]:
    """Return for every kind of metric whether `evaluate` gives a number for it."""
    evaluated = items.evaluated
    if not len(evaluated):
        nothing = Availability(False, "no item is answered or abstained")
        return dict.fromkeys((*_METRICS, _NORMALIZED, _INTERVALS, _COVERAGE), nothing)
    availabilities = {}
    for kind, names in _METRICS.items():
        availabilities[kind] = _evaluated(items, names, None)
        if kind in _OF_PROBABILITIES and not availabilities[kind].possible:
            others = (name for name in (*servable, *evaluated.signals) if _is_probability(evaluated, name))
            tried = ((name, _evaluated(items, names, name)) for name in dict.fromkeys(others))
            served = next((name for name, state in tried if state.possible), None)
            if served is not None:
                availabilities[kind] = Availability(True, f"with --confidence {served}")
    return availabilities | {
        _NORMALIZED: _loss_served(evaluated, "abs_norm"),
        _INTERVALS: _availability("" if evaluated.clusters > 1 else _ONE_CLUSTER),
        _COVERAGE: _predicted_ranges(items),
    }


def _evaluated(items: Items, names: Sequence[str], confidence: str | None) -> Availability:
    ranked = any(find_metric(name).ranked for name in names)
    if ranked and confidence is None and not select("default", items.evaluated):
        hint = f"; these columns hold numbers: {list_names(items.signals)}" if items.signals else ""
        return Availability(False, f"{no_confidence(items)}{hint}")
    try:
        table = evaluate(items, metrics=names, confidence=confidence, interval="none").metrics
    except AbstainError as problem:
        return Availability(False, str(problem).partition("; this source can serve")[0])
    assert table is not None
    estimates = [table.estimates[name] for name, key in table.keys_of.items() if key.metric in names]
    return _availability(next((each.reason for each in estimates if not each.defined), ""))


def _loss_served(evaluated: Items, loss: str) -> Availability:
    try:
        item_loss(evaluated, loss)
    except AbstainError as problem:
        return Availability(False, str(problem))
    return Availability(True)


def _is_probability(evaluated: Items, name: str) -> bool:
    try:
        values = _values(evaluated, name)
    except (SignalError, DataError):
        return False
    return bool(len(values)) and bool(((values >= 0.0) & (values <= 1.0)).all())


def _availability(reason: str) -> Availability:
    """Return that something is possible, or the reason why it is not."""
    return Availability(not reason, reason)


def _predicted_ranges(items: Items) -> Availability:
    kinds = {"interval_coverage": items.intervals, "set_coverage": items.sets}
    names = [name for name, column in kinds.items() if column is not None]
    if not names:
        return Availability(False, "no column was named for bounds (--low, --high) or sets (--set)")
    return _evaluated(items, names, None)
