"""Evaluated items in the form that risk guarantees need: answered or not, confidence, loss in [0, 1] and cluster.

A guarantee limits a mean of bounded losses, so a loss without a largest value is rejected.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate
from abstain._confidences import load_calibrations, variant_confidences
from abstain._units import group_of
from abstain.confidence import no_confidence
from abstain.errors import ArgumentError, DataError, list_names
from abstain.groups import group_names
from abstain.losses import SHARES, item_loss
from abstain.resampling import total_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike, VariantConfidence
    from abstain._types import Floats, Indices, Mask
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss
    from abstain.thresholds._policy import Policy


_HASH_RANGE = 1 << 32
_QUANTILES = 101


@dataclass(frozen=True, eq=False, slots=True)
class AnsweredRows:
    """Evaluated rows, answered and declined. The loss is in [0, 1]; confidence and loss of a declined row are NaN.

    `names` has one name per cluster, and `cluster_noun` is the noun for one. `weight` is the number of items that each
    row represents, None if each is one.
    """

    confidence: Floats
    loss: Floats
    cluster: Indices
    names: NDArray[Any]
    cluster_noun: str
    weight: Floats | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def of_items(
        cls, evaluated: Items, confidence: Floats, loss: Floats, groups: NDArray[Any] | None = None
    ) -> AnsweredRows:
        """Return evaluated items as rows; the loss of a declined item does not matter."""
        return cls(
            confidence=np.where(evaluated.answered, confidence, np.nan),
            loss=np.where(evaluated.answered, loss, np.nan),
            cluster=evaluated.cluster_index,
            names=evaluated.cluster_ids,
            cluster_noun=evaluated.cluster_noun,
            weight=evaluated.weight,
            groups=groups,
        )

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def answered(self) -> Mask:
        """True if the model answered."""
        return ~np.isnan(self.loss)

    @property
    def item_counts(self) -> Floats:
        """Number of items that each row represents."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def asked(self) -> Floats:
        """Number of items of each cluster."""
        return total_by(self.cluster, self.weight, len(self.names))

    @property
    def effective_clusters(self) -> float:
        """Number of clusters of equal size that would be as informative: the squared sum of sizes over that of squares.

        Reference: Kish, "Survey Sampling", 1965.
        """
        asked = self.asked
        return float(asked.sum() ** 2 / (asked @ asked))

    @property
    def clustered(self) -> bool:
        """True if some cluster has more than one item."""
        return len(self.names) < len(self) or (self.weight is not None and bool((self.weight != 1.0).any()))

    @property
    def noun(self) -> str:
        """The noun for a cluster: "item" if every cluster has one item."""
        return self.cluster_noun if self.clustered else "item"

    @property
    def binary(self) -> bool:
        """True if every loss is 0 or 1."""
        return bool(np.isin(self.loss[self.answered], (0.0, 1.0)).all())

    @property
    def constant_confidence(self) -> bool:
        """True if there are several answers and all of them have the same confidence."""
        answers = self.confidence[self.answered]
        return len(answers) > 1 and bool((answers == answers[0]).all())

    def take(self, kept: Mask) -> AnsweredRows:
        """Return some of the rows, with their clusters."""
        clusters, cluster = np.unique(self.cluster[kept], return_inverse=True)
        return replace(
            self,
            confidence=self.confidence[kept],
            loss=self.loss[kept],
            cluster=cluster.astype(np.intp),
            names=self.names[clusters],
            weight=None if self.weight is None else self.weight[kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def by_group(self) -> dict[str, AnsweredRows]:
        """Return the rows of every group, in the order of their names; nothing without groups."""
        if self.groups is None:
            return {}
        return {name: self.take(self.groups == name) for name in sorted(set(self.groups.tolist()))}

    def fingerprints(self) -> tuple[str, str]:
        """Return digests of the rows with and without their losses, independent of the order of the rows.

        Both include cluster names and confidences. The second does not change with the truth or the loss.
        """
        names = [str(name) for name in self.names.tolist()]
        by_name = sorted(range(len(names)), key=names.__getitem__)
        cluster_rank = np.empty(len(names))
        cluster_rank[by_name] = np.arange(len(names))
        columns = [cluster_rank[self.cluster], self.item_counts, self.confidence, self.loss]
        order = np.lexsort(columns[::-1])
        digest = hashlib.sha256("\n".join(names[row] for row in by_name).encode("utf-8", "surrogatepass"))
        digests = []
        for column in columns:
            # Adding 0 turns -0.0 into 0.0: the same number must have the same bytes.
            digest.update((column[order] + 0.0).tobytes())
            digests.append(digest.hexdigest())
        return digests[3], digests[2]


def confidence_quantiles(rows: AnsweredRows) -> tuple[float, ...]:
    """Return evenly spaced quantiles of the confidences of answered rows, from the lowest to the highest."""
    ordered = np.sort(rows.confidence[rows.answered])
    positions = np.linspace(0.0, len(ordered) - 1.0, _QUANTILES)
    return tuple(np.interp(positions, np.arange(len(ordered)), ordered).tolist())


def hash_names(names: NDArray[Any], purpose: str) -> Indices:
    """Return a pseudorandom number per cluster that depends only on its name and the purpose.

    >>> names = np.array(["ann", "bob"])
    >>> hash_names(names, "order").tolist() == hash_names(names[::-1], "order").tolist()[::-1]
    True
    """
    return group_of(_validate.objects([f"{purpose} {name}" for name in names.tolist()]), _HASH_RANGE)


def split_by_cluster(items: Items, proportion: float = 0.5) -> tuple[Items, Items]:
    """Return items in two parts without a common cluster: one to choose a threshold on, one to check it on.

    The part of a cluster depends only on its name, so it is the same on every machine.

    Args:
        items: the items to divide.
        proportion: approximate proportion of the clusters in the first part.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1] * 40, [1] * 40, confidence=[0.9] * 40, cluster=[row // 4 for row in range(40)])
    >>> choosing, checking = split_by_cluster(items)
    >>> len(choosing) + len(checking), set(choosing.cluster) & set(checking.cluster)
    (40, set())
    """
    part = _validate.level(proportion, "proportion")
    is_first = hash_names(items.cluster_ids, "split") < part * _HASH_RANGE
    first = is_first[items.cluster_index]
    if first.all() or not first.any():
        raise DataError(
            f"{len(items.cluster_ids):,} {items.cluster_noun}s cannot be divided into two parts; more are needed"
        )
    return items.take(first), items.take(~first)


def one_confidence(items: Items, confidence: str | None, calibration: CalibrationLike) -> VariantConfidence:
    """Return the one confidence that a policy uses. Default: the default of the source.

    Pass evaluated items only: items that failed need no confidence.
    """
    requested = "default" if confidence is None else confidence
    variants = variant_confidences(requested, items, load_calibrations(calibration))
    if not variants:
        raise ArgumentError(f"a threshold needs a confidence: {no_confidence(items)}")
    if len({variant.values.tobytes() for variant in variants.values()}) > 1:
        raise ArgumentError(f"a policy uses one confidence, got {list_names(variants)}; name one of them")
    return next(iter(variants.values()))


def policy_confidence(policy: Policy, items: Items, calibration: CalibrationLike) -> VariantConfidence:
    """Return the confidence of evaluated items that a policy uses; reject a different calibration file."""
    name, wanted = policy.confidence.name, policy.confidence.calibration
    calibrations = load_calibrations(calibration)
    if wanted is None and calibrations:
        raise ArgumentError(
            f"the policy's confidence {name} does not use a calibration file; remove it (--calibration, calibration=)"
        )
    if wanted is not None and not calibrations:
        raise ArgumentError(
            f"the policy's confidence {name} needs its calibration file; pass it (--calibration, calibration=)"
        )
    if wanted is not None and _files.sha256(calibrations[0].to_json()) != wanted.sha256:
        raise ArgumentError(
            f"the calibration file is not the one that the policy was chosen with, for its confidence {name}; pass "
            "that one"
        )
    return one_confidence(items, name, calibration)


def answered_rows(
    items: Items,
    ranking: VariantConfidence,
    loss: Loss | None,
    largest_loss: float | None,
    by: str | None = None,
) -> tuple[AnsweredRows, ItemLoss, float]:
    """Return evaluated rows with losses in [0, 1], the loss before scaling, and its largest value.

    `ranking` is the confidence of the evaluated items; a custom loss has one number for each of all items.
    """
    measured = item_loss(items, loss)
    largest = _largest_value(measured, largest_loss, items.scale)
    evaluated = items.evaluated
    answered = evaluated.answered
    undefined = answered & ~np.isfinite(ranking.values)
    if undefined.any():
        row = int(np.argmax(undefined))
        raise DataError(
            f"confidence {ranking.name} is {ranking.values[row]} for {evaluated.describe_row(row)} ({undefined.sum()} "
            "such items); every answered item needs a finite number"
        )
    losses = np.full(len(evaluated), np.nan)
    losses[answered] = measured.values[items.answered]
    scaled = losses / largest
    beyond = (scaled < 0.0) | (scaled > 1.0 + 1e-12)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise DataError(
            f"loss {measured.name} is {losses[row]:g} for {evaluated.describe_row(row)} ({int(beyond.sum())} such "
            f"items), but a risk guarantee needs losses from 0 to {largest:g}"
        )
    groups = None if by is None else group_names(evaluated, by)
    rows = AnsweredRows.of_items(evaluated, ranking.values, np.minimum(scaled, 1.0), groups)
    return rows, measured, largest


def _largest_value(loss: ItemLoss, declared: float | None, scale: tuple[float, float] | None) -> float:
    """Return the largest value of a loss: as declared, 1 for proportions, for "abs" the width of the declared scale."""
    if declared is not None:
        largest = _validate.real(declared, "largest_loss")
        if not largest > 0.0:
            raise ArgumentError(f"largest_loss must be greater than 0, got {largest:g}")
        return largest
    if loss.name in SHARES:
        return 1.0
    if loss.name == "abs" and scale is not None:
        return scale[1] - scale[0]
    if loss.name == "abs":
        raise ArgumentError(
            "loss abs has no largest value, which a risk guarantee needs; declare the lowest and highest score "
            "(scale=, --scale), or choose zero_one"
        )
    raise ArgumentError(
        f"loss {loss.name} has no declared largest value, which a risk guarantee needs; pass it (largest_loss=)"
    )
