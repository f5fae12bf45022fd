"""Populations to draw from: items in clusters that share an effect, answered or not, right or wrong, more or less sure.

An item's difficulty is the sum of a base, its cluster's effect and its own; it decides how likely the answer is wrong,
whether the model abstains, and, with noise, how sure it is. Intervals and sets come from the same clusters.
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

__all__ = ["SCENARIOS", "Answers", "Bounds", "Scenario"]

_BASE = {"frequent": -0.8, "rare": -4.2}
_EFFECT = {"strong": 1.0, "weak": 0.3}
# Where five levels of confidence part: about as many items in each.
_CUTS = {"frequent": (0.35, 0.55, 0.7, 0.85), "rare": (0.95, 0.97, 0.985, 0.995)}
_MEAN_SIZE = 8
_ABSTAINS_FROM = 1.7
_MISSES = {"frequent": 1.3, "rare": 2.2}


@dataclass(frozen=True, eq=False, slots=True)
class Answers:
    """One data set of answers, one row per item."""

    cluster: Indices
    wrong: Mask
    abstained: Mask
    confidence: Floats

    @property
    def items(self) -> Items:
        """The rows as items: labels 0 and 1 in turn, and predictions that are them or not."""
        truth = np.arange(len(self.cluster)) % 2
        prediction = np.where(self.wrong, 1 - truth, truth)
        return Items.from_arrays(
            truth,
            prediction,
            abstained=self.abstained,
            confidence=self.confidence,
            cluster=self.cluster,
            item=np.arange(len(truth)),
        )


@dataclass(frozen=True, eq=False, slots=True)
class Bounds:
    """One data set of intervals and sets, one row per item."""

    cluster: Indices
    truth: Floats
    intervals: Floats
    label: Indices
    sets: Mask


@dataclass(frozen=True, slots=True)
class Scenario:
    """A population.

    Attributes:
        errors: "frequent" or "rare".
        confidence: "continuous", or "levels" for five of them.
        sizes: "equal" clusters of 8 items, or "unequal" ones of 1 to some 50, 8 on average.
        effect: "strong" or "weak" agreement within a cluster.
    """

    errors: str = "frequent"
    confidence: str = "continuous"
    sizes: str = "equal"
    effect: str = "strong"

    @property
    def name(self) -> str:
        """The settings as words."""
        return ", ".join(str(value) for value in asdict(self).values())

    def answers(
        self,
        generator: np.random.Generator,
        clusters: int,
        *,
        own: np.random.Generator | None = None,
        step: float = 0.0,
    ) -> Answers:
        """Draw answers of so many clusters.

        Args:
            generator: the random numbers of the items: clusters, effects, difficulties.
            clusters: how many.
            own: the random numbers of the system; those of the items when left out.
            step: how much easier the items are for it, in log-odds.
        """
        cluster = self._clusters(generator, clusters)
        count, base = len(cluster), _BASE[self.errors]
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        difficulty = base + effect + generator.standard_normal(count) - step
        luck = own or generator
        wrong = luck.random(count) < _sigmoid(difficulty)
        abstained = difficulty - base + luck.standard_normal(count) > _ABSTAINS_FROM
        sure = _sigmoid(-difficulty + 0.5 * luck.standard_normal(count))
        if self.confidence == "levels":
            sure = 0.196 * (1 + np.searchsorted(_CUTS[self.errors], sure))
        return Answers(cluster, wrong, abstained, sure)

    def bounds(self, generator: np.random.Generator, clusters: int) -> Bounds:
        """Draw predictions with intervals and sets of so many clusters."""
        cluster = self._clusters(generator, clusters)
        count = len(cluster)
        spread = 0.5 + generator.random(count)
        effect = _EFFECT[self.effect] * generator.standard_normal(clusters)[cluster]
        noise = (0.7 * effect + generator.standard_normal(count)) * spread
        reach = _MISSES[self.errors] * spread * (1.0 + 0.2 * generator.random(count))
        label = generator.integers(0, 4, count)
        within = np.abs(noise) <= reach
        sets = generator.random((count, 4)) < 0.3
        sets[np.arange(count), label] = within
        return Bounds(cluster, noise, np.column_stack([-reach, reach]), label, sets)

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


def _sigmoid(value: Floats) -> Any:
    return 1.0 / (1.0 + np.exp(-value))
