"""Choosing the column of a table for each field of the items: the truth, the prediction, the cluster, and so on.

A field is taken from the column that the caller names, otherwise from one with a usual name. Every guess is recorded in
``provenance["columns"]`` and printed on the command line. Weights, bounds and sets are never guessed, except under the
names that exports of abstain give them. A column of verdicts is guessed only if there is no prediction, and a
confidence only by its usual names, never because a column happens to be numeric. A guessed column with unusable values
is an error. `_columns` interprets the values.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._export import EXPORTED_NAMES
from abstain.errors import ArgumentError, DataError
from abstain.items import CONFIDENCE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from abstain.readers._read import ReadArguments
    from abstain.readers._tables import SourceTable

_UNITS = ("patient", "participant", "subject", "document")
# The usual names of each field, the most specific first; compared without regard to case.
USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "outcome": ("outcome",),
    "truth": ("truth", "y_true", "label", "target", "ground_truth", "gold", "gt", "true_label"),
    "prediction": ("prediction", "y_pred", "pred", "predicted", "predicted_label"),
    "correct": ("correct", "is_correct", "grade"),
    "confidence": CONFIDENCE_NAMES,
    "abstained": ("abstained", "abstain", "declined", "deferred", "refused"),
    "failed": ("failed",),
    "cluster": (
        *("cluster", "cluster_id", "patient_id", "participant_id", "subject_id", "document_id", "doc_id"),
        *_UNITS,
    ),
    "item": ("item", "item_id", "id", "sample_id", "question_id"),
    **{field: (name,) for field, name in EXPORTED_NAMES.items()},
}
SYSTEM_NAMES = ("system", "model")
_ALL_USUAL = frozenset((*chain.from_iterable(USUAL_NAMES.values()), *SYSTEM_NAMES))
_UNIT_NAME = re.compile(
    rf"({'|'.join(_UNITS)}|person|user|question|conversation|dialogue|session|case|visit|encounter|admission)"
    r"(s|ids?)?([^a-z].*)?"
)
_ID_NAME = re.compile(r".*[_\-. ]id")
# A cluster is called by the name of its column without the id at the end.
_ID_ENDING = re.compile(r"(?i:[_\-. ]ids?)$|(?<=[a-z])(ID|Id)s?$|(?i:^ids?)$")
_WORD = re.compile(r"[a-z]{2,20}")
_OTHER_PLURAL = re.compile(r"([^aeiou]y|s|x|z|ch|sh)$")
_MOST_WORDS = 3


def named_columns(arguments: ReadArguments) -> dict[str, str]:
    """Return the column of every field that the caller names."""
    names = {field: getattr(arguments, field, None) for field in USUAL_NAMES}
    return {field: name for field, name in names.items() if name is not None}


def unnamed_fields(columns: Mapping[str, str], arguments: ReadArguments) -> tuple[str, ...]:
    """Return those of cluster, item and abstained that the table does not have.

    Abstentions also follow from outcomes, from a rule, and from missing predictions if they mean an abstention.
    """
    by_rule = arguments.abstain_rule is not None or arguments.null_prediction == "abstained"
    present = {*columns, "abstained"} if by_rule or "outcome" in columns else {*columns}
    return tuple(field for field in ("cluster", "item", "abstained") if field not in present)


def is_usual(name: str) -> bool:
    """Return whether a name is a usual one for the column of any field."""
    return name.casefold() in _ALL_USUAL


def assign_columns(table: SourceTable, arguments: ReadArguments) -> dict[str, str]:
    """Return the column of every field that has one."""
    named = named_columns(arguments)
    _check_named(table, named)
    columns: dict[str, str] = {}
    ambiguous: dict[str, list[str]] = {}
    for field in USUAL_NAMES:
        candidates = [named[field]] if field in named else guess_columns(table, field, columns, named)
        if candidates:
            columns[field] = candidates[0]
        if len(candidates) > 1:
            ambiguous[field] = candidates
    _choose_truth_or_verdict(table, columns, named)
    for field, candidates in ambiguous.items():
        same_name = candidates[0].casefold() == candidates[1].casefold()
        if field in columns and (field in ("truth", "prediction") or same_name):
            raise ArgumentError(
                f"{table.label}: {field} could be {' or '.join(candidates)}; name the column ({field}, --{field})"
            )
    if "outcome" in columns:
        # A column that the caller names takes precedence over one that happens to be called outcome.
        for field in ("outcome",) if {"abstained", "failed"} & named.keys() else ("abstained", "failed"):
            columns.pop(field, None)
    table.check_columns([name for field, name in columns.items() if field != "set"])
    return columns


def _check_named(table: SourceTable, named: Mapping[str, str]) -> None:
    table.check_columns([name for field, name in named.items() if field != "set"])
    table.check_columns([named["set"]] if "set" in named else [], lists=True)
    if "correct" in named and {"truth", "prediction"} & named.keys():
        raise ArgumentError(
            f"{table.label}: correct already marks the right answers; name either correct, or truth and prediction"
        )
    if ("low" in named) != ("high" in named):
        raise ArgumentError(f"{table.label}: an interval has two bounds; name both low and high")


def _choose_truth_or_verdict(table: SourceTable, columns: dict[str, str], named: Mapping[str, str]) -> None:
    """Keep either the verdict or truth and prediction, and raise if neither is complete."""
    answers = {"prediction", "low", "set"} & columns.keys()
    if "correct" in named or ("correct" in columns and "truth" not in named and not answers):
        # The verdict is used, and a column of truths or predictions next to it is an ordinary column.
        columns.pop("truth", None)
        columns.pop("prediction", None)
    else:
        columns.pop("correct", None)
        for field in ("truth",) if answers else ("truth", "prediction"):
            if field not in columns:
                if not table.rows:  # the header may be a record
                    raise DataError(f"{table.label}: the table has no rows")
                raise ArgumentError(
                    f"{table.label}: which column is the {field}? Name it ({field}, --{field}); "
                    f"{table.listed_columns}"
                )


def guess_columns(
    table: SourceTable, field: str, columns: Mapping[str, str], named: Mapping[str, str]
) -> list[str]:
    """Return the columns of a usual name that are not used for another field, the most specific first."""
    taken = {*columns.values(), *named.values()}
    lowered: dict[str, list[str]] = {}
    for name in table.kinds:
        lowered.setdefault(name.casefold(), []).append(name)
    candidates = [
        name
        for usual in USUAL_NAMES[field]
        # The lower-case name wins over names that differ from it only in case.
        for name in ([usual] if usual in table.kinds else lowered.get(usual, []))
        if name not in taken
    ]
    exact = [name for name in candidates if name.casefold() == field]
    # The exact name of the field is not ambiguous, and neither is a table that abstain wrote.
    return exact if exact or (field == "confidence" and "outcome" in columns) else candidates


def usual_column(table: SourceTable, field: str, *, taken: Iterable[str] = ()) -> str | None:
    """Return the column that has a usual name of a field ("truth", "cluster", "item") and is not `taken`, or None.

    >>> import polars
    >>> from abstain.readers import open_table
    >>> usual_column(open_table(polars.DataFrame({"patient_id": [1], "text": ["a"]})), "cluster")
    'patient_id'
    """
    candidates = guess_columns(table, field, {}, {name: name for name in taken})
    return candidates[0] if candidates else None


def system_column(table: SourceTable, arguments: ReadArguments, columns: Mapping[str, str]) -> str | None:
    """Return the column of system names: the one named by the caller, or an unused one with a usual name."""
    if arguments.system is not None:
        table.check_columns([arguments.system])
        return arguments.system
    taken = {*columns.values(), *(arguments.signals or ()), *(arguments.metadata or ())}
    lowered = {name.casefold(): name for name in table.kinds}
    candidates = [lowered[usual] for usual in SYSTEM_NAMES if usual in lowered]
    plain = [name for name in candidates if name not in taken and table.kinds[name] not in ("list", "other")]
    # A table that abstain wrote has one system.
    return plain[0] if plain and "outcome" not in columns else None


def scale_and_noun(
    table: SourceTable, columns: Mapping[str, str], arguments: ReadArguments
) -> dict[str, Any]:
    """Return the scale and the word for a cluster, from the arguments or from the table."""
    scale = table.declared.get("scale") if arguments.scale is None else _validate.scale(arguments.scale)
    noun = cluster_noun(columns.get("cluster"), "cluster")
    return {"scale": scale, "cluster_noun": table.declared.get("cluster_noun") or noun}


def cluster_noun(key: str | None, usual: str) -> str:
    """Return the word for a cluster: its column or key without the id at the end; `usual` if there is no key.

    The word is "cluster" if that leaves no plain word, or one whose plural needs more than an s.

    >>> [cluster_noun(key, "sample") for key in ("image_id", "PatientID", "questions", "doc", "care_home.id", None)]
    ['image', 'patient', 'question', 'doc', 'care home', 'sample']
    >>> [cluster_noun(key, "sample") for key in ("id", "Unnamed: 0", "study_id", "c1", "cluster_ids")]
    ['cluster', 'cluster', 'cluster', 'cluster', 'cluster']
    """
    if key is None:
        return usual
    words = re.split(r"[_\-. ]+", _ID_ENDING.sub("", key).casefold())
    last = words[-1]
    if last.endswith("s") and not last.endswith(("ss", "us", "is")):
        words[-1] = last[:-1]
    plain = all(_WORD.fullmatch(word) for word in words) and len(words) <= _MOST_WORDS
    return " ".join(words) if plain and not _OTHER_PLURAL.search(words[-1]) else "cluster"


def column_provenance(
    table: SourceTable, columns: Mapping[str, str], arguments: ReadArguments
) -> dict[str, Any]:
    """Return the column of each field, the guessed fields, a possible cluster column, and whether there is a header."""
    guessed = tuple(field for field in columns if field not in named_columns(arguments))
    cluster = _possible_cluster(table, columns)
    possible = {} if cluster is None else {"possible_cluster": cluster}
    headless = {} if table.usual else {"headless": True}
    return {"columns": columns, "guessed": guessed, **possible, **headless}


def _possible_cluster(table: SourceTable, columns: Mapping[str, str]) -> str | None:
    """Return the column that looks like the name of a unit and has repeating values, if no cluster is known."""
    if "cluster" in columns:
        return None
    taken = set(columns.values())
    kinds = ("whole", "text", "unknown")
    plain = [name for name, kind in table.kinds.items() if kind in kinds and name not in taken]
    units = [name for name in plain if _UNIT_NAME.fullmatch(name.casefold())]
    others = [name for name in plain if name not in units and _ID_NAME.fullmatch(name.casefold())]
    likely = (name for name in (*units, *others) if table.repeats(name) and not table.spells_numbers(name))
    return next(likely, None)
