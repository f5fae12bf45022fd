"""Matching: the same items of several systems, found by their names and never by their places in silence.

An item is known by its cluster and its name together. Where a source names only one of the two, that one must
tell all rows apart; where it names neither, nothing is matched unless the user says that the order of rows is
the match. Run files are matched by participant: every item of a participant that all sides have judged
enters. A truth that differs between the sides means that the names may not mean the same: an error, unless
the user says that it may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain._brief import brief
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.items import Outcome, are_numbers, numbered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abstain.items import Items

    Codes = NDArray[np.intp]

__all__ = ["MATCHES", "Matching", "match"]

NAMES, ROWS = MATCHES = ("names", "rows")


@dataclass(frozen=True, slots=True)
class Matching:
    """Which items a comparison rests on.

    Attributes:
        by: what is matched: "participant" (of run files), "rows", or the names of the items: "cluster", "item" or both.
        total: items that any system has.
        shared: items that all systems have.
        judged: items that are answered or abstained from in all systems: those that are compared.
        missing: by system, how many of all items it does not have.
        left_out: by system, how many of the shared items it failed on or has no truth for.
        different_truths: how many of the shared items have not the same truth in all systems.
        intersection_only: True where missing items were allowed.
        clusters: how many clusters the compared items come from.
        clusters_shared: how many clusters all systems have.
        clusters_alone: by system, how many of its clusters some other system does not have.
        clusters_failed: by system, how many of the shared clusters it has no judged item of.
    """

    by: tuple[str, ...]
    total: int
    shared: int
    judged: int
    missing: Mapping[str, int]
    left_out: Mapping[str, int]
    different_truths: int
    intersection_only: bool
    clusters: int
    clusters_shared: int
    clusters_alone: Mapping[str, int]
    clusters_failed: Mapping[str, int]

    __repr__ = brief

    @property
    def warnings(self) -> list[ResultWarning]:
        """What the reader of the comparison must know about its items."""
        found = []
        if self.different_truths:
            differ = f"{self.different_truths} of {self.shared} items have not the same truth in all systems"
            found.append(ResultWarning("truths_differ", f"{differ}: are they the same items?"))
        if self.judged < self.shared:
            listed = ", ".join(f"{name} {count}" for name, count in self.left_out.items() if count)
            lost = f"{self.shared - self.judged} of {self.shared} shared items are left out"
            found.append(ResultWarning("failed_items", f"{lost}: failed or without truth ({listed})"))
        if self.shared < self.total:
            lost = f"{self.total - self.shared} of {self.total} items"
            found.append(ResultWarning("missing_items", f"{lost} are not in all systems and are left out"))
        return found


def match(
    systems: Mapping[str, Items],
    *,
    by: str = NAMES,
    intersection_only: bool = False,
    truth_may_differ: bool = False,
) -> tuple[dict[str, Items], Matching]:
    """Return of every system the items that are compared, and what was left out.

    Args:
        systems: items by the system's name, at least two.
        by: "names", or "rows" where the order of rows is the match.
        intersection_only: leave out items (participants of run files) that some system lacks; an error otherwise.
        truth_may_differ: go on where the systems disagree about the truth of an item; an error otherwise.
    """
    _validate.choice(by, "match", MATCHES)
    if len(systems) < 2:
        raise ArgumentError(f"a comparison needs at least two systems, got {len(systems)}")
    for name, items in systems.items():
        if not len(items.judged):
            raise DataError(f"{name}: there is no item to judge: none is answered or abstained")
    if by == NAMES and all(items.provenance.get("format") == "run" for items in systems.values()):
        kept, matching = _by_participant(systems, intersection_only=intersection_only)
    else:
        known_by = (ROWS,) if by == ROWS else _known_by(systems)
        codes = _row_codes(systems) if by == ROWS else _name_codes(systems, known_by)
        kept, matching = _by_item(systems, codes, known_by, intersection_only=intersection_only)
    if matching.different_truths and not truth_may_differ:
        raise DataError(
            f"the systems disagree about the truth of {matching.different_truths} of {matching.shared} shared items: "
            "are they the same items? Mend the truth, or allow it (truth_may_differ=True, --truth-may-differ)"
        )
    return kept, matching


def _by_participant(
    systems: Mapping[str, Items], *, intersection_only: bool
) -> tuple[dict[str, Items], Matching]:
    """Match run files: all judged items of the participants that all sides have judged."""
    noun = next(iter(systems.values())).cluster_noun
    shared = _shared(systems)
    alone = {name: len(items.cluster_ids) - len(shared) for name, items in systems.items()}
    if not len(shared):
        raise DataError(f"the systems have no {noun} in common; a comparison needs the same {noun}s")
    if any(alone.values()) and not intersection_only:
        listed = ", ".join(f"{count} only in {name}" for name, count in alone.items())
        raise DataError(
            f"the systems do not hold the same {noun}s: {listed}, {len(shared)} in all; ask for the intersection only "
            "(intersection_only=True, --intersection-only) to compare those"
        )
    judged = {name: np.intersect1d(shared, items.judged.cluster_ids) for name, items in systems.items()}
    both = shared
    for ids in judged.values():
        both = np.intersect1d(both, ids)
    if not len(both):
        raise DataError(f"no {noun} has judged items in all systems; there is nothing to compare")
    wanted = set(both.tolist())
    kept = {
        name: items.judged.take(
            np.array([cluster in wanted for cluster in items.judged.cluster.tolist()], np.bool_)
        )
        for name, items in systems.items()
    }
    codes = _name_codes(systems, ("cluster", "item"))
    known, holders = np.unique(np.concatenate(list(codes.values())), return_counts=True)
    both_have = known[holders == len(systems)]
    matching = Matching(
        by=(noun,),
        total=len(known),
        shared=len(both_have),
        judged=min(len(items) for items in kept.values()),
        missing={name: len(known) - len(own) for name, own in codes.items()},
        left_out={name: int((items.outcome > Outcome.ABSTAINED).sum()) for name, items in systems.items()},
        different_truths=_different_truths(_aligned(systems, codes, both_have)),
        intersection_only=intersection_only,
        clusters=len(both),
        clusters_shared=len(shared),
        clusters_alone=alone,
        clusters_failed={name: len(shared) - len(ids) for name, ids in judged.items()},
    )
    return kept, matching


def _by_item(
    systems: Mapping[str, Items], codes: Mapping[str, Codes], by: tuple[str, ...], *, intersection_only: bool
) -> tuple[dict[str, Items], Matching]:
    """Match items: those that all systems have judged, row for row the same."""
    known, holders = np.unique(np.concatenate(list(codes.values())), return_counts=True)
    shared = known[holders == len(systems)]
    noun = next(iter(systems.values())).cluster_noun
    if len(shared) < len(known) and not intersection_only:
        raise DataError(_differences(systems, codes, known, shared))
    if not len(shared):
        raise DataError(f"the systems have no item in common; a comparison needs the same {noun}s and items")
    aligned = _same_clusters(_aligned(systems, codes, shared))
    judged = np.logical_and.reduce([items.outcome <= Outcome.ABSTAINED for items in aligned.values()])
    if not judged.any():
        raise DataError("no item is judged in all systems; there is nothing to compare")
    kept = {name: items.take(judged) for name, items in aligned.items()}
    clusters = _shared(aligned)
    matching = Matching(
        by=by,
        total=len(known),
        shared=len(shared),
        judged=int(judged.sum()),
        missing={name: len(known) - len(own) for name, own in codes.items()},
        left_out={name: int((items.outcome > Outcome.ABSTAINED).sum()) for name, items in aligned.items()},
        different_truths=_different_truths(aligned),
        intersection_only=intersection_only,
        clusters=len(next(iter(kept.values())).cluster_ids),
        clusters_shared=len(clusters),
        clusters_alone={
            name: len(items.cluster_ids) - len(clusters) if "cluster" in by else 0
            for name, items in systems.items()
        },
        clusters_failed={
            name: len(clusters) - len(items.judged.cluster_ids) for name, items in aligned.items()
        },
    )
    return kept, matching


def _aligned(systems: Mapping[str, Items], codes: Mapping[str, Codes], shared: Codes) -> dict[str, Items]:
    # Codes are distinct within a system, so sorting them puts the same items into the same rows.
    return {
        name: items.take(np.argsort(codes[name])[np.isin(np.sort(codes[name]), shared)])
        for name, items in systems.items()
    }


def _shared(systems: Mapping[str, Items]) -> NDArray[Any]:
    columns = [items.cluster_ids for items in systems.values()]
    _one_kind(dict(zip(systems, columns, strict=True)), "cluster")
    shared = columns[0]
    for ids in columns[1:]:
        shared = np.intersect1d(shared, ids)
    return shared


def _one_kind(columns: Mapping[str, NDArray[Any]], role: str) -> None:
    kinds = {are_numbers(column): name for name, column in columns.items()}
    if len(kinds) > 1:
        raise DataError(
            f"the {role}s are numbers in {kinds[True]} and text in {kinds[False]}; they cannot be matched"
        )


def _known_by(systems: Mapping[str, Items]) -> tuple[str, ...]:
    """What tells items apart: cluster and item, or the one of them that every system names."""
    unnamed = {role for items in systems.values() for role in items.unnamed}
    by = tuple(role for role in ("cluster", "item") if role not in unnamed)
    if not by:
        raise DataError(
            "the items have no names, and rows are not matched by their places unless you say so: name the items "
            "(item=, --item), the clusters where each has one item (cluster=, --cluster), or say that the order "
            'of rows is the match (match="rows", --match rows)'
        )
    return by


def _row_codes(systems: Mapping[str, Items]) -> dict[str, Codes]:
    sizes = {name: len(items) for name, items in systems.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise DataError(f"rows can only be matched by their order where there are equally many: {listed}")
    return {name: np.arange(size) for name, size in sizes.items()}


def _name_codes(systems: Mapping[str, Items], by: tuple[str, ...]) -> dict[str, Codes]:
    """One number for every item, the same in all systems; an item that a system has twice is an error."""
    combined = np.zeros(sum(len(items) for items in systems.values()), np.intp)
    for role in by:
        columns = [getattr(items, role) for items in systems.values()]
        _one_kind(dict(zip(systems, columns, strict=True)), role)
        distinct, code = numbered(np.concatenate(columns))
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
    where = f"{name}: {items.describe_row(row)} stands twice"
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
        f"{len(shared)} are in all; ask for the intersection only (intersection_only=True, --intersection-only) to "
        "compare those"
    )


def _same_clusters(systems: dict[str, Items]) -> dict[str, Items]:
    """Give all systems the clusters of the first one that names them; row numbers of a file mean nothing elsewhere."""
    named = next((items for items in systems.values() if "cluster" not in items.unnamed), None)
    length = len(next(iter(systems.values())))
    cluster: NDArray[Any] = np.arange(length) if named is None else named.cluster
    noun = next(iter(systems.values())).cluster_noun if named is None else named.cluster_noun
    return {name: replace(items, cluster=cluster, cluster_noun=noun) for name, items in systems.items()}


def _different_truths(aligned: Mapping[str, Items]) -> int:
    """How many rows have a truth on all sides, and not the same one."""
    truths = [labels.column(items.truth, "truth") for items in aligned.values()]
    known = np.logical_and.reduce([~labels.missing(truth) for truth in truths])
    same = np.logical_and.reduce([labels.matches(truths[0], truth) for truth in truths[1:]])
    return int((known & ~same).sum())
