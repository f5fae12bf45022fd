"""Thousands of groups: the results have all of them, the terminal shows a few, and rows are read only a few times."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import abstain
from abstain import Items
from abstain.evaluation import _system
from abstain.metrics import Columns

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from commands import Run

WEEKS, SITES, ROWS = 50, 60, 12_000


def columns_of_rows(*, declined: bool = True) -> dict[str, NDArray[Any]]:
    """Rows of 3,000 groups, each of four rows of four patients; the prediction is right if it is 1."""
    rng = np.random.default_rng(3)
    group = np.arange(ROWS) % (WEEKS * SITES)
    confidence = np.round(rng.random(ROWS), 3)
    return {
        "truth": np.ones(ROWS, int),
        "prediction": (rng.random(ROWS) < 0.4 + confidence / 2).astype(int),
        "confidence": confidence,
        "abstained": (confidence < 0.1 * declined).astype(int),
        "patient": rng.permutation(ROWS) % 4000,
        "week": group % WEEKS,
        "site": np.array([f"s{number:02}" for number in group // WEEKS]),
    }


def write_table(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    with path.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def items_in_groups(groups: int) -> Items:
    columns = columns_of_rows()
    return Items.from_arrays(
        columns["truth"],
        columns["prediction"],
        confidence=columns["confidence"],
        abstained=columns["abstained"],
        cluster=columns["patient"],
        metadata={"group": np.arange(ROWS) % groups},
    )


@pytest.mark.slow
def test_the_json_has_every_group_and_the_terminal_twenty(run: Run, tmp_path: Path) -> None:
    columns = columns_of_rows()
    write_table(tmp_path / "t.csv", columns)
    code, out, _ = run("evaluate", "t.csv", "--cluster", "patient", "--by", "week,site", "-o", "results.json")
    assert code == 0
    groups = json.loads((tmp_path / "results.json").read_text())["metrics"]["groups"]
    assert [group["label"] for group in groups] == [
        f"week={week}, site=s{site:02}" for week in range(WEEKS) for site in range(SITES)
    ]
    right = columns["prediction"] * (1 - columns["abstained"])
    for group in groups[::97]:
        rows = (columns["week"] == group["values"]["week"]) & (columns["site"] == group["values"]["site"])
        assert group["items"] == rows.sum()
        assert group["metrics"]["accuracy"]["value"] == right[rows].mean()
    assert out.count("week=") == 3 * 20
    assert "20 of 3,000 groups are shown, the worst by each metric" in " ".join(out.split())
    assert len(out.splitlines()) < 200


@pytest.mark.slow
def test_the_report_shows_the_worst_groups(run: Run, tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", columns_of_rows())
    code, _, _ = run("report", "t.csv", "--cluster", "patient", "--by", "week,site", "-o", "report.html")
    assert code == 0
    page = (tmp_path / "report.html").read_text()
    assert "20 of 3,000 groups are shown, the worst by accuracy" in page
    assert page.count("week=") < 500


def test_shown_groups_are_the_worst_in_the_order_of_all() -> None:
    items = Items.from_arrays(
        [1] * 3000,
        [int(row // 30 >= row % 30) for row in range(3000)],
        cluster=range(3000),
        metadata={"group": [row % 30 for row in range(3000)]},
    )
    table = abstain.evaluate(items, metrics=["accuracy", "wrong_rate"], by="group", interval="none").metrics
    assert table is not None
    # Group g is right in 100 - g of 100 rows.
    assert [group.label for group in table.worst_groups("accuracy", 3)] == [
        "group=27",
        "group=28",
        "group=29",
    ]
    assert table.worst_groups("wrong_rate", 3) == table.worst_groups("accuracy", 3)
    assert table.worst_groups("accuracy", 30) == table.groups


def test_rows_are_read_as_often_with_many_groups_as_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    take = Columns.take

    def counted(self: Columns, rows: NDArray[Any]) -> Columns:
        columns = take(self, rows)
        taken.append(len(columns))
        return columns

    monkeypatch.setattr(Columns, "take", counted)
    totals = []
    for groups in (5, 500):
        taken.clear()
        abstain.evaluate(items_in_groups(groups), by="group")
        totals.append(sum(taken))
    assert totals[1] <= 1.5 * totals[0]


@pytest.mark.parametrize("declined", [True, False])
@pytest.mark.parametrize("metrics", [None, "selective_accuracy,augrc"])
def test_an_aggregated_table_has_the_groups_of_a_loaded_one(
    tmp_path: Path, metrics: str | None, *, declined: bool
) -> None:
    path = tmp_path / "t.csv"
    write_table(path, columns_of_rows(declined=declined))
    loaded, counted = (
        abstain.evaluate(
            path,
            engine=engine,
            cluster="patient",
            by="week",
            metrics=None if metrics is None else metrics.split(","),
        )
        for engine in ("numpy", "duckdb")
    )
    assert loaded.metrics is not None
    assert counted.metrics is not None
    for left, right in zip(loaded.metrics.groups, counted.metrics.groups, strict=True):
        assert (left.label, left.items, left.answered, left.clusters) == (
            *(right.label, right.items, right.answered, right.clusters),
        )
        for name, estimate in left.estimates.items():
            other = right.estimates[name]
            numbers = (other.value, other.low, other.high)
            assert (estimate.value, estimate.low, estimate.high) == pytest.approx(
                numbers, rel=1e-9, nan_ok=True
            )
    for name, gap in loaded.metrics.gaps.items():
        assert counted.metrics.gaps[name].group == gap.group
        assert counted.metrics.gaps[name].gap.value == pytest.approx(gap.gap.value, rel=1e-9)


def table_of_few_values(path: Path, groups: int) -> None:
    """Rows of 20 patients, 10 confidences and an equal number of rows in every group; one in eight is declined."""
    rng = np.random.default_rng(5)
    confidence = rng.integers(0, 10, ROWS) / 10
    columns = {
        "truth": np.ones(ROWS, int),
        "prediction": (rng.random(ROWS) < 0.4 + confidence / 2).astype(int),
        "confidence": confidence,
        "abstained": (rng.random(ROWS) < 0.125).astype(int),
        "patient": rng.integers(0, 20, ROWS),
        "group": np.arange(ROWS) % groups,
    }
    write_table(path, columns)


def test_the_number_of_cells_by_cluster_does_not_depend_on_the_number_of_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items are declined, so that the ranking of every group is cut to find the worst one."""
    cells: list[tuple[int, bool]] = []
    prepare = _system.RankedRows.of

    def counted(items: Items, *arguments: Any) -> _system.RankedRows:
        cells.append((len(items), arguments[-1] is not None))
        return prepare(items, *arguments)

    monkeypatch.setattr(_system.RankedRows, "of", counted)
    by_cluster = {}
    for groups in (4, 400):
        cells.clear()
        table_of_few_values(tmp_path / "t.csv", groups)
        abstain.evaluate(tmp_path / "t.csv", engine="duckdb", cluster="patient", by="group")
        # First without a confidence, then with it: all rows, and all rows with the worst group apart.
        _, *by_cluster[groups] = [count for count, has_clusters in cells if has_clusters]
        (by_group,) = [count for count, has_clusters in cells if not has_clusters]
        assert by_group <= groups * 21  # right and wrong answers of 10 confidences, and declined items
    assert by_cluster[400][0] == by_cluster[4][0] <= 20 * 21
    assert len(by_cluster[400]) == len(by_cluster[4]) == 2
    assert by_cluster[400][1] <= 2 * by_cluster[400][0]


