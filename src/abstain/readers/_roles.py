"""Roles: which column of a table plays which part.

A role is played by the column that the user names, or by one with a usual name; a guess is always announced,
in ``provenance["columns"]`` and on the command line. Weights, bounds and sets are never guessed (under the names
that our own exports give them they need no guess), a verdict only where nothing says what was predicted, a
confidence only by its usual names: no column is taken because it happens to be numeric, and none is passed over
because it holds something else: a column that has the name of a role must be able to play it. What the values mean
is known to `_columns`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain._export import EXPORTED_NAMES
from abstain.errors import ArgumentError, DataError
from abstain.items import CONFIDENCE_NAMES
from abstain.readers._values import CROSSED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.readers._rules import AbstentionRule
    from abstain.readers._tables import SourceTable

_UNITS = ("patient", "participant", "subject", "document")
# The usual names of each role, most telling first; compared without regard to case.
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
    **{role: (name,) for role, name in EXPORTED_NAMES.items()},
}
SYSTEM_NAMES = ("system", "model")
_ALL_USUAL = frozenset((*chain.from_iterable(USUAL_NAMES.values()), *SYSTEM_NAMES))
_UNIT_NAME = re.compile(
    rf"({'|'.join(_UNITS)}|person|user|question|conversation|dialogue|session|case|visit|encounter|admission)"
    r"(s|ids?)?([^a-z].*)?"
)
_ID_NAME = re.compile(r".*[_\-. ]id")
# What a cluster is called goes by its column.
_ID_ENDING = re.compile(r"(?i:[_\-. ]ids?)$|(?<=[a-z])(ID|Id)s?$|(?i:^ids?)$")
_WORD = re.compile(r"[a-z]{2,20}")
_OTHER_PLURAL = re.compile(r"([^aeiou]y|s|x|z|ch|sh)$")
_MOST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Roles:
    """What the user says of a table; None leaves a role to its usual names."""

    truth: str | None = None
    prediction: str | None = None
    correct: str | None = None
    confidence: str | None = None
    abstained: str | None = None
    failed: str | None = None
    cluster: str | None = None
    item: str | None = None
    weight: str | None = None
    low: str | None = None
    high: str | None = None
    set: str | None = None
    system: str | None = None
    percent: Sequence[str] | None = None
    crossed: str | None = None
    signals: Sequence[str] | None = None
    metadata: Sequence[str] | None = None
    null_prediction: str | None = None
    rule: AbstentionRule | None = None
    failed_rule: AbstentionRule | None = None
    scale: Sequence[float] | None = None
    positive: str | None = None

    def __post_init__(self) -> None:
        if self.null_prediction is not None:
            _validate.choice(self.null_prediction, "null_prediction", ("abstained", "failed"))
        if self.crossed is not None:
            _validate.choice(self.crossed, "crossed", CROSSED)

    def named(self) -> dict[str, str]:
        """The roles whose column the user names."""
        found = {role: getattr(self, role, None) for role in USUAL_NAMES}
        return {role: name for role, name in found.items() if name is not None}


def unnamed_roles(columns: Mapping[str, str], roles: Roles) -> tuple[str, ...]:
    """Return which of the roles that items must know of nobody named.

    Who abstained is also said by outcomes, by a rule, and by predictions that are missing where that means it.
    """
    told = "outcome" in columns or roles.rule is not None or roles.null_prediction == "abstained"
    known = {*columns, "abstained"} if told else set(columns)
    return tuple(role for role in ("cluster", "item", "abstained") if role not in known)


def is_usual(name: str) -> bool:
    """True for a name that a column of some role usually has, and no value."""
    return name.casefold() in _ALL_USUAL


def assign_columns(table: SourceTable, roles: Roles) -> dict[str, str]:
    """Return the column of every role that has one."""
    named = roles.named()
    _check_named(table, named)
    columns: dict[str, str] = {}
    doubtful: dict[str, list[str]] = {}
    for role in USUAL_NAMES:
        found = [named[role]] if role in named else guesses(table, role, columns, named)
        if found:
            columns[role] = found[0]
        if len(found) > 1:
            doubtful[role] = found
    settled = _settled(table, columns, doubtful, named)
    table.check_columns([name for role, name in settled.items() if role != "set"])
    return settled


def _check_named(table: SourceTable, named: Mapping[str, str]) -> None:
    table.check_columns([name for role, name in named.items() if role != "set"])
    table.check_columns([named["set"]] if "set" in named else [], lists=True)
    if "correct" in named and {"truth", "prediction"} & named.keys():
        raise ArgumentError(
            f"{table.label}: correct already says what is right; leave truth and prediction out, or correct"
        )
    if ("low" in named) != ("high" in named):
        raise ArgumentError(f"{table.label}: an interval has two bounds; name both low and high")


def _settled(
    table: SourceTable, columns: dict[str, str], doubtful: Mapping[str, list[str]], named: Mapping[str, str]
) -> dict[str, str]:
    """Settle which of two roles counts where they say the same; complain about what is missing or in doubt."""
    answers = {"prediction", "low", "set"} & columns.keys()
    if "correct" in named or ("correct" in columns and "truth" not in named and not answers):
        # The verdict counts, and a truth or a prediction beside it is a column like any other.
        columns.pop("truth", None)
        columns.pop("prediction", None)
    else:
        columns.pop("correct", None)
        for role in ("truth",) if answers else ("truth", "prediction"):
            if role not in columns:
                if not table.rows:  # what seems to be its header may be a record
                    raise DataError(f"{table.label}: the table has no rows")
                raise ArgumentError(
                    f"{table.label}: which column is the {role}? Name it ({role}, --{role}); "
                    f"{table.listed_columns}"
                )
    for role in columns:
        twins = doubtful.get(role, [])
        if twins and (role in ("truth", "prediction") or twins[0].casefold() == twins[1].casefold()):
            raise ArgumentError(
                f"{table.label}: {role} could be {' or '.join(doubtful[role])}; name the column ({role}, --{role})"
            )
    # What the user names counts, not a column that happens to be called outcome.
    settled = ("outcome",) if {"abstained", "failed"} & named.keys() else ("abstained", "failed")
    if "outcome" in columns:
        for role in settled:
            columns.pop(role, None)
    return columns


def guesses(table: SourceTable, role: str, columns: Mapping[str, str], named: Mapping[str, str]) -> list[str]:
    """Return the columns of a usual name that play no other role, the most telling first."""
    taken = {*columns.values(), *named.values()}
    lowered: dict[str, list[str]] = {}
    for name in table.kinds:
        lowered.setdefault(name.casefold(), []).append(name)
    found = [
        name
        for usual in USUAL_NAMES[role]
        # A name in lower case leaves no doubt beside others that differ in case alone.
        for name in ([usual] if usual in table.kinds else lowered.get(usual, []))
        if name not in taken
    ]
    exact = [name for name in found if name.casefold() == role]
    # A column that has the very name of the role leaves no doubt; nor does a table that was written here.
    return exact if exact or (role == "confidence" and "outcome" in columns) else found


def system_column(table: SourceTable, roles: Roles, columns: Mapping[str, str]) -> str | None:
    """Return the column that says whose row it is: as named, or by its usual names where nothing else is made of it."""
    if roles.system is not None:
        table.check_columns([roles.system])
        return roles.system
    taken = {*columns.values(), *(roles.signals or ()), *(roles.metadata or ())}
    lowered = {name.casefold(): name for name in table.kinds}
    found = [lowered[usual] for usual in SYSTEM_NAMES if usual in lowered]
    plain = [name for name in found if name not in taken and table.kinds[name] not in ("list", "other")]
    # A table that was written here holds one system.
    return plain[0] if plain and "outcome" not in columns else None


def declared(table: SourceTable, columns: Mapping[str, str], roles: Roles) -> dict[str, Any]:
    """Return the scale of a table and what its clusters are called, as the user says, or the table."""
    scale = table.declared.get("scale") if roles.scale is None else _validate.scale(roles.scale)
    noun = noun_of(columns.get("cluster"), "cluster")
    return {"scale": scale, "cluster_noun": table.declared.get("cluster_noun") or noun}


def noun_of(key: str | None, usual: str) -> str:
    """Return what a cluster is called: by its column or key, without the id that it ends in; `usual` where it has none.

    What is no plain word, or a word whose plural is more than an s, is called a cluster.

    >>> [noun_of(key, "sample") for key in ("image_id", "PatientID", "questions", "doc", "care_home.id", None)]
    ['image', 'patient', 'question', 'doc', 'care home', 'sample']
    >>> [noun_of(key, "sample") for key in ("id", "Unnamed: 0", "study_id", "c1", "cluster_ids")]
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


def provenance(table: SourceTable, columns: Mapping[str, str], roles: Roles) -> dict[str, Any]:
    """Return which column was taken for what, what of that was guessed, and what may be the cluster or no header."""
    guessed = tuple(role for role in columns if role not in roles.named())
    likely = _possible_cluster(table, columns)
    possible = {} if likely is None else {"possible_cluster": likely}
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
