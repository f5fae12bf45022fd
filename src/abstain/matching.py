"""Matching: the same items of several systems, found by their names and never by their places in silence.

An item is known by its cluster and its name together. Where a source names only one of the two, that one must
tell all rows apart; where it names neither, nothing is matched unless the user says that the order of rows is
the match. Run files are matched by participant: every item of a participant that all sides have judged
enters. A truth that differs between the sides means that the names may not mean the same: an error, unless
the user says that it may.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.items import Outcome, are_numbers, numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items

    Codes = NDArray[np.intp]

__all__ = [
    "MATCHES",
    "NAMES",
    "ROWS",
    "Matching",
    "check_kinds",
    "check_truths",
    "different_truths",
    "items_differ",
    "known_by",
    "match",
    "nothing_judged",
    "nothing_shared",
    "twice",
    "unequal_rows",
]

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

    by: tuple[str, ...] = field(repr=False)
    total: int
    shared: int
    judged: int
    missing: Mapping[str, int] = field(repr=False)
    left_out: Mapping[str, int] = field(repr=False)
    different_truths: int
    intersection_only: bool
    clusters: int
    clusters_shared: int
    clusters_alone: Mapping[str, int] = field(repr=False)
    clusters_failed: Mapping[str, int] = field(repr=False)

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
    if len({items.positive for items in systems.values()}) > 1:
        raise ArgumentError("the systems have different positive labels; name one for all (positive=)")
    for name, items in systems.items():
        if not len(items.judged):
            raise DataError(nothing_judged(name))
    if by == NAMES and all(items.provenance.get("format") == "run" for items in systems.values()):
        kept, matching = _by_participant(systems, intersection_only=intersection_only)
    else:
        told = known_by({name: items.unnamed for name, items in systems.items()}, by)
        codes = _row_codes(systems) if by == ROWS else _name_codes(systems, told)
        kept, matching = _by_item(systems, codes, told, intersection_only=intersection_only)
    check_truths(matching, may_differ=truth_may_differ)
    return kept, matching


def check_truths(matching: Matching, *, may_differ: bool) -> None:
    """Raise where systems disagree about the truth of items, unless they may."""
    if matching.different_truths and not may_differ:
        raise DataError(
            f"the systems disagree about the truth of {matching.different_truths} of {matching.shared} shared items: "
            "are they the same items? Mend the truth, or allow it (truth_may_differ=True, --truth-may-differ)"
        )


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
    aligned = _same_clusters(_aligned(systems, codes, shared), by)
    judged = np.logical_and.reduce([items.outcome <= Outcome.ABSTAINED for items in aligned.values()])
    if not judged.any():
        raise DataError(nothing_shared(len(shared), noun))
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
    check_kinds(dict(zip(systems, map(are_numbers, columns), strict=True)), "cluster")
    shared = columns[0]
    for ids in columns[1:]:
        shared = np.intersect1d(shared, ids)
    return shared


def check_kinds(numbers: Mapping[str, bool], role: str) -> None:
    """Raise where names are whole numbers in some systems, and text in others."""
    kinds = {whole: name for name, whole in numbers.items()}
    if len(kinds) > 1:
        raise DataError(
            f"the {role}s are numbers in {kinds[True]} and text in {kinds[False]}; they cannot be matched"
        )


def known_by(unnamed: Mapping[str, tuple[str, ...]], by: str = NAMES) -> tuple[str, ...]:
    """Return what tells items apart: their rows, or cluster and item, or the one of them that every system names.

    Args:
        unnamed: by system, the roles that nobody named.
        by: what the user says: "names" or "rows".
    """
    if by == ROWS:
        return (ROWS,)
    nobody = {role for roles in unnamed.values() for role in roles}
    found = tuple(role for role in ("cluster", "item") if role not in nobody)
    if not found:
        raise DataError(
            "the items have no names, and rows are not matched by their places unless you say so: name the items "
            "(item=, --item), the clusters where each has one item (cluster=, --cluster), or say that the order "
            'of rows is the match (match="rows", --match rows)'
        )
    return found


def nothing_judged(name: str) -> str:
    """Return why a system cannot be compared."""
    return f"{name}: there is no item to judge: none is answered or abstained"


def nothing_shared(shared: int, noun: str) -> str:
    """Return why there is nothing to compare: no item is in all systems, or none of those was judged in all."""
    if shared:
        return "no item is judged in all systems; there is nothing to compare"
    return f"the systems have no item in common; a comparison needs the same {noun}s and items"


def unequal_rows(sizes: Mapping[str, int]) -> str:
    """Return why rows cannot be matched by their order."""
    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return f"rows can only be matched by their order where there are equally many: {listed}"


def _row_codes(systems: Mapping[str, Items]) -> dict[str, Codes]:
    sizes = {name: len(items) for name, items in systems.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(unequal_rows(sizes))
    return {name: np.arange(size) for name, size in sizes.items()}


def _name_codes(systems: Mapping[str, Items], by: tuple[str, ...]) -> dict[str, Codes]:
    """One number for every item, the same in all systems; an item that a system has twice is an error."""
    combined = np.zeros(sum(len(items) for items in systems.values()), np.intp)
    for role in by:
        columns = [getattr(items, role) for items in systems.values()]
        check_kinds(dict(zip(systems, map(are_numbers, columns), strict=True)), role)
        distinct, code = numbered(np.concatenate(columns))
        combined = combined * len(distinct) + code
    ends = np.cumsum([len(items) for items in systems.values()])[:-1]
    codes = dict(zip(systems, np.split(combined, ends), strict=True))
    for name, own in codes.items():
        order = np.argsort(own, kind="stable")
        again = order[1:][np.diff(own[order]) == 0]
        if len(again):
            raise DataError(twice(name, systems[name].describe_row(int(again.min())), by))
    return codes


def twice(name: str, place: str, by: tuple[str, ...]) -> str:
    """Return what is wrong where a system has an item twice."""
    where = f"{name}: {place} stands twice"
    if by == ("cluster",):
        return f"{where}; the items have no names of their own: name them (item=, --item)"
    return f"{where}; every item needs a name that is its own{' within its cluster' * (len(by) > 1)}"


def _differences(
    systems: Mapping[str, Items], codes: Mapping[str, Codes], known: Codes, shared: Codes
) -> str:
    missing = {name: len(known) - len(own) for name, own in codes.items()}
    name = next(name for name, count in missing.items() if count)
    absent = np.setdiff1d(known, codes[name])[0]
    other = next(other for other, own in codes.items() if absent in own)
    place = systems[other].describe_row(int(np.flatnonzero(codes[other] == absent)[0]))
    return items_differ(len(known), len(shared), missing, place)


def items_differ(total: int, shared: int, missing: Mapping[str, int], place: str) -> str:
    """Return what is wrong where systems do not hold the same items; `place` is what the first of them lacks first."""
    lacking = {name: count for name, count in missing.items() if count}
    listed = ", ".join(f"{name} lacks {count}" for name, count in lacking.items())
    return (
        f"the systems do not hold the same items: of {total} items {listed} ({next(iter(lacking))} the first one: "
        f"{place}), {shared} are in all; ask for the intersection only (intersection_only=True, --intersection-only) "
        "to compare those"
    )


def _same_clusters(systems: dict[str, Items], by: tuple[str, ...]) -> dict[str, Items]:
    """Give all systems the clusters of the first one that names them; row numbers of a file mean nothing elsewhere.

    Where none does, every item is a cluster, known by its name, so that nothing depends on the order of rows.
    """
    named = next((items for items in systems.values() if "cluster" not in items.unnamed), None)
    first = next(iter(systems.values()))
    cluster: NDArray[Any] = np.arange(len(first)) if by == (ROWS,) else first.item
    cluster = cluster if named is None else named.cluster
    noun = (named or first).cluster_noun
    return {name: replace(items, cluster=cluster, cluster_noun=noun) for name, items in systems.items()}


def different_truths(truths: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return True where there is a truth on all sides, and not the same one; columns are those of `labels.column`."""
    known = np.logical_and.reduce([~labels.missing(truth) for truth in truths])
    same = np.logical_and.reduce([labels.matches(truths[0], truth) for truth in truths[1:]])
    return np.asarray(known & ~same)


def _different_truths(aligned: Mapping[str, Items]) -> int:
    columns = [labels.column(items.truth, "truth") for items in aligned.values()]
    return int(different_truths(columns).sum())
