"""`check` of loaded and aggregated tables, and the support of engines by every command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from test_engine_comparisons import pair
from test_engines import BROKEN, FORMS, ROLES, frame, with_row_numbers, written

import abstain
from abstain.cli._program import COUNTING, ROW_BY_ROW
from abstain.readers import _row_query

if TYPE_CHECKING:
    from commands import Run

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "large-data.md"
FINDINGS = (
    *("format", "columns", "guessed", "counts", "clusters", "signals", "metadata", "confidences", "metrics"),
    *("defaults", "problems"),
)


def assert_same_check(source: Any, engine: str, loaded: Any = None, **roles: Any) -> Any:
    found, expected = (
        abstain.check(each, engine=name, **roles)
        for each, name in ((source, engine), (source if loaded is None else loaded, "numpy"))
    )
    for finding in FINDINGS[loaded is not None :]:
        assert getattr(found, finding) == getattr(expected, finding), finding
    return found


@pytest.mark.parametrize("clusters", [40, 1400, 0])
@pytest.mark.parametrize("form", FORMS)
def test_a_check_of_an_aggregated_table_finds_the_same(tmp_path: Path, form: str, clusters: int) -> None:
    table = frame(4000, clusters=clusters or 40)
    roles = dict(ROLES)
    if not clusters:
        del roles["cluster"]
        table = table.drop("patient_id").with_columns(c=(pl.col("c") * 100).round())
    gaps = pl.when(pl.int_range(pl.len()) % 3 > 0).then(pl.int_range(pl.len()) // 4)
    path = written(table.with_columns(word=pl.lit("x"), gaps=gaps), tmp_path / f"t.{form}")
    found = assert_same_check(path, "duckdb", **roles)
    assert found.signals["c"].distinct == 6
    assert found.signals["gaps"].missing > 100
    assert "word" in found.metadata
    assert found.items.aggregation is not None


def test_a_check_finds_columns_by_their_names(tmp_path: Path) -> None:
    names = {"t": "truth", "p": "prediction", "c": "prob", "a": "abstained", "f": "failed"}
    path = written(frame(600).rename(names), tmp_path / "t.csv")
    assert assert_same_check(path, "duckdb").defaults["confidence"] == "confidence"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", [what for what in BROKEN if "unknown" not in what and "labels" not in what])
def test_a_check_lists_every_problem_with_its_rows(tmp_path: Path, what: str, form: str) -> None:
    changed, expected = BROKEN[what]
    columns: dict[str, Any] = {
        "t": [1, 0, 1, 0, 1],
        "p": [1, 0, 0, 0, 1],
        "confidence": [0.9, 0.8, 0.7, 0.6, 0.5],
    }
    path = written(pl.DataFrame({**columns, **changed}), tmp_path / f"t.{form}")
    named = {"g": "cluster", "a": "abstained", "f": "failed", "w": "weight", "i": "item"}
    roles = {"truth": "t", "prediction": "p"} | {named[name]: name for name in changed if name in named}
    found, loaded = (abstain.check(path, engine=engine, **roles).problems for engine in ("duckdb", "numpy"))
    assert any(re.search(with_row_numbers(form, expected), problem) for problem in found), found
    assert len(found) == len(loaded)


def test_several_problems_are_listed_together(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "truth": [1, 0, 1, 0],
            "prediction": [1, None, 0, 1],
            "confidence": [0.5, 0.5, None, 0.1],
            "patient_id": ["a", "b", None, "d"],
            "item": [1, 2, 3, 3],
        }
    )
    path = written(table, tmp_path / "t.parquet")
    found, loaded = (abstain.check(path, engine=engine).problems for engine in ("duckdb", "numpy"))
    assert set(found) == set(loaded)
    assert len(found) >= 3


def test_a_check_of_continuous_confidences_counts_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bins are for metrics only; the number of distinct values is exact."""
    monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
    monkeypatch.setattr(_row_query, "HEAD", 4000)
    path = written(frame(6000, clusters=1400, continuous=True), tmp_path / "t.parquet")
    found = assert_same_check(path, "duckdb", **ROLES)
    assert found.signals["c"].distinct > 4000


# The arguments of every command on the files a and b. Commands that need every row refuse --engine.
COMMAND_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "evaluate": ("a.parquet", "--json"),
    "report": ("a.parquet", "-o", "out.html"),
    "plot": ("a.parquet", "-o", "out.json"),
    "compare": ("a.parquet", "b.parquet", "--json"),
    "gate": ("a.parquet", "--baseline", "b.parquet", "--fail-if", "augrc worse by 0.01"),
    "power": ("a.parquet", "--metric", "accuracy", "--difference", "0.01", "--json"),
    "check": ("a.parquet", "--json"),
    "threshold": ("a.parquet", "--risk", "0.3"),
    "apply": ("policy.json", "a.parquet"),
    "calibrate": ("train", "a.parquet", "--method", "isotonic", "--features", "c", "-o", "c.json"),
    "intervals": ("a.parquet",),
    "sets": ("a.parquet",),
}
FLAGS = ("--truth", "t", "--prediction", "p", "--abstained", "a", "--failed", "f", "--item", "name")


