"""Rounds: strategies that generate the different kinds of cases. A hunt runs them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from fuzz import _documents as documents
from fuzz._case import Case
from fuzz._commands import (
    FEW,
    Source,
    commands_without_source,
    coverage_commands,
    item_commands,
    with_output,
    with_wrong_option,
)
from fuzz._requests import engine_requests, format_requests
from fuzz._tables import WRITERS, Table, hostile_tables, sound_tables
from fuzz._values import SECRET, arguments, labels, names

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROUNDS", "Round"]

_SIGNALS = ("token_msp", "verbalized")


class Round(NamedTuple):
    """A kind of cases.

    Attributes:
        cases: the strategy that draws the cases.
        proportion: the relative number of batches, larger for rounds that are fast or find more defects.
        every_commit: the number of batches at every commit. Default: `proportion`.
    """

    cases: st.SearchStrategy[Case]
    proportion: int
    every_commit: int | None = None


# -------------------------------------------------------------------------------------------------------------- sources


def _table_source(table: Table, ending: str) -> Source:
    columns = table.columns
    signals = tuple(name for name in ("confidence",) if name in columns)
    groups = tuple(name for name in ("site",) if name in columns)
    return Source(f"t.{ending}", WRITERS[ending](table), tuple(table.flags), signals=signals, groups=groups)


def _documents() -> st.SearchStrategy[tuple[str, Any]]:
    """Draw a valid document that is not a table, and its kind."""
    return st.one_of(
        documents.run_files().map(lambda document: ("run", document)),
        documents.run_files(modes=("few_shot", "zero_shot")).map(lambda document: ("run", document)),
        documents.evaluation_files().map(lambda document: ("evaluation", document)),
        documents.inspect_logs().map(lambda document: ("inspect", document)),
        documents.inspect_logs().map(lambda document: ("eval", document)),
        documents.lm_eval_samples().map(lambda document: ("lm-eval", document)),
    )


@st.composite
def _stored(draw: st.DrawFn, kind: str, document: Any) -> Source:
    """Draw a file that contains a document."""
    text = json.dumps(document).encode()
    if kind == "run":
        return Source("run.json", text, ("--mode", "few_shot"), signals=_SIGNALS)
    if kind == "evaluation":
        return Source("results.json", text, signals=("confidence",), groups=("site",))
    if kind == "inspect":
        return Source("log.json", text, groups=("doc",))
    if kind == "eval":
        return Source(
            "log.eval", documents.archive(document, method=draw(st.sampled_from((0, 8, 93)))), groups=("doc",)
        )
    lines = document if isinstance(document, list) else [document]
    return Source("samples.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines).encode())


@st.composite
def _sound_sources(draw: st.DrawFn) -> Source:
    if draw(st.booleans()):
        return _table_source(draw(sound_tables()), draw(st.sampled_from(tuple(WRITERS))))
    kind, document = draw(_documents())
    return draw(_stored(kind, document))


@st.composite
def _hostile_sources(draw: st.DrawFn) -> Source:
    """Draw a source with hostile values, structure, bytes or name."""
    if draw(st.booleans()):
        source = _table_source(draw(hostile_tables()), draw(st.sampled_from(tuple(WRITERS))))
        if source.name.endswith("sv") and draw(st.integers(0, 7)) == 0:
            source = replace(source, content=source.content.partition(b"\n")[2])  # no header
    else:
        kind, document = draw(_documents())
        source = draw(_stored(kind, draw(documents.mutated(document))))
    if draw(st.integers(0, 3)) == 0:
        source = replace(source, content=draw(documents.damaged(source.content)))
    if draw(st.integers(0, 15)) == 0:
        source = replace(source, content=gzip.compress(source.content, mtime=0))
    if draw(st.integers(0, 15)) == 0:
        source = replace(source, name=draw(st.sampled_from(_ODD_NAMES)).format(source.name))
    return source


_ODD_NAMES = (
    "truth=0/{}",
    "~/{}",
    "a b/{}",
    "\x1b[31m{}",
    "\u202e{}",
    "[x]{}",
    "é{}",
    "\udcff{}",
    "'{}",
    "t*{}",
    "-{}",
)

# --------------------------------------------------------------------------------------------------------------- rounds


def _sound() -> st.SearchStrategy[Case]:
    """Return cases with valid input, which must be accepted, or refused with one of the listed messages."""
    on_items = _sound_sources().flatmap(item_commands).flatmap(with_output)
    on_coverage = st.sampled_from(("intervals", "sets")).flatmap(
        lambda name: _coverage_sources().flatmap(lambda source: coverage_commands(source, name))
    )
    cases = st.one_of(on_items, on_items, on_coverage.flatmap(with_output))
    return cases.map(lambda case: replace(case, sound=True))


@st.composite
def _hostile(draw: st.DrawFn) -> Case:
    """Draw a case with a hostile source."""
    source = draw(_hostile_sources())
    case = draw(item_commands(source, draw(st.one_of(st.just(source), _sound_sources()))))
    case = draw(with_output(case, sound=draw(st.integers(0, 3)) > 0))
    return draw(with_wrong_option(case)) if draw(st.integers(0, 5)) == 0 else case


@st.composite
def _misused(draw: st.DrawFn) -> Case:
    """Draw a case with valid files and wrong options."""
    if draw(st.sampled_from((False, False, False, True))):
        return draw(commands_without_source())
    case = draw(with_output(draw(item_commands(draw(_sound_sources()))), sound=False))
    for _ in range(draw(st.integers(1, 2))):
        case = draw(with_wrong_option(case))
    return case


@st.composite
def _side_inputs(draw: st.DrawFn) -> Case:
    """Draw a case with a hostile calibration file, instrument or gate condition."""
    source = draw(_stored("run", draw(documents.run_files())))
    kind = draw(st.sampled_from(("calibration", "calibration", "instrument", "condition")))
    if kind == "condition":
        words = draw(
            st.lists(
                st.sampled_from(("aurc", "above", "worse", "by", "0.1", "at", "matched", "coverage", "nan")),
                max_size=4,
            )
        )
        condition = " ".join((*words, draw(arguments())))
        return source.case("gate", source.name, *source.flags, "--fail-if", condition, *FEW)
    document = draw(documents.calibration_files() if kind == "calibration" else documents.instruments())
    # These texts are not records, so a message may quote them.
    content = json.dumps(draw(documents.mutated(document))).replace(SECRET, "text").encode()
    if draw(st.integers(0, 3)) == 0:
        content = draw(documents.damaged(content))
    source = replace(source, further={"beside.json": content})
    variants = st.sampled_from(("calibrated", "verbalized_calibrated", "all"))
    options = ["--instrument", "beside.json"]
    if kind == "calibration":
        options = ["--calibration", "beside.json", "--confidence", draw(variants)]
    return source.case("evaluate", source.name, *source.flags, *options, "--json", *FEW)


@st.composite
def _coverage_tables(draw: st.DrawFn) -> Table:
    """Draw a table with intervals and sets."""
    count = draw(st.integers(2, 10))

    def column(of: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(of, min_size=count, max_size=count))

    low = column(st.sampled_from((0.0, 0.5, 1.0)))
    return Table(
        {
            "y": column(st.integers(0, 3)),
            "low": low,
            "high": [a + b for a, b in zip(low, column(st.sampled_from((0.0, 1.0, 2.5))), strict=True)],
            "set": column(st.sampled_from(("0|1", "1", "2|3|0", "0|1|2|3", "3"))),
            "weight": [1, *column(st.sampled_from((0, 0.5, 1, 2, 5)))[1:]],
            "patient": column(st.integers(1, 4)),
            "site": column(st.sampled_from(("north", "south"))),
            "x": column(st.sampled_from((0.1, 0.2, 1.5, 7.0))),
            "note": [SECRET] * count,
        },
        {},
    )


@st.composite
def _coverage_sources(draw: st.DrawFn) -> Source:
    return _table_source(draw(_coverage_tables()), draw(st.sampled_from(tuple(WRITERS))))


@st.composite
def _coverage(draw: st.DrawFn) -> Case:
    """Draw a case with hostile intervals or sets."""
    table = draw(_coverage_tables())
    columns = {name: list(values) for name, values in table.columns.items()}
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(sorted(columns)))
        row = draw(st.integers(0, len(columns[name]) - 1))
        columns[name][row] = draw(
            st.one_of(labels(), st.sampled_from((None, True, -1, 1e308, float("inf"), 10**29)))
        )
    if draw(st.integers(0, 5)) == 0:
        old, new = draw(st.sampled_from(sorted(columns))), draw(names())
        columns = {new if name == old else name: values for name, values in columns.items()}
    source = _table_source(Table(columns, {}), draw(st.sampled_from(tuple(WRITERS))))
    if draw(st.integers(0, 3)) == 0:
        source = replace(source, content=draw(documents.damaged(source.content)))
    case = draw(coverage_commands(source, draw(st.sampled_from(("intervals", "sets")))))
    case = draw(with_output(case, sound=draw(st.booleans())))
    return draw(with_wrong_option(case)) if draw(st.integers(0, 5)) == 0 else case


@st.composite
def _agreeing(draw: st.DrawFn) -> Case:
    """Draw the same rows in every format, in unusual folders and as data frames, which must give the same result."""
    table = draw(sound_tables())
    files = {f"t.{ending}": write(table) for ending, write in WRITERS.items()}
    folder = draw(st.sampled_from(("truth=0", "~", "confidence=1")))
    in_folder = {f"{folder}/t.csv": files["t.csv"], f"{folder}/t.parquet": files["t.parquet"]}
    commands = [("evaluate", name, *table.flags, *FEW, "--json") for name in (*files, *in_folder)]
    options = tuple(f"{name}={value}" for name, value in table.options.items())
    commands += [(f"frame:{kind}", "t.parquet", *options) for kind in ("pandas", "polars", "arrow")]
    return Case(tuple(commands), files | in_folder, secrets=(SECRET,), alike=True)


@st.composite
def _agreeing_on_coverage(draw: st.DrawFn) -> Case:
    """Draw the same intervals or sets in every format, which must give the same result."""
    table = draw(_coverage_tables())
    files = {f"t.{ending}": write(table) for ending, write in WRITERS.items()}
    drawn = draw(coverage_commands(Source("t.csv", b""), draw(st.sampled_from(("intervals", "sets")))))
    command = tuple(part for part in drawn.commands[0] if part not in ("-q", "--format", "csv", "--json"))
    commands = tuple((command[0], name, *command[2:], "--json") for name in files)
    return Case(commands, files, secrets=(SECRET,), alike=True)


@st.composite
def _agreeing_engines(draw: st.DrawFn) -> Case:
    """Draw rows, valid or hostile, that are loaded and aggregated and must give the same result or the same error."""
    ending = draw(st.sampled_from(("csv", "jsonl", "parquet")))
    table = draw(st.one_of(sound_tables(least=2), hostile_tables()))
    files = {f"t.{ending}": WRITERS[ending](table)}
    command: tuple[str, ...] = ("evaluate", f"t.{ending}")
    if draw(st.booleans()):
        columns = {name: list(values) for name, values in table.columns.items()}
        name = draw(st.sampled_from(sorted(columns)))
        columns[name] = draw(st.permutations(columns[name]))
        other = draw(st.sampled_from(("csv", "jsonl", "parquet")))
        files[f"u.{other}"] = WRITERS[other](Table(columns, table.options))
        options = draw(
            st.sampled_from(((), ("--match", "rows"), ("--intersection-only",), ("--truth-may-differ",)))
        )
        command = ("compare", f"t.{ending}", f"u.{other}", "--metric", "accuracy,augrc", *options)
    commands = [
        (*command, *table.flags, *FEW, "--json", "--engine", engine) for engine in ("numpy", "duckdb")
    ]
    return Case(tuple(commands), files, secrets=(SECRET,), alike=True)


@st.composite
def _costly(draw: st.DrawFn) -> Case:
    """Draw a small input that may need much time or memory."""
    make = draw(st.sampled_from((_wide, _long_names, _heavy, _packed, _many_keys, _digits)))
    return make(draw(st.sampled_from((1, 4, 16))))


def _wide(scale: int) -> Case:
    header = ",".join(("truth", "prediction", "confidence", *(f"c{number}" for number in range(40 * scale))))
    rows = f"{header}\n" + ",".join(("1", "0", "0.5", *("7",) * 40 * scale)) + "\n"
    return Source("t.csv", rows.encode()).case("evaluate", "t.csv", "--json", *FEW)


def _long_names(scale: int) -> Case:
    rows = [f"1,0,0.5,{'x' * 10_000 * scale if number == 0 else number}" for number in range(100)]
    table = "\n".join(("truth,prediction,confidence,patient_id", *rows, "")).encode()
    return Source("t.csv", table).case("evaluate", "t.csv", "--json", *FEW)


def _heavy(scale: int) -> Case:
    rows = [f"{number % 2},1,0.{number % 9},{10_000 * scale}" for number in range(200)]
    table = "\n".join(("truth,prediction,confidence,weight", *rows, "")).encode()
    return Source("t.csv", table).case("evaluate", "t.csv", "--weight", "weight", "--json", *FEW)


def _packed(scale: int) -> Case:
    sample = {"id": 1, "scores": {"match": {"value": "C"}}, "metadata": {"pad": " " * (1_000_000 * scale)}}
    log = {"version": 2, "status": "success", "eval": {}, "samples": [sample, {**sample, "id": 2}]}
    return Source("log.eval", documents.archive(log)).case("evaluate", "log.eval", "--json", *FEW)


def _many_keys(scale: int) -> Case:
    rows = [
        {"truth": 1, "prediction": 0, "confidence": 0.5, f"key{number}": 1} for number in range(200 * scale)
    ]
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    return Source("t.jsonl", content).case("evaluate", "t.jsonl", "--json", *FEW)


def _digits(scale: int) -> Case:
    content = f"truth,prediction,confidence\n{'9' * 300 * scale},1,0.5\n1,1,0.{'3' * 1000 * scale}\n"
    return Source("t.csv", content.encode()).case("evaluate", "t.csv", "--json", *FEW)


ROUNDS: Mapping[str, Round] = {
    "hostile": Round(_hostile(), proportion=10),
    "sound": Round(_sound(), proportion=4),
    "misused": Round(_misused(), proportion=3),
    "coverage": Round(_coverage(), proportion=3),
    "side inputs": Round(_side_inputs(), proportion=2),
    "agreeing": Round(_agreeing(), proportion=2),
    "agreeing on coverage": Round(_agreeing_on_coverage(), proportion=1),
    "agreeing engines": Round(_agreeing_engines(), proportion=3),
    "requests": Round(engine_requests(), proportion=10, every_commit=2),
    "formats": Round(format_requests(), proportion=3, every_commit=2),
    "costly": Round(_costly(), proportion=1),
}
