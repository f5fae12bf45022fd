"""The registry: names, aliases, parameters, bundles, registration, entry points and import paths."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from abstain.compat.objects import columns_of
from abstain.errors import ArgumentError
from abstain.metrics import (
    Accuracy,
    BaseMetric,
    EvaluationResult,
    ExpectedCalibrationError,
    MetricScore,
    MetricSpecification,
    default_benchmark_metrics,
    known_metrics,
    register_metric,
    unregister_metric,
)
from abstain.metrics._columns import Columns
from abstain.metrics._specification import measure_metrics
from abstain.metrics.registry import BUNDLES, METRICS, find_metric, select_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLUGIN = """
from abstain.metrics import BaseMetric, MetricScore

class Rows(BaseMetric):
    name = "rows_of_plugin"
    unit = "rows"

    def compute(self, results):
        return MetricScore(self.name, float(len(results)), n_evaluated=len(results))

class Needy(BaseMetric):
    name = "needy"

    def __init__(self, threshold):
        self.threshold = threshold

    def compute(self, results):
        return MetricScore(self.name, self.threshold)

nothing = 3
"""


class Rows(BaseMetric):
    name = "rows"

    def compute(self, results: list[EvaluationResult]) -> MetricScore:
        return MetricScore(self.name, float(len(results)), n_evaluated=len(results))


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with an entry point, and a module in the working directory."""
    (tmp_path / "rows_plugin.py").write_text(PLUGIN)
    information = tmp_path / "rows_plugin-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: rows-plugin\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[abstain.metrics]\ncount_of_rows = rows_plugin:Rows\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("rows_plugin", None)


def test_a_metric_of_a_family_requires_its_compute_function() -> None:
    incomplete = MetricSpecification(len, {}, "higher", "proportion", family=METRICS["accuracy"].family)
    with pytest.raises(TypeError, match="family requires compute"):
        incomplete.point(Columns.checked([1], [1]))


def test_names_aliases_and_parameters() -> None:
    assert find_metric("accuracy") is METRICS["accuracy"]
    assert find_metric(" ece ") is METRICS["expected_calibration_error"]
    requested = find_metric("risk_at_coverage@0.8")
    assert (requested.value, requested.key) == (0.8, "risk_at_coverage@0.8")
    # The key contains the parameter even if it is the default.
    assert find_metric("risk_at_coverage") is METRICS["risk_at_coverage"]
    assert (
        find_metric("risk_at_coverage").key
        == find_metric("risk_at_coverage@0.5").key
        == "risk_at_coverage@0.5"
    )
    assert find_metric("effective_reliability").key == "effective_reliability@1"
    assert METRICS["risk_at_coverage"].at(0.25).key == "risk_at_coverage@0.25"


def test_the_bins_of_a_calibration_error_are_its_parameter() -> None:
    confidence = [0.95, 0.85, 0.35, 0.3]
    rows = Columns.believed([1, 0, 1, 0], confidence)
    for name in ("ece", "top_label_calibration_error"):
        # Without a parameter there are 15 bins, also in files, as in other tools.
        assert find_metric(name).key == find_metric(f"{name}@15").key == find_metric(name).name
        few = find_metric(f"{name}@2")
        assert (few.value, few.key) == (2, f"{few.name}@2")
        # In two bins: |0.5 - 0.9| and |0.5 - 0.325|.
        assert few.point(rows) == pytest.approx((0.4 + 0.175) / 2)
        assert few.point(rows) != pytest.approx(find_metric(name).point(rows))
    # Its interval is computed around the debiased value with the same bins.
    debiased = find_metric("ece@2").debiased
    assert debiased is not None
    assert debiased.value == 2


def test_bundles_contain_the_same_metrics_as_the_lists_of_objects() -> None:
    assert BUNDLES["default_benchmark"] == tuple(metric.name for metric in default_benchmark_metrics())


def test_duplicates_are_removed_and_the_answer_rate_is_added() -> None:
    names = [metric.name for metric in select_metrics(["accuracy,accuracy", "default_accuracy"])]
    assert names == ["accuracy", "balanced_accuracy"]
    assert [metric.name for metric in select_metrics("selective_accuracy")] == [
        "selective_accuracy",
        "answer_rate",
    ]


