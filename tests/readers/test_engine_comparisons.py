"""Comparisons of aggregated tables: matched by name in the engine, with the same numbers as loaded tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from test_engines import FORMS, frame, written

import abstain
from abstain import AbstainError
from abstain.errors import AggregationError, DataError
from abstain.readers import engines

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
    "item": "name",
}


def better(table: pl.DataFrame, proportion: float = 0.2, *, seed: int = 5) -> pl.DataFrame:
    """Return another system on the same items, with more right answers, other failures and other confidences."""
    rng = np.random.default_rng(seed)
    count = len(table)
    corrected, truth = rng.random(count) < proportion, table["t"].fill_null(0.0).to_numpy()
    declined = table["a"].to_numpy() & (rng.random(count) < 0.7)
    failed = ~declined & (rng.random(count) < 0.03)
    sure = np.where(declined, np.nan, rng.integers(0, 5, count) / 4)
    changed = {
        "p": np.where(corrected, truth, table["p"].to_numpy()),
        "a": declined,
        "f": failed,
        "c": sure,
    }
    columns = [pl.Series(name, values) for name, values in changed.items()]
    return (
        table.with_columns(columns)
        .with_columns(pl.col("c").fill_nan(None))
        .sample(fraction=1.0, shuffle=True, seed=seed)
    )


def pair(count: int = 4000, *, clusters: int = 40) -> dict[str, pl.DataFrame]:
    table = frame(count, clusters=clusters).with_columns(name=pl.int_range(pl.len()) * 7 % 10_007)
    return {"old": table, "new": better(table)}


def files(tables: dict[str, pl.DataFrame], folder: Path, form: str = "parquet") -> dict[str, Any]:
    return {name: written(table, folder / f"{name}.{form}") for name, table in tables.items()}


def assert_same_comparison(found: Result, expected: Result, tolerance: float = 1e-12) -> None:
    """Compare every number and sentence of two comparisons."""
    assert found.matching == expected.matching
    assert found.differences
    for one, other in zip(found.differences, expected.differences, strict=True):
        for part in ("metric", "confidence", "group", "left", "right", "verdict", "sentence", "family"):
            assert getattr(one, part) == getattr(other, part), (one, part)
        for part in ("value", "low", "high", "se", "degrees"):
            ends = getattr(one.estimate, part), getattr(other.estimate, part)
            assert ends[0] == pytest.approx(ends[1], rel=tolerance, abs=tolerance, nan_ok=True), (one, part)
        assert one.p_adjusted == pytest.approx(other.p_adjusted, rel=1e-9, abs=1e-12, nan_ok=True)
    for name, system in found.systems.items():
        assert system.population == expected.systems[name].population
        for key, estimate in system.estimates.items():
            assert estimate.value == pytest.approx(
                expected.systems[name].estimates[key].value, rel=tolerance, abs=tolerance, nan_ok=True
            )
    assert found.ranks == expected.ranks
    assert found.warnings == expected.warnings


def compared(systems: dict[str, Any], engine: str | None, **arguments: Any) -> Result:
    return abstain.compare(systems, engine=engine, **{**ROLES, **arguments})


QUESTIONS: dict[str, dict[str, Any]] = {
    "selective": {},
    "no intervals": {"interval": "none"},
    "a metric by group": {"metrics": ["accuracy", "augrc"], "by": "site"},
    "no loss is needed": {"metrics": ["answer_rate", "macro_f1"]},
    "weights": {"weight": "times"},
    "another loss": {"loss": "abs", "margin": 0.01},
    "a scale": {"scale": (0, 3)},
    "a confidence for each": {"confidence": {"old": "c", "new": "d"}},
    "other names": {"item": "word"},
    "only items": {"cluster": None},
}


@pytest.mark.parametrize("clusters", [40, 1400])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_request_has_the_same_result(tmp_path: Path, question: str, clusters: int) -> None:
    tables = pair(clusters=clusters)
    tables = {name: table.with_columns(word=pl.format("item {}", "name")) for name, table in tables.items()}
    if question == "only items":
        tables = {name: table.drop("patient_id") for name, table in tables.items()}
    systems, arguments = files(tables, tmp_path), QUESTIONS[question]
    loaded = compared(systems, "numpy", **arguments)
    assert_same_comparison(compared(systems, "duckdb", **arguments), loaded)
    assert loaded.matching is not None
    assert loaded.matching.evaluated < loaded.matching.shared == len(tables["old"])


@pytest.mark.parametrize("form", FORMS)
def test_tables_of_different_formats_are_compared(tmp_path: Path, form: str) -> None:
    tables = pair(clusters=1400)
    systems = {
        "old": written(tables["old"], tmp_path / "old.parquet"),
        "new": written(tables["new"], tmp_path / f"new.{form}"),
    }
    aggregated = compared(systems, "duckdb", metrics=["aurc", "accuracy"])
    assert_same_comparison(aggregated, compared(systems, "numpy", metrics=["aurc", "accuracy"]))
    assert aggregated.systems["new"].provenance["engine"] == "duckdb"


def test_three_systems_are_compared_at_once(tmp_path: Path) -> None:
    tables = pair(clusters=1400)
    systems = files({**tables, "other": better(tables["old"], 0.4, seed=8)}, tmp_path)
    aggregated = compared(systems, "duckdb", metrics=["augrc"], simultaneous=True)
    assert_same_comparison(aggregated, compared(systems, "numpy", metrics=["augrc"], simultaneous=True))
    assert len(aggregated.ranks) > 2


def test_tables_are_not_restricted_if_every_row_matches(tmp_path: Path) -> None:
    tables = {
        name: table.filter(pl.col("t").is_not_null()).with_columns(f=pl.lit(False))
        for name, table in pair(clusters=1400).items()
    }
    systems = files(tables, tmp_path)
    aggregated = compared(systems, "duckdb")
    assert_same_comparison(aggregated, compared(systems, "numpy"))
    assert aggregated.matching is not None
    assert aggregated.matching.evaluated == aggregated.matching.total


def test_items_that_a_system_lacks_are_left_out_on_request(tmp_path: Path) -> None:
    tables = pair(clusters=60)
    tables["new"] = tables["new"].filter(pl.col("patient_id") > 5).head(1200)
    tables["old"] = tables["old"].filter(pl.col("patient_id") < 57)
    systems = files(tables, tmp_path)
    aggregated = compared(systems, "duckdb", intersection_only=True)
    assert_same_comparison(aggregated, compared(systems, "numpy", intersection_only=True))
    assert aggregated.matching is not None
    assert aggregated.matching.clusters_unmatched["old"] > 0
    assert aggregated.matching.clusters_unmatched["new"] > 0


@pytest.mark.parametrize("named", ["old", "new"])
@pytest.mark.parametrize("clusters", [40, 1400])
def test_the_clusters_of_one_table_are_used_for_all(tmp_path: Path, named: str, clusters: int) -> None:
    tables = {
        name: table if name == named else table.drop("patient_id")
        for name, table in pair(clusters=clusters).items()
    }
    systems = files(tables, tmp_path)
    aggregated = compared(systems, "duckdb", cluster=None)
    assert_same_comparison(aggregated, compared(systems, "numpy", cluster=None))
    assert aggregated.matching is not None
    assert aggregated.matching.by == ("item",)
    assert aggregated.systems["old"].cluster_noun == "patient"


def test_items_need_no_names_if_each_cluster_has_one_item(tmp_path: Path) -> None:
    tables = {name: table.unique("patient_id").drop("name") for name, table in pair(clusters=1400).items()}
    systems = files(tables, tmp_path)
    arguments = {"item": None, "intersection_only": True, "truth_may_differ": True}
    aggregated = compared(systems, "duckdb", **arguments)
    assert_same_comparison(aggregated, compared(systems, "numpy", **arguments))
    assert aggregated.matching is not None
    assert aggregated.matching.by == ("cluster",)
    assert aggregated.matching.different_truths > 0


@pytest.mark.parametrize("cluster", ["patient_id", None])
def test_rows_are_matched_by_their_order(tmp_path: Path, cluster: str | None) -> None:
    tables = {
        name: table.sort("name").drop("name", *(() if cluster else ("patient_id",)))
        for name, table in pair(clusters=1400).items()
    }
    systems = files(tables, tmp_path)
    arguments = {"item": None, "cluster": cluster, "match": "rows"}
    assert_same_comparison(compared(systems, "duckdb", **arguments), compared(systems, "numpy", **arguments))
    written(tables["new"].head(1000), tmp_path / "new.parquet")
    assert_same_error(
        systems, "rows can only be matched by their order if the systems have equally many", **arguments
    )


@pytest.mark.parametrize(
    "named",
    [
        lambda number: f"{number}",
        lambda number: f"{number}.0",
        float,
        lambda number: f"{number:06d}",
        lambda number: f"{10**20 + number}",
        lambda number: f"item {number}" if number % 2 else f"{number}",
    ],
)
def test_names_match_however_they_are_stored(tmp_path: Path, named: Any) -> None:
    tables = pair(clusters=1400)
    for form, name in (("parquet", "old"), ("csv", "new")):
        column = pl.Series("name", [named(number) for number in tables[name]["name"].to_list()])
        written(tables[name].with_columns(column), tmp_path / f"{name}.{form}")
    systems = {"old": tmp_path / "old.parquet", "new": tmp_path / "new.csv"}
    assert_same_comparison(
        compared(systems, "duckdb", metrics="augrc"), compared(systems, "numpy", metrics="augrc")
    )


def test_continuous_confidences_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame(6000, clusters=1400, continuous=True).with_columns(name=pl.int_range(pl.len()))
    systems = files({"old": table, "new": better(table).with_columns(c=pl.col("c") / 2)}, tmp_path)
    exact = compared(systems, "numpy", metrics="augrc")
    assert_same_comparison(compared(systems, "duckdb", metrics="augrc"), exact)
    monkeypatch.setattr("abstain.readers._row_query.FEW_ROWS", 1000)
    monkeypatch.setattr("abstain.readers._row_query.HEAD", 4000)
    binned = compared(systems, "duckdb", metrics="augrc")
    assert binned.differences[0].estimate.value == pytest.approx(
        exact.differences[0].estimate.value, abs=1e-3
    )
    assert binned.differences[0].estimate.low == pytest.approx(exact.differences[0].estimate.low, abs=1e-3)


def assert_same_error(systems: dict[str, Any], expected: str, **arguments: Any) -> None:
    """Check that loading and aggregating raise the same error."""
    errors = []
    for engine in ("numpy", "duckdb"):
        with pytest.raises(AbstainError, match=expected) as caught:
            compared(systems, engine, **arguments)
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_errors_of_matching_are_the_same_in_every_engine(tmp_path: Path, form: str) -> None:
    tables = pair(1500, clusters=50)
    old, new = tables["old"], tables["new"]

    def against(other: pl.DataFrame, expected: str, **arguments: Any) -> None:
        assert_same_error(files({"old": old, "new": other}, tmp_path, form), expected, **arguments)

    against(
        new.filter(pl.col("name") != 21),
        r"of 1500 items new lacks 1 \(the first one that new lacks: patient \d+, item 21 of",
    )
    against(new.with_columns(pl.col("name") + 50_000), "have no item in common", intersection_only=True)
    against(
        new.with_columns(t=(pl.col("t") + 1) % 4), "disagree about the truth of 1[0-9]+ of 1500 shared items"
    )
    against(
        pl.concat([new, new[[3, 9]]]),
        r"the item ids \(name\) must be unique within one patient_id; there is a duplicate at (line|row) 150",
    )
    against(new.with_columns(name=pl.format("x{}", "name")), "items are numbers in old and text in new")
    against(
        new.with_columns(f=pl.lit(True), a=pl.lit(False)),
        "new: there is no item to evaluate: none is answered or abstained",
    )
    against(
        new.with_columns(f=~pl.col("f"), a=pl.lit(False)).filter(pl.col("f")), "there is no item to evaluate"
    )
    against(
        new.with_columns(name=pl.when(pl.col("name") == 21).then(None).otherwise(pl.col("name"))),
        "the column 'name' is empty or nan at (line|row)",
    )
    against(new.drop("name"), "(has no column 'name'|items have no names)")
    against(
        new.drop("name"),
        "patient [0-9]+, (row|line) [0-9]+ of .* appears twice; the items have no names",
        item=None,
    )


def test_items_without_any_name_are_not_matched(tmp_path: Path) -> None:
    systems = files({name: table.drop("name", "patient_id") for name, table in pair().items()}, tmp_path)
    assert_same_error(systems, "the items have no names, and rows are not matched", item=None, cluster=None)


def test_an_item_that_is_unique_only_within_its_cluster_is_a_duplicate(tmp_path: Path) -> None:
    """It is unique within its cluster, but the other table has no clusters."""
    tables = pair(clusters=50)
    tables["old"] = tables["old"].with_columns(name=pl.col("name").rank("ordinal").over("patient_id"))
    tables["new"] = tables["new"].drop("patient_id")
    assert_same_error(
        files(tables, tmp_path), "old: patient [0-9]+, item [0-9]+ of .* appears twice", cluster=None
    )


def test_one_large_table_lets_all_tables_be_aggregated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = pair()
    systems = files({"old": tables["old"], "new": tables["new"].head(40)}, tmp_path)
    monkeypatch.setattr(engines, "AGGREGATED_ROWS", 100)
    assert len(tables["old"]) > 100
    aggregated = compared(systems, None, intersection_only=True, metrics="augrc")
    assert {system.provenance["engine"] for system in aggregated.systems.values()} == {"duckdb"}
    # If one of them cannot be aggregated, all are loaded.
    loaded = compared(
        {"old": systems["old"], "new": tables["new"].head(40)}, None, intersection_only=True, metrics="augrc"
    )
    assert all("engine" not in system.provenance for system in loaded.systems.values())
    assert_same_comparison(aggregated, loaded)


def test_a_gate_gives_the_same_verdict(tmp_path: Path) -> None:
    systems = files(pair(clusters=1400), tmp_path)
    conditions = ["augrc worse by 0.01", "accuracy below 0.9", "augrc at matched coverage better by 0.001"]
    gates = [
        abstain.gate(systems["new"], conditions, baseline=systems["old"], engine=engine, **ROLES)
        for engine in ("duckdb", "numpy")
    ]
    items = {name: abstain.read(path, **ROLES) for name, path in systems.items()}
    gates.append(abstain.gate(items["new"], conditions, baseline=items["old"], confidence="c"))
    verdicts = [
        (
            [(check.verdict, check.sentence) for check in each.checks],
            *(each.clusters, each.compared, each.cluster_noun, each.confidence, each.warnings),
        )
        for each in gates
    ]
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert gates[0].verdict == "fail"
    assert [each["engine"] for each in gates[0].provenance] == ["duckdb", "duckdb"]


def test_a_gate_with_a_risk_guarantee_needs_every_row(tmp_path: Path) -> None:
    path = written(pair()["old"], tmp_path / "t.parquet")
    policy = abstain.choose_threshold(abstain.read(path, **ROLES), risk=0.6, confidence="c")
    tables = engines.engine_tables({"run": path}, engine="duckdb", **ROLES)
    assert tables is not None
    with pytest.raises(AggregationError, match="a policy is checked row by row; load the table"):
        abstain.gate(tables["run"], policy=policy)
    with pytest.raises(AggregationError, match="a policy is checked row by row; load the table"):
        abstain.gate(path, policy=policy, engine="duckdb", **ROLES)
    new = written(pair()["new"], tmp_path / "new.parquet")
    from_path = abstain.gate(new, policy=policy, **ROLES)
    assert repr(from_path) == repr(abstain.gate(abstain.read(new, **ROLES), policy=policy))


@pytest.mark.parametrize("form", FORMS)
def test_a_default_confidence_may_be_undefined_for_one_system(tmp_path: Path, form: str) -> None:
    columns: dict[str, Any] = {"truth": [1, 0, 1], "prediction": [1, 0, 0], "patient_id": [1, 2, 3]}
    sure = pl.DataFrame({**columns, "confidence": [0.9, None, 0.7]})
    tables = {"sure": sure, "unsure": pl.DataFrame(columns)}
    systems = files(tables, tmp_path, form)
    aggregated, loaded = (
        abstain.compare(systems, metrics=["augrc"], engine=engine) for engine in ("duckdb", "numpy")
    )
    assert_same_comparison(aggregated, loaded)
    words = aggregated.difference("sure", "unsure").sentence
    assert words.endswith(
        "augrc is undefined for sure: some answered rows have no confidence, so they cannot be ranked; "
        "choose another confidence"
    )


def test_the_type_of_labels_depends_on_all_rows(tmp_path: Path) -> None:
    """Only the compared rows would be numbers in one column and words in the other."""
    columns: dict[str, Any] = {
        "truth": ["01", "01", "02", "01"],
        "prediction": ["01", "no idea", "what?", "02"],
        "failed": [True, False, False, True],
        "item": [1, 2, 3, 4],
    }
    table = pl.DataFrame(columns)
    systems = files({"one": table, "other": table}, tmp_path)
    aggregated, loaded = (
        abstain.compare(systems, metrics=["accuracy"], engine=engine) for engine in ("duckdb", "numpy")
    )
    assert_same_comparison(aggregated, loaded)
    assert (aggregated.differences[0].left_value, aggregated.differences[0].estimate.n) == (0.0, 2)


def test_whether_a_confidence_is_percent_depends_on_all_rows(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"truth": [1, 0, 1, 0], "prediction": [1, 0, 0, 1], "confidence": [5, 3, 1, 80]}
    systems = files(
        {
            name: pl.DataFrame({**columns, "item": [1, 2, 3, last]})
            for name, last in (("one", 4), ("other", 5))
        },
        tmp_path,
    )
    arguments: dict[str, Any] = {"metrics": ["brier_score"], "intersection_only": True}
    aggregated, loaded = (
        abstain.compare(systems, engine=engine, **arguments) for engine in ("duckdb", "numpy")
    )
    assert_same_comparison(aggregated, loaded)
    # .95^2, .97^2 and .01^2: the rows with 80 are not compared.
    assert aggregated.differences[0].left_value == pytest.approx((0.9025 + 0.9409 + 0.0001) / 3)


@pytest.mark.parametrize("weights", ["whole", "fractional", "clusters of weight 0"])
@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_weights_have_one_meaning_in_every_engine(weights: str, unit: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    patient = np.repeat(np.arange(20), 4)
    weight = {
        "whole": rng.integers(0, 4, 80).astype(float),
        "fractional": np.where(rng.random(80) < 0.3, 0.0, 0.1 + rng.random(80)),
        "clusters of weight 0": np.where(patient < 5, 0.0, 2.0),
    }[weights]
    truth = rng.integers(0, 2, 80)
    table = pl.DataFrame(
        {
            "truth": truth,
            "prediction": truth ^ (rng.random(80) < 0.2),
            "confidence": rng.integers(0, 11, 80) / 10.0,
            "abstained": rng.random(80) < 0.2,
            "should_abstain": rng.random(80) < 0.3,
            "patient": patient,
            "weight": unit * weight,
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    metrics = ["aurc", "eaurc", "accuracy", "mean_absolute_error", "abstention_auroc", "balanced_accuracy"]
    duckdb, numpy = (
        abstain.evaluate(
            tmp_path / "t.parquet", engine=engine, metrics=metrics, cluster="patient", weight="weight"
        ).metrics
        for engine in ("duckdb", "numpy")
    )
    assert duckdb is not None
    assert numpy is not None
    for metric in metrics:
        assert duckdb[metric].value == pytest.approx(numpy[metric].value, rel=1e-9)
        assert duckdb[metric].interval == pytest.approx(numpy[metric].interval, rel=1e-7)
        assert duckdb[metric].clusters == numpy[metric].clusters


def test_a_check_counts_the_same_rows_in_every_engine(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "truth": [1, 0, 1, 1, 0],
            "prediction": [1, 1, 1, 0, 0],
            "confidence": [0.5, None, 0.7, 0.7, 0.2],
            "weight": [1, 0, 0, 2, 1],
            "patient": ["a", "a", "b", "c", "c"],
        }
    )
    table.write_parquet(tmp_path / "t.parquet")
    for engine in ("duckdb", "numpy"):
        checked = abstain.check(tmp_path / "t.parquet", engine=engine, weight="weight", cluster="patient")
        assert (checked.clusters.count, checked.clusters.smallest, checked.clusters.largest) == (2, 1, 2)
        assert checked.signals["confidence"].distinct == 3
        assert checked.signals["confidence"].tied_proportion == 0.0
        assert checked.problems == ()


def test_rows_of_weight_zero_do_not_match(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "truth": [1, 1, 0],
        "prediction": [1, 0, 0],
        "confidence": [0.5, 0.6, 0.3],
        "weight": [0, 0, 1],
    }
    systems = files(
        {name: pl.DataFrame({**columns, "item": [1, 2, last]}) for name, last in (("one", 3), ("other", 4))},
        tmp_path,
    )
    arguments: dict[str, Any] = {"metrics": ["augrc"], "weight": "weight", "intersection_only": True}
    for engine in ("duckdb", "numpy"):
        with pytest.raises(DataError, match="the systems have no item in common"):
            abstain.compare(systems, engine=engine, **arguments)


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_the_first_wrong_row_is_the_first_of_the_file(engine: str, tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {
            "t": [0] * 12,
            "p": [0] * 12,
            "c": [*[0.5] * 2, *[1.5] * 10],
            "patient_id": [f"p{row}" for row in range(12)],
        }
    )
    systems = files({"old": rows, "new": rows}, tmp_path)
    roles = {"truth": "t", "prediction": "p", "confidence": "c", "cluster": "patient_id"}
    with pytest.raises(
        DataError, match=r"got 1\.5 for patient p2, row 3 of .*old\.parquet \(10 such items\)"
    ):
        abstain.compare(systems, metrics=["brier_score"], engine=engine, **roles)
