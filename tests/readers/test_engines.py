"""Every engine has the same numbers: numpy, which loads a table, and the engines that aggregate it."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import abstain
from abstain import ArgumentError, DataError, FormatError, SignalError, _sql, _units
from abstain.errors import AggregationError
from abstain.readers import _cells, _row_query, _row_types, engines
from abstain.readers.engines import engine_tables
from memory import run_measured

if TYPE_CHECKING:
    from pathlib import Path

    from abstain.evaluation import Result

ROLES: dict[str, Any] = {
    "truth": "t",
    "prediction": "p",
    "confidence": "c",
    "abstained": "a",
    "failed": "f",
    "cluster": "patient_id",
}
FORMS = ("csv", "parquet", "jsonl")


def frame(count: int = 500, *, clusters: int = 40, continuous: bool = False, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, count).astype(float)
    truth[rng.random(count) < 0.05] = np.nan
    declined = rng.random(count) < 0.2
    failed = ~declined & (rng.random(count) < 0.05)
    right = rng.random(count) < 0.6
    prediction = np.where(right, truth, rng.integers(0, 4, count).astype(float))
    prediction[declined | failed] = np.nan
    sure = rng.random(count) if continuous else rng.integers(0, 6, count) / 5
    columns: dict[str, Any] = {
        "t": truth,
        "p": prediction,
        "c": np.where(declined, np.nan, sure),
        "a": declined,
        "f": failed,
        "patient_id": rng.integers(0, clusters, count),
        "site": rng.choice(["north", "south", "west"], count),
        "d": rng.integers(0, 3, count) / 2,
        "times": rng.integers(1, 4, count),
        "should_abstain": [None if value == 2 else bool(value) for value in rng.integers(0, 3, count)],
    }
    table = pl.DataFrame(columns).with_columns(pl.col("t", "p", "c").fill_nan(None))
    return table.filter(
        pl.col("p").is_not_null() | pl.col("a") | pl.col("f") | pl.col("t").is_null()
    ).with_columns(pl.col("p").fill_null(0.0))


def countable(source: Any, **options: Any) -> Any:
    """Return a table that is aggregated; None if it is loaded."""
    tables = engine_tables({"t": source}, **options)
    return None if tables is None else tables["t"]


def written(table: pl.DataFrame, path: Path) -> Path:
    getattr(table, f"write_{'ndjson' if path.suffix == '.jsonl' else path.suffix[1:]}")(path)
    return path


def assert_same(found: Result, expected: Result, tolerance: float = 1e-12) -> None:
    """Compare every number of a system, its interval, its counts and its warnings."""
    left, right = found.only, expected.only
    assert left.population == right.population
    assert left.estimates.keys() == right.estimates.keys()
    for key, one in left.estimates.items():
        other = right.estimates[key]
        for part in ("value", "low", "high", "se", "degrees"):
            pair = getattr(one, part), getattr(other, part)
            assert pair[0] == pytest.approx(pair[1], rel=tolerance, abs=tolerance, nan_ok=True), (key, part)
        for part in ("n", "clusters", "method", "reason", "level"):
            assert getattr(one, part) == getattr(other, part), (key, part)
        if one.bounds or other.bounds:
            assert one.bounds == pytest.approx(other.bounds, rel=1e-9, nan_ok=True), key
    assert left.design_effect == pytest.approx(right.design_effect, rel=1e-9, nan_ok=True)
    assert left.warnings == right.warnings
    if left.metrics is not None and right.metrics is not None:
        for found_group, group in zip(left.metrics.groups, right.metrics.groups, strict=True):
            for part in ("label", "items", "answered", "clusters", "note"):
                assert getattr(found_group, part) == getattr(group, part)
        assert left.metrics.gaps.keys() == right.metrics.gaps.keys()
        for name, gap in left.metrics.gaps.items():
            assert gap.gap.low == pytest.approx(right.metrics.gaps[name].gap.low, rel=1e-9, abs=1e-12)


QUESTIONS: dict[str, dict[str, Any]] = {
    "selective": {},
    "no intervals": {"interval": "none"},
    "every loss": {"loss": "abs"},
    "on a scale": {"scale": (0, 3)},
    "a function": {"loss": lambda truth, prediction: (truth - prediction) ** 2},
    "weights": {"weight": "times"},
    "conventions": {"convention": "interpolated"},
    "labels": {"metrics": ["balanced_accuracy", "macro_f1", "mean_absolute_error"]},
    "safety": {"metrics": ["accuracy", "selective_accuracy", "simpleqa_f", "abstention_rate"]},
    "guidance": {"metrics": ["abstention_f1", "deferral_alignment", "abstention_auroc"]},
    "calibration": {
        "metrics": ["expected_calibration_error", "negative_log_likelihood", "coverage_at_accuracy"]
    },
    "groups": {"metrics": ["accuracy", "augrc", "expected_calibration_error"], "by": "site"},
    "several groups": {"metrics": ["macro_f1", "aurc"], "by": ["site", "d"], "selective": True},
    "several confidences": {"confidence": ["c", "d"]},
    "two made into one": {"confidence": "secondary:c+d:average"},
}


@pytest.mark.parametrize("clusters", [40, 5000])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_request_has_the_same_result(tmp_path: Path, question: str, clusters: int) -> None:
    path = written(frame(3000, clusters=clusters), tmp_path / "t.parquet")
    arguments = {**ROLES, **QUESTIONS[question]}
    assert_same(
        abstain.evaluate(path, engine="duckdb", **arguments),
        abstain.evaluate(path, engine="numpy", **arguments),
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_format_has_the_same_result(tmp_path: Path, form: str) -> None:
    path = written(frame(5000, clusters=1500), tmp_path / f"t.{form}")
    arguments = {**ROLES, "metrics": ["accuracy", "aurc"], "by": "site", "selective": True}
    assert_same(
        abstain.evaluate(path, engine="duckdb", **arguments),
        abstain.evaluate(path, engine="numpy", **arguments),
    )


NAMES: dict[str, Any] = {
    "numbers": lambda number: number,
    "negative numbers": lambda number: number * 1_000_003 - 5_000_000,
    "numbers as text": str,
    "words": lambda number: f"Patient {number}",
    "words and numbers": lambda number: f"p{number}" if number % 3 else str(number),
    "leading zeros": lambda number: f"{number:08d}",
    "numbers of many digits": lambda number: str(10 ** (17 + number % 18) + number),
    "negative ones": lambda number: str(-(10 ** (17 + number % 18)) - number),
    "floats that are whole": float,
    "such floats as text": lambda number: f"{number}.0",
    "letters of other scripts": lambda number: f"病人 {number} é",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("names", NAMES)
def test_clusters_are_in_the_same_groups(tmp_path: Path, names: str, form: str) -> None:
    table = frame(4000, clusters=1400)
    named = pl.Series("patient_id", [NAMES[names](number) for number in table["patient_id"].to_list()])
    path = written(table.with_columns(named), tmp_path / f"t.{form}")
    assert_same(
        abstain.evaluate(path, engine="duckdb", **ROLES), abstain.evaluate(path, engine="numpy", **ROLES)
    )


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_clusters_if_there_is_no_cluster_column(tmp_path: Path, form: str) -> None:
    path = written(frame(1500).drop("patient_id"), tmp_path / f"t.{form}")
    roles: dict[str, Any] = {role: name for role, name in ROLES.items() if role != "cluster"}
    questions: list[dict[str, Any]] = [{}, {"metrics": ["aurc", "accuracy"], "by": "site"}]
    for settings in questions:
        aggregated = abstain.evaluate(path, engine="duckdb", **roles, **settings)
        assert "cluster" in aggregated.only.basis.evaluated.unnamed
        assert_same(aggregated, abstain.evaluate(path, engine="numpy", **roles, **settings))


def test_a_cluster_that_only_failed_is_counted_but_not_evaluated(tmp_path: Path) -> None:
    """There are too many clusters to leave out one by one, but few of them are evaluated."""
    table = frame(5000, clusters=1400).with_columns(pl.col("f") | (pl.col("patient_id") > 300))
    path = written(table.with_columns(a=pl.col("a") & ~pl.col("f")), tmp_path / "t.parquet")
    aggregated = abstain.evaluate(path, engine="duckdb", **ROLES)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **ROLES))
    assert aggregated.only.population.included < 400 < aggregated.only.population.total


def test_row_order_and_files_change_nothing(tmp_path: Path) -> None:
    table = frame(4000, clusters=1500)
    whole = abstain.evaluate(written(table, tmp_path / "t.parquet"), engine="duckdb", **ROLES)
    shuffled = written(table.sample(fraction=1.0, shuffle=True, seed=1), tmp_path / "s.parquet")
    parts = tmp_path / "parts"
    parts.mkdir()
    for place in range(5):
        written(table[place * 900 : (place + 1) * 900], parts / f"{place}.parquet")
    for source in (shuffled, str(parts / "*.parquet"), parts):
        found = abstain.evaluate(source, engine="duckdb", **ROLES)
        for key, estimate in found.only.estimates.items():
            expected = whole.only.estimates[key]
            for part in ("value", "low", "high"):
                assert getattr(estimate, part) == pytest.approx(
                    getattr(expected, part), abs=1e-12, nan_ok=True
                )
    # Counts of right and wrong answers are whole numbers, which are exact in any order.
    same = abstain.evaluate(shuffled, engine="duckdb", **ROLES, loss="zero_one")["c"].aurc.value
    assert (
        same
        == abstain.evaluate(tmp_path / "t.parquet", engine="duckdb", **ROLES, loss="zero_one")["c"].aurc.value
    )


@pytest.fixture
def binned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aggregate small tables like large ones."""
    monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
    monkeypatch.setattr(_row_query, "HEAD", 4000)


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize("form", FORMS)
def test_a_continuous_confidence_is_binned(tmp_path: Path, form: str) -> None:
    path = written(frame(20_000, clusters=1400, continuous=True), tmp_path / f"t.{form}")
    arguments: dict[str, Any] = {**ROLES, "metrics": ["expected_calibration_error"], "selective": True}
    aggregated = abstain.evaluate(path, engine="duckdb", **arguments)
    loaded = abstain.evaluate(path, engine="numpy", **arguments)
    assert len(loaded["c"].curve) > 10_000 > len(aggregated["c"].curve) > 3000
    (warning,) = (each for each in aggregated["c"].warnings if each.code == "binned")
    assert warning.message.startswith(
        f"c is continuous and was aggregated in {len(aggregated['c'].curve):,} bins: its AUGRC is"
    )
    assert "its other metrics are computed from the bins, each with at most" in warning.message
    largest = 1.0
    bounds = abstain.metrics.curves.binning_bounds(aggregated["c"].curve, largest)
    for name, bound in (("augrc", bounds[0]), ("aurc", bounds[1]), ("augrc_at_coverage@0.5", bounds[0])):
        one, other = aggregated["c"].estimates[name], loaded["c"].estimates[name]
        assert 0.0 < abs(one.value - other.value) < bound < 0.002
        assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=2 * bound)
    assert aggregated["c"].aurc_optimal.value == pytest.approx(loaded["c"].aurc_optimal.value, rel=1e-12)
    errors = [found.only.estimate("expected_calibration_error").value for found in (aggregated, loaded)]
    assert errors[0] == pytest.approx(errors[1], abs=1e-3)


