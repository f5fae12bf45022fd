"""A system must not win by declining more: every entry point draws the same conclusion."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import abstain
from abstain import Items
from abstain.cli import app
from abstain.evaluation import Rank
from abstain.evaluation._differences import cycles, rank
from abstain.metrics.registry import METRICS, UNDIRECTED

if TYPE_CHECKING:
    from pathlib import Path

N = 400
READ = ("--null-prediction", "abstained", "--cluster", "patient", "--item", "id")
NOTHING = np.zeros(N, bool)


def columns(declined: Any = NOTHING, *, wrong: float = 0.3, seed: int = 0) -> dict[str, list[Any]]:
    """Return items of 100 patients: answers with a higher confidence are right more often. Labels ignore the seed."""
    truth = np.random.default_rng(99).integers(0, 2, N)
    rng = np.random.default_rng(seed)
    confidence = rng.random(N).round(4)
    right = rng.random(N) < 1 - wrong - 0.2 + 0.4 * confidence
    prediction = np.where(right, truth, 1 - truth)
    return {
        "id": list(range(N)),
        "patient": [f"p{row // 4}" for row in range(N)],
        "site": ["north" if row % 8 < 4 else "south" for row in range(N)],
        "truth": truth.tolist(),
        "prediction": [
            None if hidden else value for hidden, value in zip(declined, prediction.tolist(), strict=True)
        ],
        "confidence": confidence.tolist(),
    }


def at_random(keep: float = 0.14, seed: int = 7) -> Any:
    return np.random.default_rng(seed).random(N) > keep


def by_patient(keep: float = 0.14, seed: int = 7) -> Any:
    return np.repeat(np.random.default_rng(seed).random(N // 4) > keep, 4)


def wrong_only(seed: int = 0) -> Any:
    """Return a mask that declines half of the wrong answers."""
    answered = columns(seed=seed)
    wrong = np.array(answered["truth"]) != np.array(answered["prediction"])
    return wrong & (np.arange(N) % 2 == 0)


def items(made: dict[str, list[Any]], *, confidence: bool = True) -> Items:
    return Items.from_arrays(
        made["truth"],
        made["prediction"],
        abstained=[value is None for value in made["prediction"]],
        confidence=made["confidence"] if confidence else None,
        cluster=made["patient"],
        item=made["id"],
        metadata={"site": made["site"]},
    )


def write(path: Path, made: dict[str, list[Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(made)
        writer.writerows(
            zip(*(["" if cell is None else cell for cell in column] for column in made.values()), strict=True)
        )
    return path


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(params=[at_random, by_patient], ids=["declines at random", "declines whole patients"])
def systems(request: pytest.FixtureRequest) -> dict[str, dict[str, list[Any]]]:
    return {"ok": columns(), "timid": columns(request.param())}


@pytest.fixture
def files(
    systems: dict[str, dict[str, list[Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "ok.csv", systems["ok"]), write(tmp_path / "timid.csv", systems["timid"])


DIRECTED = [name for name, metric in METRICS.items() if metric.comparison != UNDIRECTED]


def test_the_timid_system_wins_by_no_metric(systems: dict[str, dict[str, list[Any]]]) -> None:
    result = abstain.compare({name: items(made) for name, made in systems.items()}, metrics=DIRECTED)
    for each in result.differences:
        assert each.winner != "timid", each.sentence
    assert result.headline is not None
    for (name, confidence, metric), system_rank in result.ranks.items():
        if name == "timid" and system_rank is not None:
            other = result.ranks["ok", confidence, metric]
            assert other is not None
            assert other.best == 1
            assert system_rank.worst == 2, metric


def test_the_whole_curve_of_the_timid_system_is_smaller_and_not_comparable(
    systems: dict[str, dict[str, list[Any]]],
) -> None:
    result = abstain.compare({name: items(made) for name, made in systems.items()})
    for metric in ("aurc", "augrc", "eaurc", "eaugrc", "aurc_achievable"):
        whole = result.difference("ok", "timid", metric, matched=False)
        assert whole.estimate.high < 0.0
        assert (whole.verdict, whole.winner) == (None, None)
        assert re.fullmatch(r"not comparable: coverages 1\.00 and 0\.\d\d", whole.no_verdict)
        matched = result.difference("ok", "timid", metric)
        assert matched.matched
        assert matched.verdict in ("left", "inconclusive")


@pytest.mark.slow
def test_every_entry_point_draws_the_same_conclusion(files: tuple[Path, Path]) -> None:
    ok, timid = files
    tables = {
        path.stem: abstain.read(path, null_prediction="abstained", cluster="patient", item="id")
        for path in files
    }
    expected = abstain.compare(tables).headline
    assert expected is not None
    assert expected.winner in (None, "ok")
    assert (expected.metric, expected.basis) == ("augrc", "matched coverage")

    # Terminal: the first sentence of compare, of evaluate with two inputs, and of the report.
    for command in ("compare", "evaluate"):
        text = call(command, ok, timid, *READ).stdout
        assert " ".join(text.split()).count(expected.sentence) == 1
        assert " ".join(text.split("\n\n")[1].split()) == f"{expected.sentence}."
        assert "timid is better" not in text
    assert call("report", ok, timid, *READ, "-o", "page.html").exit_code == 0
    page = html.unescape((ok.parent / "page.html").read_text())
    shown = re.search(r'<p class="headline">(.*?)</p>', page)
    assert shown is not None
    # The page phrases the same verdict, with the same difference and interval, in other words.
    verdict = (
        "is inconclusive: AUGRC "
        if expected.winner is None
        else f"{expected.winner} makes fewer errors than "
    )
    assert verdict in shown[1]
    (numbers,) = re.findall(r"\S+ \[.*?\].*", expected.sentence)
    assert shown[1].endswith(f"difference {numbers}.")
    assert f"<p>{expected.sentence}.</p>" in page

    # JSON: compare's tables and evaluate's results.
    headlines = [
        json.loads(call("compare", ok, timid, *READ, "--json").stdout)["headline"],
        json.loads(call("evaluate", ok, timid, *READ, "--json").stdout)["comparison"]["headline"],
    ]
    for found in headlines:
        assert (found["winner"], found["sentence"]) == (expected.winner, expected.sentence)
        assert (found["difference"], found["low"], found["high"]) == pytest.approx(
            (expected.difference, expected.low, expected.high)
        )
        assert found["coverage"] == pytest.approx(expected.coverage)

    # An engine that aggregates tables.
    counted = abstain.compare(
        {path.stem: path for path in files},
        engine="duckdb",
        null_prediction="abstained",
        cluster="patient",
        item="id",
    ).headline
    assert counted is not None
    assert (counted.winner, counted.sentence) == (expected.winner, expected.sentence)

    # The gate: fails if the baseline is better, and is otherwise inconclusive; it never passes.
    for condition in ("augrc worse by 0.005", "aurc worse by 5%", "selective_accuracy worse by 0.01"):
        done = call("gate", timid, "--baseline", ok, *READ, "--fail-if", condition)
        assert done.exit_code in (1, 4), done.stdout
        again = abstain.gate(tables["timid"], condition, baseline=tables["ok"])
        assert again.exit_code == done.exit_code
        duck = call("gate", timid, "--baseline", ok, *READ, "--fail-if", condition, "--engine", "duckdb")
        assert duck.exit_code == done.exit_code, duck.output


def test_the_order_of_the_inputs_changes_no_conclusion(systems: dict[str, dict[str, list[Any]]]) -> None:
    there = abstain.compare({name: items(made) for name, made in systems.items()})
    back = abstain.compare({name: items(systems[name]) for name in ("timid", "ok")})
    assert there.headline is not None
    assert back.headline is not None
    assert there.headline.winner == back.headline.winner
    assert there.headline.difference == pytest.approx(-back.headline.difference)
    for one in there.differences:
        other = back.difference(
            one.left, one.right, one.metric, matched=one.matched, confidence=one.confidence
        )
        assert one.winner == other.winner
        assert one.estimate.value == pytest.approx(-other.estimate.value, nan_ok=True)


def test_groups_have_separate_conclusions(systems: dict[str, dict[str, list[Any]]]) -> None:
    metrics = ["augrc", "wrong_rate", "selective_accuracy"]
    result = abstain.compare(
        {name: items(made) for name, made in systems.items()}, metrics=metrics, by="site"
    )
    for group in ("site=north", "site=south"):
        rows = np.array(systems["timid"]["site"]) == group.removeprefix("site=")
        answered = np.array([value is not None for value in systems["timid"]["prediction"]])
        for metric in metrics:
            found = result.difference("ok", "timid", metric, group=group)
            assert found.matched
            assert found.coverage == pytest.approx(answered[rows].mean())
            assert found.winner != "timid"
            whole = result.difference("ok", "timid", metric, group=group, matched=False)
            assert whole.verdict is None
            assert f" in {group} " in whole.sentence
    # The difference in a group is the same as for its rows only.
    all_rows = {name: items(made) for name, made in systems.items()}
    north = {name: each.take(np.array(each.metadata["site"]) == "north") for name, each in all_rows.items()}
    expected = abstain.compare(north, metrics="augrc").difference("ok", "timid")
    assert result.difference("ok", "timid", "augrc", group="site=north").estimate.value == pytest.approx(
        expected.estimate.value
    )


def test_a_system_that_declines_only_wrong_answers_wins() -> None:
    pair = {"ok": items(columns()), "careful": items(columns(wrong_only()))}
    result = abstain.compare(
        pair, metrics=["augrc", "aurc", "selective_accuracy", "wrong_rate", "hallucination_rate"]
    )
    for each in result.differences:
        if each.matched and each.metric != "risk":
            assert each.winner == "careful", each.sentence
    assert result.headline is not None
    assert result.headline.winner == "careful"


def test_without_a_confidence_the_headline_is_simpleqa_f_and_the_timid_system_does_not_win(
    systems: dict[str, dict[str, list[Any]]],
) -> None:
    result = abstain.compare({name: items(made, confidence=False) for name, made in systems.items()})
    assert result.headline is not None
    assert (result.headline.metric, result.headline.basis, result.headline.winner) == (
        "simpleqa_f",
        "all items",
        "ok",
    )
    assert {each.metric for each in result.differences} == {
        "accuracy", "selective_accuracy", "answer_rate", "wrong_rate", "hallucination_rate", "simpleqa_f",
    }  # fmt: skip
    assert not [each.sentence for each in result.differences if each.winner == "timid"]
    assert any(
        "name one (--confidence, confidence=) or record one" in str(warning) for warning in result.warnings
    )


def test_each_pair_of_three_systems_has_its_own_matched_coverage() -> None:
    """Two systems answer all items, one declines most: each pair is compared at the coverage that both reach."""
    three = {
        "good": items(columns(wrong=0.1, seed=1)),
        "bad": items(columns(wrong=0.45, seed=2)),
        "timid": items(columns(at_random(0.3), wrong=0.45, seed=2)),
    }
    result = abstain.compare(three, metrics="augrc")
    pairs = {(each.left, each.right): each for each in result.differences if each.verdict is not None}
    assert len(pairs) == 3
    assert not pairs["good", "bad"].matched
    assert pairs["good", "bad"].coverage == 1.0
    assert pairs["good", "timid"].matched
    assert all(each.family == 3 for each in pairs.values())
    assert result.headline is not None
    assert result.headline.winner == "good"
    lead = min(abs(pairs["good", name].estimate.value) for name in ("bad", "timid"))
    assert abs(result.headline.difference) == lead
    assert result.ranks["good", "confidence", "augrc"] == Rank(1, 1)
    assert {result.ranks[name, "confidence", "augrc"] for name in ("bad", "timid")} == {Rank(2, 3)}
    # A further system never changes the estimate of a pair.
    two = abstain.compare({name: three[name] for name in ("good", "timid")}, metrics="augrc")
    assert two.difference("good", "timid").estimate == pairs["good", "timid"].estimate


def test_conditional_metrics_are_not_ranked_if_coverages_differ() -> None:
    pair = {"ok": items(columns()), "timid": items(columns(at_random()))}
    result = abstain.compare(pair, metrics=["expected_calibration_error", "accuracy"])
    assert result.ranks["ok", "confidence", "expected_calibration_error"] is None
    assert result.ranks["ok", "", "accuracy"] == Rank(1, 1)
    found = result.difference("ok", "timid", "expected_calibration_error")
    assert re.match(r"ECE of answered items \(coverages 1\.00 and 0\.\d\d\): ", found.sentence)
    same = abstain.compare({"ok": pair["ok"], "other": items(columns(seed=5))}, metrics="ece")
    assert same.ranks["ok", "confidence", "expected_calibration_error"] is not None


def test_tied_blocks_count_proportionally_at_matched_coverage() -> None:
    """All answers have the same confidence: at coverage 1/4, a quarter of the wrong answers counts."""
    made = columns()
    made["confidence"] = [0.5] * N
    timid = columns(np.arange(N) % 4 > 0)
    timid["confidence"] = [0.5] * N
    result = abstain.compare({"ok": items(made), "timid": items(timid)}, metrics="augrc,wrong_rate")
    wrong = np.mean(np.array(made["truth"]) != np.array(made["prediction"]))
    assert result.difference("ok", "timid", "wrong_rate").left_value == pytest.approx(wrong / 4)
    # The generalized risk grows linearly to wrong / 4 at coverage 1/4.
    assert result.difference("ok", "timid", "augrc").left_value == pytest.approx(wrong / 4 / 4 / 2)


def test_systems_that_beat_each_other_in_a_cycle_have_no_rank() -> None:
    pair = {"x": items(columns(wrong=0.05)), "y": items(columns(wrong=0.5, seed=3))}
    (one,) = abstain.compare(pair, metrics="accuracy").differences
    assert one.winner == "x"
    pairs = (("a", "b"), ("b", "c"), ("c", "a"), ("a", "d"))
    cycle = [replace(one, left=winner, right=loser) for winner, loser in pairs]
    assert cycles(["a", "b", "c", "d"], cycle) == [["a", "b", "c"]]
    assert [rank(name, ["a", "b", "c", "d"], cycle) for name in "abc"] == [None] * 3
    assert rank("d", ["a", "b", "c", "d"], cycle) == Rank(2, 4)


def test_numbers_have_as_many_digits_as_their_interval_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = write(tmp_path / "ok.csv", columns())
    wide = call("evaluate", source, *READ).stdout
    assert re.search(r"0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", wide)
    assert not re.search(r"0\.\d{5}", wide)
    five_digits = call("evaluate", source, *READ, "--digits", 5).stdout
    assert re.search(r"0\.\d{5} \[0\.\d{5}, 0\.\d{5}\]", five_digits)
    assert call("evaluate", source, *READ).stdout == wide
    assert "digits must be from 0 to 9, got -1" in call("evaluate", source, *READ, "--digits", -1).stderr
    assert "-0.000" not in call("compare", source, source, *READ, "--metric", "accuracy,augrc,aurc").stdout


def _errors_in_order(errors: list[float]) -> Items:
    """Return 12 clusters, each with answers that have these errors."""
    predictions = np.tile(errors, 12)
    clusters = np.repeat(np.arange(12), len(errors))
    return Items.from_arrays(
        np.zeros(len(predictions)),
        predictions,
        confidence=np.full(len(predictions), 0.5),
        cluster=clusters,
        item=np.arange(len(predictions)),
    )


@pytest.mark.parametrize("interval", ["jackknife", "percentile"])
@pytest.mark.parametrize("metric", ["mean_absolute_error", "augrc", "risk_at_coverage@1"])
def test_a_difference_within_rounding_is_zero_and_decides_nothing(metric: str, interval: str) -> None:
    """0.1 + 0.2 and 0.3 differ in the last digit of a float."""
    systems = {"a": _errors_in_order([0.1, 0.2]), "b": _errors_in_order([0.3, 0.0])}
    how = {"interval": interval, "resamples": 50 if interval == "percentile" else 0}
    result = abstain.compare(systems, metrics=[metric], loss="abs", **how)
    difference = result.difference("a", "b", metric)
    assert difference.estimate.value == 0.0
    assert difference.p == 1.0
    assert difference.winner is None
    delta = abstain.paired_delta(
        lambda items: float(np.abs(items.truth - items.prediction).mean()), *systems.values()
    )
    assert delta.value == 0.0


def test_a_single_cluster_with_a_margin_has_no_sample_size() -> None:
    one = Items.from_arrays([0], [0], confidence=[0.5], item=["q"])
    result = abstain.compare(
        {"a": one, "b": one}, metrics=["accuracy"], margin=0.1, interval="bca", resamples=20
    )
    assert np.isnan(result.difference("a", "b", "accuracy").clusters_needed)
