"""Matching: the same items of several systems, found by their names and never by their places.

An item is known by its cluster and its name together. Where a source names only one of the two, that one must
tell all rows apart; where it names neither, nothing can be matched. Truths that differ between the systems are
counted, because they mean that the names may not mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain.errors import ArgumentError, DataError
from abstain.evaluation._results import Caution
from abstain.items import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.items import Items

    Codes = NDArray[np.intp]

__all__ = ["Matching", "match_systems"]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which items a comparison rests on.

    Attributes:
        by: what an item is known by: "cluster", "item", or both.
        total: items that any system has.
        shared: items that all systems have.
        judged: items that are answered or abstained from in all systems: those that are compared.
        clusters: how many clusters the judged items come from.
        missing: by system, how many of all items it does not have.
        left_out: by system, how many of the shared items it failed on or has no truth for.
        different_truths: how many of the judged items have not the same truth in all systems.
        intersection_only: True where missing items were allowed.
    """

    by: tuple[str, ...]
    total: int
    shared: int
    judged: int
    clusters: int
    missing: Mapping[str, int]
    left_out: Mapping[str, int]
    different_truths: int
    intersection_only: bool

    @property
    def cautions(self) -> list[Caution]:
        """What the reader of the comparison must know about its items."""
        cautions = []
        if self.judged < self.shared:
            listed = ", ".join(f"{name} {count}" for name, count in self.left_out.items() if count)
            lost = f"{self.shared - self.judged} of {self.shared} shared items are left out"
            cautions.append(Caution("failed_items", f"{lost}: failed or without truth ({listed})"))
        if self.shared < self.total:
            lost = f"{self.total - self.shared} of {self.total} items"
            cautions.append(Caution("missing_items", f"{lost} are not in all systems and are left out"))
        if self.different_truths:
            differ = f"{self.different_truths} of {self.judged} items have not the same truth in all systems"
            cautions.append(Caution("truths_differ", f"{differ}: are they the same items?"))
        return cautions


def match_systems(
    systems: Mapping[str, Items], *, intersection_only: bool = False
) -> tuple[dict[str, Items], Matching]:
    """Return of every system the items that all have judged, row for row the same, and what was left out."""
    if len(systems) < 2:
        raise ArgumentError(f"a comparison needs at least two systems, got {len(systems)}")
    for name, items in systems.items():
        if not len(items.judged):
            raise DataError(f"{name}: there is no item to judge: none is answered or abstained")
    by = _known_by(systems)
    codes = _codes(systems, by)
    known, holders = np.unique(np.concatenate(list(codes.values())), return_counts=True)
    shared = known[holders == len(systems)]
    noun = next(iter(systems.values())).cluster_noun
    if len(shared) < len(known) and not intersection_only:
        raise DataError(_differences(systems, codes, known, shared))
    if not len(shared):
        raise DataError(f"the systems have no item in common; a comparison needs the same {noun}s and items")
    # Codes are distinct within a system, so sorting them puts the same items into the same rows.
    aligned = {
        name: items.take(np.argsort(codes[name])[np.isin(np.sort(codes[name]), shared)])
        for name, items in systems.items()
    }
    judged = np.logical_and.reduce([items.outcome <= Outcome.ABSTAINED for items in aligned.values()])
    if not judged.any():
        raise DataError("no item is judged in all systems; there is nothing to compare")
    left_out = {name: int((items.outcome > Outcome.ABSTAINED).sum()) for name, items in aligned.items()}
    kept = _same_clusters({name: items.take(judged) for name, items in aligned.items()})
    matching = Matching(
        by=by,
        total=len(known),
        shared=len(shared),
        judged=int(judged.sum()),
        clusters=len(next(iter(kept.values())).cluster_ids),
        missing={name: len(known) - len(own) for name, own in codes.items()},
        left_out=left_out,
        different_truths=_different_truths(kept),
        intersection_only=intersection_only,
    )
    return kept, matching


def _known_by(systems: Mapping[str, Items]) -> tuple[str, ...]:
    """What tells items apart: cluster and item, or the one of them that every system names."""
    unnamed = {role for items in systems.values() for role in items.unnamed}
    by = tuple(role for role in ("cluster", "item") if role not in unnamed)
    if not by:
        raise DataError(
            "the items have no names, and rows are never matched by their places; name the items (item=, --item), "
            "or the clusters (cluster=, --cluster) where each has one item"
        )
    return by


def _codes(systems: Mapping[str, Items], by: tuple[str, ...]) -> dict[str, Codes]:
    """One number for every item, the same in all systems; an item that a system has twice is an error."""
    combined = np.zeros(sum(len(items) for items in systems.values()), np.intp)
    for role in by:
        columns = [getattr(items, role) for items in systems.values()]
        if len({column.dtype.kind in "iu" for column in columns}) > 1:
            raise DataError(
                f"the {role}s are numbers in one system and text in another; they cannot be matched"
            )
        distinct, code = np.unique(np.concatenate(columns), return_inverse=True)
        combined = combined * len(distinct) + code
    ends = np.cumsum([len(items) for items in systems.values()])[:-1]
    codes = dict(zip(systems, np.split(combined, ends), strict=True))
    for name, own in codes.items():
        order = np.argsort(own, kind="stable")
        again = order[1:][np.diff(own[order]) == 0]
        if len(again):
            raise DataError(_twice(name, systems[name], int(again.min()), by))
    return codes


def _twice(name: str, items: Items, row: int, by: tuple[str, ...]) -> str:
    where = f"{name}: {items.describe_row(row)} stands twice (again at row {row})"
    if by == ("cluster",):
        return f"{where}; the items have no names of their own: name them (item=, --item)"
    return f"{where}; every item needs a name that is its own{' within its cluster' * (len(by) > 1)}"


def _differences(
    systems: Mapping[str, Items], codes: Mapping[str, Codes], known: Codes, shared: Codes
) -> str:
    lacking = {name: len(known) - len(own) for name, own in codes.items() if len(own) < len(known)}
    name = next(iter(lacking))
    absent = np.setdiff1d(known, codes[name])[0]
    other = next(other for other, own in codes.items() if absent in own)
    place = systems[other].describe_row(int(np.flatnonzero(codes[other] == absent)[0]))
    listed = ", ".join(f"{name} lacks {count}" for name, count in lacking.items())
    return (
        f"the systems do not hold the same items: of {len(known)} items {listed} ({name} the first one: {place}), "
        f"{len(shared)} are in all; ask for the intersection only (--intersection-only) to compare those"
    )


def _same_clusters(systems: dict[str, Items]) -> dict[str, Items]:
    """Give all systems the clusters of the first one that names them; row numbers of a file mean nothing elsewhere."""
    named = next((items for items in systems.values() if "cluster" not in items.unnamed), None)
    length = len(next(iter(systems.values())))
    cluster: NDArray[Any] = np.arange(length) if named is None else named.cluster
    noun = next(iter(systems.values())).cluster_noun if named is None else named.cluster_noun
    return {name: replace(items, cluster=cluster, cluster_noun=noun) for name, items in systems.items()}


def _different_truths(systems: Mapping[str, Items]) -> int:
    truths = [items.truth for items in systems.values()]
    different = [np.asarray(truth != truths[0], dtype=np.bool_) for truth in truths[1:]]
    return int(np.logical_or.reduce(different).sum())