def tied_frame() -> pl.DataFrame:
    """Return a table with a continuous confidence that is exactly 1 in a third of the rows."""
    rng = np.random.default_rng(4)
    sure = np.where(rng.random(8000) < 1 / 3, 1.0, 0.9 * rng.random(8000))
    return pl.DataFrame(
        {"correct": rng.random(8000) < 0.7, "confidence": sure, "cluster": np.arange(8000) % 300}
    )


def binning_error(message: str) -> float:
    """Return the error of the AURC in the warning about bins."""
    found = re.search(r"its AURC to ([0-9.e-]+);", message)
    assert found is not None
    return float(found[1])


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize("form", FORMS)
def test_a_bin_of_one_value_is_not_an_error(tmp_path: Path, form: str) -> None:
    """A bin with a third of the rows would allow an error of a third if its values differed."""
    path = written(tied_frame(), tmp_path / f"t.{form}")
    aggregated, loaded = (
        abstain.evaluate(path, engine=engine)["confidence"] for engine in ("duckdb", "numpy")
    )
    (warning,) = (each for each in aggregated.warnings if each.code == "binned")
    error = abs(aggregated.aurc.value - loaded.aurc.value)
    assert error < binning_error(warning.message) < 0.002
    assert aggregated.curve.threshold[0] == 1.0


