"""Rows: judged items as a promise sees them: answered or not, how confident, at which loss, in which cluster.

Losses are on [0, 1]: a promise is about a share, and a finite-sample one needs to know the worst that can happen. What
has no worst is refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._confidences import load_calibrations, variant_confidences
from abstain._units import group_of
from abstain.confidence import no_confidence
from abstain.errors import ArgumentError, DataError
from abstain.groups import group_names
from abstain.losses import SHARES, item_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike, VariantConfidence
    from abstain.items import Items
    from abstain.losses import ItemLoss, Loss

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Mask = NDArray[np.bool_]

# As many places as a name can be hashed to.
_PLACES = 1 << 32
_QUANTILES = 101


@dataclass(frozen=True, eq=False, slots=True)
class AnsweredRows:
    """Judged rows.

    Attributes:
        answered: True where the model answered.
        confidence: of every answered row.
        loss: of every answered row, on [0, 1].
        cluster: the number of every row's cluster.
        names: the names of the clusters.
        weight: how many rows each row stands for; None where each is one.
        groups: the name of every row's group; None where nobody asked for groups.
    """

    answered: Mask
    confidence: Floats
    loss: Floats
    cluster: Indices
    names: NDArray[Any]
    weight: Floats | None = None
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.answered)

    @property
    def mass(self) -> Floats:
        """How many rows each row stands for."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def asked(self) -> Floats:
        """How many items each cluster was asked."""
        return np.bincount(self.cluster, weights=self.weight, minlength=len(self.names)).astype(np.float64)

    @property
    def clustered(self) -> bool:
        """True where some cluster has more than one item."""
        return len(self.names) < len(self) or (self.weight is not None and bool((self.weight != 1.0).any()))

    @property
    def binary(self) -> bool:
        """True where every loss is 0 or 1."""
        return bool(((self.loss == 0.0) | (self.loss == 1.0)).all())

    @property
    def constant_confidence(self) -> bool:
        """True if there are several answers and all of them have the same confidence."""
        return len(self.confidence) > 1 and bool((self.confidence == self.confidence[0]).all())

    def take(self, kept: Mask) -> AnsweredRows:
        """Return some of the rows, with the clusters that they have."""
        clusters, cluster = np.unique(self.cluster[kept], return_inverse=True)
        inside = kept[self.answered]
        return replace(
            self,
            answered=self.answered[kept],
            confidence=self.confidence[inside],
            loss=self.loss[inside],
            cluster=cluster.astype(np.intp),
            names=self.names[clusters],
            weight=None if self.weight is None else self.weight[kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def of_clusters(self, chosen: Mask) -> AnsweredRows:
        """Return the rows of some clusters."""
        return self.take(chosen[self.cluster])

    def fingerprints(self) -> tuple[str, str]:
        """Return digests of the rows with and without their losses, whatever the order of the rows.

        Both are made of the names of the clusters and of the confidences. The second stays the same if the rows are
        judged by another truth or another loss.
        """
        names = [str(name) for name in self.names.tolist()]
        by_name = sorted(range(len(names)), key=names.__getitem__)
        place = np.empty(len(names))
        place[by_name] = np.arange(len(names))
        confidence, loss = np.full(len(self), np.nan), np.full(len(self), np.nan)
        confidence[self.answered], loss[self.answered] = self.confidence, self.loss
        columns = [place[self.cluster], self.mass, confidence, loss]
        order = np.lexsort(columns[::-1])
        digest = hashlib.sha256("\n".join(names[row] for row in by_name).encode("utf-8", "surrogatepass"))
        digests = []
        for column in columns:
            # Adding 0 turns -0.0 into 0.0, which is the same number in other bytes.
            digest.update((column[order] + 0.0).tobytes())
            digests.append(digest.hexdigest())
        return digests[3], digests[2]


def cluster_noun(items: Items, rows: AnsweredRows) -> str:
    """Return what a cluster is called: "item" if every cluster has one item."""
    return items.cluster_noun if rows.clustered else "item"


def confidence_quantiles(values: Floats) -> tuple[float, ...]:
    """Return evenly spaced quantiles of confidences, from the lowest to the highest."""
    ordered = np.sort(values)
    places = np.linspace(0.0, len(ordered) - 1.0, _QUANTILES)
    return tuple(np.interp(places, np.arange(len(ordered)), ordered).tolist())


def hashed(names: NDArray[Any], purpose: str) -> Indices:
    """Return a number per cluster that depends on its name and the purpose alone, in no order that anybody knows.

    >>> hashed(np.array(["ann", "bob"]), "order").tolist() == hashed(np.array(["bob", "ann"]), "order").tolist()[::-1]
    True
    """
    told = _validate.objects([f"{purpose} {name}" for name in names.tolist()])
    return group_of(told, _PLACES)


def split_by_cluster(items: Items, share: float = 0.5) -> tuple[Items, Items]:
    """Return items in two parts that share no cluster: one to choose a threshold on, one to check it on.

    The part of a cluster depends on its name alone, so that it is the same on every machine.

    Args:
        items: the items to divide.
        share: about which share of the clusters the first part has.

    >>> from abstain import Items
    >>> items = Items.from_arrays([1] * 40, [1] * 40, confidence=[0.9] * 40, cluster=[row // 4 for row in range(40)])
    >>> choosing, checking = split_by_cluster(items)
    >>> len(choosing) + len(checking), set(choosing.cluster) & set(checking.cluster)
    (40, set())
    """
    part = _validate.level(share, "share")
    chosen = hashed(items.cluster_ids, "split") < part * _PLACES
    first = chosen[items.cluster_index]
    if first.all() or not first.any():
        raise DataError(
            f"{len(items.cluster_ids):,} {items.cluster_noun}s cannot be divided into two parts; bring more"
        )
    return items.take(first), items.take(~first)


def one_confidence(items: Items, confidence: str | None, calibration: CalibrationLike) -> VariantConfidence:
    """Return the one confidence of items that a policy goes by. Default: that of the source.

    Pass judged items: as in an evaluation, items that failed need no confidence.
    """
    calibrations = load_calibrations(calibration)
    asked: str | Sequence[str] = "default" if confidence is None else confidence
    found = variant_confidences(asked, items, calibrations)
    if not found:
        raise ArgumentError(f"a threshold needs a confidence: {no_confidence(items)}")
    distinct = {each.values.tobytes(): name for name, each in reversed(list(found.items()))}
    if len(distinct) > 1:
        raise ArgumentError(f"a policy goes by one confidence, got {', '.join(found)}; name one of them")
    return next(iter(found.values()))


def rows_of(
    items: Items,
    stated: VariantConfidence,
    loss: Loss | None,
    largest_loss: float | None,
    by: str | None = None,
) -> tuple[AnsweredRows, ItemLoss, float]:
    """Return judged rows with losses on [0, 1], the loss, and what was divided by.

    Args:
        items: all items.
        stated: the confidence of the judged ones.
        loss: a name, a function, or one number for each of all items.
        largest_loss: the largest value that the loss can have.
        by: the column of groups.
    """
    measured = item_loss(items, loss)
    largest = _largest(measured, largest_loss, items.scale)
    kept = items.judged
    answered = kept.answered
    wrong = answered & ~np.isfinite(stated.values)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"confidence {stated.name} is {stated.values[row]} for {kept.describe_row(row)} ({int(wrong.sum())} such "
            "items); every answered item needs one"
        )
    losses = measured.values[items.answered]
    scaled = losses / largest
    beyond = (scaled < 0.0) | (scaled > 1.0 + 1e-12)
    if beyond.any():
        first = int(np.argmax(beyond))
        place = kept.describe_row(int(np.flatnonzero(answered)[first]))
        raise DataError(
            f"loss {measured.name} is {losses[first]:g} for {place} ({int(beyond.sum())} such items), and a promise "
            f"needs losses from 0 to {largest:g}"
        )
    rows = AnsweredRows(
        answered=answered,
        confidence=stated.values[answered],
        loss=np.minimum(scaled, 1.0),
        cluster=kept.cluster_index,
        names=kept.cluster_ids,
        weight=kept.weight,
        groups=None if by is None else group_names(kept, by),
    )
    return rows, measured, largest


def _largest(loss: ItemLoss, declared: float | None, scale: tuple[float, float] | None) -> float:
    """Return the largest value that a loss can have: for the absolute error, the width of the declared scale."""
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
            "loss abs has no upper end, and nothing can be promised of what has none; declare the lowest and highest "
            "score (scale=, --scale), or choose zero_one"
        )
    raise ArgumentError(
        f"loss {loss.name} may have no upper end, and nothing can be promised of what has none; declare the most that "
        "it can be (largest_loss=)"
    )
