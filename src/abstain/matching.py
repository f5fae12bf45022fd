"""Matching: finding the same items in several systems, by name and never silently by position.

An item is identified by its cluster and its name together. If a source has only one of the two, that one must be unique
in every row. If it has neither, rows are matched by their order, but only if the user requests that. Run files are
matched by participant: all items of a participant with evaluated items in all systems are compared. Different truths
for one item suggest that the names do not mean the same, which is an error unless the user allows it.

Systems with different items, such as those of two weeks, can be kept apart as independent samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate, labels
from abstain.errors import ArgumentError, DataError, ResultWarning, list_names
from abstain.items import Outcome, are_numbers, numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.items import Items

    Codes = NDArray[np.intp]

__all__ = ["MATCHES", "NAMES", "ROWS", "Matching", "keep_apart", "match"]

_UNPAIRED = "to compare systems with different items as independent samples, set unpaired=True (--unpaired)"

NAMES, ROWS = MATCHES = ("names", "rows")


@dataclass(frozen=True, slots=True)
class Matching:
    """The numbers of items and clusters that a comparison uses and leaves out.

    Attributes:
        by: the matched names: "participant" (of run files), "rows", or "cluster", "item" or both; empty for independent
            samples, whose items are not matched.
        total: items that any system has.
        shared: items that all systems have.
        evaluated: compared items: answered or abstained from in all systems, or of all independent samples together.
        missing: by system, the items that it does not have.
        left_out: by system, the shared items that failed or have no truth.
        different_truths: shared items whose truth differs between systems.
        intersection_only: True if missing items were allowed.
        clusters: clusters of the compared items.
        clusters_shared: clusters that all systems have.
        clusters_unmatched: by system, its clusters that another system does not have.
        clusters_failed: by system, the shared clusters of which it has no evaluated item.
    """

    by: tuple[str, ...] = field(repr=False)
    total: int
    shared: int
    evaluated: int
    missing: Mapping[str, int] = field(repr=False)
    left_out: Mapping[str, int] = field(repr=False)
    different_truths: int
    intersection_only: bool
    clusters: int
    clusters_shared: int
    clusters_unmatched: Mapping[str, int] = field(repr=False)
    clusters_failed: Mapping[str, int] = field(repr=False)

    @property
    def paired(self) -> bool:
        """True if items were matched; False for independent samples."""
        return bool(self.by)

    @property
    def warnings(self) -> list[ResultWarning]:
        """The warnings about the compared items."""
        if not self.paired:
            return []
        warnings = []
        if self.different_truths:
            differ = (
                f"{self.different_truths} of {self.shared} items have different truths in different systems"
            )
            warnings.append(ResultWarning("truths_differ", f"{differ}: are they the same items?"))
        if self.evaluated < self.shared:
            listed = list_names(f"{name} {count}" for name, count in self.left_out.items() if count)
            lost = f"{self.shared - self.evaluated} of {self.shared} shared items are left out"
            warnings.append(ResultWarning("failed_items", f"{lost}: failed or without truth ({listed})"))
        if self.shared < self.total:
            lost = f"{self.total - self.shared} of {self.total} items"
            warnings.append(ResultWarning("missing_items", f"{lost} are not in all systems and are left out"))
        return warnings


def match(
    systems: Mapping[str, Items],
    *,
    by: str = NAMES,
    intersection_only: bool = False,
    truth_may_differ: bool = False,
) -> tuple[dict[str, Items], Matching]:
    """Return the compared items of every system, and the numbers of items that are left out.

    Args:
        systems: items by the name of the system, at least two.
        by: "names", or "rows" if the order of rows is the match.
        intersection_only: leave out items (participants of run files) that a system lacks. Default: an error.
        truth_may_differ: allow different truths for one item. Default: an error.
    """
    _validate.choice(by, "match", MATCHES)
    _check_comparable(systems)
    rows = {name: np.flatnonzero(items.is_counted) for name, items in systems.items()}
    if by == ROWS:
        check_equal_rows({name: len(items) for name, items in systems.items()})
    systems = {name: items.counted for name, items in systems.items()}
    if by == NAMES and all(items.provenance.get("format") == "run" for items in systems.values()):
        kept, matching = _by_participant(systems, intersection_only=intersection_only)
    else:
        fields = known_by({name: items.unnamed for name, items in systems.items()}, by)
        codes = rows if by == ROWS else _name_codes(systems, fields)
        kept, matching = _by_item(systems, codes, fields, intersection_only=intersection_only)
    check_truths(matching, may_differ=truth_may_differ)
    return kept, matching


def keep_apart(systems: Mapping[str, Items]) -> tuple[dict[str, Items], Matching]:
    """Return the evaluated items of every system, and their numbers; nothing is matched."""
    _check_comparable(systems)
    kept = {name: items.evaluated for name, items in systems.items()}
    clusters = {name: items.clusters for name, items in kept.items()}
    nothing = dict.fromkeys(systems, 0)
    return kept, Matching(
        by=(),
        total=sum(items.counts.total for items in systems.values()),
        shared=0,
        evaluated=sum(items.counts.n for items in kept.values()),
        missing=nothing,
        left_out=nothing,
        different_truths=0,
        intersection_only=False,
        clusters=sum(clusters.values()),
        clusters_shared=0,
        clusters_unmatched=clusters,
        clusters_failed=nothing,
    )


def _check_comparable(systems: Mapping[str, Items]) -> None:
    if len(systems) < 2:
        raise ArgumentError(f"a comparison needs at least two systems, got {len(systems)}")
    if len({items.positive for items in systems.values()}) > 1:
        raise ArgumentError("the systems have different positive labels; name one for all (positive=)")
    for name, items in systems.items():
        if not len(items.evaluated):
            raise DataError(nothing_evaluated(name))


def check_truths(matching: Matching, *, may_differ: bool) -> None:
    """Raise if systems have different truths for an item and that is not allowed."""
    if matching.different_truths and not may_differ:
        raise DataError(
            f"the systems disagree about the truth of {matching.different_truths} of {matching.shared} shared items: "
            "are they the same items? Fix the truth, or allow it (truth_may_differ=True, --truth-may-differ)"
        )


def _by_participant(
    systems: Mapping[str, Items], *, intersection_only: bool
) -> tuple[dict[str, Items], Matching]:
    """Match run files: all evaluated items of the participants that have some in all systems."""
    noun = next(iter(systems.values())).cluster_noun
    shared = _shared(systems)
    unshared = {name: len(items.cluster_ids) - len(shared) for name, items in systems.items()}
    if not len(shared):
        raise DataError(
            f"the systems have no {noun} in common; a comparison needs the same {noun}s ({_UNPAIRED})"
        )
    if any(unshared.values()) and not intersection_only:
        listed = list_names(f"{count} only in {name}" for name, count in unshared.items())
        raise DataError(
            f"the systems do not have the same {noun}s: {listed}, {len(shared)} in all; to compare only those, set "
            "intersection_only=True (--intersection-only)"
        )
    evaluated = {name: np.intersect1d(shared, items.evaluated.cluster_ids) for name, items in systems.items()}
    compared = reduce(np.intersect1d, evaluated.values())
    if not len(compared):
        raise DataError(f"no {noun} has evaluated items in all systems; there is nothing to compare")
    wanted = set(compared.tolist())
    kept = {
        name: items.evaluated.take(
            np.array([cluster in wanted for cluster in items.evaluated.cluster.tolist()], np.bool_)
        )
        for name, items in systems.items()
    }
    codes = _name_codes(systems, ("cluster", "item"))
    every_code, shared_codes, missing = _count_codes(codes)
    matching = Matching(
        by=(noun,),
        total=len(every_code),
        shared=len(shared_codes),
        evaluated=min(len(items) for items in kept.values()),
        missing=missing,
        left_out={name: int((items.outcome > Outcome.ABSTAINED).sum()) for name, items in systems.items()},
        different_truths=_different_truths(_aligned(systems, codes, shared_codes)),
        intersection_only=intersection_only,
        clusters=len(compared),
        clusters_shared=len(shared),
        clusters_unmatched=unshared,
        clusters_failed={name: len(shared) - len(ids) for name, ids in evaluated.items()},
    )
    return kept, matching


def _by_item(
    systems: Mapping[str, Items], codes: Mapping[str, Codes], by: tuple[str, ...], *, intersection_only: bool
) -> tuple[dict[str, Items], Matching]:
    """Match items: those that are evaluated in all systems, in the same rows."""
    every_code, shared, missing = _count_codes(codes)
    noun = next(iter(systems.values())).cluster_noun
    if len(shared) < len(every_code) and not intersection_only:
        name = next(name for name, count in missing.items() if count)
        absent = np.setdiff1d(every_code, codes[name])[0]
        other = next(other for other, own in codes.items() if absent in own)
        location = systems[other].describe_row(int(np.flatnonzero(codes[other] == absent)[0]))
        raise DataError(items_differ(len(every_code), len(shared), missing, location))
    aligned = _same_clusters(_aligned(systems, codes, shared), by)
    evaluated = np.logical_and.reduce([items.outcome <= Outcome.ABSTAINED for items in aligned.values()])
    if not evaluated.any():
        raise DataError(nothing_shared(len(shared), noun))
    kept = {name: items.take(evaluated) for name, items in aligned.items()}
    clusters = _shared(aligned)
    matching = Matching(
        by=by,
        total=len(every_code),
        shared=len(shared),
        evaluated=int(evaluated.sum()),
        missing=missing,
        left_out={name: int((items.outcome > Outcome.ABSTAINED).sum()) for name, items in aligned.items()},
        different_truths=_different_truths(aligned),
        intersection_only=intersection_only,
        clusters=len(next(iter(kept.values())).cluster_ids),
        clusters_shared=len(clusters),
        clusters_unmatched={
            name: len(items.cluster_ids) - len(clusters) if "cluster" in by else 0
            for name, items in systems.items()
        },
        clusters_failed={
            name: len(clusters) - len(items.evaluated.cluster_ids) for name, items in aligned.items()
        },
    )
    return kept, matching


def _count_codes(codes: Mapping[str, Codes]) -> tuple[Codes, Codes, dict[str, int]]:
    """Return the codes of any system, those of all systems, and by system the number that it lacks."""
    every_code, holders = np.unique(np.concatenate(list(codes.values())), return_counts=True)
    missing = {name: len(every_code) - len(own) for name, own in codes.items()}
    return every_code, every_code[holders == len(codes)], missing


def _aligned(systems: Mapping[str, Items], codes: Mapping[str, Codes], shared: Codes) -> dict[str, Items]:
    # Codes are unique within a system, so sorting them puts the same items into the same rows.
    return {
        name: items.take(np.argsort(codes[name])[np.isin(np.sort(codes[name]), shared)])
        for name, items in systems.items()
    }


def _shared(systems: Mapping[str, Items]) -> NDArray[Any]:
    columns = [items.cluster_ids for items in systems.values()]
    check_kinds(dict(zip(systems, map(are_numbers, columns), strict=True)), "cluster")
    return reduce(np.intersect1d, columns)


def check_kinds(numbers: Mapping[str, bool], role: str) -> None:
    """Raise if names are whole numbers in some systems and text in others."""
    kinds = {is_number: name for name, is_number in numbers.items()}
    if len(kinds) > 1:
        raise DataError(
            f"the {role}s are numbers in {kinds[True]} and text in {kinds[False]}, so they cannot be matched; "
            "store them as the same type"
        )


def known_by(unnamed: Mapping[str, tuple[str, ...]], by: str = NAMES) -> tuple[str, ...]:
    """Return the fields that identify items: "rows", or those of cluster and item that every system has.

    Args:
        unnamed: by system, the fields that it does not have.
        by: "names" or "rows".
    """
    if by == ROWS:
        return (ROWS,)
    absent = {field for fields in unnamed.values() for field in fields}
    present = tuple(field for field in ("cluster", "item") if field not in absent)
    if not present:
        raise DataError(
            "the items have no names, and rows are not matched by their order unless you request it: name the items "
            "(item=, --item), or the clusters if each has one item (cluster=, --cluster), or match rows by their order "
            '(match="rows", --match rows)'
        )
    return present


def nothing_evaluated(name: str) -> str:
    """Return the error for a system without any evaluated item."""
    return f"{name}: there is no item to evaluate: none is answered or abstained"


def nothing_shared(shared: int, noun: str) -> str:
    """Return the error if no item is in all systems, or none of those is evaluated in all."""
    if shared:
        return "no item is evaluated in all systems; there is nothing to compare"
    return f"the systems have no item in common; a comparison needs the same {noun}s and items ({_UNPAIRED})"


def check_equal_rows(sizes: Mapping[str, int]) -> None:
    """Raise if systems that are matched by the order of their rows have different numbers of rows."""
    if len(set(sizes.values())) > 1:
        listed = list_names(f"{name} {size}" for name, size in sizes.items())
        raise DataError(f"rows can only be matched by their order if the systems have equally many: {listed}")


def _name_codes(systems: Mapping[str, Items], by: tuple[str, ...]) -> dict[str, Codes]:
    """Return a number for every item, the same in all systems; duplicate items are an error."""
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
        duplicates = order[1:][np.diff(own[order]) == 0]
        if len(duplicates):
            raise DataError(twice(name, systems[name].describe_row(int(duplicates.min())), by))
    return codes


def twice(name: str, location: str, by: tuple[str, ...]) -> str:
    """Return the error for a duplicate item."""
    problem = f"{name}: {location} appears twice"
    if by == ("cluster",):
        return f"{problem}; the items have no names: name them (item=, --item)"
    return f"{problem}; every item needs a unique name{' within its cluster' * (len(by) > 1)}"


def items_differ(total: int, shared: int, missing: Mapping[str, int], location: str) -> str:
    """Return the error for systems with different items; `location` is the first item that the first of them lacks."""
    lacking = {name: count for name, count in missing.items() if count}
    listed = list_names(f"{name} lacks {count}" for name, count in lacking.items())
    way_out = (
        "to compare only those, set intersection_only=True (--intersection-only)" if shared else _UNPAIRED
    )
    return (
        f"the systems do not have the same items: of {total} items {listed} (the first one that {next(iter(lacking))} "
        f"lacks: {location}), {shared} are in all; {way_out}"
    )


def _same_clusters(systems: dict[str, Items], by: tuple[str, ...]) -> dict[str, Items]:
    """Give all systems the clusters of the first one that names them.

    If none does, every item is a cluster with the item's name, so that the result does not depend on the order of rows.
    """
    named = next((items for items in systems.values() if "cluster" not in items.unnamed), None)
    first = next(iter(systems.values()))
    cluster: NDArray[Any] = np.arange(len(first)) if by == (ROWS,) else first.item
    cluster = cluster if named is None else named.cluster
    noun = (named or first).cluster_noun
    return {name: replace(items, cluster=cluster, cluster_noun=noun) for name, items in systems.items()}


def different_truths(truths: Sequence[NDArray[Any]]) -> NDArray[np.bool_]:
    """Return True for items with different truths; the columns are those of `labels.column`."""
    labelled = np.logical_and.reduce([~labels.missing(truth) for truth in truths])
    same = np.logical_and.reduce([labels.matches(truths[0], truth) for truth in truths[1:]])
    return np.asarray(labelled & ~same)


def _different_truths(aligned: Mapping[str, Items]) -> int:
    columns = [labels.column(items.truth, "truth") for items in aligned.values()]
    return int(different_truths(columns).sum())