@pytest.mark.usefixtures("binned")
def test_bins_of_one_value_each_are_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sure = rng.integers(512, 1024, 8000) * 2.0 ** -rng.integers(11, 31, 8000)  # ten leading bits
    table = pl.DataFrame(
        {"correct": rng.random(8000) < 0.7, "confidence": sure, "cluster": np.arange(8000) % 300}
    )
    path = written(table, tmp_path / "t.parquet")
    aggregated, loaded = (
        abstain.evaluate(path, engine=engine)["confidence"] for engine in ("duckdb", "numpy")
    )
    assert "binned" not in [each.code for each in aggregated.warnings]
    assert aggregated.curve.threshold.tolist() == loaded.curve.threshold.tolist()
    assert aggregated.aurc.value == pytest.approx(loaded.aurc.value, rel=1e-12)


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize("low", [0.0, -40.0, 0.999, 1e6])
def test_bins_keep_the_order_of_a_confidence(tmp_path: Path, low: float) -> None:
    rng = np.random.default_rng(0)
    sure = low + (1.0 - low if low < 1.0 else 1e6) * rng.random(8000)
    right = rng.random(8000) < (sure - sure.min()) / np.ptp(sure)
    path = written(pl.DataFrame({"correct": right, "confidence": sure}), tmp_path / "t.parquet")
    aggregated, loaded = (
        abstain.evaluate(path, engine=engine, interval="none") for engine in ("duckdb", "numpy")
    )
    bounds = abstain.metrics.curves.binning_bounds(aggregated["confidence"].curve, 1.0)
    assert aggregated["confidence"].augrc.value == pytest.approx(
        loaded["confidence"].augrc.value, abs=bounds[0]
    )
    assert aggregated["confidence"].aurc.value == pytest.approx(
        loaded["confidence"].aurc.value, abs=bounds[1]
    )
    curve = aggregated["confidence"].curve
    assert (np.diff(curve.threshold) < 0.0).all()
    # The mean of a bin is within it, so the rows above a threshold differ by at most one bin.
    above = (sure[None, :] >= curve.threshold[:, None]).mean(axis=1)
    widest = float(np.diff(curve.coverage, prepend=0.0).max())
    assert np.abs(above - curve.coverage).max() <= widest


@pytest.mark.usefixtures("binned")
@pytest.mark.parametrize(
    "spelled", ["sure", "1_000", "0x1F", "1,5x", "7d", "\uff11", "--3", "1e", "e5", "nan()"]
)
def test_the_error_for_text_among_many_numbers_names_its_line(tmp_path: Path, spelled: str) -> None:
    numbers = [f"{number / 7:.17g}" for number in range(6000)]
    table = pl.DataFrame({"correct": [0, 1, 1] * 2000, "confidence": [*numbers[:-1], spelled]})
    path = written(table, tmp_path / "t.csv")
    told = []
    for engine in ("numpy", "duckdb"):
        with pytest.raises(
            DataError, match=r"contains text \(first at line 6001\), but a confidence"
        ) as caught:
            abstain.evaluate(path, engine=engine)
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.usefixtures("binned")
def test_the_error_for_a_decimal_comma_among_many_numbers_names_its_line(tmp_path: Path) -> None:
    numbers = [f"{number / 7:.17g}" for number in range(6000)]
    table = pl.DataFrame({"correct": [0, 1, 1] * 2000, "confidence": [*numbers[:-1], "0,5"]})
    path = written(table, tmp_path / "t.csv")
    message = "the column 'confidence' has a decimal comma at line 6001; write numbers with a decimal point"
    for engine in ("numpy", "duckdb"):
        with pytest.raises(DataError, match=message):
            abstain.evaluate(path, engine=engine)


