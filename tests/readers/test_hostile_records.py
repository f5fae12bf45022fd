"""Any field of any record may be anything: an error with a place, or a result, and nothing else."""

from __future__ import annotations

import contextlib
import copy
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstain import AbstainError, Items, evaluate, read
from abstain.calibrators import read_calibration
from abstain.readers import load_evaluation_file
from examples import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "Mrs Example of Nowhere"
# What json.dumps cannot write is put in as text afterwards.
RAW = {
    "<nan>": "NaN",
    "<inf>": "-Infinity",
    "<huge>": "1" + "0" * 400,
    "<digits>": "9" * 5000,
    "<float>": "1e999",
}
STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 7, 0.5, -0.0, 1e308, 2**53 + 1, 2**63, 10**30, 10**307),
    *("", "7", "nan", "many", SECRET, "\ud800", "\x00\x1b[31m", "x" * 3000, *RAW),
    *([], [1], [[1]], {}, {"a": 1}, {"x": {"y": None}}, [None], ["a", 1], {"value": "C"}),
)
DELETED = object()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every field of a document, the document itself first."""
    inner = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [path, *(place for key, part in inner for place in places(part, (*path, key)))]


def mutated(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return None if value is DELETED else value
    result = copy.deepcopy(document)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if value is DELETED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(value)
    return result


def written(document: Any) -> bytes:
    text = json.dumps(document)
    for name, number in RAW.items():
        text = text.replace(json.dumps(name), number)
    return text.encode()


def small_run(name: str, mode: str) -> Any:
    run = load(name)
    run["experiments"] = [part for part in run["experiments"] if part["provenance"]["mode"] == mode][:1]
    results = run["experiments"][0]["results"]
    results["results"] = results["results"][:4]
    return run


def exported_run(folder: Path) -> Any:
    items = Items.from_arrays(
        ["a", "b", "a", None],
        ["a", "a", None, "b"],
        abstained=[False, False, True, False],
        cluster=[1, 2, 2, 1],
        item=[3, 4, 5, 6],
        signals={"s": [0.5, 0.25, None, 1.0]},
        metadata={"m": ["x", None, 1, [2]]},
        weight=[1, 2, 1, 1],
        intervals=[[0, 1], [0.5, 2], [None, None], [0, 0]],
        sets=[[1, 0], [1, 1], [0, 1], [0, 0]],
        classes=["a", "b"],
    )
    return json.loads(items.to_run_file(folder / "exported.json").read_text())


def inspect_log() -> Any:
    token = {"logprob": -0.5, "top_logprobs": [{"logprob": -0.5}, {"logprob": -1.0}]}
    samples = [
        {
            "id": name,
            "epoch": 1 + number % 2,
            "target": ["yes"] if number else "yes",
            "output": {
                "choices": [
                    {
                        "message": {"content": [{"type": "text", "text": "yes"}]},
                        "logprobs": {"content": [token]},
                    }
                ],
                "completion": "yes",
            },
            "scores": {"s": {"value": value, "answer": "yes", "reason": None, "metadata": {"x": 0.5}}},
            "metadata": {"patient": number, "note": SECRET},
            "error": None,
        }
        for number, (name, value) in enumerate([("q1", "C"), ("q1", "I"), ("q2", "N"), (7, {"s": 1})][:3])
    ]
    spec = {"task": "t", "model": "m", "run_id": "r", "revision": {"commit": "c"}}
    return {"version": 2, "status": "success", "eval": spec, "samples": samples}


def lm_eval_line() -> Any:
    return {
        "doc_id": 1,
        "doc": {"question": SECRET, "patient": 4, "nested": [1]},
        "target": "1",
        "arguments": {
            "gen_args_0": {"arg_0": "q", "arg_1": " yes"},
            "gen_args_1": {"arg_0": "q", "arg_1": " no"},
        },
        "resps": [[["-1.0", "True"]], [["-2.0", "False"]]],
        "filtered_resps": [["-1.0", "True"], ["-2.0", "False"]],
        "filter": "none",
        "metrics": ["acc"],
        "acc": 0.0,
    }


def generation_line() -> Any:
    line = lm_eval_line() | {"filtered_resps": ["yes"], "resps": [["yes", "no", "yes"]], "target": "yes"}
    return line | {"metrics": ["exact_match"], "exact_match": 1.0}


def evaluation_file() -> Any:
    row = {
        "prediction": 1,
        "ground_truth": 0,
        "abstained": False,
        "confidence": 0.5,
        "raw_response": SECRET,
        "prompt": [{"role": "user", "content": SECRET}],
        "prompt_mode": "single",
        "metadata": {"patient": "p", "n": 1},
        "input_tokens": 3,
        "signals": {"s": 1.0},
        "cluster": 5,
        "item": "i",
    }
    score = {
        "name": "accuracy",
        "value": 0.5,
        "breakdown": {"a": 1.0},
        "n_evaluated": 2,
        "n_abstained": 0,
        "details": {},
    }
    rows = [row, {**row, "item": "j", "prediction": "text", "ground_truth": "text"}]
    return {
        "backend_name": "b",
        "suite": {"name": "s"},
        "metrics": {"accuracy": score},
        "n_evaluation_results": 2,
        "extras": {"a": 1},
        "evaluation_results": rows,
    }


def evaluated(path: Path, **options: Any) -> None:
    """Read and judge, as the command line does; then write and read back alike."""
    items = read(path, **options)
    repr(items)
    judged_items(items, path)


def judged_items(items: Items, path: Path) -> None:
    with contextlib.suppress(AbstainError):
        evaluate(items, loss="zero_one", resamples=3, seed=1)
    try:
        target = items.to_run_file(path.parent / "again.json")
    except AbstainError:
        return
    again = read(target)
    assert again.cluster.tolist() == items.cluster.tolist()
    assert again.item.tolist() == items.item.tolist()
    assert again.outcome.tolist() == items.outcome.tolist()
    assert set(again.signals) == set(items.signals)


def outcome(path: Path, attempt: Callable[..., object], **options: Any) -> str:
    """Return the message of an attempt that was refused, nothing for one that went well; any other error goes on."""
    try:
        attempt(path, **options)
    except AbstainError as problem:
        return str(problem)
    return path.name


def try_it(path: Path, content: bytes, attempt: Callable[..., object] | None = None, **options: Any) -> None:
    path.write_bytes(content)
    message = outcome(path, attempt or evaluated, **options)
    assert path.name in message
    assert SECRET not in message


DOCUMENTS: dict[str, Any] = {
    "run_a.json": small_run("run_a.json", "few_shot"),
    "run_b.json": small_run("run_b.json", "few_shot"),
    "inspect.json": inspect_log(),
    "choices.jsonl": lm_eval_line(),
    "generation.jsonl": generation_line(),
    "evaluation.json": evaluation_file(),
}
FORMATS = {
    "run_": "run",
    "insp": "inspect",
    "choi": "lm-eval",
    "gene": "lm-eval",
    "eval": "evaluation",
    "expo": "run",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DOCUMENTS, "exported.json"])
@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_field_may_be_anything(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    document = exported_run(folder) if name == "exported.json" else DOCUMENTS[name]
    for _ in range(data.draw(st.sampled_from([1, 1, 2, 4]))):
        place = data.draw(st.sampled_from(places(document)))
        document = mutated(document, place, data.draw(st.sampled_from([*STRANGE, DELETED])))
    # What is no object any more may look like a table, whose first line is its header.
    guessed = isinstance(document, dict) and data.draw(st.booleans())
    options: dict[str, Any] = {} if guessed else {"format": FORMATS[name[:4]]}
    if name.endswith("jsonl"):
        try_it(folder / name, written(document) + b"\n", **options)
    else:
        try_it(folder / name, written(document), **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DOCUMENTS])
def test_every_field_gets_each_strange_value_in_turn(name: str, tmp_path: Path) -> None:
    """All single changes of the small documents, a sample of those of the large ones."""
    every = [(place, value) for place in places(DOCUMENTS[name]) for value in (*STRANGE, DELETED)]
    for place, value in every[:: max(len(every) // 250, 1)]:
        try_it(tmp_path / name, written(mutated(DOCUMENTS[name], place, value)), format=FORMATS[name[:4]])


@pytest.mark.parametrize("name", [*DOCUMENTS])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_bytes_that_were_hurt(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(written(DOCUMENTS[name]))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, max(len(content) - 1, 0)))
        end = start + data.draw(st.sampled_from([0, 1, 5, len(content)]))
        content[start:end] = data.draw(
            st.sampled_from([b"", b"\xff", b"\x00", b'"', b"{", b"]", b"\\ud800", b"1" * 400])
        )
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    try_it(folder / name, bytes(content), format=FORMATS[name[:4]])


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_artifacts_are_checked_whole(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(["logistic", "isotonic", "verbalized"]))
    document = load(f"expected_calibration_{name}.json")
    place = data.draw(st.sampled_from(places(document)))
    content = written(mutated(document, place, data.draw(st.sampled_from([*STRANGE, DELETED]))))
    path = tmp_path_factory.getbasetemp() / "artifact.json"
    try_it(path, content, lambda place: repr(read_calibration(place).calibrator))


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_evaluation_files_are_loaded_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = evaluation_file()
    if data.draw(st.booleans()):
        document = {"metrics": document["metrics"], "execution": {}}
    place = data.draw(st.sampled_from(places(document)))
    content = written(mutated(document, place, data.draw(st.sampled_from([*STRANGE, DELETED]))))
    try_it(
        tmp_path_factory.getbasetemp() / "scores.json",
        content,
        lambda place: repr(load_evaluation_file(place)),
    )


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("metrics",), 7, "metrics must be an object, got a whole number"),
        (
            ("metrics", "accuracy", "n_evaluated"),
            "many",
            "metrics.accuracy: n_evaluated must be a whole number or null",
        ),
        (("metrics", "accuracy"), [1], "metrics.accuracy: it must be an object, got a list"),
        (("evaluation_results", 1, "cluster"), {}, r"evaluation_results\[1\].cluster must be"),
    ],
)
def test_wrong_types_are_named(tmp_path: Path, place: tuple[Any, ...], value: Any, message: str) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(written(mutated(evaluation_file(), place, value)))
    with pytest.raises(AbstainError, match=rf"e.json: {message}"):
        read(path)


@pytest.mark.parametrize("kind", ["run", "evaluation", "inspect", "lm-eval"])
@pytest.mark.parametrize(
    "content", [b"", b" \n", b"\xff\xfe", b"\x1f\x8b", b"[]", b"{}", b"null", b"PK\x03\x04", b"7"]
)
def test_files_that_hold_nothing(tmp_path: Path, kind: str, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(AbstainError, match=r"x\.json"):
        read(path, format=kind)


def test_archives_of_every_kind_of_member(tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("header.json", "{}")
        with pytest.raises(AbstainError, match=rf"compressed by method {method}, which is not supported"):
            read(path)
    for sample in (
        b"\xff",
        b'{"id": 1, "epoch": "x"}',
        b'{"id": "\\ud800"}',
        b"[" * 100_000,
        b'{"id": 1e999}',
    ):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", "{}")
            archive.writestr("samples/1_epoch_1.json", sample)
        with pytest.raises(
            AbstainError, match=r"x\.eval: samples/1_epoch_1\.json: not a sample of an Inspect log"
        ):
            read(path)


@pytest.mark.parametrize("column", ["cluster", "metadata"])
def test_half_a_character_is_not_written(tmp_path: Path, column: str) -> None:
    given: dict[str, Any] = (
        {"cluster": ["\ud800"]} if column == "cluster" else {"metadata": {"m": ["\ud800"]}}
    )
    items = Items.from_arrays([1], [1], **given)
    for write in (items.to_run_file, items.to_parquet):
        with pytest.raises(AbstainError, match="half of a character"):
            write(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
