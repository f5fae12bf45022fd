"""Simulated populations: items in clusters with a common effect, with answers, abstentions and confidences.

The difficulty of an item is the sum of a constant, the effect of its cluster and a random part. It determines the
probability of a wrong answer and, with noise, the abstention and the confidence. Prediction intervals and sets are
drawn for such clusters as well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import Items

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Indices = NDArray[np.intp]

__all__ = ["SCENARIOS", "SPECIAL", "Answers", "Bounds", "Scenario"]

_BASE = {"frequent": -0.8, "rare": -4.2}
_EFFECT = {"strong": 1.0, "weak": 0.3}
# Limits between five levels of confidence, which have about the same number of items.
_CUTS = {"frequent": (0.35, 0.55, 0.7, 0.85), "rare": (0.95, 0.97, 0.985, 0.995)}
_MEAN_SIZE = 8
_ABSTAINS_FROM = 1.7
_MISSES = {"frequent": 1.3, "rare": 2.2}
# If answers are few, about one item in eight is answered. If errors come together, some clusters are wholly wrong.
_ABSTAINS_IF_FEW = -1.5
_WHOLLY_WRONG = 0.05


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """One data set of answers, one row per item."""

    cluster: Indices
    wrong: Mask
    abstained: Mask
    confidence: Floats
    should_abstain: Mask

    @property
    def items(self) -> Items:
        """The rows as items, with labels that alternate between 0 and 1, and guidance on which to decline."""
        truth = np.arange(len(self.cluster)) % 2
        prediction = np.where(self.wrong, 1 - truth, truth)
        return Items.from_arrays(
            truth,
            prediction,
            abstained=self.abstained,
            confidence=self.confidence,
            cluster=self.cluster,
            item=np.arange(len(truth)),
            metadata={"should_abstain": self.should_abstain.tolist()},
        )


@dataclass(frozen=True, eq=False, slots=True)
class Bounds:
    """One data set of intervals and sets, one row per item."""

    cluster: Indices
    truth: Floats
    intervals: Floats
    label: Indices
    sets: Mask

    @property
    def interval_items(self) -> Items:
        """The prediction intervals as items."""
        return self._items(self.truth, intervals=self.intervals)

    @property
    def set_items(self) -> Items:
        """The prediction sets as items."""
        return self._items(self.label, sets=self.sets)

    def _items(self, truth: Any, **predicted: Any) -> Items:
        return Items.from_arrays(
            truth, truth, cluster=self.cluster, item=np.arange(len(self.cluster)), **predicted
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """A population.

    Attributes:
        errors: "frequent" or "rare".
        confidence: "continuous", or "levels" for five levels.
        sizes: "equal" clusters with 8 items, or "unequal" clusters with 1 to about 50 items, 8 on average.
        effect: "strong" or "weak" effect of the cluster.
        setting: "few answers", or "errors together" if a cluster is either wholly wrong or hardly ever.
    """

    errors: str = "frequent"
    confidence: str = "continuous"
    sizes: str = "equal"
    effect: str = "strong"
    setting: str = ""

    @property
    def name(self) -> str:
        """The settings as text."""
        return ", ".join(str(value) for value in asdict(self).values() if value)

    def answers(
        self,
        generator: np.random.Generator,
        clusters: int,
        *,
        own: np.random.Generator | None = None,
        step: float = 0.0,
    ) -> Answers:
        """Draw a data set of answers.

        Args:
            generator: the random numbers of the items: clusters, effects, difficulties.
            clusters: the number of clusters.
            own: the random numbers of the system. Default: `generator`.
            step: how much easier the items are for the system, in log-odds.
        """
        cluster = self._clusters(generator, clusters)
        count, base = len(cluster), _BASE[self.errors]
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        difficulty = base + effect + generator.standard_normal(count)
        limit = _ABSTAINS_IF_FEW if self.setting == "few answers" else _ABSTAINS_FROM
        system = own or generator
        odds = difficulty - step
        wrong = system.random(count) < _sigmoid(odds)
        doubt = system.standard_normal(count)
        abstained = odds - base + doubt > limit
        if self.setting == "errors together":
            wrong = (system.random(clusters) < _WHOLLY_WRONG)[cluster]
        confidence = _sigmoid(-odds + 0.5 * system.standard_normal(count))
        if self.confidence == "levels":
            confidence = 0.196 * (1 + np.searchsorted(_CUTS[self.errors], confidence))
        # Whether an item should be declined is the same for all systems that answer it.
        common_doubt = doubt if own is None else generator.standard_normal(count)
        should_abstain = difficulty - base + common_doubt + 0.5 * effect > limit
        return Answers(cluster, wrong, abstained, confidence, should_abstain)

    def bounds(
        self,
        generator: np.random.Generator,
        clusters: int,
        *,
        own: np.random.Generator | None = None,
        step: float = 0.0,
    ) -> Bounds:
        """Draw a data set of prediction intervals and sets.

        Args:
            generator: the random numbers of the items.
            clusters: the number of clusters.
            own: the random numbers of the predictor, which then has its own error. Default: `generator`, without error.
            step: how much smaller the error of the predictor is.
        """
        cluster = self._clusters(generator, clusters)
        count = len(cluster)
        spread = 0.5 + generator.random(count)
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        noise = (0.7 * effect + generator.standard_normal(count)) * spread
        centre = np.zeros(count)
        if own is not None:
            centre = 0.8 * np.exp(-step) * own.standard_normal(count)
        own = own or generator
        half_width = _MISSES[self.errors] * spread * (1.0 + 0.2 * own.random(count))
        label = generator.integers(0, 4, count)
        covered = np.abs(noise - centre) <= half_width
        sets = own.random((count, 4)) < 0.3
        sets[np.arange(count), label] = covered
        intervals = np.column_stack([centre - half_width, centre + half_width])
        return Bounds(cluster, noise, intervals, label, sets)

    def totals(
        self,
        generator: np.random.Generator,
        clusters: int,
        *,
        scaled: bool = True,
        own: np.random.Generator | None = None,
        step: float = 0.0,
    ) -> Items:
        """Draw a data set of predicted totals of an instrument from 0 to 24, with or without the ends of the scale.

        Most predictions are close if errors are rare, and a few are far away. `own` and `step` are those of `answers`.
        """
        cluster = self._clusters(generator, clusters)
        count = len(cluster)
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        truth = np.clip(np.round(10.0 + 5.0 * generator.standard_normal(count) + 2.0 * effect), 0, 24)
        own = own or generator
        far = own.random(count) < _sigmoid(_BASE[self.errors] + effect - step)
        noise = np.where(far, 6.0, 1.0) * own.standard_normal(count)
        prediction = np.clip(np.round(truth + noise), 0, 24)
        return Items.from_arrays(
            truth, prediction, cluster=cluster, item=np.arange(count), scale=(0, 24) if scaled else None
        )

    def _clusters(self, generator: np.random.Generator, clusters: int) -> Indices:
        sizes = np.full(clusters, _MEAN_SIZE)
        if self.sizes == "unequal":
            sizes = generator.geometric(1.0 / _MEAN_SIZE, clusters)
        return np.repeat(np.arange(clusters), sizes)


SCENARIOS = tuple(
    Scenario(errors, confidence, sizes, effect)
    for errors in ("frequent", "rare")
    for confidence in ("continuous", "levels")
    for sizes in ("equal", "unequal")
    for effect in ("strong", "weak")
)
# Settings in which few rows determine a metric.
SPECIAL = (
    Scenario("frequent", setting="few answers"),
    Scenario("rare", setting="few answers"),
    Scenario("rare", sizes="unequal", setting="few answers"),
    Scenario("rare", setting="errors together"),
    Scenario("rare", sizes="unequal", setting="errors together"),
)


def _sigmoid(value: Floats) -> Any:
    return 1.0 / (1.0 + np.exp(-value))