@pytest.mark.usefixtures("binned")
def test_numbers_may_be_spelled_in_many_ways(tmp_path: Path) -> None:
    ways = [" 0.5 ", "+1.5", "-.5", "3.", "2e-3", "1E+2", "007"]
    numbers = [ways[number] if number < len(ways) else f"{number / 7:.17g}" for number in range(6000)]
    path = written(pl.DataFrame({"correct": [0, 1, 1] * 2000, "confidence": numbers}), tmp_path / "t.csv")
    aggregated, loaded = (abstain.evaluate(path, engine=engine) for engine in ("duckdb", "numpy"))
    bound = abstain.metrics.curves.binning_bounds(aggregated["confidence"].curve, 1.0)[0]
    assert aggregated["confidence"].augrc.value == pytest.approx(loaded["confidence"].augrc.value, abs=bound)


# Wrong columns, and the error of each; <1> is the number of the second row in the file.
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "a prediction is missing": (
        {"p": [1, None, 0, None, 1]},
        r"the prediction \(p\) is missing at <1, 3> for",
    ),
    "a confidence is missing": (
        {"confidence": [0.9, None, 0.7, 0.6, 0.5]},
        "confidence.* (is null|missing).*(item|for|at) <1>",
    ),
    "a confidence is infinite": (
        {"confidence": [0.9, math.inf, 0.7, 0.6, 0.5]},
        "(is inf|is missing|not finite).*(item|for|at) <1>",
    ),
    "a confidence is text": (
        {"confidence": ["0.9", "sure", "0.7", "0.6", "0.5"]},
        r"'confidence' contains text \(first at <1>\), but a confidence or signal needs numbers",
    ),
    "a cluster is missing": ({"g": ["a", None, "c", "d", ""]}, "the column 'g' is empty or nan at <1>"),
    "a cluster is blank": (
        {"g": ["a", "\u2028\xa0", "c", "d", "\x1c"]},
        "the column 'g' is empty or nan at <1, 4>",
    ),
    "a flag is not a flag": (
        {"a": ["yes", "no", "maybe", "no", "no"]},
        "'a' must hold true or false.* at <2>",
    ),
    "two outcomes": (
        {"a": [True, False, False, False, False], "f": [True, False, False, False, False]},
        "both abstained and failed at <0>",
    ),
    "words and numbers": (
        {"p": ["x", "y", "z", "x", "y"]},
        "'t' and 'p' are numbers in one column and text in the",
    ),
    "a number of very many digits": (
        {"confidence": ["0.5", "0.1", "1" * 401, "0.3", "0.4"]},
        r"'confidence' contains text \(first at <2>\)",
    ),
    "a negative weight": ({"w": [1.0, 2.0, -1.0, 3.0, 4.0]}, r"weight \(w\): weight must .*at <2>"),
    "no weight at all": ({"w": [0.0] * 5}, r"weight \(w\): weight is zero in every row"),
    "no labels": ({"t": [0.5, 1.0, 2.0, 3.0, 4.0]}, "the truth is not a whole number in every answered row"),
    "an unknown column": ({}, "has no column 'truht'"),
    "an item appears twice": (
        {"i": ["a", "b", "a", "c", "d"]},
        r"the item ids \(i\) must be unique; .* at <2>",
    ),
    "an item has no name": ({"i": ["a", "b", None, "c", "d"]}, "the column 'i' is empty or nan at <2>"),
}


def with_row_numbers(form: str, message: str) -> str:
    """Return a message with the row numbers of a file: lines from 1 (in CSV after the header), Parquet rows from 1."""
    word, first = {"csv": ("line", 2), "jsonl": ("line", 1), "parquet": ("row", 1)}[form]

    def name_rows(match: re.Match[str]) -> str:
        return f"{word} {', '.join(str(int(row) + first) for row in match[1].split(', '))}"

    return re.sub(r"<([0-9, ]+)>", name_rows, message)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", BROKEN)
