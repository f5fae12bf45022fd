"""Results as data frames: the same numbers, one per row, in every library."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pytest

import abstain
from abstain.errors import ArgumentError
from abstain.metrics import cumulative_differences, reliability_curve, risk_coverage_curve

BACKENDS = ("pandas", "polars", "pyarrow")


def rows(frame: Any) -> list[dict[str, Any]]:
    return list(nw.from_native(frame, eager_only=True).rows(named=True))


def items() -> abstain.Items:
    return abstain.Items.from_arrays(
        [1, 0, 1, 1, 0, 1],
        [1, 0, 0, 1, 0, None],
        abstained=[False] * 5 + [True],
        confidence=[0.9, 0.8, 0.3, 0.7, 0.6, 0.1],
        metadata={"site": ["a", "a", "a", "b", "b", "b"]},
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_metric_table_has_a_row_per_metric_and_group(backend: str) -> None:
    table = abstain.evaluate(items(), metrics=["accuracy", "answer_rate"], by="site").metrics
    assert table is not None
    frame = table.to_frame(backend=backend)
    assert type(frame).__module__.partition(".")[0] == backend
    found = {(row["metric"], row["group"]): row for row in rows(frame)}
    assert list(found) == [
        *(("accuracy", ""), ("answer_rate", "")),
        *(("accuracy", "site=a"), ("answer_rate", "site=a")),
        *(("accuracy", "site=b"), ("answer_rate", "site=b")),
    ]
    assert found["accuracy", ""]["value"] == pytest.approx(4 / 6)
    assert found["accuracy", "site=a"]["value"] == pytest.approx(2 / 3)
    assert found["answer_rate", "site=b"]["value"] == pytest.approx(2 / 3)
    assert found["accuracy", ""]["low"] == table["accuracy"].low


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_system_and_its_operating_points(backend: str) -> None:
    result = abstain.evaluate(items(), confidence="confidence")
    assert str(rows(result.only.to_frame(backend=backend))) == str(rows(result.to_frame(backend=backend)))
    profile = result.profile()
    points = rows(profile.points["confidence"].to_frame(backend=backend))
    assert [row["threshold"] for row in points] == [0.9, 0.8, 0.7, 0.6, 0.3]
    assert [row["answered"] for row in points] == [1, 2, 3, 4, 5]
    assert points[-1]["selective_risk"] == pytest.approx(1 / 5)
    assert {"selective_low", "selective_high", "generalized_risk"} <= set(points[0])
    line = rows(profile.lines["confidence"].to_frame(backend=backend))
    assert set(line[0]) == {"coverage", "selective_risk", "generalized_risk"}
    assert line[-1]["coverage"] == pytest.approx(5 / 6)


def test_undefined_values_are_null() -> None:
    profile = abstain.evaluate(items(), confidence="confidence", interval="none").profile()
    assert profile.points["confidence"].to_frame(backend="polars")["selective_low"].null_count() == 5


@pytest.mark.parametrize("backend", BACKENDS)
def test_coverage_has_a_row_per_nominal_coverage_and_metric_and_one_per_part(backend: str) -> None:
    truth = np.arange(8.0)
    bounds = np.stack([np.column_stack([truth - 1, truth + width]) for width in (1.0, 2.0)], axis=2)
    bounds[:2, :, 0] += 5.0
    result = abstain.evaluate_intervals(truth, bounds, nominal=[0.8, 0.9], groups={"site": list("aabbaabb")})
    found = {(row["nominal"], row["metric"]): row for row in rows(result.to_frame(backend=backend))}
    assert found[0.8, "coverage"]["value"] == 0.75
    assert found[0.9, "mean_width"]["value"] == 3.0
    (weighted,) = [row for (_, metric), row in found.items() if metric == "weighted_interval_score"]
    assert weighted["nominal"] is None or np.isnan(weighted["nominal"])
    strata = rows(result.to_frame("strata", backend=backend))
    by_site = [row for row in strata if (row["nominal"], row["by"]) == (0.8, "site")]
    assert [(row["part"], row["rows"], row["value"]) for row in by_site] == [("a", 4.0, 0.5), ("b", 4.0, 1.0)]
    assert {row["by"] for row in strata} == {"width", "site"}


def test_an_unknown_frame_is_an_error() -> None:
    truth = np.arange(8.0)
    result = abstain.evaluate_intervals(truth, np.column_stack([truth - 1, truth + 1]), nominal=0.9)
    with pytest.raises(ArgumentError, match=r"unknown what 'curves'.* estimates, strata"):
        result.to_frame("curves")


@pytest.mark.parametrize("backend", BACKENDS)
def test_curves_of_metrics(backend: str) -> None:
    curve = rows(risk_coverage_curve([0, 2, 0], [2, 2, 1], abstained=5).to_frame(backend=backend))
    assert [row["coverage"] for row in curve] == [0.25, 0.375]
    assert [row["threshold"] for row in curve] == [2.0, 1.0]
    bins = rows(reliability_curve([1, 0, 1], [0.1, 0.9, 0.95], bins=5).to_frame(backend=backend))
    assert [row["count"] for row in bins] == [1.0, 0.0, 0.0, 0.0, 2.0]
    assert [row["right"] for row in bins] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    sums = rows(cumulative_differences([1, 0, 1], [0.2, 0.5, 0.6]).to_frame(backend=backend))
    assert [row["proportion"] for row in sums] == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
    assert sums[0]["confidence"] is None or np.isnan(sums[0]["confidence"])
