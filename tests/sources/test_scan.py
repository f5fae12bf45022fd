from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import abstain
from abstain import ArgumentError, DataError, FormatError
from memory import run_measured

if TYPE_CHECKING:
    from pathlib import Path

ROLES: dict[str, Any] = {
    "truth": "t",
    "prediction": "p",
    "confidence": "c",
    "abstained": "a",
    "failed": "f",
    "cluster": "patient_id",
}


def frame(count: int = 500, *, labels: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, count).astype(float)
    truth[rng.random(count) < 0.05] = np.nan
    declined = rng.random(count) < 0.2
    failed = ~declined & (rng.random(count) < 0.05)
    prediction = rng.integers(0, 4, count).astype(float)
    prediction[declined | failed] = np.nan
    confidence = np.where(declined, np.nan, rng.integers(0, 6, count) / 5)
    columns: dict[str, Any] = {"t": truth, "p": prediction, "c": confidence, "a": declined, "f": failed}
    columns["patient_id"] = rng.integers(0, 40, count)
    found = pl.DataFrame(columns).with_columns(pl.col("t", "p", "c").fill_nan(None))
    if labels:
        names = pl.col("t", "p").replace_strict({0.0: "a", 1.0: " B", 2.0: "b", 3.0: "c"}, default=None)
        found = found.with_columns(names)
    return found


@pytest.mark.parametrize("loss", ["abs", "abs_norm", "zero_one"])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_scanning_gives_what_reading_gives(tmp_path: Path, loss: str, form: str) -> None:
    path = tmp_path / f"t.{form}"
    getattr(frame(), f"write_{'ndjson' if form == 'jsonl' else form}")(path)
    roles = {**ROLES, "scale": (0, 3)} if loss == "abs_norm" else ROLES
    scanned = abstain.scan(path, **roles, loss=loss, coverage_grid=(0.1, 0.5, 1.0))
    items = abstain.read(path, **roles)
    whole = abstain.evaluate(items, confidence="c", loss=loss, resamples=0, coverage_grid=(0.1, 0.5, 1.0))
    assert scanned.population == whole.population
    for figure in ("cmax", "aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable", "aurc_at_coverage"):
        left, right = getattr(scanned["c"], figure), getattr(whole["c"], figure)
        assert left.value == pytest.approx(right.value, rel=1e-12), figure
        assert left.n == right.n
    np.testing.assert_allclose(scanned["c"].curve.selective_risk, whole["c"].curve.selective_risk)
    np.testing.assert_allclose(scanned["c"].curve.coverage, whole["c"].curve.coverage)
    assert scanned["c"].ties.worst == pytest.approx(whole["c"].ties.worst)
    assert scanned["c"].ties.tied_share == whole["c"].ties.tied_share
    for coverage, risk in scanned["c"].risk_at_coverage.items():
        assert risk.value == pytest.approx(whole["c"].risk_at_coverage[coverage].value, nan_ok=True)


def test_labels_are_compared_as_everywhere(tmp_path: Path) -> None:
    frame(labels=True).write_csv(tmp_path / "t.csv")
    scanned = abstain.scan(tmp_path / "t.csv", **ROLES)
    whole = abstain.evaluate(
        abstain.read(tmp_path / "t.csv", **ROLES), confidence="c", loss="zero_one", resamples=0
    )
    assert scanned["c"].aurc.value == pytest.approx(whole["c"].aurc.value)
    with pytest.raises(DataError, match="this loss needs numbers"):
        abstain.scan(tmp_path / "t.csv", **ROLES, loss="abs")


def test_an_outcome_column_is_understood(tmp_path: Path) -> None:
    items = abstain.read(frame(), **ROLES)
    items.to_parquet(tmp_path / "items.parquet")
    scanned = abstain.scan(tmp_path / "items.parquet", confidence="c", loss="abs")
    whole = abstain.evaluate(items, confidence="c", loss="abs", resamples=0)
    assert scanned.population == whole.population
    assert scanned["c"].augrc.value == pytest.approx(whole["c"].augrc.value)


