"""One system, ready to be weighed: the plans of the metrics asked for, and its ranking for matched coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.confidence import NO_CONFIDENCE, confidence_values, select
from abstain.errors import ArgumentError, DataError
from abstain.evaluation._metrics import TablePlans, table_loss
from abstain.inference import Draws, Estimate, replicates
from abstain.metrics._ranks import RanksPlan
from abstain.metrics.abstention import population_table
from abstain.metrics.objects import BaseMetric
from abstain.metrics.registry import BUNDLES, METRICS, MetricSpecification, find_metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss
    from abstain.metrics._plan import Plan
    from abstain.metrics.registry import MetricLike

    Progress = Callable[[int], None]

__all__ = ["COVERAGE", "SystemPlans", "measure_system", "metrics_by_key"]

# Told of every system, whatever is asked for.
COVERAGE = "answer_rate"


@dataclass(frozen=True, eq=False, slots=True)
class SystemPlans:
    """The plans of one system.

    Attributes:
        items: the judged items.
        table: the plans of the metrics, and of the coverage.
        confidence: what ranks the answers; empty where nothing does.
        loss: the name of the loss; empty where none is needed.
        ranking: the answers ranked, for matched coverage; None where nothing ranks them or there are none.
    """

    items: Items
    table: TablePlans
    confidence: str
    loss: str
    ranking: RanksPlan | None

    @classmethod
    def prepare(
        cls,
        name: str,
        items: Items,
        asked: Mapping[str, MetricSpecification],
        confidence: str | None,
        loss: Loss | None,
    ) -> SystemPlans:
        """Prepare judged items for the metrics asked for."""
        specifications = [*asked.values(), METRICS[COVERAGE]]
        ranked = any("confidence" in metric.needs for metric in specifications)
        chosen = _chosen_confidence(name, items, confidence, ranked=ranked)
        confidences = {chosen: confidence_values(items, chosen)} if chosen else {}
        measured = table_loss(items, items, loss, specifications)
        ranked_by = _ranking_loss(items, loss) if chosen and items.counts.answered else None
        table = TablePlans.prepare(
            items,
            specifications,
            by=None,
            confidences=confidences,
            loss=measured.values,
            outcomes=population_table(items),
        )
        ranking = None
        if ranked_by is not None:
            ranking = RanksPlan.build(
                ranked_by.values, confidences[chosen], items.answered, cluster=items.cluster_index, figures=()
            )
        return cls(items, table, chosen, "" if ranked_by is None else ranked_by.name, ranking)

    @property
    def answered(self) -> int:
        """How many items were answered."""
        return self.items.counts.answered

    def plan(self, metric: str) -> Plan:
        """Return the plan of one metric."""
        return self.table.plans["", metric]


def _ranking_loss(items: Items, loss: Loss | None) -> ItemLoss | None:
    """The loss at matched coverage, whatever the metrics need; None where some answers have none."""
    try:
        return table_loss(items, items, loss, [METRICS["augrc"]])
    except DataError:
        return None


def measure_system(
    items: Items,
    metrics: MetricLike | Iterable[MetricLike],
    *,
    confidence: str | None = None,
    loss: Loss | None = None,
    resamples: int = 10_000,
    seed: int = 42,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Mapping[str, Estimate]:
    """Return the metrics of one system alone, over all items that it has judged."""
    judged = items.judged
    side = SystemPlans.prepare("the run", judged, metrics_by_key(metrics), confidence, loss)
    draws = Draws(len(judged.cluster_ids), resamples, seed)
    return side.table.table(replicates(side.table.ordered, draws, progress), draws, level=level)


def metrics_by_key(metrics: MetricLike | Iterable[MetricLike]) -> dict[str, MetricSpecification]:
    """Return metrics by key; a bundle stands for its metrics. Coverage is told anyway, and so is not added."""
    single = isinstance(metrics, (str, MetricSpecification, BaseMetric, type))
    parts: list[Any] = [metrics] if single else list(metrics)  # type: ignore[arg-type]
    found: dict[str, MetricSpecification] = {}
    for part in parts:
        for name in [piece.strip() for piece in part.split(",")] if isinstance(part, str) else [part]:
            members = BUNDLES.get(name, (name,)) if isinstance(name, str) else (name,)
            found |= {metric.key: metric for metric in map(find_metric, members)}
    if not found:
        raise ArgumentError("no metric was asked for; see `abstain metrics` for what there is")
    return found


def _chosen_confidence(name: str, items: Items, asked: str | None, *, ranked: bool) -> str:
    """The one confidence of a system; empty where none is needed and none is stated."""
    if asked is None and not ranked:
        return "confidence" if "confidence" in items.signals else ""
    found = select(asked or "default", items)
    if not found:
        raise ArgumentError(f"{name}: {NO_CONFIDENCE}")
    if asked not in (None, "default") and len(found) > 1:
        listed = ", ".join(found)
        raise ArgumentError(
            f"{name}: one confidence ranks a system, got {listed}; compare them as systems of their own"
        )
    return found[0]