@pytest.mark.parametrize("at_once", [1, 4000, 1 << 21])
def test_the_worst_group_is_the_same_in_several_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(_system, "_CELLS_PER_PASS", at_once)
    columns = columns_of_rows()
    # The groups of the first week have no evaluated item.
    columns["prediction"] = np.where(columns["week"] == 0, "", columns["prediction"].astype(str))
    write_table(tmp_path / "t.csv", columns)
    names = ["selective_accuracy", "wrong_rate", "hallucination_rate"]
    loaded, counted = (
        abstain.evaluate(
            tmp_path / "t.csv",
            engine=engine,
            null_prediction="failed",
            cluster="patient",
            by="week",
            metrics=names,
            confidence="confidence",
        ).metrics
        for engine in ("numpy", "duckdb")
    )
    assert loaded is not None
    assert counted is not None
    assert list(loaded.gaps) == list(counted.gaps) == names
    for name, gap in loaded.gaps.items():
        other = counted.gaps[name]
        assert other.group == gap.group
        assert other.coverage == pytest.approx(gap.coverage, rel=1e-12)
        numbers = (gap.gap.value, gap.gap.low, gap.gap.high)
        assert (other.gap.value, other.gap.low, other.gap.high) == pytest.approx(numbers, rel=1e-9)


def test_only_the_named_metrics_are_evaluated_by_group() -> None:
    """The selective metrics are evaluated over all items, unless they are named."""
    default = abstain.evaluate(items_in_groups(5), by="group").only.estimates
    assert {key.metric for key in default if key.group} == {"accuracy", "selective_accuracy", "answer_rate"}
    assert any(key.metric == "augrc" for key in default)
    named = abstain.evaluate(items_in_groups(5), by="group", metrics="augrc").only.estimates
    assert {key.metric for key in named if key.group} == {"augrc", "answer_rate"}
