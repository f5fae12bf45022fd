"""Run files: experiments with one record per participant and a map from item to score in each.

Both forms are read: the one with ``item_signals`` and the older one with ``evidence_counts`` alone, which are
its ``llm_evidence_count``. A participant that did not succeed has no maps; its items are failed, counted, and
left out of N. A null prediction is an abstention: that is what it means in this format. Numeric signals
become `Signal` columns, all others metadata. What a run file that was written from items holds beyond this form is
taken back as `abstain._export` put it, under ``abstain`` in the experiment's provenance.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _files, _validate
from abstain._export import OUTCOMES
from abstain.errors import ArgumentError, DataError, FormatError
from abstain.items import Items, Outcome, signals_from_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

DEFAULT_SCALE = (0.0, 3.0)
_EVIDENCE = "llm_evidence_count"
# The signals that the format itself knows to be numbers.
_NUMBERS = frozenset(
    (
        *(_EVIDENCE, "retrieval_reference_count", "retrieval_similarity_mean", "retrieval_similarity_max"),
        *("verbalized_confidence", "token_msp", "token_pe", "token_energy", "consistency_modal_score"),
        *("consistency_modal_count", "consistency_modal_confidence", "consistency_score_std"),
        "consistency_na_rate",
    )
)
# In a file that was written from items, every item of a record stands in each of these.
_EXPORTED_MAPS = ("ground_truth_items", "predicted_items", "item_signals", "outcomes")


def read_run_file(
    path: str | os.PathLike[str], *, mode: str | None = None, scale: Sequence[float] | None = None
) -> Items:
    """Read the experiment of one mode; see `abstain.read`."""
    content = _files.read_bytes(path)
    run = _files.parse_json(content, path)
    experiment, found_mode = _choose(_experiments(run, path), mode, path)
    provenance = _mapping(experiment.get("provenance"))
    participants = _participants(experiment, path)
    bounds = _validate.scale(scale) if scale is not None else _declared_scale(provenance, path)
    said = provenance.get("abstain")
    if isinstance(said, dict):
        exported = _exported_items(participants, said, path)
        items = exported if scale is None else replace(exported, scale=bounds)
    else:
        items = _items(_rows(participants, bounds, path), bounds, path)
    metadata = _mapping(run.get("run_metadata"))
    return items.with_provenance(
        path=str(path),
        sha256=_files.sha256(content),
        run_id=metadata.get("run_id"),
        git_commit=metadata.get("git_commit"),
        mode=found_mode,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    participant: int | str
    item: str
    truth: Any
    prediction: Any
    signals: Mapping[str, Any]
    outcome: Any


def _experiments(run: object, path: object) -> list[Mapping[str, Any]]:
    experiments = run.get("experiments") if isinstance(run, dict) else None
    if not isinstance(experiments, list):
        raise FormatError(f"{path}: not a run file; it must be an object with a list of experiments")
    if not experiments:
        raise FormatError(f"{path}: the run file has no experiments")
    for place, experiment in enumerate(experiments):
        if not isinstance(experiment, dict):
            raise FormatError(f"{path}: experiments[{place}] must be an object")
    return experiments


def _declared_scale(provenance: Mapping[str, Any], path: object) -> tuple[float, float]:
    declared = provenance.get("scale", DEFAULT_SCALE)
    if not isinstance(declared, (list, tuple)):
        raise FormatError(f"{path}: provenance.scale must be a list of two numbers, lowest and highest")
    try:
        return _validate.scale(declared)
    except ArgumentError as problem:
        raise FormatError(f"{path}: provenance.{problem}") from None


def _mode(experiment: Mapping[str, Any]) -> str | None:
    for part in ("provenance", "results"):
        mode = _mapping(experiment.get(part)).get("mode")
        if isinstance(mode, str):
            return mode
    return None


def _choose(
    experiments: list[Mapping[str, Any]], mode: str | None, path: object
) -> tuple[Mapping[str, Any], str | None]:
    modes = [_mode(experiment) for experiment in experiments]
    listed = ", ".join(str(found) if found else "(unnamed)" for found in modes)
    if mode is None:
        if len(experiments) > 1:
            raise ArgumentError(f"{path}: holds {len(experiments)} experiments; choose a mode: {listed}")
        return experiments[0], modes[0]
    if mode not in modes:
        hint = _validate.suggestion(mode, [found for found in modes if found])
        raise ArgumentError(f"{path}: has no mode {mode!r}{hint}; modes here: {listed}")
    if modes.count(mode) > 1:
        raise FormatError(
            f"{path}: the mode {mode!r} stands in {modes.count(mode)} experiments; it must be in one"
        )
    return experiments[modes.index(mode)], mode


def _participants(experiment: Mapping[str, Any], path: object) -> list[Mapping[str, Any]]:
    records = _mapping(experiment.get("results")).get("results")
    if not isinstance(records, list) or not records:
        raise FormatError(
            f"{path}: the experiment has no participants (results.results must be a list of records)"
        )
    seen: set[int | str] = set()
    for place, record in enumerate(records):
        if not isinstance(record, dict):
            raise FormatError(f"{path}: results.results[{place}] must be an object")
        identifier = record.get("participant_id")
        if isinstance(identifier, bool) or not isinstance(identifier, (int, str)):
            raise FormatError(
                f"{path}: results.results[{place}] has no participant_id (a whole number or text)"
            )
        if identifier in seen:
            raise DataError(f"{path}: participant {identifier} stands twice in the experiment")
        seen.add(identifier)
    if len({type(identifier) for identifier in seen}) > 1:
        raise FormatError(f"{path}: participant_id is a number for some participants and text for others")
    return records


def _rows(records: list[Mapping[str, Any]], scale: tuple[float, float], path: object) -> list[_Row]:
    done = [record for record in records if record.get("success") is True]
    items = _item_set(done, path) if done else [""]
    rows: list[_Row] = []
    for record in records:
        identifier = record["participant_id"]
        if record.get("success") is True:
            rows.extend(_participant_rows(record, items, scale, path))
        else:
            rows.extend(_Row(identifier, item, np.nan, np.nan, {}, Outcome.FAILED) for item in items)
    return rows


def _item_set(records: list[Mapping[str, Any]], path: object) -> list[str]:
    """The items that most participants have, so that an error can name the one who differs."""
    counts = Counter(item for record in records for item in _map(record, "ground_truth_items", path))
    items = [item for item, count in counts.items() if 2 * count >= len(records)]
    if not items:
        raise FormatError(
            f"{path}: participant {records[0]['participant_id']} has no items in ground_truth_items"
        )
    return items


def _participant_rows(
    record: Mapping[str, Any], items: list[str], scale: tuple[float, float], path: object
) -> list[_Row]:
    truths = _complete(record, "ground_truth_items", items, path)
    predictions = _complete(record, "predicted_items", items, path)
    signals = _signals(record, items, path)
    identifier = record["participant_id"]
    rows = []
    for item in items:
        place = f"{path}: participant {identifier}, item {item}"
        truth = _score(truths[item], "ground truth", scale, place)
        prediction = _score(predictions[item], "prediction", scale, place)
        outcome = Outcome.ABSTAINED if np.isnan(prediction) else Outcome.ANSWERED
        if np.isnan(truth):
            outcome = Outcome.UNSCORED
        rows.append(_Row(identifier, item, truth, prediction, signals[item], outcome))
    return rows


def _signals(record: Mapping[str, Any], items: list[str], path: object) -> dict[str, Mapping[str, Any]]:
    if "item_signals" in record:
        maps = _complete(record, "item_signals", items, path)
        for item, signals in maps.items():
            if not isinstance(signals, dict):
                raise FormatError(
                    f"{path}: participant {record['participant_id']}, item {item}: item_signals must be an object"
                )
        return {item: {_EVIDENCE: 0, **maps[item]} for item in items}
    if "evidence_counts" in record:
        counts = _complete(record, "evidence_counts", items, path)
        return {item: {_EVIDENCE: counts[item]} for item in items}
    return {item: {} for item in items}


def _map(record: Mapping[str, Any], key: str, path: object) -> Mapping[str, Any]:
    value = record.get(key)
    if not isinstance(value, dict):
        raise FormatError(f"{path}: participant {record['participant_id']} has no {key} (an object by item)")
    return value


def _complete(record: Mapping[str, Any], key: str, items: list[str], path: object) -> Mapping[str, Any]:
    found = _map(record, key, path)
    for problem, names in (
        ("lacks", [item for item in items if item not in found]),
        ("has, unlike most participants,", [item for item in found if item not in items]),
    ):
        if names:
            raise DataError(
                f"{path}: participant {record['participant_id']}: {key} {problem} {', '.join(names)}; "
                "all participants must carry the same items"
            )
    return found


def _score(value: object, what: str, scale: tuple[float, float], place: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise FormatError(f"{place}: the {what} must be a number or null, got {type(value).__name__}")
    low, high = scale
    if not low <= value <= high:
        raise DataError(
            f"{place}: the {what} is {value:g}, outside the scale of {low:g} to {high:g}; "
            "declare another scale if the instrument has one"
        )
    return float(value)


def _items(rows: list[_Row], scale: tuple[float, float], path: object) -> Items:
    keys = dict.fromkeys(key for row in rows for key in row.signals)
    numeric = {key for key in keys if _is_numeric(key, [row.signals.get(key) for row in rows])}
    return Items(
        truth=np.array([row.truth for row in rows]),
        prediction=np.array([row.prediction for row in rows]),
        outcome=np.array([row.outcome for row in rows], dtype=np.uint8),
        cluster=np.array([row.participant for row in rows]),
        item=np.array([row.item for row in rows]),
        signals=signals_from_rows(
            [{key: value for key, value in row.signals.items() if key in numeric} for row in rows],
            lambda row: f"participant {rows[row].participant}, item {rows[row].item} of {path}",
        ),
        metadata={
            key: _validate.objects([row.signals.get(key) for row in rows])
            for key in keys
            if key not in numeric
        },
        scale=scale,
        cluster_noun="participant",
    )


def _is_numeric(key: str, values: list[Any]) -> bool:
    """True for a signal: numbers and nulls, and whatever true or false stands among them, which is refused later.

    True and false alone, under a key that the format does not know, are metadata; so are text and lists.
    """
    known = [value for value in values if value is not None]
    if not all(isinstance(value, (int, float)) for value in known):
        return False
    return key in _NUMBERS or not known or not all(isinstance(value, bool) for value in known)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _exported_items(records: Sequence[Mapping[str, Any]], said: Mapping[str, Any], path: object) -> Items:
    """Return the items of a run file that `Items.to_run_file` wrote."""
    rows = [row for record in records for row in _exported_rows(record, path)]
    try:
        return _taken_back(rows, said)
    except (AttributeError, KeyError, IndexError, OverflowError, TypeError, ValueError) as problem:
        raise FormatError(
            f"{path}: what stands under provenance.abstain does not fit the records ({type(problem).__name__})"
        ) from None


def _exported_rows(record: Mapping[str, Any], path: object) -> list[_Row]:
    cluster, maps = record["participant_id"], {key: _mapping(record.get(key)) for key in _EXPORTED_MAPS}
    for key, found in maps.items():
        if not isinstance(record.get(key), dict) or found.keys() != maps["ground_truth_items"].keys():
            raise FormatError(f"{path}: participant {cluster} has no {key} for each of its items")
    names = maps["ground_truth_items"]
    return [_Row(cluster, name, *(maps[key][name] for key in _EXPORTED_MAPS)) for name in names]


def _taken_back(rows: Sequence[_Row], said: Mapping[str, Any]) -> Items:
    labels, kept = said.get("labels"), list(said.get("metadata") or ())
    numbers = [{key: value for key, value in row.signals.items() if key not in kept} for row in rows]
    names, scale, sets, order = (
        [row.item for row in rows],
        *(said.get(key) for key in ("scale", "sets", "rows")),
    )
    items = Items(
        truth=_exported_scores([row.truth for row in rows], labels),
        prediction=_exported_scores([row.prediction for row in rows], labels),
        outcome=np.array([OUTCOMES.index(row.outcome) for row in rows], dtype=np.uint8),
        cluster=np.array([row.participant for row in rows]),
        item=np.array([int(name) for name in names])
        if said.get("whole_items")
        else np.array(names, dtype=np.str_),
        signals=signals_from_rows(numbers),
        metadata={key: _validate.objects([row.signals.get(key) for row in rows]) for key in kept},
        scale=None if scale is None else (float(scale[0]), float(scale[1])),
        cluster_noun=str(said.get("cluster_noun") or "cluster"),
        provenance={"exported": True},
        weight=_floats(said.get("weight")),
        intervals=_floats(said.get("intervals")),
        sets=None if sets is None else np.array(sets, dtype=np.bool_),
        classes=tuple(said.get("classes") or ()),
    )
    if order is None:
        return items
    positions = np.empty(len(order), dtype=np.intp)
    positions[np.asarray(order, dtype=np.intp)] = np.arange(len(order))
    return items.take(positions)


def _exported_scores(values: Sequence[Any], labels: Sequence[str] | None) -> NDArray[Any]:
    if labels is None:
        return np.array([math.nan if value is None else float(value) for value in values])
    return _validate.objects([None if value is None else labels[int(value)] for value in values])


def _floats(values: Sequence[Any] | None) -> NDArray[np.float64] | None:
    return None if values is None else np.array(values, dtype=np.float64)