def measured(
    requested: Any, results: list[EvaluationResult], weights: list[float] | None = None
) -> list[float]:
    """Return the values of some metrics, with each row a unit."""
    columns = columns_of(results, guided=True)
    columns = replace(columns, cluster=np.arange(len(columns)), units=len(columns))
    measure = measure_metrics(columns, select_metrics(requested))
    actual: list[float] = measure(np.array([weights or [1.0] * len(columns)]))[0].tolist()
    return actual


def test_metric_objects_give_the_same_values_as_names() -> None:
    rows = [EvaluationResult(1, 1, confidence=0.9), EvaluationResult(0, 1, confidence=0.6)]
    named = select_metrics("default_benchmark")
    objects = select_metrics(default_benchmark_metrics())
    assert [metric.key for metric in named] == [metric.key for metric in objects]
    for weights in ([1.0, 1.0], [2.0, 0.0], [0.5, 3.0]):
        assert np.array_equal(
            measured(named, rows, weights), measured(objects, rows, weights), equal_nan=True
        )
    assert measured(ExpectedCalibrationError(n_bins=2), rows) == [pytest.approx(0.25), 1.0]
    # With other bins it is a different metric with another key; the same metric is selected only once.
    assert len(select_metrics(["accuracy", Accuracy()])) == 1
    both = select_metrics(["ece", ExpectedCalibrationError(n_bins=2), "ece@2"], coverage=False)
    assert [metric.key for metric in both] == ["expected_calibration_error", "expected_calibration_error@2"]
    assert measured(
        Accuracy(treat_abstention_as_neutral=True), [*rows, EvaluationResult(1, 1, abstained=True)]
    ) == [
        0.5,
        pytest.approx(2 / 3),
    ]


def test_a_subclass_of_a_built_in_object_uses_its_own_compute() -> None:
    class Strict(Accuracy):
        name = "strict_accuracy"

        def compute(self, results: list[EvaluationResult]) -> MetricScore:
            return replace(super().compute(results), value=min(super().compute(results).value, 0.25))

    assert find_metric(Strict).name == "strict_accuracy"
    assert measured(Strict, [EvaluationResult(1, 1), EvaluationResult(1, 1)]) == [0.25]


def test_a_user_defined_metric_receives_each_row_as_many_times_as_its_weight() -> None:
    rows = [EvaluationResult(1, 1), EvaluationResult(0, 1)]
    assert measured(Rows, rows, [3.0, 1.0]) == [4.0]
    columns = replace(columns_of(rows, guided=False), weight=np.array([2.0, 5.0]))
    assert find_metric(Rows).family.build(columns, [find_metric(Rows)]).point == 7.0
    assert np.isnan(measured(Rows, rows, [0.0, 0.0])).all()
    with pytest.raises(
        ArgumentError, match="metric rows is computed from whole rows, and a row cannot count 0.5 times"
    ):
        measured(Rows, rows, [1.0, 0.5])


def test_a_division_by_zero_is_undefined_and_other_failures_show_no_record_text() -> None:
    class Proportion(Rows):
        def compute(self, results: list[EvaluationResult]) -> MetricScore:
            if results[0].prediction == "broken":
                raise RuntimeError(f"cannot read {results[0].raw_response}")
            return MetricScore(self.name, 1 / sum(row.abstained for row in results))

    assert np.isnan(measured(Proportion, [EvaluationResult(1, 1)])).all()
    secret = EvaluationResult("broken", "a", raw_response="Mrs. Example")
    with pytest.raises(ArgumentError, match=r"^metric rows: compute\(\) raised RuntimeError$"):
        measured(Proportion, [secret])


def test_the_selective_bundle_is_computed_from_one_ranking() -> None:
    metrics = select_metrics("selective")
    assert len({metric.family for metric in metrics}) == 1
    rows = Columns.ranked([0, 2, 0], [2, 2, 1], abstained=5)
    actual = dict(
        zip([metric.name for metric in metrics], measure_metrics(rows, metrics).points, strict=True)
    )
    assert actual["cmax"] == 3 / 8
    assert actual["aurc"] == pytest.approx(17 / 48)
    assert actual["augrc"] == pytest.approx(1 / 16)
    assert actual["aurc_optimal"] == pytest.approx(1 / 24)


def test_registration() -> None:
    register_metric(Rows)
    try:
        assert "rows" in known_metrics()
        assert find_metric("rows").needs == ("results",)
        with pytest.raises(
            ArgumentError, match="a metric named 'rows' already exists; give yours another name"
        ):
            register_metric(Rows())
    finally:
        unregister_metric("rows")
    assert "rows" not in known_metrics()
    with pytest.raises(ArgumentError, match="unknown metric 'rows'"):
        unregister_metric("rows")