def test_what_cannot_be_scanned(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame({"t": [1, 0], "p": [1, None], "c": [0.5, 0.2]}).write_parquet(path)
    roles: dict[str, Any] = {"truth": "t", "prediction": "p", "confidence": "c"}
    with pytest.raises(DataError, match=r"prediction \(p\) is missing in 1 row and nothing says why"):
        abstain.scan(path, **roles)
    assert abstain.scan(path, **roles, null_prediction="abstained").population.abstained == 1
    assert abstain.scan(path, **roles, null_prediction="failed").population.items_failed == 1
    with pytest.raises(ArgumentError, match="which column is the confidence"):
        abstain.scan(path, truth="t", prediction="p")
    pl.DataFrame({"t": [1, 0], "p": [1, 0], "c": [0.5, None]}).write_parquet(path)
    with pytest.raises(
        DataError, match=r"confidence \(c\) is missing or not finite for an answered item in 1 row"
    ):
        abstain.scan(path, **roles)
    pl.DataFrame({"t": [1, 0], "p": [1, 0], "c": ["a", "b"]}).write_parquet(path)
    with pytest.raises(
        DataError, match=r"holds text \(first in 1 row\), and a confidence or signal needs numbers"
    ):
        abstain.scan(path, **roles)
    pl.DataFrame({"t": [1, 0], "p": [1, 0], "c": [1, 2], "abstained": [True, None]}).write_parquet(path)
    with pytest.raises(DataError, match="must (hold true or false|say answered).* does not in 1 row"):
        abstain.scan(path, **roles)
    with pytest.raises(ArgumentError, match="only tables of one format are scanned, not run file"):
        abstain.scan("tests/data/examples/run_a.json")


def test_a_scan_refuses_what_reading_refuses(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("truth,prediction,confidence,abstained\n1,1,0.5,0\n1,0,0.4,2\n")
    with pytest.raises(DataError, match="'abstained' must hold true or false"):
        abstain.read(path, abstained="abstained")
    with pytest.raises(DataError, match="must (hold true or false|say answered).* does not in 1 row"):
        abstain.scan(path, abstained="abstained")
    for door in (abstain.read, abstain.scan):
        with pytest.raises(ArgumentError, match="unknown format 'xml'"):
            door(path, format="xml")
        with pytest.raises(ArgumentError, match="unknown null_prediction 'asked'; known: abstained, failed"):
            door(path, null_prediction="asked")
    for place in (path, path.with_name("u.csv")):
        place.write_text("truth,prediction,confidence\n1,1,0.5\n")
    assert len(abstain.read(part for part in (path, path.with_name("u.csv")))) == 2
    assert abstain.scan(part for part in (path, path.with_name("u.csv"))).population.items == 2
    path.write_text("truth,prediction,confidence,outcome\n1,1,0.5,Answered\n")
    with pytest.raises(DataError, match="must (hold true or false|say answered).* does not in 1 row"):
        abstain.scan(path)
    with pytest.raises(ArgumentError, match="only tables of one format are scanned, not data frame"):
        abstain.scan(frame())


def test_a_damaged_file_is_refused_in_our_own_words(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame(20_000).write_parquet(path, compression="snappy")
    content = bytearray(path.read_bytes())
    for place in range(1_000, len(content) - 4_000, 37):
        content[place] ^= 255
    path.write_bytes(content)
    for door in (abstain.read, abstain.scan):
        with pytest.raises(FormatError, match=r"t.parquet: the Parquet file is damaged or cut off \(\w+\)"):
            door(path, **ROLES)


def test_a_scan_needs_no_more_memory_for_more_rows(tmp_path: Path) -> None:
    import duckdb  # noqa: PLC0415

    path = tmp_path / "big.parquet"
    duckdb.sql(
        "COPY (SELECT i % 2 AS label, CASE WHEN i % 5 = 0 THEN 1 ELSE i % 2 END AS pred, (i % 100) / 100 AS prob, "
        f"i // 10 AS patient FROM range(3000000) t(i)) TO '{path}' (FORMAT parquet)"
    )
    program = (
        "import sys, abstain; "
        "found = abstain.scan(sys.argv[1], truth='label', prediction='pred', confidence='prob'); "
        "print(found.population.items, found.population.total, len(found['prob'].curve))"
    )
    printed, kilobytes = run_measured(program, path)
    assert printed == "3000000 300000 100"
    assert kilobytes < 400_000
