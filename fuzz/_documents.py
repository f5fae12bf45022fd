"""Documents: run files, evaluation files, logs and artifacts, sound, and then with something done to them.

A sound document is made here rather than by the system that usually writes it, because a fuzzer needs thousands. What
is done to it is done anywhere in it: a field gets a value of another type, is lost, or stands twice.
"""

from __future__ import annotations

import copy
import io
import json
import struct
import zlib
from typing import Any

import zstandard
from hypothesis import strategies as st

from fuzz._values import SECRET, bytes_at_random, names, texts, values

__all__ = [
    "archive",
    "artifacts",
    "damaged",
    "evaluation_files",
    "inspect_logs",
    "instruments",
    "lm_eval_samples",
    "mutated",
    "run_files",
]

Document = dict[str, Any]
_CHANCES = st.sampled_from((0.1, 0.3, 0.5, 0.8, 1.0))


def run_files(*, modes: tuple[str, ...] = ("few_shot",)) -> st.SearchStrategy[Document]:
    """A run file with one experiment per mode."""
    return st.lists(_participants(), min_size=len(modes), max_size=len(modes)).map(
        lambda found: {
            "run_metadata": {"run_id": "r1", "git_commit": "0" * 7},
            "experiments": [
                {"provenance": {"mode": mode}, "results": {"mode": mode, "results": participants}}
                for mode, participants in zip(modes, found, strict=True)
            ],
        }
    )


@st.composite
def _participants(draw: st.DrawFn) -> list[Document]:
    items = ("Sleep", "Tired")[: draw(st.integers(1, 2))]
    older = draw(st.booleans())
    return [
        _participant(draw, number, items, older=older)
        if number == 0 or draw(st.integers(0, 5))
        else {"participant_id": number, "success": False, "error": SECRET + " failed"}
        for number in range(draw(st.integers(1, 5)))
    ]


def _participant(draw: st.DrawFn, number: int, items: tuple[str, ...], *, older: bool) -> Document:
    record: Document = {
        "participant_id": number,
        "success": True,
        "ground_truth_items": {item: draw(st.integers(0, 3)) for item in items},
        "predicted_items": {item: draw(st.sampled_from((0, 1, 2, 3, None))) for item in items},
    }
    if older:
        record["evidence_counts"] = {item: draw(st.integers(0, 4)) for item in items}
    else:
        record["item_signals"] = {
            item: {
                "llm_evidence_count": draw(st.integers(0, 4)),
                "verbalized_confidence": draw(st.integers(1, 5)),
                "token_msp": draw(_CHANCES),
                "note": SECRET,
            }
            for item in items
        }
    return record


@st.composite
def evaluation_files(draw: st.DrawFn) -> Document:
    """The results of an evaluation, in the full form."""
    labels = draw(st.sampled_from((("a", "b"), (0, 1), ("1", "0"))))
    rows = [
        {
            "prediction": draw(st.sampled_from((*labels, labels[0]))),
            "ground_truth": draw(st.sampled_from(labels)),
            "abstained": draw(st.integers(0, 3)) == 0,
            "confidence": draw(_CHANCES),
            "raw_response": SECRET,
            "prompt": [{"role": "user", "content": SECRET}],
            "metadata": {
                "patient_id": draw(st.integers(1, 3)),
                "site": draw(st.sampled_from(("north", "south"))),
            },
        }
        for _ in range(draw(st.integers(1, 8)))
    ]
    return {
        "backend_name": "model",
        "suite": {"name": "suite"},
        "metrics": {"accuracy": {"name": "accuracy", "value": 0.5, "n_evaluated": len(rows), "details": {}}},
        "n_evaluation_results": len(rows),
        "extras": {},
        "evaluation_results": rows,
    }


