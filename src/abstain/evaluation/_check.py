"""What a source can serve: outcomes, clusters, ties, confidences and metrics, before anything is computed.

`check` reads a source like `abstain.read`, but goes on where that would stop, so that every problem is
listed with its rows, and says for each kind of metric whether it is possible and if not why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain._brief import brief
from abstain.confidence import NO_CONFIDENCE, confidence_values, select, variants
from abstain.errors import AbstainError, DataError, SignalError
from abstain.losses import item_loss
from abstain.sources import FORMATS, Problems, read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from abstain.items import Items, OutcomeCounts

__all__ = ["Availability", "ClusterSizes", "SignalSummary", "SourceCheck", "check"]


@dataclass(frozen=True, slots=True)
class ClusterSizes:
    """How many clusters there are, and how many items they hold."""

    noun: str
    count: int
    smallest: int
    median: float
    largest: int


@dataclass(frozen=True, slots=True)
class SignalSummary:
    """One numeric column among the answered items.

    Attributes:
        distinct: how many different values it has.
        tied_share: the share of items that share their value with another.
        missing: how many have none.
        low: the smallest value, NaN when there is none.
        high: the largest value, NaN when there is none.
    """

    distinct: int
    tied_share: float
    missing: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether something can be computed; if not, `reason` says why."""

    possible: bool
    reason: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class SourceCheck:
    """What `check` found.

    Attributes:
        source: the path, or what else was read.
        format: what it is, in words.
        columns: the column of each role, for a table.
        guessed: the roles whose column was guessed.
        counts: how many items came to each outcome.
        clusters: what belongs together.
        signals: the numeric columns.
        metadata: the names of the other columns.
        confidences: every variant, and whether this source can serve it.
        metrics: every kind of metric, and whether it is possible here.
        defaults: the confidence and the loss that are used when none is named, and the rule that says so.
        problems: what is wrong, by row.
        items: the items themselves.
    """

    source: str
    format: str
    columns: Mapping[str, str]
    guessed: tuple[str, ...]
    counts: OutcomeCounts
    clusters: ClusterSizes
    signals: Mapping[str, SignalSummary]
    metadata: tuple[str, ...]
    confidences: Mapping[str, Availability]
    metrics: Mapping[str, Availability]
    defaults: Mapping[str, str]
    problems: tuple[str, ...]
    items: Items

    __repr__ = brief

    @property
    def servable(self) -> tuple[str, ...]:
        """The names of the variants that this source can serve."""
        return tuple(name for name, found in self.confidences.items() if found.possible)


def check(source: Any, **options: Any) -> SourceCheck:
    """Say what a source is and what can be computed from it; the arguments are those of `abstain.read`.

    >>> found = check("tests/data/examples/run_a.json", mode="few_shot")
    >>> found.format, found.counts.abstained, found.clusters.count
    ('run file', 66, 30)
    >>> found.confidences["token_msp"].possible
    True
    """
    problems = Problems()
    # Text is not looked at, so that a table of long answers is checked as quickly as one of numbers.
    items = read(source, **{"metadata": (), **options}, problems=problems)
    provenance = items.provenance
    judged = items.judged
    confidences = {variant.name: _confidence(judged, variant.name) for variant in variants()}
    return SourceCheck(
        source=str(provenance.get("path", "items")),
        format=FORMATS.get(provenance.get("format", ""), "data frame"),
        columns=provenance.get("columns", {}),
        guessed=tuple(provenance.get("guessed", ())),
        counts=items.counts,
        clusters=_cluster_sizes(items),
        signals={name: _signal_summary(items, name) for name in items.signals},
        metadata=(*items.metadata, *provenance.get("unread", ())),
        confidences=confidences,
        metrics={name: test(judged) for name, test in _METRICS.items()},
        defaults=_defaults(judged),
        problems=tuple(problems.found),
        items=items,
    )


def _defaults(judged: Items) -> dict[str, str]:
    """What the one rule for each takes where nothing is named."""
    try:
        loss = item_loss(judged)
        chosen = {"loss": loss.name, "loss_rule": loss.rule}
    except AbstainError as problem:
        chosen = {"loss": "none", "loss_rule": str(problem)}
    return {"confidence": ", ".join(select("default", judged)) or "none", **chosen}