def test_errors_name_the_row(tmp_path: Path, what: str, form: str, engine: str) -> None:
    changed, expected = BROKEN[what]
    columns: dict[str, Any] = {
        "t": [1, 0, 1, 0, 1],
        "p": [1, 0, 0, 0, 1],
        "confidence": [0.9, 0.8, 0.7, 0.6, 0.5],
    }
    path = written(pl.DataFrame({**columns, **changed}), tmp_path / f"t.{form}")
    roles: dict[str, Any] = {"truth": "truht" if what == "an unknown column" else "t", "prediction": "p"}
    named = {"g": "cluster", "a": "abstained", "f": "failed", "w": "weight", "i": "item"}
    roles |= {named[name]: name for name in changed if name in named}
    with pytest.raises(
        ArgumentError if "column" in what or "labels" in what else DataError,
        match=with_row_numbers(form, expected),
    ) as caught:
        abstain.evaluate(path, engine=engine, **roles)
    if "labels" not in what:
        assert f"t.{form}" in str(caught.value)
    assert "sure" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ['x"; DROP TABLE kinds; --', "a'b", "k0", "u", "number of the row", "c", "源"]
)
def test_a_column_may_have_any_name(tmp_path: Path, name: str) -> None:
    table = frame(4000, clusters=1400).rename({"c": "z"}).rename({"z": name})
    path = written(table.with_columns(pl.lit(1.0).alias("row_number")), tmp_path / "t.parquet")
    roles: dict[str, Any] = {**ROLES, "confidence": name}
    del roles["cluster"]
    aggregated = abstain.evaluate(path, engine="duckdb", **roles)
    assert_same(aggregated, abstain.evaluate(path, engine="numpy", **roles))


def test_a_column_name_never_reads_another_file(tmp_path: Path) -> None:
    secret = written(pl.DataFrame({"t": [7] * 3}), tmp_path / "secret.parquet")
    path = written(frame(100), tmp_path / "t.parquet")
    with pytest.raises(ArgumentError, match="has no column"):
        abstain.evaluate(path, engine="duckdb", **{**ROLES, "cluster": f"read_parquet('{secret}')"})