@st.composite
def inspect_logs(draw: st.DrawFn) -> Document:
    """A log of Inspect AI, with all samples in one document."""
    samples = [
        {
            "id": number,
            "epoch": 1,
            "input": SECRET,
            "target": "yes",
            "metadata": {"doc": draw(st.integers(1, 3)), "note": SECRET},
            "scores": {
                "match": {
                    "value": draw(st.sampled_from(("C", "I", "C", "I", "N"))),
                    "answer": SECRET,
                    "metadata": {"length": draw(st.integers(1, 9))},
                }
            },
            "output": {
                "choices": [
                    {
                        "message": {"content": SECRET},
                        "logprobs": {
                            "content": [{"token": SECRET, "logprob": -draw(_CHANCES), "top_logprobs": []}]
                        },
                    }
                ],
                "completion": SECRET,
            },
        }
        for number in range(draw(st.integers(1, 5)))
    ]
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "task", "model": "model", "run_id": "r1", "revision": {"commit": "0" * 7}},
        "samples": samples,
    }


@st.composite
def lm_eval_samples(draw: st.DrawFn) -> list[Document]:
    """Samples of lm-evaluation-harness: multiple choice, or generation."""
    generated = draw(st.booleans())
    return [
        _generated(draw, number) if generated else _chosen(draw, number)
        for number in range(draw(st.integers(1, 6)))
    ]


def _chosen(draw: st.DrawFn, number: int) -> Document:
    likelihoods = [[str(-2.0 * draw(_CHANCES)), "False"] for _ in range(2)]
    return {
        "doc_id": number,
        "doc": {"question": SECRET, "group": draw(st.integers(1, 2))},
        "target": str(draw(st.integers(0, 1))),
        "resps": [[pair] for pair in likelihoods],
        "filtered_resps": likelihoods,
        "filter": "none",
        "metrics": ["acc"],
        "acc": draw(st.sampled_from((0.0, 1.0))),
    }


def _generated(draw: st.DrawFn, number: int) -> Document:
    return {
        "doc_id": number,
        "doc": {"question": SECRET, "group": draw(st.integers(1, 2))},
        "target": SECRET,
        "resps": [[SECRET, SECRET]],
        "filtered_resps": [SECRET],
        "filter": "strict",
        "metrics": ["exact_match"],
        "exact_match": draw(st.sampled_from((0.0, 1.0))),
    }


def artifacts() -> st.SearchStrategy[Document]:
    """What `abstain calibrate` writes."""
    common = {
        "schema_version": "1",
        "version": "1.0",
        "features": ["token_msp"],
        "target": "correctness",
        "training_metadata": {
            "path": "run.json",
            "run_id": "r1",
            "git_commit": "0",
            "mode": "few_shot",
            "n_samples": 9,
        },
        "validation_metrics": {"auc_roc": 0.7, "brier_score": 0.2, "ece": 0.05},
    }
    scaler = {"mean": [0.5], "std": [0.25]}
    return st.sampled_from(
        (
            {
                **common,
                "method": "logistic",
                "model": {"coefficients": [0.5], "intercept": 0.1, "link": "sigmoid", "scaler": scaler},
            },
            {
                **common,
                "method": "isotonic",
                "model": {"x_thresholds": [0.1, 0.9], "y_thresholds": [0.2, 0.8]},
            },
            {
                "schema_version": "1",
                "method": "temperature_scaling",
                "created_at": "2026-01-02T00:00:00Z",
                "temperature": 1.5,
                "fitted_on": {
                    "path": "run.json",
                    "run_id": "r1",
                    "git_commit": "0",
                    "mode": "few_shot",
                    "n_samples": 9,
                },
                "metrics": {"nll_before": 0.7, "nll_after": 0.6, "ece_before": 0.2, "ece_after": 0.1},
            },
        )
    )


def instruments() -> st.SearchStrategy[Document]:
    """The declaration of an instrument."""
    return st.just(
        {"name": "two", "items": ["Sleep", "Tired"], "item_scale": [0, 3], "tiers": [["low", 0], ["high", 3]]}
    )