def _confidence(judged: Items, name: str) -> Availability:
    try:
        confidence_values(judged, name)
    except (SignalError, DataError) as problem:
        return Availability(False, str(problem).partition("; this source can serve")[0])
    return Availability(True)


def _cluster_sizes(items: Items) -> ClusterSizes:
    sizes = np.bincount(items.cluster_index) if len(items) else np.zeros(1, np.intp)
    return ClusterSizes(
        items.cluster_noun,
        len(items.cluster_ids),
        int(sizes.min()),
        float(np.median(sizes)),
        int(sizes.max()),
    )


def _signal_summary(items: Items, name: str) -> SignalSummary:
    values = items.signals[name].values[items.answered]
    known = values[~np.isnan(values)]
    sizes = np.unique(known, return_counts=True)[1]
    tied = float(sizes[sizes > 1].sum() / len(known)) if len(known) else 0.0
    low, high = (float(known.min()), float(known.max())) if len(known) else (float("nan"), float("nan"))
    return SignalSummary(len(sizes), tied, len(values) - len(known), low, high)


def _answered(judged: Items) -> str:
    return "" if judged.counts.answered else "nothing was answered"


def _selective(judged: Items) -> str:
    if _answered(judged):
        return _answered(judged)
    if select("default", judged):
        return ""
    hint = f"; these columns hold numbers: {', '.join(judged.signals)}" if judged.signals else ""
    return f"{NO_CONFIDENCE}{hint}"


def _numeric(judged: Items) -> str:
    both = judged.truth.dtype.kind == "f" and judged.prediction.dtype.kind == "f"
    return "" if both else "truth and prediction are labels, not numbers; zero_one compares labels"


def _classes(judged: Items) -> str:
    truth = judged.truth
    distinct = len(np.unique(truth)) if truth.dtype.kind == "f" else len(set(truth.tolist()))
    return "" if distinct > 1 else "there are fewer than two truth classes"


def _probability(judged: Items) -> str:
    if _selective(judged):
        return _selective(judged)
    answered = judged.answered
    for signal in judged.signals.values():
        values = signal.values[answered]
        if np.isfinite(values).all() and ((values >= 0.0) & (values <= 1.0)).all():
            return ""
    return "no signal lies in [0, 1] for every answered item, so none is a probability"


def _binary(judged: Items) -> str:
    if _probability(judged):
        return _probability(judged)
    if _numeric(judged):
        return "labels must be the numbers 0 and 1"
    answered = judged.answered
    binary = all(np.isin(column[answered], (0.0, 1.0)).all() for column in (judged.truth, judged.prediction))
    return "" if binary else "labels must be 0 and 1"


def _deferral(judged: Items) -> str:
    columns = (*judged.metadata, *judged.signals, *judged.provenance.get("unread", ()))
    known = "should_abstain" in columns
    return "" if known else "there is no column should_abstain that says when declining is right"


def _several_clusters(judged: Items) -> str:
    return (
        ""
        if len(judged.cluster_ids) > 1
        else "there are fewer than two clusters, and intervals are made over clusters"
    )


def _nothing_missing(judged: Items) -> str:
    return "" if len(judged) else "no item is answered or abstained"


def _intervals(judged: Items) -> str:
    if judged.intervals is not None or judged.sets is not None:
        return ""
    return "no column was named for bounds (--low, --high) or sets (--set)"


def _availability(test: Callable[[Items], str]) -> Callable[[Items], Availability]:
    def found(judged: Items) -> Availability:
        reason = _nothing_missing(judged) or test(judged)
        return Availability(not reason, reason)

    return found


_METRICS: dict[str, Callable[[Items], Availability]] = {
    name: _availability(test)
    for name, test in {
        "coverage, abstention rate": _nothing_missing,
        "accuracy, selective accuracy (zero_one)": _answered,
        "mean absolute error (abs, abs_norm)": _numeric,
        "risk-coverage curve, AURC, AUGRC": _selective,
        "balanced accuracy": _classes,
        "calibration (ECE, smooth ECE)": _probability,
        "Brier score": _binary,
        "abstention safety, deferral alignment": _deferral,
        "intervals over clusters": _several_clusters,
        "interval and set coverage": _intervals,
    }.items()
}
