"""Documents: run files, evaluation files, logs and calibration files, valid or mutated.

Valid documents are generated here and not by the systems that usually write them, because a fuzzer needs thousands. A
mutation changes any part of a document: a field gets a value of another type, is removed, renamed or duplicated.
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
    "calibration_files",
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
    """Draw a run file with one experiment per mode."""
    return st.lists(_participants(), min_size=len(modes), max_size=len(modes)).map(
        lambda by_mode: {
            "run_metadata": {"run_id": "r1", "git_commit": "0" * 7},
            "experiments": [
                {"provenance": {"mode": mode}, "results": {"mode": mode, "results": participants}}
                for mode, participants in zip(modes, by_mode, strict=True)
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
    """Draw an evaluation file with all of its fields."""
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
    """Draw an Inspect log with all samples in one document."""
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
    """Draw lm-evaluation-harness samples of multiple choice or generation."""
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


def calibration_files() -> st.SearchStrategy[Document]:
    """Draw a file like those of `abstain calibrate`."""
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
    """Draw the declaration of an instrument."""
    return st.just(
        {"name": "two", "items": ["Sleep", "Tired"], "item_scale": [0, 3], "tiers": [["low", 0], ["high", 3]]}
    )


# ----------------------------------------------------------------------------------------------------------- mutations


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """Replace, remove, rename or duplicate one or two parts of a document."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        parts = list(_parts(changed))
        if parts:
            parent, key = parts[draw(st.integers(0, len(parts) - 1))]
            _mutate(draw, parent, key)
    return changed


def _parts(node: Any) -> list[tuple[Any, Any]]:
    """Return every part of a document as its parent and its key."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    parts: list[tuple[Any, Any]] = []
    for key in keys:
        parts += [(node, key), *_parts(node[key])]
    return parts


def _mutate(draw: st.DrawFn, parent: Any, key: Any) -> None:
    mutation = draw(
        st.sampled_from(("replace", "replace", "replace", "text", "lose", "rename", "double", "nest"))
    )
    if mutation == "lose":
        del parent[key]
    elif mutation == "rename" and isinstance(parent, dict):
        parent[draw(names())] = parent.pop(key)
    elif mutation == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    elif mutation == "nest":
        parent[key] = _nested(draw(st.sampled_from((2, 50, 150))))
    elif key == "mode":  # a name, which a message may show
        parent[key] = draw(names())
    else:
        parent[key] = draw(texts() if mutation == "text" else values())


def _nested(depth: int) -> Any:
    node: Any = 1
    for _ in range(depth):
        node = [node]
    return node


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Damage the bytes of a file."""
    position = draw(st.integers(0, max(len(content) - 1, 0)))
    damage = draw(
        st.sampled_from(("cut", "flip", "insert", "lose", "append", "utf-16", "latin", "blank", "lines"))
    )
    return {
        "cut": lambda: content[:position],
        "flip": lambda: (
            content[:position]
            + bytes([content[position] ^ draw(st.integers(1, 255))])
            + content[position + 1 :]
            if content
            else b""
        ),
        "insert": lambda: content[:position] + draw(bytes_at_random()) + content[position:],
        "lose": lambda: content[:position] + content[position + draw(st.integers(1, 16)) :],
        "append": lambda: content + draw(bytes_at_random()),
        "utf-16": lambda: content.decode("utf-8", "replace").encode("utf-16"),
        "latin": lambda: content[:position] + b"\xe9\xff" + content[position:],
        "blank": lambda: draw(
            st.sampled_from((b"", b" ", b"\n\n", b"\xef\xbb\xbf", b"{}", b"[]", b"null", b"7"))
        ),
        "lines": lambda: content.replace(b"\n", b"\r"),
    }[damage]()


def archive(log: Any, *, method: int = 93, claimed: int | None = None) -> bytes:
    """Return a log as ``.eval``, a zip archive with one member per sample; `claimed` is a false size of members."""
    samples = log.get("samples") if isinstance(log, dict) else None
    header = {key: value for key, value in log.items() if key != "samples"} if isinstance(log, dict) else log
    members = {"header.json": header}
    for number, sample in enumerate(samples if isinstance(samples, list) else []):
        members[f"samples/{number}_epoch_1.json"] = sample
    return _zipped({name: json.dumps(member).encode() for name, member in members.items()}, method, claimed)


def _zipped(members: dict[str, bytes], method: int, claimed: int | None) -> bytes:
    """Return a zip archive; Python's module `zipfile` can write neither zstd nor false sizes."""
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
