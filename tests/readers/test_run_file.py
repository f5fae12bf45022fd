from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain import AbstainError, ArgumentError, DataError, FormatError, SignalError, read
from abstain.confidence import confidence_values

if TYPE_CHECKING:
    from collections.abc import Callable

RUN: dict[str, Any] = {
    "run_metadata": {"run_id": "r1", "git_commit": "abc"},
    "experiments": [
        {
            "provenance": {"mode": "few_shot"},
            "results": {
                "results": [
                    {
                        "participant_id": 300,
                        "success": True,
                        "ground_truth_items": {"Sleep": 1, "Tired": 0},
                        "predicted_items": {"Sleep": 2, "Tired": None},
                        "item_signals": {
                            "Sleep": {
                                "llm_evidence_count": 2,
                                "token_msp": 0.5,
                                "samples": [1, None],
                                "note": "x",
                            },
                            "Tired": {"token_msp": None, "samples": [], "note": None},
                        },
                    },
                    {"participant_id": 301, "success": False, "error": "a patient's words"},
                ]
            },
        }
    ],
}


def write(tmp_path: Path, run: object) -> Path:
    path = tmp_path / "run.json"
    path.write_text(run if isinstance(run, str) else json.dumps(run))
    return path


def changed(change: Callable[[Any], object]) -> dict[str, Any]:
    run = copy.deepcopy(RUN)
    change(run)
    return run


