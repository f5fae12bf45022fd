"""Run files: experiments with one record per participant, each with a map from item to score.

Two versions are read: one with ``item_signals`` and an older one with only ``evidence_counts``, which become the signal
``llm_evidence_count``. A participant that did not succeed has no maps, and its items are failed. In this format, a null
prediction is an abstention. Numeric signals become `Signal` columns, all others metadata. `abstain._export` writes the
columns that the format lacks under ``abstain`` in the experiment's provenance; they are restored from there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct

from abstain import _files, _validate
from abstain._export import OUTCOMES
from abstain.errors import AbstainError, ArgumentError, DataError, FormatError, list_names
from abstain.items import (
    Items,
    Outcome,
    checked_intervals,
    checked_sets,
    checked_weight,
    columns_from_rows,
    identifiers,
    is_too_sparse,
    signals_from_rows,
)
from abstain.labels import missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from abstain.readers._read import ReadArguments

DEFAULT_SCALE = (0.0, 3.0)
_EVIDENCE = "llm_evidence_count"
_WHOLE = re.compile(r"-?[0-9]{1,308}", re.ASCII)
# The signals that the format defines as numbers.
_NUMBERS = frozenset(
    (
        *(_EVIDENCE, "retrieval_reference_count", "retrieval_similarity_mean", "retrieval_similarity_max"),
        *("verbalized_confidence", "token_msp", "token_pe", "token_energy", "consistency_modal_score"),
        *("consistency_modal_count", "consistency_modal_confidence", "consistency_score_std"),
        "consistency_na_rate",
    )
)
# In a file that was written from items, each of these maps has every item of a record.
_EXPORTED_MAPS = ("ground_truth_items", "predicted_items", "item_signals", "outcomes")


class _Participant(Struct):
    """The record of a participant; the values of its maps are checked item by item, so that errors name the item."""

    participant_id: int | str
    success: bool | None = None
    ground_truth_items: dict[str, Any] | None = None
    predicted_items: dict[str, Any] | None = None
    item_signals: dict[str, Any] | None = None
    evidence_counts: dict[str, Any] | None = None
    outcomes: dict[str, str] | None = None


class _Extension(Struct):
    """The columns and properties of items that the format lacks, in a run file that was written from items."""

    cluster_noun: str = "cluster"
    scale: tuple[float, float] | None = None
    labels: list[str] | None = None
    whole_items: bool = False
    metadata: list[str] = []
    rows: list[int] | None = None
    weight: list[float] | None = None
    intervals: list[tuple[float | None, float | None]] | None = None
    sets: list[list[int]] | None = None
    classes: list[str] | None = None


class _Provenance(Struct):
    mode: str | None = None
    scale: list[float] | None = None
    abstain: _Extension | None = None


class _Results(Struct):
    mode: str | None = None
    results: list[_Participant] = []


class _Experiment(Struct):
    provenance: _Provenance | None = None
    results: _Results | None = None

    @property
    def mode(self) -> str | None:
        """The mode, which is in either part."""
        parts = (self.provenance, self.results)
        return next((part.mode for part in parts if part is not None and part.mode is not None), None)


class _RunMetadata(Struct):
    run_id: str | int | None = None
    git_commit: str | None = None


class _RunDocument(Struct):
    experiments: list[_Experiment]
    run_metadata: _RunMetadata | None = None


def read_items(file: _files.SourceFile, arguments: ReadArguments) -> Items:
    """Read the experiment of one mode; see `abstain.read`."""
    if arguments.cluster is not None or arguments.abstain_rule is not None:
        raise ArgumentError(
            f"{file}: a run file already has clusters and abstentions; omit the cluster and the abstention rule"
        )
    content, path, scale = file.read(), str(file), arguments.scale
    record = _files.parse_json(content, path)
    if not isinstance(record, dict) or not isinstance(record.get("experiments"), list):
        raise FormatError(f"{path}: not a run file; it must be an object with a list of experiments")
    run = _files.convert(record, _RunDocument, path)
    experiment = _choose_experiment(run.experiments, arguments.mode, path)
    provenance = experiment.provenance or _Provenance()
    participants = _participants(experiment, path)
    bounds = _validate.scale(scale) if scale is not None else _declared_scale(provenance, path)
    if provenance.abstain is not None:
        items = _exported_items(participants, provenance.abstain, path)
        items = items if scale is None else replace(items, scale=bounds)
    else:
        items = _run_items(_rows(participants, bounds, path), bounds, path)
    metadata = run.run_metadata or _RunMetadata()
    return items.with_provenance(
        path=path,
        sha256=_files.sha256(content),
        run_id=metadata.run_id,
        git_commit=metadata.git_commit,
        mode=experiment.mode,
    )


class _RunRow(NamedTuple):
    participant: int | str
    item: str
    truth: Any
    prediction: Any
    signals: Mapping[str, Any]
    outcome: Any


def _declared_scale(provenance: _Provenance, path: str) -> tuple[float, float]:
    if provenance.scale is None:
        return DEFAULT_SCALE
    try:
        return _validate.scale(provenance.scale)
    except ArgumentError as problem:
        raise FormatError(f"{path}: provenance.{problem}") from None


def _choose_experiment(experiments: list[_Experiment], mode: str | None, path: str) -> _Experiment:
    if not experiments:
        raise FormatError(f"{path}: the run file has no experiments")
    modes = [experiment.mode for experiment in experiments]
    listed = list_names(name or "(unnamed)" for name in modes)
    if mode is None:
        if len(experiments) > 1:
            raise ArgumentError(f"{path}: has {len(experiments)} experiments; choose a mode: {listed}")
        return experiments[0]
    if mode not in modes:
        hint = _validate.suggestion(mode, [name for name in modes if name])
        raise ArgumentError(f"{path}: has no mode {mode!r}{hint}; modes here: {listed}")
    if modes.count(mode) > 1:
        raise FormatError(
            f"{path}: the mode {mode!r} is in {modes.count(mode)} experiments; it must be in only one"
        )
    return experiments[modes.index(mode)]


def _participants(experiment: _Experiment, path: str) -> list[_Participant]:
    records = experiment.results.results if experiment.results else []
    if not records:
        raise FormatError(
            f"{path}: the experiment has no participants (results.results must be a list of records)"
        )
    names = [record.participant_id for record in records]
    if len(set(names)) < len(names):
        duplicate = next(name for name, count in Counter(names).items() if count > 1)
        raise DataError(f"{path}: participant {duplicate} appears twice in the experiment")
    if len({type(name) for name in names}) > 1:
        raise FormatError(f"{path}: participant_id is a number for some participants and text for others")
    return records


def _rows(records: list[_Participant], scale: tuple[float, float], path: str) -> list[_RunRow]:
    done = [record for record in records if record.success]
    items = _item_set(done, path) if done else {"": None}
    if is_too_sparse(len(records) * len(items), len(done) * len(items) + len(records)):
        raise DataError(
            f"{path}: {len(records) - len(done):,} of {len(records):,} participants failed, and the others have "
            f"{len(items):,} items; so few participants cannot define the items of so many"
        )
    return [row for record in records for row in _participant_rows(record, items, scale, path)]


def _item_set(records: list[_Participant], path: str) -> dict[str, None]:
    """Return the items that most participants have, so that an error can name the participant who differs."""
    counts = Counter(item for record in records for item in _map(record, "ground_truth_items", path))
    items = {item: None for item, count in counts.items() if 2 * count >= len(records)}
    if not items:
        raise FormatError(f"{_place(path, records[0].participant_id)} has no items in ground_truth_items")
    return items


def _participant_rows(
    record: _Participant, items: Mapping[str, None], scale: tuple[float, float], path: str
) -> list[_RunRow]:
    identifier = record.participant_id
    if not record.success:
        return [_RunRow(identifier, item, np.nan, np.nan, {}, Outcome.FAILED) for item in items]
    truths = _complete(record, "ground_truth_items", items, path)
    predictions = _complete(record, "predicted_items", items, path)
    signals = _item_signals(record, items, path)
    rows = []
    for item in items:
        location = f"{path}: participant {identifier}, item {item}"
        truth = _score(truths[item], "ground truth", scale, location)
        prediction = _score(predictions[item], "prediction", scale, location)
        outcome = Outcome.ABSTAINED if np.isnan(prediction) else Outcome.ANSWERED
        if np.isnan(truth):
            outcome = Outcome.UNSCORED
        rows.append(_RunRow(identifier, item, truth, prediction, signals[item], outcome))
    return rows


def _item_signals(record: _Participant, items: Mapping[str, None], path: str) -> dict[str, Mapping[str, Any]]:
    if record.item_signals is not None:
        maps = _complete(record, "item_signals", items, path)
        _check_signals(record, maps, path)
        return {item: {_EVIDENCE: 0, **maps[item]} for item in items}
    if record.evidence_counts is not None:
        counts = _complete(record, "evidence_counts", items, path)
        return {item: {_EVIDENCE: counts[item]} for item in items}
    return {item: {} for item in items}


def _place(path: str, participant: object) -> str:
    return f"{path}: participant {_validate.place_name(participant)}"


def _check_signals(record: _Participant, maps: Mapping[str, Any], path: str) -> None:
    for item, signals in maps.items():
        if not isinstance(signals, dict):
            raise FormatError(
                f"{_place(path, record.participant_id)}, item {_validate.place_name(item)}: item_signals must be an "
                "object"
            )


def _map(record: _Participant, key: str, path: str) -> Mapping[str, Any]:
    value: Mapping[str, Any] | None = getattr(record, key)
    if value is None:
        raise FormatError(f"{_place(path, record.participant_id)} has no {key} (an object by item)")
    return value


def _complete(record: _Participant, key: str, items: Mapping[str, None], path: str) -> Mapping[str, Any]:
    members = _map(record, key, path)
    for problem, names in (
        ("lacks", [item for item in items if item not in members]),
        ("has, unlike most participants,", [item for item in members if item not in items]),
    ):
        if names:
            raise DataError(
                f"{_place(path, record.participant_id)}: {key} {problem} {list_names(names)}; "
                "all participants must have the same items"
            )
    return members


def _score(value: object, role: str, scale: tuple[float, float], location: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FormatError(f"{location}: the {role} must be a number or null, got {type(value).__name__}")
    low, high = scale
    if not low <= value <= high:
        raise DataError(
            f"{location}: the {role} is {value:g}, outside the scale of {low:g} to {high:g}; "
            "declare another scale if the instrument has one"
        )
    return float(value)


def _run_items(rows: list[_RunRow], scale: tuple[float, float], path: str) -> Items:
    columns = columns_from_rows([row.signals for row in rows], f"{path}: the signals of items")
    numeric = {name for name, column in columns.items() if _is_numeric(name, column)}
    return Items(
        truth=np.array([row.truth for row in rows]),
        prediction=np.array([row.prediction for row in rows]),
        outcome=np.array([row.outcome for row in rows], dtype=np.uint8),
        cluster=identifiers([row.participant for row in rows]),
        item=identifiers([row.item for row in rows]),
        signals=signals_from_rows(
            [{name: value for name, value in row.signals.items() if name in numeric} for row in rows],
            lambda row: f"participant {rows[row].participant}, item {rows[row].item} of {path}",
        ),
        metadata={name: _validate.objects(column) for name, column in columns.items() if name not in numeric},
        scale=scale,
        cluster_noun="participant",
    )


def _is_numeric(key: str, values: list[Any]) -> bool:
    """Return whether a column is a signal: numbers and nulls. Booleans among numbers are an error later.

    Text, lists, and booleans only (unless the format defines the key as a number) are metadata.
    """
    stated = [value for value in values if value is not None]
    if not all(isinstance(value, (int, float)) for value in stated):
        return False
    return key in _NUMBERS or not stated or not all(isinstance(value, bool) for value in stated)


def _exported_items(records: Sequence[_Participant], extension: _Extension, path: str) -> Items:
    """Return the items of a run file that `Items.to_run_file` wrote."""
    rows = [row for record in records for row in _exported_rows(record, path)]
    try:
        return _restore_items(rows, extension)
    except AbstainError as problem:
        raise FormatError(f"{path}: provenance.abstain does not match the records: {problem}") from None


def _exported_rows(record: _Participant, path: str) -> list[_RunRow]:
    cluster, maps = record.participant_id, {key: getattr(record, key) for key in _EXPORTED_MAPS}
    names = maps["ground_truth_items"]
    for key, values in maps.items():
        if values is None or names is None or values.keys() != names.keys():
            raise FormatError(f"{_place(path, cluster)} has no {key} for each of its items")
    _check_signals(record, maps["item_signals"], path)
    return [_RunRow(cluster, name, *(maps[key][name] for key in _EXPORTED_MAPS)) for name in names]


def _restore_items(rows: Sequence[_RunRow], extension: _Extension) -> Items:
    metadata = columns_from_rows(
        [{name: row.signals[name] for name in extension.metadata if name in row.signals} for row in rows],
        "the metadata",
    )
    numbers = [{name: row.signals[name] for name in row.signals if name not in metadata} for row in rows]
    names: list[Any] = [row.item for row in rows]
    truth = _exported_scores(rows, "truth", extension.labels)
    outcome = np.array([_code(row.outcome, OUTCOMES, "outcome", row) for row in rows], dtype=np.uint8)
    unknown = missing(truth) & (outcome <= Outcome.ABSTAINED)
    if unknown.any():
        raise DataError(f"item {names[int(np.argmax(unknown))]} has no truth, so it cannot be evaluated")
    sets, classes = checked_sets(extension.sets, extension.classes, truth, outcome)
    items = Items(
        truth=truth,
        prediction=_exported_scores(rows, "prediction", extension.labels),
        outcome=outcome,
        cluster=identifiers([row.participant for row in rows]),
        item=identifiers([_whole(name) for name in names] if extension.whole_items else names),
        signals=signals_from_rows(numbers),
        metadata={name: _validate.objects(metadata[name]) for name in extension.metadata if name in metadata},
        scale=None if extension.scale is None else _validate.scale(extension.scale),
        cluster_noun=extension.cluster_noun,
        provenance={"exported": True},
        weight=checked_weight(extension.weight, len(rows)),
        intervals=checked_intervals(extension.intervals, outcome),
        sets=sets,
        classes=classes,
    )
    if extension.rows is None:
        return items
    if sorted(extension.rows) != list(range(len(rows))):
        raise DataError(f"rows must contain each number from 0 to {len(rows) - 1} once")
    return items.take(np.argsort(extension.rows))


def _exported_scores(rows: Sequence[_RunRow], name: str, labels: Sequence[str] | None) -> NDArray[Any]:
    values = [(row, getattr(row, name)) for row in rows]
    for row, value in values:
        if isinstance(value, bool) or not (value is None or isinstance(value, (int, float))):
            raise DataError(f"the {name} of item {row.item} must be a number or null")
    if labels is None:
        return np.array([math.nan if value is None else float(value) for _, value in values])
    return _validate.objects(
        [
            None if value is None else labels[_code(value, range(len(labels)), name, row)]
            for row, value in values
        ]
    )


def _code(value: Any, allowed: Sequence[Any], role: str, row: _RunRow) -> int:
    if value not in allowed:
        raise DataError(f"the {role} of item {row.item} is not one of the {len(allowed)} possible values")
    return allowed.index(value)


def _whole(name: str) -> int:
    if not _WHOLE.fullmatch(name):
        raise DataError("whole_items is true, but the name of an item is not a whole number")
    return int(name)
