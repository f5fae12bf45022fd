"""Short simulations of the coverage of default intervals, of false alarms in comparisons and of risk guarantees.

`make simulate` runs the long simulations. Every data set has fixed random numbers, so the tests give the same counts on
every run. They fail if a change moves the coverage of an interval outside its range by more than chance.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from abstain.evaluation import Difference
from abstain.inference import Estimate, clusters_needed
from simulations import consistency, coverage, declining, differences, groups, guarantees, planning
from simulations.__main__ import read_records, simulate_coverage
from simulations._cells import is_above, simulate
from simulations._cells import read_records as read_cells
from simulations.coverage import TRUTHS, Cell, CoverageCounts, evaluate_data_set, run_cell, truths
from simulations.scenarios import SCENARIOS, Scenario
from simulations.table import coverage_page

if TYPE_CHECKING:
    from pathlib import Path


RUNS, CLUSTERS = 120, 20
SHORT = tuple(
    Scenario(errors, confidence) for errors in ("frequent", "rare") for confidence in ("continuous", "levels")
)
NAMED = ("accuracy", "selective_accuracy", "brier_score")
METRICS = (
    *("cmax", "aurc", "augrc", "eaurc", "aurc_achievable", *NAMED),
    *("aurc_at_coverage@0.5", "augrc_at_coverage@0.5", "risk_at_coverage@0.2", "risk_at_coverage@0.5"),
)


def evaluate_some_metrics(cell: Cell, run: int) -> dict[str, Estimate]:
    return evaluate_data_set(cell, run, METRICS, with_bounds=False)


@cache
def coverage_counts(scenario: Scenario) -> dict[str, CoverageCounts]:
    return run_cell(Cell(scenario, CLUSTERS), 0, RUNS, evaluator=evaluate_some_metrics)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SHORT, ids=lambda scenario: scenario.name)
def test_default_intervals_have_enough_coverage(scenario: Scenario) -> None:
    by_metric = coverage_counts(scenario)
    assert set(by_metric) == set(METRICS)
    for name, counts in by_metric.items():
        assert not counts.too_narrow, f"{name} covers {counts.coverage:.3f}"
        assert counts.intervals == RUNS, f"{name} has no interval in {counts.undefined} data sets"


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_default_intervals_are_not_too_wide(name: str) -> None:
    """Only for frequent errors: rare errors give little information, so their intervals are wide."""
    first, second = (coverage_counts(scenario)[name] for scenario in SHORT if scenario.errors == "frequent")
    total = first.plus(second)
    assert not total.too_wide, f"{name} covers {total.coverage:.3f}"


@pytest.mark.slow
def test_intervals_that_are_too_narrow_are_detected() -> None:
    """Intervals that are shortened to two thirds have a coverage of about 0.8."""

    def narrow(cell: Cell, run: int) -> dict[str, Estimate]:
        return {
            name: replace(
                estimate,
                low=estimate.value + 2 / 3 * (estimate.low - estimate.value),
                high=estimate.value + 2 / 3 * (estimate.high - estimate.value),
            )
            for name, estimate in evaluate_some_metrics(cell, run).items()
        }

    by_metric = run_cell(Cell(SHORT[0], CLUSTERS), 0, RUNS, evaluator=narrow)
    assert sum(counts.too_narrow for counts in by_metric.values()) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [SHORT[0], SHORT[3]], ids=lambda scenario: scenario.name)
def test_one_of_two_equal_systems_is_rarely_better(scenario: Scenario) -> None:
    """It fails for a number of false alarms that has a probability below 0.001 if 5% are false."""
    counts = differences.count_conclusions(differences.Cell(scenario, CLUSTERS), 0, 40)
    for name, own in counts.items():
        compared, alarms = own[differences.COMPARED], own[differences.WINNERS]
        assert not is_above(alarms, compared, 0.05), f"{name}: {alarms} of {compared}"
    assert counts["accuracy"][differences.COMPARED] == 40


def test_a_true_difference_is_found_more_often() -> None:
    scenario = SHORT[0]
    equal, different = (
        [cell.differences(run)["accuracy"].p for run in range(12)]
        for cell in (differences.Cell(scenario, 41), differences.Cell(scenario, 41, step=0.7))
    )
    assert np.median(different) < 0.05 < np.median(equal)


def test_conclusions_are_counted_by_hand() -> None:
    """The worse right system is 0.1 worse by accuracy; 0.02 would be not worse by more than that."""
    found = Difference(
        "accuracy",
        "higher",
        "",
        "",
        "left",
        "right",
        0.9,
        0.88,
        Estimate(-0.02, -0.06, 0.02, se=0.02, degrees=40.0, clusters=41),
        comparison="penalized",
        p=0.3,
        p_adjusted=0.3,
    )
    assert differences._count_one(found, -0.1, 0.1) == [1, 0, 1, 1, 1]  # missed, and falsely "not worse"
    assert differences._count_one(found, 0.0, math.nan) == [1, 0, 0, 0, 0]
    winner = replace(found, p_adjusted=0.01)
    assert differences._count_one(winner, 0.0, math.nan) == [1, 1, 0, 0, 0]


def test_the_page_of_differences_lists_what_falls_short(tmp_path: Path) -> None:
    path = tmp_path / "differences.jsonl"
    record = {"clusters": 10, "step": 0.0, "runs": 100}
    counts = {"aurc": [100, 3, 5, 0, 0], "augrc": [100, 20, 0, 0, 0], "accuracy": [10, 10, 10, 0, 0]}
    lines = [
        {"cell": "equal; 0; 10", **record, "metrics": counts},
        {"cell": "better; 0.7; 10", **record, "step": 0.7, "metrics": {"aurc": [100, 80, 1, 50, 2]}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = differences.differences_page(path)
    assert "| false alarms | `augrc` | equal; 0; 10 | 0.200 (0.040) | not explained yet |" in text
    false_alarms, missed, not_worse = (part for part in text.split("\n## ")[2:])
    assert "| `aurc` | 0.030, at most 0.030 (0.017) |  |  |  |" in false_alarms
    assert "| `aurc` | 0.030, at most 0.050 (0.022) |  |  |  |" in missed
    assert "| `aurc` | 0.040, at most 0.040 (0.028) |  |  |  |" in not_worse
    assert "| `accuracy` |  |  |  |  |" in missed, "10 data sets are too few"


def test_a_stopped_simulation_of_comparisons_continues(tmp_path: Path) -> None:
    cells, path = [NamedCell("a"), NamedCell("b")], tmp_path / "counts.jsonl"
    simulate(cells, count_runs, 3, path)
    simulate(cells[:1], count_runs, 45, path)
    simulate(cells, count_runs, 5, path)
    records = read_cells(path)
    assert {key: record["runs"] for key, record in records.items()} == {"a; accuracy": 45, "b; accuracy": 5}
    # Every data set is counted once: the sums of 0 to 44 and of 0 to 4.
    assert [record["metrics"]["m"] for record in records.values()] == [[45, 990], [5, 10]]


@dataclass(frozen=True)
class NamedCell:
    name: str

    @property
    def key(self) -> str:
        return f"{self.name}; accuracy"


def count_runs(cell: NamedCell, start: int, stop: int) -> dict[str, list[int]]:
    return {"m": [stop - start, sum(range(start, stop))]}


@pytest.mark.slow
def test_the_worst_of_groups_that_are_alike_rarely_differs(tmp_path: Path) -> None:
    cell = groups.Cell("frequent", "rows", 41)
    groups.simulate_groups([cell], 20, tmp_path / "groups.jsonl")
    counts = read_cells(tmp_path / "groups.jsonl")[cell.key]["metrics"]
    # The page states why the only other metric falls short.
    short = {name for name, (alarms, trials) in counts.items() if is_above(alarms, trials, 0.05)}
    assert short <= {"top_label_calibration_error"}
    assert f"| `accuracy` | {counts['accuracy'][0] / 20:.3f} (" in groups.groups_page(
        tmp_path / "groups.jsonl"
    )


def test_the_power_of_planned_studies_is_about_the_nominal_one(tmp_path: Path) -> None:
    """The number needed for a known standard error has the nominal power, and plans from pilots have it on average."""
    cell = planning.Cell("accuracy", "frequent", 2, 20)
    needed = clusters_needed(*planning._population("accuracy", "frequent"), 1)
    assert planning.true_power(cell, needed - 1.0) < planning.POWER <= planning.true_power(cell, needed)
    path = tmp_path / "planning.jsonl"
    planning.simulate_planning([cell], 60, path)
    record = json.loads(path.read_text())
    assert record["power"] == pytest.approx(planning.POWER, abs=3.5 * record["power_error"])
    assert f"| `accuracy` | frequent | 2 | 20 | 60 | {needed:.0f} |" in planning.planning_page(path)


def test_data_sets_do_not_depend_on_their_order() -> None:
    cell = Cell(SHORT[0], 10)
    in_one_call = run_cell(cell, 0, 4, evaluator=evaluate_some_metrics)
    later = run_cell(cell, 2, 4, evaluator=evaluate_some_metrics)
    earlier = run_cell(cell, 0, 2, evaluator=evaluate_some_metrics)
    for name, counts in in_one_call.items():
        total = earlier[name].plus(later[name])
        assert replace(total, width=0.0) == replace(counts, width=0.0)
        assert total.width == pytest.approx(counts.width, rel=1e-12)
    first, second = (cell.generator(3).random(5).tolist() for _ in range(2))
    assert first == second
    assert first != cell.generator(4).random(5).tolist()
    # The data sets do not depend on the method either.
    assert first == Cell(SHORT[0], 10, "percentile").generator(3).random(5).tolist()


def test_a_stopped_simulation_continues(tmp_path: Path) -> None:
    cells = [Cell(SHORT[0], 10), Cell(SHORT[2], 10)]
    in_one_call, in_parts = tmp_path / "in_one_call.jsonl", tmp_path / "in_parts.jsonl"
    simulate_coverage(cells, 3, in_one_call)
    simulate_coverage(cells[:1], 2, in_parts)
    simulate_coverage(cells, 3, in_parts)
    expected, records = read_records(in_one_call), read_records(in_parts)
    assert expected.keys() == records.keys()
    for key, record in expected.items():
        assert {**records[key], "width": 0.0} == {**record, "width": 0.0}
        assert records[key]["width"] == pytest.approx(record["width"], rel=1e-12)
        assert record["runs"] == 3
    written_at = in_parts.stat().st_mtime_ns
    simulate_coverage(cells, 3, in_parts)
    assert in_parts.stat().st_mtime_ns == written_at, "all cells were finished"


def test_true_values_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_POPULATION", 200)
    path = tmp_path / "truths.json"
    computed = truths(SHORT[0], path)
    stored = json.loads(path.read_text())
    assert stored[SHORT[0].name]["metrics"]["aurc"] == computed["aurc"]
    monkeypatch.setattr(coverage, "_compute_truths", lambda scenario: pytest.fail("computed again"))
    truths.cache_clear()
    assert dict(truths(SHORT[0], path)) == dict(computed)


def test_the_true_values_of_every_scenario_are_up_to_date() -> None:
    stored = json.loads(TRUTHS.read_text())
    for scenario in SCENARIOS:
        assert stored[scenario.name]["mark"] == coverage._mark(scenario), (
            f"run the simulation of {scenario.name}"
        )


def test_coverage_counts_equal_values_worked_out_by_hand() -> None:
    counts = CoverageCounts(runs=200, intervals=200, below=10, above=4)
    assert counts.coverage == pytest.approx(0.93)
    assert counts.error == pytest.approx(math.sqrt(0.93 * 0.07 / 200))
    assert not counts.too_narrow
    assert not counts.too_wide
    assert replace(counts, below=30).too_narrow
    assert CoverageCounts(runs=600, intervals=600).too_wide
    assert not CoverageCounts(runs=600, intervals=600, bounds=550).too_wide
    assert asdict(counts.plus(counts))["below"] == 20


def test_the_page_compares_methods_and_lists_rows_outside_the_range(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    settings = {"clusters": 10, "errors": "rare", "metric": "aurc"}
    narrow = CoverageCounts(runs=200, intervals=200, bounds=50, below=60, width=20.0)
    lines = [
        {"cell": "one; jackknife", "method": "jackknife", **settings, **asdict(replace(narrow, below=8))},
        {"cell": "two; jackknife", "method": "jackknife", **settings, **asdict(replace(narrow, below=4))},
        {"cell": "one; percentile", "method": "percentile", **settings, **asdict(narrow)},
    ]
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = coverage_page(results)
    assert "The coverage of 0 rows is below the range" in text
    assert (
        "| `aurc` | rare | 0.960 (0.014) to 0.980 | 25% |  | 0.100 | 0.700 (0.032) to 0.700 | 0.100 |" in text
    )
    with results.open("a") as stream:
        stream.write(json.dumps({**lines[0], **asdict(narrow)}) + "\n")  # replaces the first line
    text = coverage_page(results)
    assert "The coverage of 1 rows is below the range" in text
    assert "| below | `aurc` | rare | 10 | not explained yet |" in text


@pytest.mark.slow
@pytest.mark.parametrize("effect", ["weak", "strong"])
@pytest.mark.parametrize("method", ["pseudo-cluster", "gaffke", "joint pseudo-cluster"])
def test_risk_guarantees_hold(effect: str, method: str) -> None:
    """It fails for a number of violations that has a probability below 0.001 if 10% of guarantees are violated."""
    counts = guarantees.run_cell(
        guarantees.Cell(guarantees.Population("frequent", effect, 8), 100, method), 0, 60
    )
    assert counts.runs == 60
    assert stats.binom.sf(counts.broken - 1, counts.runs, guarantees.DELTA) > 0.001


@pytest.mark.slow
def test_the_risk_of_naive_thresholds_is_often_too_high() -> None:
    naive = guarantees.run_cell(
        guarantees.Cell(guarantees.Population("frequent", "strong", 8), 100, "naive"), 0, 60
    )
    assert naive.broken > 18


def test_a_stopped_simulation_of_guarantees_continues(tmp_path: Path) -> None:
    cells = [guarantees.Cell(guarantees.Population("frequent", "none", 1), 40, "binomial")]
    path = tmp_path / "guarantees.jsonl"
    guarantees.simulate_guarantees(cells, 2, path)
    guarantees.simulate_guarantees(cells, 5, path)
    guarantees.simulate_guarantees(cells, 3, path)
    (record,) = [json.loads(line) for line in path.read_text().splitlines()]
    expected = guarantees.run_cell(cells[0], 0, 5)
    assert {name: record[name] for name in asdict(expected)} == pytest.approx(asdict(expected))
    page_text = guarantees.guarantees_page(path)
    assert "| binomial | independent | 1 |" in page_text
    assert "| 320 | frequent | none | binomial | 5 |" in page_text


def test_the_page_lists_guarantees_that_are_violated_too_often(tmp_path: Path) -> None:
    """Of 100 guarantees, 10 may be violated: 0.2 is more than two standard errors (0.04) above that, 0.15 is not."""
    records = []
    for size, method, broken in (("unequal", "default", 20), (8, "pseudo-cluster", 15), (8, "naive", 60)):
        cell = guarantees.Cell(guarantees.Population("rare", "weak", size), 40, method)
        counts = asdict(guarantees.GuaranteeCounts(100, broken, 5, 50.0, 2.0))
        settings = {**asdict(cell.population), "clusters": 40, "method": method, "possible": 0.8}
        records.append({"cell": cell.key, **settings, **counts})
    path = tmp_path / "guarantees.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    page_text = guarantees.guarantees_page(path)
    listed = [line for line in page_text.splitlines() if line.startswith("- ")]
    assert listed == [
        "- 40 clusters, sizes unequal, rare errors, effect weak, method default: **0.200 (0.040)**"
    ]
    assert page_text.index("## 8 items per cluster") < page_text.index("## Cluster sizes: unequal")
    path.write_text(json.dumps(records[1]) + "\n")
    assert "No method of abstain violated more" in guarantees.guarantees_page(path)


def test_larger_clusters_are_worse_in_unequal_populations() -> None:
    cluster, wrong, _ = guarantees.Population("frequent", "weak", "few large").draw(
        np.random.default_rng(1), 3000
    )
    sizes = np.bincount(cluster)
    assert set(sizes.tolist()) == {3, 50}
    assert wrong[sizes[cluster] == 50].mean() > 2 * wrong[sizes[cluster] == 3].mean()
    unequal, _, _ = guarantees.Population("rare", "weak", "unequal").draw(np.random.default_rng(1), 3000)
    assert 7.0 < np.bincount(unequal).mean() < 9.5


@pytest.mark.slow
def test_a_system_that_only_declines_more_rarely_wins() -> None:
    """Both systems are equal at matched coverage, so the limit is 2.5% false wins plus three standard errors."""
    cell = declining.Cell(100, 2, 0.3, informative=False, same_answers=False, declines="at random")
    runs = 150
    wins = declining.wins(cell, 0, runs)
    del wins[declining.SHORT]
    for metric, count in wins.items():
        assert count / runs <= 0.025 + 3 * (0.025 * 0.975 / runs) ** 0.5, metric


def test_the_page_about_declining_marks_proportions_above_the_nominal_one(tmp_path: Path) -> None:
    cell = declining.CELLS[0]
    wins = dict.fromkeys(declining.METRICS, 0) | {"aurc": 20, "augrc": 2}
    record = {"cell": cell.key, **asdict(cell), "runs": 100, "wins": wins}
    (tmp_path / "declining.jsonl").write_text(json.dumps(record) + "\n")
    page = declining.declining_page(tmp_path / "declining.jsonl")
    assert "| 0.020 (0.014) | **0.200 (0.040)** | 0.000 (0.010) |" in page
    assert "| `aurc` |" in page


@pytest.mark.slow
def test_the_mode_of_samples_ranks_answers_better_than_a_proportion_of_another_answer() -> None:
    """The values are those of decision 0032."""
    areas = consistency.simulate_consistency()
    assert areas == pytest.approx({"modal": 0.208, "agreement": 0.177, "mode": 0.163}, abs=5e-4)
