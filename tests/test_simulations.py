"""A short form of the simulations: do default intervals cover, and is a difference told that is not there?

The long form is `make simulate`. Every data set has random numbers of its own, so that these tests count the same on
every run; they fail when an interval is changed so that it leaves its range by more than chance.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from simulations import coverage, declining, guarantees
from simulations.__main__ import cover, kept
from simulations.coverage import TRUTHS, Cell, Tallied, evaluated, run_cell, truths
from simulations.differences import p_values
from simulations.scenarios import SCENARIOS, Scenario
from simulations.table import page

if TYPE_CHECKING:
    from pathlib import Path

    from abstain.inference import Estimate

RUNS, CLUSTERS = 120, 20
SHORT = tuple(
    Scenario(errors, confidence) for errors in ("frequent", "rare") for confidence in ("continuous", "levels")
)
NAMED = ("accuracy", "selective_accuracy", "brier_score")
METRICS = (
    *("cmax", "aurc", "augrc", "eaurc", "aurc_achievable", *NAMED),
    *("aurc_at_coverage@0.5", "augrc_at_coverage@0.5", "risk_at_coverage@0.2", "risk_at_coverage@0.5"),
)


def few(cell: Cell, run: int) -> dict[str, Estimate]:
    found = evaluated(cell, run, NAMED, with_bounds=False)
    return {name: found[name] for name in METRICS}


@cache
def counted(scenario: Scenario) -> dict[str, Tallied]:
    return run_cell(Cell(scenario, CLUSTERS), 0, RUNS, judge=few)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SHORT, ids=lambda scenario: scenario.name)
def test_default_intervals_cover(scenario: Scenario) -> None:
    found = counted(scenario)
    assert set(found) == set(METRICS)
    for name, tallied in found.items():
        assert not tallied.too_narrow, f"{name} covers {tallied.coverage:.3f}"
        assert tallied.intervals == RUNS, f"{name} has no interval in {tallied.undefined} data sets"


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_default_intervals_are_no_wider_than_they_must_be(name: str) -> None:
    """With frequent errors; rare ones leave little to go by, and then wide is honest."""
    both = [counted(scenario)[name] for scenario in SHORT if scenario.errors == "frequent"]
    together = both[0].plus(both[1])
    assert not together.too_wide, f"{name} covers {together.coverage:.3f}"


@pytest.mark.slow
def test_too_narrow_a_method_is_noticed() -> None:
    """Intervals that are shortened to two thirds cover some 80 times in 100."""

    def narrow(cell: Cell, run: int) -> dict[str, Estimate]:
        return {
            name: replace(
                each,
                low=each.value + 2 / 3 * (each.low - each.value),
                high=each.value + 2 / 3 * (each.high - each.value),
            )
            for name, each in few(cell, run).items()
        }

    found = run_cell(Cell(SHORT[0], CLUSTERS), 0, RUNS, judge=narrow)
    assert sum(tallied.too_narrow for tallied in found.values()) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [SHORT[0], SHORT[3]], ids=lambda scenario: scenario.name)
def test_equally_good_systems_are_rarely_told_apart(scenario: Scenario) -> None:
    found = p_values(scenario, CLUSTERS, RUNS, step=0.0, methods=("jackknife",))
    for name, by_method in found.items():
        told = np.array(by_method["jackknife"])
        alarms = int((told <= 0.05).sum())
        assert len(told) == RUNS
        # So many would be seen once in a thousand times if the rate were 0.05.
        assert coverage._at_least(alarms, RUNS, 0.05) > 0.001, f"{name}: {alarms} of {RUNS}"


def test_a_difference_that_is_there_is_told_more_often() -> None:
    null, shifted = (
        p_values(SHORT[0], 41, 25, step=step, methods=("jackknife",))["accuracy"]["jackknife"]
        for step in (0.0, 0.7)
    )
    assert np.median(shifted) < 0.05 < np.median(null)


def test_data_sets_are_the_same_in_whatever_order() -> None:
    cell = Cell(SHORT[0], 10)
    whole = run_cell(cell, 0, 4, judge=few)
    later, earlier = run_cell(cell, 2, 4, judge=few), run_cell(cell, 0, 2, judge=few)
    for name, tallied in whole.items():
        parts = earlier[name].plus(later[name])
        assert replace(parts, width=0.0) == replace(tallied, width=0.0)
        assert parts.width == pytest.approx(tallied.width, rel=1e-12)
    first, again = (cell.generator(3).random(5).tolist() for _ in range(2))
    assert first == again
    assert first != cell.generator(4).random(5).tolist()
    # The data sets do not depend on the method that judges them.
    assert first == Cell(SHORT[0], 10, "percentile").generator(3).random(5).tolist()


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    cells = [Cell(SHORT[0], 10), Cell(SHORT[2], 10)]
    at_once, in_parts = tmp_path / "at_once.jsonl", tmp_path / "in_parts.jsonl"
    cover(cells, 3, at_once)
    cover(cells[:1], 2, in_parts)
    cover(cells, 3, in_parts)
    whole, parts = kept(at_once), kept(in_parts)
    assert whole.keys() == parts.keys()
    for key, record in whole.items():
        assert {**parts[key], "width": 0.0} == {**record, "width": 0.0}
        assert parts[key]["width"] == pytest.approx(record["width"], rel=1e-12)
        assert record["runs"] == 3
    before = in_parts.stat().st_mtime_ns
    cover(cells, 3, in_parts)
    assert in_parts.stat().st_mtime_ns == before, "nothing was left to do"


def test_truths_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_POPULATION", 200)
    place = tmp_path / "truths.json"
    found = truths(SHORT[0], place)
    stored = json.loads(place.read_text())
    assert stored[SHORT[0].name]["metrics"]["aurc"] == found["aurc"]
    monkeypatch.setattr(coverage, "_computed", lambda scenario: pytest.fail("it was computed again"))
    truths.cache_clear()
    assert dict(truths(SHORT[0], place)) == dict(found)


def test_every_scenario_has_its_truths() -> None:
    stored = json.loads(TRUTHS.read_text())
    for scenario in SCENARIOS:
        assert stored[scenario.name]["mark"] == coverage._mark(scenario), (
            f"run the simulation of {scenario.name}"
        )


def test_what_is_counted() -> None:
    tallied = Tallied(runs=200, intervals=200, below=10, above=4)
    assert tallied.coverage == pytest.approx(0.93)
    assert tallied.error == pytest.approx(math.sqrt(0.93 * 0.07 / 200))
    assert not tallied.too_narrow
    assert not tallied.too_wide
    assert replace(tallied, below=30).too_narrow
    assert Tallied(runs=600, intervals=600).too_wide
    assert not Tallied(runs=600, intervals=600, bounds=550).too_wide
    assert asdict(tallied.plus(tallied))["below"] == 20


def test_the_page_shows_methods_side_by_side_and_what_leaves_the_range(tmp_path: Path) -> None:
    results, differences = tmp_path / "results.jsonl", tmp_path / "differences.jsonl"
    about = {"clusters": 10, "errors": "rare", "metric": "aurc"}
    narrow = Tallied(runs=200, intervals=200, bounds=50, below=60, width=20.0)
    lines = [
        {"cell": "one; jackknife", "method": "jackknife", **about, **asdict(replace(narrow, below=8))},
        {"cell": "two; jackknife", "method": "jackknife", **about, **asdict(replace(narrow, below=4))},
        {"cell": "one; percentile", "method": "percentile", **about, **asdict(narrow)},
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = page(results, differences)
    assert "0 fall below the range" in text
    assert (
        "| `aurc` | rare | 0.960 (0.014) to 0.980 | 25% |  | 0.100 | 0.700 (0.032) to 0.700 | 0.100 |" in text
    )
    assert "## Differences" not in text

    with results.open("a") as stream:
        stream.write(json.dumps({**lines[0], **asdict(narrow)}) + "\n")  # counted anew
    counts = {"jackknife_false_alarms": 0.04, "percentile_false_alarms": 0.1}
    power = {"jackknife_power": 0.5, "percentile_power": 0.4}
    record = {
        "cell": "one",
        "errors": "rare",
        "clusters": 10,
        "runs": 50,
        "metrics": {"aurc": counts | power},
    }
    differences.write_text(json.dumps(record))
    text = page(results, differences)
    assert "1 fall below the range" in text
    assert "`aurc` (rare: 10)" in text
    assert "| 10 | rare | `aurc` | 50 | 0.040 to 0.040 | 0.100 to 0.100 | 0.500 | 0.400 |" in text


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["weak", "strong"])
@pytest.mark.parametrize("method", ["cluster-t", "betting", "joint cluster-t"])
def test_promises_are_kept(effect: str, method: str) -> None:
    """So many broken promises would be seen once in a thousand simulations, if one in ten were broken."""
    found = guarantees.run(guarantees.Cell(guarantees.Population("frequent", effect, 8), 100, method), 0, 60)
    assert found.runs == 60
    assert stats.binom.sf(found.broken - 1, found.runs, guarantees.DELTA) > 0.001


@pytest.mark.slow
def test_what_merely_looks_good_is_broken_half_of_the_time() -> None:
    naive = guarantees.run(
        guarantees.Cell(guarantees.Population("frequent", "strong", 8), 100, "naive"), 0, 60
    )
    assert naive.broken > 18


def test_promises_go_on_where_they_stopped(tmp_path: Path) -> None:
    cells = [guarantees.Cell(guarantees.Population("frequent", "none", 1), 40, "binomial")]
    place = tmp_path / "promises.jsonl"
    guarantees.keep_guarantees(cells, 2, place)
    guarantees.keep_guarantees(cells, 5, place)
    guarantees.keep_guarantees(cells, 3, place)
    (record,) = [json.loads(line) for line in place.read_text().splitlines()]
    whole = guarantees.run(cells[0], 0, 5)
    assert {name: record[name] for name in asdict(whole)} == pytest.approx(asdict(whole))
    page_text = guarantees.guarantees_page(place)
    assert "| binomial | independent | 1 |" in page_text
    assert "| 320 items | frequent | none | binomial | 5 |" in page_text


@pytest.mark.slow
def test_a_system_that_merely_declines_rarely_wins() -> None:
    """Both systems are exactly equal at matched coverage: at most 2.5% false wins, plus three standard errors."""
    cell = declining.Cell(100, 2, 0.3, informative=False, same_answers=False, declines="at random")
    runs = 150
    counted = declining.wins(cell, 0, runs)
    del counted[declining.SHORT]
    for metric, count in counted.items():
        assert count / runs <= 0.025 + 3 * (0.025 * 0.975 / runs) ** 0.5, metric


def test_the_page_of_declining_systems_marks_what_exceeds_the_nominal_rate(tmp_path: Path) -> None:
    cell = declining.CELLS[0]
    wins = dict.fromkeys(declining.METRICS, 0) | {"aurc": 20, "augrc": 2}
    record = {"cell": cell.key, **asdict(cell), "runs": 100, "wins": wins}
    (tmp_path / "declining.jsonl").write_text(json.dumps(record) + "\n")
    page = declining.declining_page(tmp_path / "declining.jsonl")
    assert "| 0.020 (0.014) | **0.200 (0.040)** | 0.000 (0.010) |" in page
    assert "| `aurc` |" in page
