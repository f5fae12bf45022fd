"""The fuzz harness finds planted defects and shrinks their cases; `make fuzz` looks for defects of abstain itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase

from abstain.cli import app
from fuzz._case import Case, Outcome
from fuzz._documents import archive
from fuzz._hunt import CORPUS, Finding, Hunt, replay
from fuzz._oracles import ORACLES, find_violations
from fuzz._rounds import ROUNDS
from fuzz._smaller import shrink_case
from fuzz._tables import Table, as_csv, as_json, as_jsonl, as_parquet, sound_tables
from fuzz._workers import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hypothesis.strategies import SearchStrategy

TABLE = b"truth,prediction,confidence\n1,1,0.9\n0,1,0.4\n"
CALL = ("evaluate", "t.csv", "--json", "--bootstrap-resamples", "5")
CASE = Case(commands=(CALL,), files={"t.csv": TABLE}, secrets=("QZXJ",))
# Only valid tables, so that few cases are enough to find a planted defect.
VALID = sound_tables().map(
    lambda table: replace(CASE, files={"t.csv": as_csv(table)}, sound=True, commands=((*CALL, *table.flags),))
)
ALIKE = sound_tables().map(
    lambda table: Case(
        commands=tuple(
            ("evaluate", name, *CALL[2:], *table.flags) for name in ("t.csv", "t.jsonl", "t.json")
        ),
        files={"t.csv": as_csv(table), "t.jsonl": as_jsonl(table), "t.json": as_json(table)},
        alike=True,
    )
)
PLANTED = {
    "raises_a_key_error": "crashes: exit code 70 unexpected KeyError at ",
    "quotes_a_cell": "tells secrets: text of a record in: abstain: FILE row N: cannot evaluate b'…'",
    "changes_its_input": "destroys: ",
    "leaves_a_file": "leaves files: ",
    "colours_the_terminal": "controls the terminal: ",
    "warns": "warns: RuntimeWarning: something is odd",
    "takes_memory": "costs: ",
    "says_two_things": "says: 2 messages",
    "names_no_place": "names no place: no place in: something is wrong",
    "refuses_sound_input": "refuses: sound input refused: FILE today is Monday",
}


# ---------------------------------------------------------------------------------------------------- planted defects


@pytest.mark.nightly
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_found_and_shrunk(name: str) -> None:
    finding = find_defect(f"fuzz_defects:{name}", VALID, beginning=PLANTED[name])
    assert len(finding.case.files) == 1
    assert finding.case.size < 150, finding.case


@pytest.mark.nightly
def test_a_duplicate_row_in_one_format_is_found_and_shrunk() -> None:
    finding = find_defect("fuzz_defects:doubles_a_row", ALIKE, beginning="disagrees: csv and jsonl: .")
    assert {command[1] for command in finding.case.commands} == {"t.csv", "t.jsonl"}
    assert set(finding.case.files) == {"t.csv", "t.jsonl"}


@pytest.mark.slow
def test_a_defect_that_needs_three_rows_is_shrunk_to_three_rows() -> None:
    with Worker("fuzz_defects:raises_a_key_error") as worker:
        hunt = Hunt(worker)

        def shows_defect(case: Case) -> bool:
            return any(
                what.startswith("crashes: exit code 70 unexpected KeyError") for what in hunt.violations(case)
            )

        rows = b"truth,prediction,confidence,note\n" + b"1,1,0.9,a\n" * 9
        smallest = shrink_case(replace(CASE, files={"t.csv": rows, "u.csv": rows}), shows_defect)
    assert set(smallest.files) == {"t.csv"}
    assert smallest.files["t.csv"].splitlines() == [b"truth,prediction", b"1,1", b"1,1", b"1,1"]


@pytest.mark.nightly
def test_a_hanging_command_is_killed_and_the_next_case_runs() -> None:
    with Worker("fuzz_defects:hangs", patience=5) as worker:
        assert describe_violations(CASE, worker.run(CASE)) == ["crashes: evaluate hangs on csv"]
        next_case = Case(commands=(("schema", "metrics"),))
        assert find_violations(next_case, worker.run(next_case)) == []


@pytest.mark.slow
def test_output_is_captured_as_for_a_terminal() -> None:
    with Worker() as worker:
        (outcome,) = worker.run(replace(CASE, commands=(("metrics", "a\x1b[31mb"),)))
    assert ("\x1b[31m" in outcome.stderr) != ("\\x1b[31m" in outcome.stderr)


@pytest.mark.slow
def test_defects_are_saved_in_the_corpus_and_run_again(tmp_path: Path) -> None:
    with Worker("fuzz_defects:names_no_place") as worker:
        Finding("names no place", CASE).keep(tmp_path)
        ((path, violations),) = replay(worker, folder=tmp_path)
        assert violations == ["names no place: no place in: something is wrong"]
        assert path.name.startswith("names-no-place-")
    with Worker() as worker:
        assert [violations for _, violations in replay(worker, folder=tmp_path)] == [[]]


def find_defect(planted: str, cases: SearchStrategy[Case], *, beginning: str) -> Finding:
    """Plant a defect and return the finding with this beginning; others are defects of abstain itself."""
    with Worker(planted) as worker:
        hunt = Hunt(worker, shrink_seconds=math.inf, shrink_commands=200)
        for seed in range(12):
            finding = hunt.batch(cases, seed, 20)
            if finding is not None and finding.what.startswith(beginning):
                return finding
    raise AssertionError(f"{planted} was not found; found {sorted(hunt.findings)}")


# -------------------------------------------------------------------------------------------------------------- oracles

SUCCEEDED = Outcome(code=0, stdout="{}")
REFUSED = Outcome(code=3, stderr="abstain: t.csv: row 1: not good enough\n")
WRITING = replace(CASE, commands=(("evaluate", "t.csv", "-o", "o.json"),))


def describe_violations(case: Case, outcomes: Sequence[Outcome]) -> list[str]:
    return [str(violation) for violation in find_violations(case, outcomes)]


def test_correct_outcomes_have_no_violations() -> None:
    written = replace(SUCCEEDED, stdout="", written={"o.json": b"{}"})
    noted = replace(SUCCEEDED, stderr="t.csv: a CSV table; guessed truth = truth\n")
    for case, outcome in ((CASE, SUCCEEDED), (CASE, REFUSED), (CASE, noted), (WRITING, written)):
        assert find_violations(case, [outcome]) == []
    gate = replace(CASE, commands=(("gate", "t.csv", "--fail-if", "aurc above 0.1"),))
    assert find_violations(gate, [Outcome(code=4)]) == find_violations(gate, [Outcome(code=1)]) == []


@pytest.mark.parametrize(
    ("oracle", "case", "outcome"),
    [
        ("crashes", CASE, Outcome(crash="KeyError in abstain.read")),
        ("crashes", CASE, replace(SUCCEEDED, code=1)),
        ("crashes", CASE, replace(SUCCEEDED, code=4)),
        ("crashes", CASE, Outcome(code=70, stderr="abstain: unexpected\n")),
        ("destroys", CASE, replace(SUCCEEDED, written={"t.csv": b"x"})),
        ("destroys", CASE, replace(SUCCEEDED, gone=("t.csv",))),
        ("tells secrets", CASE, replace(REFUSED, stderr="abstain: t.csv: QZXJ is wrong\n")),
        ("tells secrets", CASE, replace(SUCCEEDED, stderr="t.csv: guessed QZXJ\n")),
        ("controls the terminal", CASE, replace(REFUSED, stderr="abstain: t.csv: \x1b[31m\n")),
        ("controls the terminal", WRITING, replace(SUCCEEDED, stdout="t.csv \u202e\n")),
        ("controls the terminal", WRITING, replace(SUCCEEDED, stdout="over\rwritten")),
        ("leaves files", CASE, replace(REFUSED, written={"o.json": b"{}"})),
        ("leaves files", CASE, replace(SUCCEEDED, written={".o.json.x.part": b"{}"})),
        ("leaves files", CASE, replace(SUCCEEDED, written={"spill/duckdb": b""})),
        ("writes half", WRITING, replace(SUCCEEDED, written={"o.json": b"{"})),
        ("writes half", WRITING, replace(SUCCEEDED, written={"o.json": b"NaN"})),
        ("writes half", WRITING, replace(SUCCEEDED, written={"o.html": b"<html>"})),
        ("writes half", WRITING, replace(SUCCEEDED, written={"o.csv": b""})),
        ("prints half", CASE, replace(SUCCEEDED, stdout="{")),
        ("costs", CASE, replace(SUCCEEDED, seconds=60.0)),
        ("costs", CASE, replace(SUCCEEDED, memory=1 << 30)),
        ("warns", CASE, replace(SUCCEEDED, warned=("RuntimeWarning: overflow",))),
        ("says", CASE, replace(REFUSED, stderr="")),
        ("says", CASE, replace(REFUSED, stderr="abstain: t.csv: a\nabstain: t.csv: b\n")),
        ("says", CASE, replace(REFUSED, stderr="abstain: t.csv: a\n  b\n")),
        ("says", CASE, replace(SUCCEEDED, stderr="abstain: t.csv: a\n")),
        ("names no place", CASE, replace(REFUSED, stderr="abstain: something is wrong\n")),
        ("refuses", replace(CASE, sound=True), REFUSED),
    ],
)
def test_every_oracle_detects_its_violation(oracle: str, case: Case, outcome: Outcome) -> None:
    assert [violation.oracle for violation in find_violations(case, [outcome])] == [oracle]


def test_every_oracle_is_tested() -> None:
    (mark,) = test_every_oracle_detects_its_violation.pytestmark  # type: ignore[attr-defined]
    assert {parameters[0] for parameters in mark.args[1]} == set(ORACLES)


def test_an_existing_output_may_be_replaced_but_an_input_may_not() -> None:
    old = replace(WRITING, files={"t.csv": TABLE, "o.json": b"old"})
    assert find_violations(old, [replace(SUCCEEDED, written={"o.json": b"{}"})]) == []
    input_as_output = replace(CASE, commands=(("evaluate", "t.csv", "-o", "t.csv"),))
    outcome = replace(SUCCEEDED, written={"t.csv": b"{}"})
    assert describe_violations(input_as_output, [outcome]) == ["destroys: evaluate: an input was changed"]


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (('{"a": 1, "path": "x"}', '{"a": 1.0000000000001, "path": "y"}'), []),
        (('{"a": 1}', '{"a": 2}'), ["disagrees: csv and jsonl: .a"]),
        (('{"a": {"b": [1, null]}}', '{"a": {"b": [1, 0]}}'), ["disagrees: csv and jsonl: .a.b[]"]),
        (('{"a": 1}', "{}"), ["disagrees: csv and jsonl: .a"]),
    ],
)
def test_results_are_compared_without_their_paths(outputs: Sequence[str], expected: list[str]) -> None:
    case = Case(commands=(CALL, ("evaluate", "t.jsonl", "--json")), alike=True)
    assert describe_violations(case, [Outcome(code=0, stdout=text) for text in outputs]) == expected


ENGINES = tuple((*CALL, "--engine", engine) for engine in ("numpy", "duckdb"))
AGGREGATED = "t.csv: aggregated by duckdb; --engine numpy loads it instead\n"


@pytest.mark.parametrize(
    ("numpy", "duckdb", "expected"),
    [
        (Outcome(0, stdout='{"a": 1}'), Outcome(0, stdout='{"a": 1}', stderr=AGGREGATED), None),
        (Outcome(0, stdout='{"a": 0.5}'), Outcome(0, stdout='{"a": 0.50000000001}'), ".a"),
        (Outcome(0, stdout="{}"), Outcome(0, stdout="{}", stderr="t.csv: odd\n"), "remarks differ: FILE odd"),
        (REFUSED, REFUSED, None),
        (
            REFUSED,
            replace(REFUSED, stderr="abstain: t.csv: row 2: not good enough\n"),
            "locations differ: FILE row N: not good enough",
        ),
        (
            REFUSED,
            replace(REFUSED, stderr="abstain: t.csv: too bad\n"),
            "messages differ: FILE row N: not good enough | FILE too bad",
        ),
        (
            REFUSED,
            Outcome(0, stdout="{}"),
            "exit codes differ: FILE row N: not good enough | exit code 0",
        ),
        (
            Outcome(0, stdout="{}"),
            Outcome(2, stderr="abstain: t.csv: a, b; load the table (engine, --engine: numpy)\n"),
            None,
        ),
    ],
)
def test_engines_must_give_the_same_result_or_message(
    numpy: Outcome, duckdb: Outcome, expected: str | None
) -> None:
    case = replace(CASE, commands=ENGINES, alike=True)
    violations = [] if expected is None else [f"disagrees: numpy and duckdb: evaluate: {expected}"]
    assert describe_violations(case, [numpy, duckdb]) == violations


@pytest.mark.slow
def test_items_that_differ_between_formats_are_found() -> None:
    read = ("items:file", "t.csv"), ("items:polars", "t.parquet")
    table = Table({"truth": ["1", "0"], "prediction": ["1", None]}, {})
    files = {"t.csv": as_csv(table), "t.parquet": as_parquet(table)}
    case = Case(tuple((*command, "--null-prediction", "abstained") for command in read), files, alike=True)
    other = as_csv(Table({"truth": ["1", "1"], "prediction": ["1", None]}, {}))
    with Worker() as worker:
        assert find_violations(case, worker.run(case)) == []
        changed = replace(case, files={**files, "t.csv": other})
        assert describe_violations(changed, worker.run(changed)) == [
            "disagrees: csv and items:polars: .truth[]"
        ]


# ---------------------------------------------------------------------------------------------------------------- cases


def draw_cases(name: str, seed: int, count: int) -> list[Case]:
    cases: list[Case] = []
    settings = hypothesis.settings(
        max_examples=count,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )

    def keep(case: Case) -> None:
        cases.append(case)

    hypothesis.seed(seed)(settings(hypothesis.given(ROUNDS[name].cases)(keep)))()
    return cases


def test_a_seed_gives_the_same_cases_every_time() -> None:
    for name in ROUNDS:
        assert [case.key for case in draw_cases(name, 7, 5)] == [case.key for case in draw_cases(name, 7, 5)]


@pytest.mark.slow
def test_every_reader_and_every_command_are_tried() -> None:
    # Several seeds, because the cases of one seed resemble each other.
    seeds = (1, 2, 3)
    hostile = [case for seed in seeds for case in draw_cases("hostile", seed, 120)]
    others = [
        case
        for name in ("misused", "coverage", "agreeing")
        for seed in seeds
        for case in draw_cases(name, seed, 80)
    ]
    endings = {name.rpartition(".")[2] for case in hostile for name in case.files}
    assert {"csv", "tsv", "jsonl", "json", "parquet", "eval"} <= endings
    tried = {command[0] for case in (*hostile, *others) for command in case.commands}
    commands = {command.name for command in app.registered_commands} | {"calibrate"}
    assert commands - {"verbalized", "train"} <= tried
    assert {"frame:pandas", "frame:polars", "frame:arrow"} <= tried


@pytest.mark.slow
def test_requests_contain_every_format_option_and_kind_of_table() -> None:
    cases = [case for seed in range(6) for case in draw_cases("requests", seed, 100)]
    words = {word for case in cases for command in case.commands for word in command}
    assert {"evaluate", "compare", "check", "gate", "t.csv", "t.jsonl", "t.parquet"} <= words
    assert {"--by", "--weight", "--cluster", "--item", "--null-prediction", "--abstain-rule"} <= words
    assert {"--percent", "--confidence", "--interval", "--intersection-only", "--match"} <= words
    tables = [case.files["t.jsonl"].decode() for case in cases if "t.jsonl" in case.files]
    rows = {table.count("\n") for table in tables}
    assert 1 in rows
    assert max(rows) > 400
    tables += [case.files["t.csv"].decode() for case in cases if "t.csv" in case.files]
    for odd in ("9007199254740993", str(10**39 + 7), "</script>", "1_000", "1.0", "01", "12%", "Site"):
        assert any(odd in table for table in tables), odd


def test_a_case_is_written_and_read_unchanged(tmp_path: Path) -> None:
    files = {"t.csv": TABLE, "b\udcff.eval": archive({"samples": [{}]}), "é\x1b": b"\xff"}
    case = Case(
        (CALL, ("check", "\ud800")), files, {"link": "t.csv"}, ("s",), sound=True, alike=True, why="because"
    )
    (tmp_path / "case.json").write_text(case.to_json())
    assert Case.read(tmp_path / "case.json") == case


def test_every_case_of_the_corpus_has_a_reason_and_commands() -> None:
    cases = [Case.read(path) for path in CORPUS.glob("*.json")]
    assert cases
    assert all(case.why and case.commands for case in cases)