def first(run: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = run["experiments"][0]["results"]["results"][0]
    return record


def test_a_run_file_is_read_into_columns(tmp_path: Path) -> None:
    path = write(tmp_path, RUN)
    items = read(path)
    assert repr(items) == "Items(4 items in 2 participants: 1 answered, 1 abstained, 2 failed, 0 unscored)"
    assert items.cluster.tolist() == [300, 300, 301, 301]
    assert items.item.tolist() == ["Sleep", "Tired"] * 2
    assert items.truth[:2].tolist() == [1.0, 0.0]
    assert items.scale == (0.0, 3.0)
    assert items.signals["llm_evidence_count"].values[:2].tolist() == [2.0, 0.0]
    assert items.signals["token_msp"].null.tolist() == [False, True, False, False]
    assert items.metadata["samples"][0] == [1, None]
    assert items.metadata["note"].tolist() == ["x", None, None, None]
    provenance = dict(items.provenance)
    assert len(provenance.pop("sha256")) == 64
    expected = {"path": str(path), "run_id": "r1", "git_commit": "abc", "mode": "few_shot", "format": "run"}
    assert provenance == expected


def test_the_older_form_is_read(tmp_path: Path) -> None:
    def older(run: dict[str, Any]) -> None:
        del run["run_metadata"]
        del run["experiments"][0]["provenance"]
        record = first(run)
        del record["item_signals"]
        record["evidence_counts"] = {"Sleep": 3, "Tired": 0}

    items = read(write(tmp_path, changed(older)))
    assert items.signals["llm_evidence_count"].values[:2].tolist() == [3.0, 0.0]
    assert items.provenance["mode"] is None


def test_booleans_among_numbers_are_errors(tmp_path: Path) -> None:
    def next_to_a_number(run: dict[str, Any]) -> None:
        signals = first(run)["item_signals"]
        signals["Sleep"]["margin"], signals["Tired"]["margin"] = 0.5, True

    location = r"participant 300, item {} of .*run.json \(1 such items\); a signal must be a number or null"
    with pytest.raises(DataError, match="signal margin is true or false for " + location.format("Tired")):
        read(write(tmp_path, changed(next_to_a_number)))
    # A signal that the format defines as a number must be one, even if no other item has a number.
    single = changed(lambda run: first(run)["item_signals"]["Sleep"].update(token_msp=True))
    with pytest.raises(DataError, match="signal token_msp is true or false for " + location.format("Sleep")):
        read(write(tmp_path, single))
    flag = changed(lambda run: first(run)["item_signals"]["Sleep"].update(retried=True))
    items = read(write(tmp_path, flag))
    assert items.metadata["retried"].tolist() == [True, None, None, None]
    with pytest.raises(ArgumentError, match="unknown confidence 'retried'"):
        confidence_values(items, "retried")


def test_text_in_a_signal_of_a_confidence_is_an_error(tmp_path: Path) -> None:
    words = changed(lambda run: first(run)["item_signals"]["Sleep"].update(token_msp="0.5"))
    items = read(write(tmp_path, words))
    message = (
        "token_msp needs numbers in token_msp, which contains other values for participant 300, item Sleep"
    )
    with pytest.raises(SignalError, match=message):
        confidence_values(items, "token_msp")


def test_a_missing_truth_is_unscored(tmp_path: Path) -> None:
    items = read(write(tmp_path, changed(lambda run: first(run)["ground_truth_items"].update(Sleep=None))))
    assert items.counts.unscored == 1


def test_items_of_failed_participants_are_failed(tmp_path: Path) -> None:
    items = read(write(tmp_path, changed(lambda run: first(run).update(success=False))))
    assert (items.counts.failed, items.counts.n) == (2, 0)


def test_another_scale_can_be_declared(tmp_path: Path) -> None:
    run = changed(lambda run: first(run)["predicted_items"].update(Sleep=9))
    path = write(tmp_path, run)
    assert read(path, scale=(0, 10)).prediction[0] == 9
    run["experiments"][0]["provenance"]["scale"] = [0, 9]
    assert read(write(tmp_path, run)).scale == (0.0, 9.0)


def test_a_mode_must_be_chosen_from_several(tmp_path: Path) -> None:
    run = copy.deepcopy(RUN)
    other = copy.deepcopy(run["experiments"][0])
    other["provenance"] = {}
    other["results"]["mode"] = "zero_shot"
    run["experiments"].append(other)
    path = write(tmp_path, run)
    assert read(path, mode="zero_shot").provenance["mode"] == "zero_shot"
    with pytest.raises(ArgumentError, match="has 2 experiments; choose a mode: few_shot, zero_shot"):
        read(path)
    with pytest.raises(
        ArgumentError, match=r"no mode 'few-shot' \(did you mean 'few_shot'\?\); modes here: few_shot, zero"
    ):
        read(path, mode="few-shot")
    run["experiments"].append(other)
    with pytest.raises(FormatError, match="'zero_shot' is in 2 experiments"):
        read(write(tmp_path, run), mode="zero_shot")


def _lacks(run: dict[str, Any]) -> None:
    del first(run)["predicted_items"]["Sleep"]


def _twice(run: dict[str, Any]) -> None:
    results = run["experiments"][0]["results"]["results"]
    results.append(copy.deepcopy(results[0]))


BAD: dict[str, tuple[object, type[AbstainError], str]] = {
    "empty": ("", FormatError, "the file is empty"),
    "not JSON": ("{oops", FormatError, "not JSON .line 1, column 2"),
    "NaN": ('{"experiments": NaN}', FormatError, "NaN is not JSON"),
    "Infinity": ('{"experiments": -Infinity}', FormatError, "-Infinity is not JSON"),
    "too large": ('{"experiments": 1e999}', FormatError, "1e999 is too large"),
    "too many digits": (
        '{"experiments": ' + "9" * 5000 + "}",
        FormatError,
        "a whole number has 5,000 digits; at most 308 can be read",
    ),
    "duplicate key": ('{"experiments": [], "experiments": []}', FormatError, "'experiments' appears twice"),
    "nested": ("[" * 100_000, FormatError, "nested too deeply|not JSON"),
    "a list": ([], FormatError, "not a run file"),
    "no experiments": ({"experiments": []}, FormatError, "has no experiments"),
    "an odd experiment": ({"experiments": [3]}, FormatError, r"experiments\[0\] must be an object"),
    "no participants": (
        changed(lambda run: run["experiments"][0].update(results={})),
        FormatError,
        "has no participants",
    ),
    "no id": (changed(lambda run: first(run).pop("participant_id")), FormatError, "has no participant_id"),
    "mixed ids": (
        changed(lambda run: first(run).update(participant_id="p")),
        FormatError,
        "number for some participants and text for others",
    ),
    "duplicate participant": (changed(_twice), DataError, "participant 300 appears twice"),
    "lacks an item": (changed(_lacks), DataError, "participant 300: predicted_items lacks Sleep"),
    "another item": (
        changed(lambda run: first(run)["item_signals"].update(Mood={})),
        DataError,
        "item_signals has, unlike most participants, Mood",
    ),
    "no maps": (
        changed(lambda run: first(run).pop("predicted_items")),
        FormatError,
        "300 has no predicted_items",
    ),
    "odd signals": (
        changed(lambda run: first(run)["item_signals"].update(Sleep=3)),
        FormatError,
        "item Sleep: item_signals must be an object",
    ),
    "outside the scale": (
        changed(lambda run: first(run)["predicted_items"].update(Sleep=4)),
        DataError,
        "participant 300, item Sleep: the prediction is 4, outside the scale of 0 to 3",
    ),
    "text as score": (
        changed(lambda run: first(run)["predicted_items"].update(Sleep="two")),
        FormatError,
        "the prediction must be a number or null, got str",
    ),
    "odd scale": (
        changed(lambda run: run["experiments"][0]["provenance"].update(scale=[3])),
        FormatError,
        "provenance.scale must be two numbers",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_errors(name: str, tmp_path: Path) -> None:
    content, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        read(write(tmp_path, content))
    assert "run.json" in str(caught.value)
    assert "patient" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"), [("pop", "lacks Sleep"), ("add", "has, unlike most participants, Mood")]
)
def test_the_error_for_different_items_names_the_participant(
    change: str, message: str, tmp_path: Path
) -> None:
    def differ(run: dict[str, Any]) -> None:
        results = run["experiments"][0]["results"]["results"]
        results[1:] = [copy.deepcopy(results[0]) | {"participant_id": number} for number in (301, 302)]
        for key in ("ground_truth_items", "predicted_items", "item_signals"):
            if change == "pop":
                del results[0][key]["Sleep"]
            else:
                results[0][key]["Mood"] = {} if key == "item_signals" else 1

    with pytest.raises(DataError, match=f"participant 300: ground_truth_items {message}"):
        read(write(tmp_path, changed(differ)))


def test_bytes_that_are_not_text_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"\xff\x00{")
    with pytest.raises(FormatError, match="not UTF-8 text at byte 0"):
        read(path)


def test_a_missing_file_and_an_empty_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no such file"):
        read(tmp_path / "none.json")
    with pytest.raises(ArgumentError, match="a folder with no log and no table; pass files"):
        read(tmp_path)


def test_the_example_file_is_read() -> None:
    items = read(Path(__file__).parent.parent / "data" / "examples" / "run_a.json", mode="zero_shot")
    assert items.counts.n == 28 * 8
    assert np.isin(items.truth[items.answered], (0, 1, 2, 3)).all()


@pytest.mark.parametrize("key", ["ground_truth_items", "predicted_items"])
def test_a_long_participant_name_is_cut_in_an_error(key: str, tmp_path: Path) -> None:
    run = copy.deepcopy(RUN)
    name = "A patient of 43 who has coughed for three weeks"
    del run["experiments"][0]["results"]["results"][1]
    run["experiments"][0]["results"]["results"][0] |= {"participant_id": name, key: {}}
    with pytest.raises(DataError, match="participant A patient of 43 who has …"):
        read(write(tmp_path, run))
