"""Hostile records: any value in any field gives either a result or an error that names the file."""

from __future__ import annotations

import contextlib
import copy
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abstain import AbstainError, ArgumentError, Items, compare, evaluate, read
from abstain.calibrators import read_calibration
from abstain.readers import load_evaluation_file
from examples import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "Mrs Example of Nowhere"
# Values that json.dumps cannot write are inserted as text afterwards.
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


def field_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every field of a document, the document itself first."""
    inner = (
        list(value.items())
        if isinstance(value, dict)
        else list(enumerate(value))
        if isinstance(value, list)
        else []
    )
    return [path, *(field_path for key, part in inner for field_path in field_paths(part, (*path, key)))]


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
    """Read and evaluate a file as the command line does, then write and read it back unchanged."""
    items = read(path, **options)
    repr(items)
    evaluate_and_export(items, path)


def evaluate_and_export(items: Items, path: Path) -> None:
    with contextlib.suppress(AbstainError):
        evaluate(items, loss="zero_one", resamples=3, seed=1)
    try:
        target = items.to_run_file(path.parent / "read_back.json")
    except AbstainError:
        return
    read_back = read(target)
    assert read_back.cluster.tolist() == items.cluster.tolist()
    assert read_back.item.tolist() == items.item.tolist()
    assert read_back.outcome.tolist() == items.outcome.tolist()
    assert set(read_back.signals) == set(items.signals)


def outcome(path: Path, attempt: Callable[..., object], **options: Any) -> str:
    """Return the message of an expected error, or the name of the file if there is none; raise any other error."""
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
def test_random_values_in_random_fields_give_a_result_or_an_error(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "hostile"
    folder.mkdir(exist_ok=True)
    document = exported_run(folder) if name == "exported.json" else DOCUMENTS[name]
    for _ in range(data.draw(st.sampled_from([1, 1, 2, 4]))):
        field_path = data.draw(st.sampled_from(field_paths(document)))
        document = mutated(document, field_path, data.draw(st.sampled_from([*STRANGE, DELETED])))
    # A document that is no longer an object may look like a table, whose first line is its header.
    guessed = isinstance(document, dict) and data.draw(st.booleans())
    options: dict[str, Any] = {} if guessed else {"format": FORMATS[name[:4]]}
    if name.endswith("jsonl"):
        try_it(folder / name, written(document) + b"\n", **options)
    else:
        try_it(folder / name, written(document), **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DOCUMENTS])
def test_each_strange_value_in_each_field_gives_a_result_or_an_error(name: str, tmp_path: Path) -> None:
    """All single changes of small documents, and a sample of those of large ones."""
    every = [
        (field_path, value) for field_path in field_paths(DOCUMENTS[name]) for value in (*STRANGE, DELETED)
    ]
    for field_path, value in every[:: max(len(every) // 250, 1)]:
        try_it(
            tmp_path / name, written(mutated(DOCUMENTS[name], field_path, value)), format=FORMATS[name[:4]]
        )


@pytest.mark.parametrize("name", [*DOCUMENTS])
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_bytes_give_a_result_or_an_error(
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
def test_calibration_files_are_checked_completely(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    name = data.draw(st.sampled_from(["logistic", "isotonic", "verbalized"]))
    document = load(f"expected_calibration_{name}.json")
    field_path = data.draw(st.sampled_from(field_paths(document)))
    content = written(mutated(document, field_path, data.draw(st.sampled_from([*STRANGE, DELETED]))))
    path = tmp_path_factory.getbasetemp() / "artifact.json"
    try_it(path, content, lambda file: repr(read_calibration(file).calibrator))


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_evaluation_files_give_a_result_or_an_error(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = evaluation_file()
    if data.draw(st.booleans()):
        document = {"metrics": document["metrics"], "execution": {}}
    field_path = data.draw(st.sampled_from(field_paths(document)))
    content = written(mutated(document, field_path, data.draw(st.sampled_from([*STRANGE, DELETED]))))
    try_it(
        tmp_path_factory.getbasetemp() / "scores.json",
        content,
        lambda field_path: repr(load_evaluation_file(field_path)),
    )


@pytest.mark.parametrize(
    ("field_path", "value", "message"),
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
def test_the_error_for_a_wrong_type_names_the_field(
    tmp_path: Path, field_path: tuple[Any, ...], value: Any, message: str
) -> None:
    path = tmp_path / "e.json"
    path.write_bytes(written(mutated(evaluation_file(), field_path, value)))
    with pytest.raises(AbstainError, match=rf"e.json: {message}"):
        read(path)


@pytest.mark.parametrize("kind", ["run", "evaluation", "inspect", "lm-eval"])
@pytest.mark.parametrize(
    "content", [b"", b" \n", b"\xff\xfe", b"\x1f\x8b", b"[]", b"{}", b"null", b"PK\x03\x04", b"7"]
)
def test_files_without_content_are_errors(tmp_path: Path, kind: str, content: bytes) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(AbstainError, match=r"x\.json"):
        read(path, format=kind)


def test_unsupported_and_wrong_members_of_archives_are_errors(tmp_path: Path) -> None:
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
def test_a_lone_surrogate_is_not_written(tmp_path: Path, column: str) -> None:
    given: dict[str, Any] = (
        {"cluster": ["\ud800"]} if column == "cluster" else {"metadata": {"m": ["\ud800"]}}
    )
    items = Items.from_arrays([1], [1], **given)
    for write in (items.to_run_file, items.to_parquet):
        with pytest.raises(AbstainError, match="half of a character"):
            write(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def many_experiments(path: Path) -> Path:
    path.write_text(json.dumps({"experiments": [{}] * 30_000}))
    return path


def many_clusters(path: Path) -> Path:
    names = [f"{'long name ' * 20}{row}" for row in range(500)]
    rows = [{"truth": 1, "prediction": 1, "site": name, **dict.fromkeys(names[:300], 0.5)} for name in names]
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize(
    ("write", "arguments", "more"),
    [
        (many_experiments, {}, "and 29,980 more"),
        (many_experiments, {"mode": "few_shot"}, "and 29,980 more"),
        (many_clusters, {"truth": "label"}, "no column 'label'"),
        (
            many_clusters,
            {"signals": ["unknown"], "truth": "truth", "prediction": "prediction"},
            "no column 'unknown'",
        ),
    ],
)
def test_the_length_of_a_message_does_not_grow_with_the_file(
    write: Callable[[Path], Path], arguments: dict[str, Any], more: str, tmp_path: Path
) -> None:
    with pytest.raises(AbstainError, match=more) as problem:
        read(write(tmp_path / "file.json"), **arguments)
    assert len(str(problem.value)) < 6000


def test_many_names_of_systems_or_groups_are_not_all_listed() -> None:
    items = Items.from_arrays([1, 0], [1, 1], confidence=[0.5, 0.6], item=["a", "b"])
    result = compare({f"system {number}": items for number in range(25)}, metrics="accuracy")
    with pytest.raises(ArgumentError, match="system 19 and 5 more"):
        result.only  # noqa: B018