# ------------------------------------------------------------------------------------------- what is done to documents


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """The document with one or two of its parts replaced, lost, renamed or doubled."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(changed))
        if places:
            parent, key = places[draw(st.integers(0, len(places) - 1))]
            _change(draw, parent, key)
    return changed


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every part of a document: what holds it, and under which key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found += [(node, key), *_places(node[key])]
    return found


def _change(draw: st.DrawFn, parent: Any, key: Any) -> None:
    what = draw(
        st.sampled_from(("replace", "replace", "replace", "text", "lose", "rename", "double", "nest"))
    )
    if what == "lose":
        del parent[key]
    elif what == "rename" and isinstance(parent, dict):
        parent[draw(names())] = parent.pop(key)
    elif what == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif what == "nest":
        parent[key] = _nested(draw(st.sampled_from((2, 50, 150))))
    elif key == "mode":  # a name, which a message may show
        parent[key] = draw(names())
    else:
        parent[key] = draw(texts() if what == "text" else values())


def _nested(depth: int) -> Any:
    node: Any = 1
    for _ in range(depth):
        node = [node]
    return node


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The bytes of a file after something happened to them."""
    place = draw(st.integers(0, max(len(content) - 1, 0)))
    what = draw(
        st.sampled_from(("cut", "flip", "insert", "lose", "append", "utf-16", "latin", "blank", "lines"))
    )
    return {
        "cut": lambda: content[:place],
        "flip": lambda: (
            content[:place] + bytes([content[place] ^ draw(st.integers(1, 255))]) + content[place + 1 :]
            if content
            else b""
        ),
        "insert": lambda: content[:place] + draw(bytes_at_random()) + content[place:],
        "lose": lambda: content[:place] + content[place + draw(st.integers(1, 16)) :],
        "append": lambda: content + draw(bytes_at_random()),
        "utf-16": lambda: content.decode("utf-8", "replace").encode("utf-16"),
        "latin": lambda: content[:place] + b"\xe9\xff" + content[place:],
        "blank": lambda: draw(
            st.sampled_from((b"", b" ", b"\n\n", b"\xef\xbb\xbf", b"{}", b"[]", b"null", b"7"))
        ),
        "lines": lambda: content.replace(b"\n", b"\r"),
    }[what]()


def archive(log: Any, *, method: int = 93, claimed: int | None = None) -> bytes:
    """A log as ``.eval``: a zip archive with one member per sample; `claimed` is a size that is not true."""
    samples = log.get("samples") if isinstance(log, dict) else None
    header = {key: value for key, value in log.items() if key != "samples"} if isinstance(log, dict) else log
    members = {"header.json": header}
    for place, sample in enumerate(samples if isinstance(samples, list) else []):
        members[f"samples/{place}_epoch_1.json"] = sample
    return _zipped({name: json.dumps(member).encode() for name, member in members.items()}, method, claimed)


def _zipped(members: dict[str, bytes], method: int, claimed: int | None) -> bytes:
    """A zip archive by hand: Python's own module cannot write zstd, nor sizes that are not true."""
    stored, directory = io.BytesIO(), b""
    for name, content in members.items():
        packed = {0: lambda part: part, 8: _deflated, 93: zstandard.compress}[method](content)
        sizes = (zlib.crc32(content), len(packed), len(content) if claimed is None else claimed)
        begin, title = stored.tell(), name.encode()
        stored.write(struct.pack("<4s5H3I2H", b"PK\x03\x04", 45, 0, method, 0, 33, *sizes, len(title), 0))
        stored.write(title + packed)
        directory += struct.pack(
            *(
                "<4s6H3I5H2I",
                b"PK\x01\x02",
                45,
                45,
                0,
                method,
                0,
                33,
                *sizes,
                len(title),
                0,
                0,
                0,
                0,
                0,
                begin,
            )
        )
        directory += title
    begin = stored.tell()
    count = len(members)
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, count, count, len(directory), begin, 0)
    return stored.getvalue() + directory + end


def _deflated(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()
