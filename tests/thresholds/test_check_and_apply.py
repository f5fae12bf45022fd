"""A policy on new data: whether its risk guarantee is kept, its decisions, and drift of the data."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from jsonschema import Draft202012Validator

from abstain import ArgumentError, DataError, FormatError, Items, choose_threshold, read, read_policy
from abstain.calibrators import train
from abstain.thresholds import ANSWER, DEFER, apply_policy, check_policy, policy_schema, split_by_cluster
from guaranteed import drawn, promised_items

if TYPE_CHECKING:
    from pathlib import Path

    from abstain import Policy


@pytest.fixture(scope="module")
def policy() -> Policy:
    return choose_threshold(promised_items(300, seed=1), risk=0.12)


def test_kept_broken_and_inconclusive(policy: Policy) -> None:
    kept = policy.check(promised_items(400, seed=2, base=-3.5))
    assert kept.verdict == "kept"
    assert str(kept) == "The risk guarantee that at most 12% of answers are wrong is kept."
    assert kept.risk.high <= 0.12
    broken = policy.check(promised_items(400, seed=3, base=-2.0, effect=3.0))
    assert broken.verdict == "broken"
    assert str(broken) == "The risk guarantee that at most 12% of answers are wrong is broken."
    assert broken.risk.low > 0.12
    few = policy.check(promised_items(8, seed=4))
    assert few.verdict == "inconclusive"
    assert str(few) == (
        "Inconclusive: the data do not show whether the risk guarantee that at most 12% of answers are wrong is kept."
    )
    assert few.lines[1].startswith("Risk among answers ")
    assert "95% confidence intervals over 8 clusters" in few.lines[1]
    assert few.lines[-1].startswith(f"The policy answers {few.answered} of 48 items; ")


def test_the_risk_and_coverage_of_a_check_are_those_of_the_rows(policy: Policy) -> None:
    items = promised_items(100, seed=5)
    checked = policy.check(items)
    assert policy.threshold is not None
    answered = items.signals["confidence"].values >= policy.threshold
    wrong = items.truth != items.prediction
    assert checked.answered == answered.sum()
    assert checked.wrong == (answered & wrong).sum()
    assert checked.risk.value == pytest.approx(wrong[answered].mean())
    assert checked.coverage.value == pytest.approx(answered.mean())


def test_a_check_on_the_same_data_is_an_error(policy: Policy) -> None:
    with pytest.raises(ArgumentError, match="a check on them would be too optimistic"):
        policy.check(promised_items(300, seed=1))


@pytest.mark.parametrize("constant", [False, True])
def test_two_equal_halves_of_one_file_are_different_data(constant: bool) -> None:
    """60 patients with 8 items each, divided into 30 and 30; with a constant confidence the halves look the same."""
    items = promised_items(60, 8, seed=3, base=-20.0 if constant else -2.6).with_provenance(
        sha256="same file"
    )
    if constant:
        confidence = replace(items.signals["confidence"], values=np.full(480, 0.9))
        items = replace(items, signals={"confidence": confidence})
    first, second = split_by_cluster(items)
    assert len(first) == len(second) == 240
    policy = choose_threshold(first, risk=0.3)
    assert policy.check(second).items == 240
    with pytest.raises(ArgumentError, match="these are the data that the policy was chosen on"):
        policy.check(first)


def test_the_same_data_are_recognised_in_another_order_and_another_file(policy: Policy) -> None:
    items = promised_items(300, seed=1).with_provenance(sha256="another file")
    shuffled = items.take(np.random.default_rng(0).permutation(len(items)))
    with pytest.raises(ArgumentError, match="these are the data that the policy was chosen on"):
        policy.check(shuffled)


def test_the_same_file_is_recognised_with_another_truth_and_with_other_clusters(tmp_path: Path) -> None:
    table = drawn(300, seed=1) | {"second": drawn(300, seed=2)["label"], "ward": np.arange(1800) // 9}
    pl.DataFrame(table).write_csv(tmp_path / "all.csv")

    def read_again(**options: str) -> Items:
        columns: dict[str, Any] = {"cluster": "patient", "truth": "label"} | options
        return read(tmp_path / "all.csv", **columns)

    policy = choose_threshold(read_again(), risk=0.12)
    for again in (read_again(truth="second"), read_again(cluster="ward")):
        with pytest.raises(ArgumentError, match="these are the data that the policy was chosen on"):
            policy.check(again)


def test_another_experiment_of_the_same_run_file_is_other_data() -> None:
    run = "tests/data/examples/run_a.json"
    policy = choose_threshold(read(run, mode="few_shot"), risk=0.4)
    assert policy.check(read(run, mode="zero_shot")).items > 0


def test_a_check_without_answers_is_inconclusive(policy: Policy) -> None:
    items = promised_items(50, seed=6)
    unsure = replace(
        items, signals={"confidence": replace(items.signals["confidence"], values=np.zeros(300))}
    )
    checked = policy.check(unsure)
    assert checked.verdict == "inconclusive"
    assert checked.reason == "no item is answered, so the guarantee is neither kept nor broken"


def test_a_policy_without_a_guarantee_is_neither_checked_nor_applied() -> None:
    policy = choose_threshold(promised_items(10), risk=0.01)
    with pytest.raises(ArgumentError, match="this policy has no risk guarantee to check"):
        policy.check(promised_items(20, seed=9))
    with pytest.raises(ArgumentError, match="this policy has no risk guarantee, so it answers nothing"):
        policy.apply(promised_items(20, seed=9))


def test_data_without_the_confidence_of_the_policy_are_an_error() -> None:
    items = Items.from_arrays([1] * 300, [1] * 300, signals={"margin": np.arange(300.0)})
    policy = choose_threshold(items, risk=0.1, confidence="margin")
    with pytest.raises(ArgumentError, match="unknown confidence 'margin'"):
        policy.check(promised_items(20))
    with pytest.raises(
        ArgumentError, match="the policy's confidence is margin, and there is no column 'margin'"
    ):
        policy.apply(pl.DataFrame({"confidence": [0.5]}))


def test_confidences_on_another_scale_are_an_error(policy: Policy) -> None:
    with pytest.raises(
        DataError, match="those of the policy were between 0 and 1; pass the policy's confidence"
    ):
        policy.apply(pl.DataFrame({"confidence": [87.0, 12.0]}))


def test_a_calibrated_confidence_needs_the_calibration_file_of_the_policy() -> None:
    def signalled(seed: int) -> Items:
        columns = drawn(150, seed=seed)
        return Items.from_arrays(
            columns["label"], columns["pred"], signals={"margin": columns["prob"]}, cluster=columns["patient"]
        )

    first, second = (train(signalled(seed), method="isotonic", features="margin") for seed in (1, 2))
    policy = choose_threshold(signalled(3), risk=0.15, confidence="calibrated:margin", calibration=first)
    assert policy.confidence.calibration is not None
    assert policy.confidence.calibration.method == "isotonic"
    assert policy.check(signalled(4), calibration=first).verdict in ("kept", "inconclusive", "broken")
    with pytest.raises(
        ArgumentError, match="confidence calibrated:margin needs its calibration file; pass it"
    ):
        policy.check(signalled(4))
    with pytest.raises(
        ArgumentError, match="the calibration file is not the one that the policy was chosen with"
    ):
        policy.check(signalled(4), calibration=second)
    decided = policy.apply(pl.DataFrame({"margin": [0.99, 0.01]}), calibration=first)
    assert decided.frame["decision"].to_list() == [ANSWER, DEFER]


@pytest.mark.parametrize("library", ["pandas", "polars", "lazy", "pyarrow"])
def test_every_frame_gets_the_same_decisions(policy: Policy, library: str) -> None:
    columns = {
        "confidence": [0.99, 0.2, None, 0.97],
        "abstained": [False, False, False, True],
        "note": list("abcd"),
    }
    frame: Any = pl.DataFrame(columns)
    frame = {
        "pandas": lambda: pd.DataFrame(columns, index=[7, 3, 5, 1]),
        "polars": lambda: frame,
        "lazy": frame.lazy,
        "pyarrow": frame.to_arrow,
    }[library]()
    applied = apply_policy(policy, frame)
    column = applied.frame["decision"]
    decisions = column.to_pylist() if library == "pyarrow" else column.to_list()
    assert decisions == [ANSWER, DEFER, DEFER, DEFER]
    assert applied.coverage == 0.25
    assert str(applied) == "1 of 4 rows (25.0%) are answered, 3 deferred."


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_every_table_is_written_as_it_was_read(policy: Policy, ending: str, tmp_path: Path) -> None:
    columns = drawn(40, seed=8) | {"note": ['a, "b"\nc'] * 240}
    frame = pl.DataFrame(columns).rename({"prob": "confidence"})
    source, output = tmp_path / f"new.{ending}", tmp_path / f"decided.{ending}"
    getattr(frame, {"csv": "write_csv", "parquet": "write_parquet", "jsonl": "write_ndjson"}[ending])(source)
    applied = policy.apply(source, output=output)
    assert applied.path == output
    read: Any = {"csv": pl.read_csv, "parquet": pl.read_parquet, "jsonl": pl.read_ndjson}[ending]
    written = read(output)
    assert written.columns == [*frame.columns, "decision"]
    assert written.drop("decision").equals(read(source))
    expected = (frame["confidence"] >= policy.threshold).to_list()
    assert [word == ANSWER for word in written["decision"].to_list()] == expected == applied.answer.tolist()


def test_many_rows_keep_their_order(policy: Policy, tmp_path: Path) -> None:
    """With more rows than an engine reads at once, each decision is still in its row."""
    values = np.random.default_rng(0).random(400_000)
    pl.DataFrame({"row": np.arange(len(values)), "confidence": values}).write_parquet(
        tmp_path / "new.parquet"
    )
    policy.apply(tmp_path / "new.parquet", output=tmp_path / "decided.parquet")
    written = pl.read_parquet(tmp_path / "decided.parquet")
    assert (written["row"].to_numpy() == np.arange(len(values))).all()
    assert policy.threshold is not None
    assert ((written["decision"] == ANSWER).to_numpy() == (values >= policy.threshold)).all()


def test_errors_of_apply(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("confidence,decision\n0.5,maybe\n")
    with pytest.raises(ArgumentError, match="there is already a column 'decision'; pass another name"):
        policy.apply(tmp_path / "new.csv")
    assert policy.apply(tmp_path / "new.csv", column="policy").coverage == 0.0
    with pytest.raises(ArgumentError, match="use the file extension .csv"):
        policy.apply(tmp_path / "new.csv", column="policy", output=tmp_path / "decided.parquet")
    with pytest.raises(ArgumentError, match="is the input"):
        policy.apply(tmp_path / "new.csv", column="policy", output=tmp_path / "new.csv")
    with pytest.raises(ArgumentError, match="output is for files"):
        policy.apply(pl.DataFrame({"confidence": [0.5]}), output=tmp_path / "decided.csv")
    with pytest.raises(DataError, match="must hold numbers"):
        policy.apply(pl.DataFrame({"confidence": ["high"]}))


def test_unknown_groups_are_deferred() -> None:
    policy = choose_threshold(promised_items(400), risk=0.15, by="site")
    frame = pl.DataFrame({"confidence": [0.999] * 3, "site": ["north", "south", "west"]})
    assert policy.apply(frame).frame["decision"].to_list() == [ANSWER, ANSWER, DEFER]


def test_drift_has_a_warning_and_chance_has_none(policy: Policy) -> None:
    assert policy.apply(promised_items(300, seed=11)).warnings == ()
    moved = policy.apply(promised_items(300, seed=12, base=-0.5))
    assert [warning.code for warning in moved.warnings] == ["confidence_drift", "coverage_drift"]
    assert all("the risk guarantee may be void" in str(warning) for warning in moved.warnings)
    assert moved.lines[1].startswith("On the data that the policy was chosen on, ")
    assert moved.drift > 0.3
    checked = check_policy(policy, promised_items(300, seed=12, base=-0.5))
    assert {warning.code for warning in checked.warnings} == {"confidence_drift", "coverage_drift"}


def test_discrete_confidences_on_the_same_data_have_no_drift() -> None:
    items = Items.from_arrays([1] * 400, [1] * 400, confidence=[0.2, 0.4, 0.6, 0.8] * 100)
    policy = choose_threshold(items, risk=0.1)
    assert policy.apply(items).drift == pytest.approx(0.0, abs=0.011)


def test_invalid_policy_files_are_errors(tmp_path: Path, policy: Policy) -> None:
    record = json.loads(policy.to_json())
    path = tmp_path / "policy.json"

    def written(**changes: Any) -> Path:
        path.write_text(json.dumps(record | changes))
        return path

    with pytest.raises(FormatError, match="is newer than this release of abstain; update abstain"):
        read_policy(written(schema_version="2"))
    with pytest.raises(FormatError, match="the schema of this policy is unsupported"):
        read_policy(written(schema_version=1))
    with pytest.raises(FormatError, match="risk must be"):
        read_policy(written(risk=5))
    with pytest.raises(FormatError, match="quantiles must be in ascending order"):
        read_policy(written(confidence=record["confidence"] | {"quantiles": [1.0, 0.0]}))
    with pytest.raises(FormatError, match="pseudo-cluster needs a value for sure"):
        read_policy(written(sure=None))
    path.write_text("[]")
    with pytest.raises(
        FormatError, match="not a policy; it must be an object with risk_type, risk and method"
    ):
        read_policy(path)


def test_policies_are_valid_by_the_published_schema(policy: Policy) -> None:
    validator = Draft202012Validator(policy_schema())
    for each in (
        policy,
        choose_threshold(promised_items(10), risk=0.05),
        choose_threshold(promised_items(), risk=0.1, by="site"),
        choose_threshold(promised_items(), risk=0.1, risk_type="joint", sure=None),
    ):
        validator.validate(json.loads(each.to_json()))
    assert not validator.is_valid(json.loads(policy.to_json()) | {"risk": 5})


def test_a_confidence_in_percent_is_also_read_in_percent_when_the_policy_is_applied(tmp_path: Path) -> None:
    columns = drawn(200, seed=1)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["patient", "label", "pred", "prob"])
    for row in zip(columns["patient"], columns["label"], columns["pred"], columns["prob"], strict=True):
        writer.writerow([*row[:3], round(100 * row[3], 2) or 1.5])
    (tmp_path / "cal.csv").write_text(text.getvalue())
    items = read(tmp_path / "cal.csv", cluster="patient", percent=["prob"])
    policy = choose_threshold(items, risk=0.15)
    assert policy.confidence.percent
    assert policy.threshold is not None
    assert policy.threshold < 1.0
    assert policy.observed is not None
    assert policy.apply(tmp_path / "cal.csv").coverage == pytest.approx(policy.observed.coverage)


def test_each_group_is_checked_separately() -> None:
    policy = choose_threshold(promised_items(400), risk=0.15, by="site")
    checked = policy.check(promised_items(400, seed=21, base=-4.0))
    assert [(each.group, each.verdict) for each in checked.groups] == [("north", "kept"), ("south", "kept")]
    assert checked.verdict == "kept"
    items = promised_items(400, seed=22, base=-4.0)
    south = np.array([site == "south" for site in items.metadata["site"]])
    # In the south every second answer is wrong, whatever the confidence.
    spoiled = np.where(south & (np.arange(len(items)) % 2 == 0), 1 - items.truth, items.prediction)
    broken = policy.check(replace(items, prediction=spoiled))
    assert [each.verdict for each in broken.groups] == ["kept", "broken"]
    assert broken.verdict == "broken"
    assert any(line.startswith("site south: broken, risk ") for line in broken.lines)