def matrix() -> dict[str, list[str]]:
    """Return the documented support of each command by each engine."""
    rows = re.findall(
        r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {command: cells for command, *cells in rows}


def run_command(run: Run, command: str, engine: str) -> tuple[int, Any, str]:
    """Run a command; return its exit code, its output without times, hashes and engine, and its messages."""
    code, out, err = run(
        command, *COMMAND_ARGUMENTS[command], *FLAGS, "--confidence", "c", "--engine", engine
    )
    printed: Any = rounded(json.loads(out)) if out.startswith("{") else out
    for written_to in (Path("out.json"), Path("out.html")):
        if written_to.exists():
            text = written_to.read_text(encoding="utf-8")
            text = re.sub(r"20\d\d-\d\d-\d\d[T ][\d:]+\S*", "", text.replace(f"--engine {engine}", ""))
            text = re.sub(r"\bclip\d+\b", "clip", text)  # clips are numbered per process
            text = re.sub(r"<tr>\s*<th[^>]*>\s*input SHA-256\s*</th>.*?</tr>", "", text, flags=re.DOTALL)
            printed = out, re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.10g}", text)
            written_to.unlink()
    return code, printed, err


def rounded(value: Any) -> Any:
    """Return printed JSON without time and hash, with numbers rounded."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items() if key not in ("created_at", "sha256")}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def written_pair(folder: Path) -> None:
    tables = pair(800, clusters=40)
    written(tables["old"], folder / "a.parquet")
    written(tables["new"], folder / "b.parquet")


def assert_documented(run: Run, command: str, engine: str, cell: str) -> None:
    """Check one cell of the matrix: the same output, or an error."""
    found = run_command(run, command, engine)
    if cell == "the same":
        loaded = run_command(run, command, "numpy")
        assert found[0] == loaded[0] in (0, 1, 4), found[2]
        assert found[1] == loaded[1]
        assert f"aggregated by {engine}" in found[2] or "--json" in COMMAND_ARGUMENTS[command]
    else:
        assert (cell, found[0]) == ("loads the table" if engine == "duckdb" else "refused", 2)
        assert (
            "looks at every row and loads the whole table; --engine is for check, compare, evaluate, gate, plot, power "
            "and report" in found[2]
        )


@pytest.mark.parametrize("command", COMMAND_ARGUMENTS)
def test_engines_support_commands_as_documented(run: Run, tmp_path: Path, command: str) -> None:
    written_pair(tmp_path)
    assert_documented(run, command, "duckdb", matrix()[command][1])


def test_every_command_for_tables_is_in_the_matrix(run: Run) -> None:
    assert list(matrix()) == list(COMMAND_ARGUMENTS)
    assert set(COUNTING) == {command for command, cells in matrix().items() if cells[1] == "the same"}
    for command in COUNTING:
        assert "--engine" in run(command, "--help-all")[1]
    for command in ROW_BY_ROW:
        words = ("calibrate", command) if command in ("train", "verbalized") else (command,)
        assert "--engine" not in run(*words, "--help-all")[1]


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_groups_of_large_whole_numbers_are_distinct(tmp_path: Path, engine: str) -> None:
    columns = {"truth": [1, 1], "prediction": [1, 0], "g": [2**53 + 1, 2**53]}
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    table = abstain.evaluate(path, by="g", metrics="accuracy", engine=engine).metrics
    assert table is not None
    assert [group.label for group in table.groups] == [f"g={2**53}", f"g={2**53 + 1}"]


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("role", ["cluster", "abstained"])
def test_the_column_of_a_field_can_be_used_for_groups(tmp_path: Path, engine: str, role: str) -> None:
    columns = {"truth": [1, 1, 0], "prediction": [1, 0, 0], "c": [True, False, False]}
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    roles: dict[str, Any] = {role: "c"}
    table = abstain.evaluate(path, by="c", metrics="answer_rate", engine=engine, **roles).metrics
    assert table is not None
    assert [(group.label, group.items) for group in table.groups] == [("c=False", 2), ("c=True", 1)]


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("guide", [[1, 0], ["true", "False"]])
def test_guidance_may_be_whole_numbers_or_text(tmp_path: Path, engine: str, guide: list[Any]) -> None:
    columns = {"truth": [1, 1], "prediction": [1, None], "should_abstain": guide}
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    found = abstain.evaluate(path, metrics="deferral_alignment", null_prediction="abstained", engine=engine)
    assert found.metrics is not None
    assert found.metrics.estimates["deferral_alignment"].value == 0.0


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_the_error_for_a_missing_confidence_names_cluster_item_and_number_of_rows(
    tmp_path: Path, engine: str
) -> None:
    columns = {"correct": [1, 1, 0], "confidence": [0.5, None, None], "w": [1, 5, 2], "i": ["a", "b", "c"]}
    path = written(pl.DataFrame({**columns, "p": ["x", "y", "z"]}), tmp_path / "t.parquet")
    expected = re.escape(f"for cluster y, item b of {path} (2 such items)")
    with pytest.raises(abstain.AbstainError, match=expected):
        abstain.evaluate(path, weight="w", item="i", cluster="p", engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (["1_0", "1"], "the column 'w' must hold numbers, got something else at line 2"),
        (["1", "-1"], "weight must not be negative, got -1 at line 3"),
        (["1", ""], "the column 'w' is empty or nan at line 3"),
        (["1,5", "1"], "the column 'w' has a decimal comma at line 2"),
    ],
)
def test_the_error_for_a_wrong_weight_names_the_problem(
    tmp_path: Path, engine: str, weights: list[str], expected: str
) -> None:
    path = written(pl.DataFrame({"correct": [1, 0], "w": weights}), tmp_path / "t.csv")
    with pytest.raises(abstain.DataError, match=re.escape(expected)):
        abstain.evaluate(path, weight="w", engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_a_check_of_a_large_weight_takes_little_memory(tmp_path: Path, engine: str) -> None:
    columns = {"correct": [0, 0], "failed": [True, False], "w": [10**12, 1]}
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    assert abstain.check(path, weight="w", engine=engine).counts.failed == 10**12