def test_the_number_of_rows_determines_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(frame(), tmp_path / "t.csv")
    assert countable(path) is None
    assert countable(path, engine="duckdb") is not None
    monkeypatch.setattr(engines, "AGGREGATED_ROWS", 100)
    large = countable(path)
    assert large is not None
    assert (large.engine, large.requested, large.label) == ("duckdb", False, str(path))
    assert countable(path, engine="numpy") is None
    assert abstain.evaluate(path, **ROLES).only.provenance["engine"] == "duckdb"
    # A request that cannot be aggregated is loaded.
    table = frame().with_columns(low=pl.col("t") - 1.0, high=pl.col("t") + 1.0)
    written(table, tmp_path / "i.csv")
    loaded = abstain.evaluate(
        tmp_path / "i.csv", **ROLES, low="low", high="high", metrics="interval_coverage"
    )
    assert "engine" not in loaded.only.provenance
    assert countable("tests/data/examples/run_a.json") is None
    assert countable(frame()) is None
    compared = abstain.compare({"a": path, "b": path}, **ROLES, match="rows", metrics="augrc")
    assert all(system.provenance["engine"] == "duckdb" for system in compared.systems.values())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "join": ({"join": ("t", "u.csv")}, "join needs a table that is loaded; omit it, or omit the engine"),
    "bounds": ({"low": "c", "high": "c"}, "low needs a table that is loaded"),
    "a loss per item": (
        {"loss": [0.0] * 500},
        "a loss per item needs every row; load the table",
    ),
    "another engine": ({"engine": "pandas"}, "unknown engine 'pandas'; known: numpy, duckdb, spark"),
    "memory without a unit": (
        {"memory": "4"},
        "memory must be a number with its unit, such as 4GB or 800MB, got '4'",
    ),
    "the bootstrap": (
        {"resamples": 100},
        r"the bootstrap draws single clusters, and 1,?\d\d\d of them were put into groups; use the jackknife",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_error_for_a_request_that_cannot_be_aggregated_names_the_remedy(
    tmp_path: Path, what: str
) -> None:
    arguments, message = REFUSED[what]
    path = written(frame(20_000, clusters=1100), tmp_path / "t.parquet")
    with pytest.raises(ArgumentError, match=message):
        abstain.evaluate(path, **{"engine": "duckdb", **ROLES, **arguments})


def test_the_bootstrap_of_few_clusters_can_be_aggregated(tmp_path: Path) -> None:
    path = written(frame(2000), tmp_path / "t.parquet")
    arguments: dict[str, Any] = {**ROLES, "interval": "percentile", "resamples": 200}
    assert_same(
        abstain.evaluate(path, engine="duckdb", **arguments),
        abstain.evaluate(path, engine="numpy", **arguments),
    )


def test_only_tables_in_files_are_aggregated() -> None:
    with pytest.raises(
        ArgumentError, match="engine duckdb aggregates tables in files, but this is a run file"
    ):
        countable("tests/data/examples/run_a.json", engine="duckdb")
    with pytest.raises(ArgumentError, match="aggregates tables in files, but this is a data frame in memory"):
        abstain.evaluate(frame(), engine="duckdb", **ROLES)
    items = abstain.read(frame(), **ROLES)
    with pytest.raises(
        ArgumentError, match="engine applies only to a data frame or a file, but left is already"
    ):
        abstain.evaluate(items, items, engine="duckdb")


def test_too_many_row_types_are_not_aggregated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(frame(500), tmp_path / "t.parquet")
    monkeypatch.setattr(_row_types, "_MOST_TYPES", 3)
    with pytest.raises(
        AggregationError, match=r"[0-9]+ different pairs of truth and prediction.* are too many to"
    ):
        abstain.evaluate(path, engine="duckdb", **ROLES)
    monkeypatch.setattr(engines, "AGGREGATED_ROWS", 100)
    assert "engine" not in abstain.evaluate(path, **ROLES).only.provenance
    monkeypatch.setattr(_row_types, "_MOST_TYPES", 1000)
    monkeypatch.setattr(_cells, "_MOST_CELLS", 3)
    with pytest.raises(
        AggregationError, match="different rows are too many to aggregate; request one confidence at a"
    ):
        abstain.evaluate(path, engine="duckdb", **ROLES)


def test_a_threshold_with_a_risk_guarantee_needs_the_rows(tmp_path: Path) -> None:
    path = written(frame(), tmp_path / "t.parquet")
    aggregated = abstain.evaluate(path, engine="duckdb", **ROLES)
    with pytest.raises(
        ArgumentError,
        match="a threshold with a risk guarantee needs every row, and the table was aggregated by",
    ):
        aggregated.only.policy(0.5)


def test_a_profile_can_be_drawn_from_an_aggregated_table(tmp_path: Path) -> None:
    path = written(frame(5000, clusters=1500), tmp_path / "t.parquet")
    aggregated, loaded = (abstain.evaluate(path, engine=engine, **ROLES) for engine in ("duckdb", "numpy"))
    one, other = aggregated.only.profile(), loaded.only.profile()
    for part in (
        "answered",
        "wrong",
        "selective_risk",
        "selective_low",
        "selective_high",
        "generalized_high",
    ):
        np.testing.assert_allclose(
            getattr(one.points["c"], part), getattr(other.points["c"], part), rtol=1e-9
        )
    np.testing.assert_allclose(one.reliability["c"].high, other.reliability["c"].high, rtol=1e-9)
    np.testing.assert_allclose(one.optimal.selective_risk[-1], other.optimal.selective_risk[-1], rtol=1e-9)


def test_a_rule_counts_rows_and_not_row_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth,prediction\n" + "Paris,I don't know\n" * 6 + "Paris,Rome\n" * 14)
    for engine in ("numpy", "duckdb"):
        found = abstain.evaluate(path, engine=engine, abstain_rule="phrases:I don't know", metrics="accuracy")
        rule = found.only.provenance["abstention_rule"]
        assert (rule["abstained"], rule["answered"]) == (6, 14), engine


def test_the_error_for_a_damaged_file_does_not_quote_duckdb(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame(20_000).write_parquet(path, compression="snappy")
    content = bytearray(path.read_bytes())
    for place in range(1_000, len(content) - 4_000, 37):
        content[place] ^= 255
    path.write_bytes(content)
    for engine in ("numpy", "duckdb"):
        with pytest.raises(FormatError, match=r"t.parquet: the Parquet file is damaged or cut off \(\w+\)"):
            abstain.evaluate(path, engine=engine, **ROLES)


@pytest.mark.parametrize("large", [False, True])
def test_confidences_of_32_bits_have_the_same_numbers_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    if large:
        monkeypatch.setattr(_row_query, "FEW_ROWS", 1000)
        monkeypatch.setattr(_row_query, "HEAD", 4000)
    table = frame(4000, continuous=True).with_columns(pl.col("c").cast(pl.Float32))
    path = written(table, tmp_path / "t.parquet")
    aggregated, loaded = (abstain.evaluate(path, engine=engine, **ROLES) for engine in ("duckdb", "numpy"))
    assert aggregated.only.population == loaded.only.population
    # In large tables, confidences are rounded to ten leading bits.
    tolerance = 1e-3 if large else 1e-12
    assert aggregated["c"].aurc.value == pytest.approx(loaded["c"].aurc.value, abs=tolerance)


def test_a_statement_that_duckdb_rejects_is_not_reported_as_a_damaged_file(tmp_path: Path) -> None:
    path = written(frame(20), tmp_path / "t.parquet")
    table = countable(path, engine="duckdb", **ROLES).aggregate().query.table
    for statement in ("SELECT no_such_column FROM range(3)", "SELECT CAST('text' AS DOUBLE)", "SELECT FROM"):
        with pytest.raises(RuntimeError, match=r"t.parquet: DuckDB rejected a statement of abstain \(\w+\)"):
            table.rows_of(statement)


@pytest.mark.nightly
def test_aggregating_more_rows_needs_no_more_memory(tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415

    path = tmp_path / "big.parquet"
    duckdb.sql(
        "COPY (SELECT i % 2 AS label, CASE WHEN i % 5 = 0 THEN 1 ELSE i % 2 END AS pred, (i % 100) / 100 AS prob, "
        f"i // 10 AS patient FROM range(3000000) t(i)) TO '{path}' (FORMAT parquet)"
    )
    program = (
        "import sys, abstain; "
        "found = abstain.evaluate(sys.argv[1], truth='label', prediction='pred', confidence='prob', engine='duckdb'); "
        "print(found.population.items, found.population.total, len(found['prob'].curve))"
    )
    printed, kilobytes = run_measured(program, path)
    assert printed == "3000000 300000 100"
    assert kilobytes < 500_000


def test_groups_are_those_of_the_definition() -> None:
    ids = np.array([7, -7, 10**17])
    expected = [number % 2147483647 * 62089911 % 2147483647 % 200 for number in ids.tolist()]
    assert _units.group_of(ids).tolist() == expected
    # The prime does not fit into small integer types.
    few = np.arange(-100, 100)
    assert _units.group_of(few.astype(np.int8)).tolist() == _units.group_of(few).tolist()


@pytest.mark.slow
def test_the_progress_of_a_query_is_reported() -> None:
    told: list[float] = []
    connection = _sql.connect()
    with _sql.watched(told.append):
        found = _sql.run(
            lambda: connection.sql("SELECT sum(i % 7) FROM range(400000000) t(i)").fetchall(), connection
        )
    assert found[0][0] > 0
    assert bool(told) is hasattr(connection, "query_progress")
    assert max(told, default=0.0) <= 100.0
    before = len(told)
    _sql.run(lambda: connection.sql("SELECT sum(i % 7) FROM range(100000000) t(i)").fetchall(), connection)
    assert len(told) == before


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_cluster_is_an_error_also_without_intervals(tmp_path: Path, form: str) -> None:
    columns = {"t": [1, 0, 1], "p": [1, 0, 0], "confidence": [0.9, 0.8, 0.7], "g": ["a", "nan", None]}
    path = written(pl.DataFrame(columns), tmp_path / f"t.{form}")
    for engine in ("numpy", "duckdb"):
        with pytest.raises(
            DataError, match=with_row_numbers(form, "the column 'g' is empty or nan at <2>; every row needs")
        ):
            abstain.evaluate(path, engine=engine, truth="t", prediction="p", cluster="g", interval="none")


def test_percent_is_detected_by_every_engine(tmp_path: Path) -> None:
    stated = [95, 80, 60, 40, 20, 10]
    table = pl.DataFrame(
        {"truth": [1, 0, 1, 0, 1, 0], "prediction": [1, 0, 1, 1, 0, 1], "confidence": stated}
    )
    path = written(table, tmp_path / "t.csv")
    aggregated, loaded = (abstain.evaluate(path, engine=engine) for engine in ("duckdb", "numpy"))
    assert aggregated.only.provenance["percent"] == loaded.only.provenance["percent"] == ("confidence",)
    assert_same(aggregated, loaded)
    assert aggregated["confidence"].curve.threshold[0] == 0.95


@pytest.mark.parametrize("seed", range(6))
def test_confidences_with_the_same_values_are_distinguished(tmp_path: Path, seed: int) -> None:
    """Their cells have the same numbers, but represent different rows."""
    rng = np.random.default_rng(seed)
    truth, sure = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    right = rng.random(400) < np.where(sure == 1, 0.95, 0.5)
    columns = {
        "truth": truth,
        "prediction": np.where(right, truth, 1 - truth),
        "a": sure,
        "b": rng.permutation(sure),
    }
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    for interval in ("none", "jackknife"):
        arguments: dict[str, Any] = {"confidence": ["a", "b"], "interval": interval}
        aggregated = abstain.evaluate(path, engine="duckdb", **arguments)
        loaded = abstain.evaluate(path, engine="numpy", **arguments)
        assert_same(aggregated, loaded)
        assert aggregated["a"].aurc.value < aggregated["b"].aurc.value
        one, other = aggregated.only.profile(), loaded.only.profile()
        assert (one.leader, list(one.contrasts)) == (other.leader, list(other.contrasts)) == ("a", ["b"])


@pytest.mark.parametrize("interval", ["none", "jackknife"])
def test_the_default_loss_depends_on_all_labels(tmp_path: Path, interval: str) -> None:
    """So does the warning that no answer is right. Merged row types do not change them."""
    columns = {"truth": ["1", "2", "1"], "prediction": ["2", "x", "2"], "confidence": [0.1, 0.2, 0.3]}
    path = written(pl.DataFrame(columns), tmp_path / "t.csv")
    aggregated, loaded = (
        abstain.evaluate(path, engine=engine, interval=interval) for engine in ("duckdb", "numpy")
    )
    assert_same(aggregated, loaded)
    assert "never_equal" in {warning.code for warning in aggregated.warnings}
    assert aggregated.loss is not None
    assert loaded.loss is not None
    assert aggregated.loss.rule == loaded.loss.rule == "loss zero_one: text labels, no scale declared"


def test_the_error_for_invalid_guidance_is_the_same_in_every_engine(tmp_path: Path) -> None:
    columns = {"truth": [1, 0], "prediction": [1, 1], "should_abstain": ["perhaps", "no"]}
    path = written(pl.DataFrame(columns), tmp_path / "t.parquet")
    for engine in ("numpy", "duckdb"):
        with pytest.raises(DataError, match="should_abstain must be True or False, got text"):
            abstain.evaluate(path, engine=engine, metrics="abstention_f1", metadata=["should_abstain"])


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_file_among_many_has_no_rows(tmp_path: Path, form: str) -> None:
    table = frame(4000, clusters=1400)
    for place, part in enumerate((table[:400], table[:0], table[400:])):
        written(part, tmp_path / f"{place}.{form}")
    pattern = str(tmp_path / f"*.{form}")
    told: list[Any] = []
    for engine in ("duckdb", "numpy"):
        try:
            told.append(abstain.evaluate(pattern, engine=engine, **ROLES))
        except DataError as problem:  # an empty JSONL file has no columns
            told.append(str(problem))
    if isinstance(told[1], str):
        assert told[0] == told[1]
        assert f"1.{form}" in told[0]
    else:
        assert_same(*told)
        assert told[0].only.population.items == len(table.filter(pl.col("t").is_not_null() & ~pl.col("f")))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("change", ["renamed", "further", "retyped", "reordered"])
def test_a_schema_that_differs_between_files_means_the_same(tmp_path: Path, form: str, change: str) -> None:
    table = frame(4000, clusters=1400)
    changed = {
        "renamed": table.rename({"p": "said"}),
        "further": table.with_columns(more=pl.lit(1.5)),
        "retyped": table.with_columns(pl.col("patient_id").cast(pl.String), pl.col("t").cast(pl.Float32)),
        "reordered": table.select(reversed(table.columns)),
    }[change]
    written(table[:500], tmp_path / f"0.{form}")
    written(changed[500:], tmp_path / f"1.{form}")
    told: list[Any] = []
    for engine in ("duckdb", "numpy"):
        try:
            told.append(abstain.evaluate(str(tmp_path / f"*.{form}"), engine=engine, **ROLES))
        except (ArgumentError, DataError, FormatError) as problem:
            told.append((type(problem), str(problem)))
    if isinstance(told[1], tuple):
        assert told[0] == told[1]
        assert form in told[0][1]
    else:
        assert_same(*told)
    assert isinstance(told[1], tuple) == (
        change == "renamed" or (change in ("reordered", "further") and form == "csv")
    )


def test_a_cluster_column_of_mixed_types_contains_names(tmp_path: Path) -> None:
    table = frame(4000, clusters=1400).with_columns(pl.col("patient_id").cast(pl.String))
    mixed = [name if place % 3 else f"p{name}" for place, name in enumerate(table["patient_id"].to_list())]
    lines = [
        {**row, "patient_id": name if name.startswith("p") else int(name)}
        for row, name in zip(table.to_dicts(), mixed, strict=True)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert_same(
        abstain.evaluate(path, engine="duckdb", **ROLES), abstain.evaluate(path, engine="numpy", **ROLES)
    )


def test_clusters_that_are_whole_numbers_are_grouped(tmp_path: Path) -> None:
    path = written(frame(1500, clusters=1500), tmp_path / "t.parquet")
    arguments: dict[str, Any] = {**ROLES, "metrics": ["accuracy", "augrc"], "by": "site"}
    loaded = abstain.evaluate(path, engine="numpy", **arguments)
    assert_same(abstain.evaluate(path, engine="duckdb", **arguments), loaded)


@pytest.mark.parametrize("clusters", [40, 1400])
@pytest.mark.parametrize("binned", [False, True])
def test_a_null_signal_counts_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusters: int, binned: bool
) -> None:
    """A null stated confidence is the middle of its scale; any other requested signal must not be null."""
    rng = np.random.default_rng(8)
    stated = [
        None if value > 4.8 else value for value in rng.uniform(1, 5, 1500).round(1 if not binned else 9)
    ]
    table = frame(1500, clusters=clusters)[:, ["t", "p", "patient_id"]].drop_nulls()
    table = table.with_columns(pl.Series("verbalized_confidence", stated[: len(table)]))
    path = written(table, tmp_path / "t.csv")
    if binned:
        monkeypatch.setattr(_row_query, "HEAD", 16)
        monkeypatch.setattr(_row_query, "FEW_ROWS", 100)
        monkeypatch.setattr(_row_query, "_FEW_VALUES", 8)
    arguments: dict[str, Any] = {"truth": "t", "prediction": "p", "cluster": "patient_id"}
    aggregated, loaded = (
        abstain.evaluate(path, engine=engine, confidence="verbalized", **arguments)
        for engine in ("duckdb", "numpy")
    )
    if binned:
        assert aggregated["verbalized"].aurc.value == pytest.approx(loaded["verbalized"].aurc.value, abs=2e-3)
        assert aggregated["verbalized"].augrc.high == pytest.approx(loaded["verbalized"].augrc.high, abs=2e-3)
    else:
        assert_same(aggregated, loaded)
    first = next(place for place, value in enumerate(stated) if value is None) + 2
    missing = sum(value is None for value in stated[: len(table)])
    for engine in ("duckdb", "numpy"):
        with pytest.raises(SignalError, match="'verbalized_confidence' is missing") as problem:
            abstain.evaluate(path, engine=engine, confidence="verbalized_confidence", **arguments)
        assert f"line {first} of {path} ({missing} such items)" in str(problem.value)


@pytest.mark.parametrize("form", FORMS)
def test_the_error_for_a_weight_that_is_too_large_names_its_row(tmp_path: Path, form: str) -> None:
    columns = {
        "truth": [1, 1, 0],
        "prediction": [1, 0, 0],
        "confidence": [0.5, 0.6, 0.3],
        "w": [1.0, 1e301, 1.0],
    }
    path = written(pl.DataFrame(columns), tmp_path / f"t.{form}")
    for engine in ("numpy", "duckdb"):
        expected = with_row_numbers(
            form, r"weight \(w\): weight must be at most 1e\+100, .* at <1>; scale it down"
        )
        with pytest.raises(DataError, match=expected):
            abstain.evaluate(path, engine=engine, weight="w")