def test_the_name_of_a_built_in_metric_cannot_be_registered() -> None:
    class Accuracy(Rows):
        name = "accuracy"

    with pytest.raises(ArgumentError, match="a metric named 'accuracy' already exists"):
        register_metric(Accuracy)
    with pytest.raises(ArgumentError, match="a metric named 'accuracy' already exists"):
        select_metrics(["accuracy", Accuracy])


def test_import_paths_are_searched_in_the_working_directory(plugin: Path) -> None:
    assert find_metric("rows_plugin:Rows").name == "rows_of_plugin"
    assert str(plugin) not in sys.path


def test_entry_points_are_metrics_under_their_name(plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(plugin)
    assert "count_of_rows" in known_metrics()
    assert measured("count_of_rows", [EvaluationResult(1, 1), EvaluationResult(0, 1)]) == [2.0]


class TestBadInput:
    def test_an_unknown_metric_suggests_the_nearest(self) -> None:
        with pytest.raises(ArgumentError, match="unknown metric 'acuracy' .did you mean 'accuracy'.*known: "):
            find_metric("acuracy")

    def test_an_invalid_parameter_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match=r"risk_at_coverage: coverage must be in \(0, 1\], got 80"):
            find_metric("risk_at_coverage@80")
        with pytest.raises(ArgumentError, match="coverage must be a number, got 'most'"):
            find_metric("risk_at_coverage@most")
        with pytest.raises(ArgumentError, match="calibration_error: bins must be a whole number, got 2.5"):
            find_metric("ece@2.5")
        with pytest.raises(ArgumentError, match="calibration_error: bins must be at least 1, got 0"):
            find_metric("ece@0")
        with pytest.raises(ArgumentError, match="metric accuracy takes no parameter"):
            find_metric("accuracy@3")
        with pytest.raises(ArgumentError, match="unknown instrument 'PHQ-99'"):
            find_metric("severity_tier_accuracy@PHQ-99")

    def test_an_empty_request_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="no metric was requested"):
            select_metrics([])

    def test_a_missing_module_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="metric 'nowhere:Rows': cannot import 'nowhere'"):
            find_metric("nowhere:Rows")
        with pytest.raises(ArgumentError, match="metric '.here:Rows': cannot import '.here'"):
            find_metric(".here:Rows")

    @pytest.mark.usefixtures("plugin")
    def test_a_missing_class_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="rows_plugin has no 'Row' .did you mean 'Rows'"):
            find_metric("rows_plugin:Row")

    @pytest.mark.usefixtures("plugin")
    def test_an_object_that_is_not_a_metric_is_refused(self) -> None:
        with pytest.raises(ArgumentError, match="a metric must be a BaseMetric, got a number"):
            find_metric("rows_plugin:nothing")
        with pytest.raises(ArgumentError, match="metric Needy cannot be created without arguments"):
            find_metric("rows_plugin:Needy")

    def test_an_entry_point_that_cannot_be_loaded(
        self, plugin: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (plugin / "rows_plugin-1.0.dist-info" / "entry_points.txt").write_text(
            "[abstain.metrics]\nbroken = rows_plugin:Missing\n"
        )
        monkeypatch.syspath_prepend(plugin)
        with pytest.raises(
            ArgumentError, match=r"the entry point 'broken' \(rows_plugin:Missing\) cannot be loaded"
        ):
            known_metrics()

    def test_a_compute_that_returns_no_score(self) -> None:
        class Wrong(Rows):
            name = "wrong"

            def compute(self, results: list[EvaluationResult]) -> MetricScore:
                return 3.0  # type: ignore[return-value]

        with pytest.raises(
            ArgumentError, match=r"wrong: compute\(\) must return a MetricScore, got a number"
        ):
            measured(Wrong, [EvaluationResult(1, 1)])


def test_metric_names_are_not_case_sensitive() -> None:
    assert [metric.key for metric in select_metrics("AURC,Ece@10,Risk_At_Coverage@0.8", coverage=False)] == [
        "aurc",
        "expected_calibration_error@10",
        "risk_at_coverage@0.8",
    ]
    assert select_metrics("Default_Accuracy") == select_metrics("default_accuracy")
