"""Representations of public objects are short, however large the objects are, and contain no record text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import abstain
from abstain import metrics
from abstain._text import MOST_CHARACTERS, MOST_LINES, few_lines
from abstain.calibrators import IsotonicCalibrator, extract_features
from abstain.groups import groups
from abstain.runs.questions import read_questions
from abstain.thresholds import apply_policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 800
# Internal objects, which are never returned to users.
INSIDE = (
    *(
        "abstain.metrics._columns",
        "abstain.metrics._risk",
        "abstain.metrics.predictions",
        "abstain.metrics.scales",
    ),
    *("abstain.resampling", "abstain.readers", "abstain.evaluation._system"),
)


def public_classes() -> set[type]:
    """Return every class that a public module lists in its `__all__`."""
    found = set()
    for module in pkgutil.walk_packages(abstain.__path__, "abstain."):
        private = any(part.startswith("_") for part in module.name.split("."))
        if private or module.name in ("abstain.__main__", "abstain.resampling.libabstain"):
            continue
        loaded = importlib.import_module(module.name)
        for name in getattr(loaded, "__all__", ()):
            value = getattr(loaded, name)
            if inspect.isclass(value) and value.__module__.startswith("abstain."):
                found.add(value)
    return found


def model(seed: int) -> abstain.Items:
    draws, truth = np.random.default_rng(seed), np.arange(ROWS) % 4
    sure = draws.random(ROWS)
    return abstain.Items.from_arrays(
        truth,
        np.where(draws.random(ROWS) < sure, truth, (truth + 1) % 4),
        abstained=draws.random(ROWS) < 0.2,
        confidence=sure,
        signals={f"signal {number}": draws.random(ROWS) for number in range(12)},
        metadata={"site": [f"site {row % 30}" for row in range(ROWS)]},
        cluster=np.arange(ROWS) // 4,
        item=np.arange(ROWS),
    )


@cache
def made() -> tuple[Any, ...]:
    """Return large objects of every kind, as users get them."""
    draws, items = np.random.default_rng(0), model(1)
    names = ["confidence", *(f"signal {number}" for number in range(12))]
    one = abstain.evaluate(items, confidence=names, metrics=["accuracy", "answer_rate"], by="site")
    systems = {f"a system with a rather long name, number {seed}": model(seed) for seed in range(5)}
    many = abstain.compare(systems, confidence="confidence", interval="percentile", resamples=50)
    truth = draws.normal(size=ROWS)
    bounds = np.stack([np.column_stack([truth - width, truth + width]) for width in (0.5, 1, 2)], axis=2)
    group = {"site": np.arange(ROWS) % 30}
    policy = abstain.choose_threshold(items, risk=0.5, by="site")
    probabilities = np.arange(1, 20) / 20
    quantiles = np.sort(draws.normal(size=(ROWS, 19)), axis=1)
    return (
        items,
        one,
        one.profile(),
        many,
        abstain.compare(model(1), model(2), confidence="confidence", margin=0.01).deltas["confidence"],
        abstain.evaluate_intervals(truth, bounds, nominal=[0.5, 0.8, 0.9], groups=group),
        abstain.evaluate_sets(np.arange(ROWS) % 4, draws.random((ROWS, 4)) < 0.7, nominal=0.7),
        abstain.evaluate_quantiles(truth, quantiles, probabilities=probabilities.tolist()),
        abstain.gate(items, [f"accuracy below 0.{digit}" for digit in range(1, 10)]),
        abstain.power(items, metric="accuracy", difference=0.1),
        abstain.check(items.to_frame("polars"), truth="truth", prediction="prediction"),
        policy,
        policy.check(model(2)),
        apply_policy(policy, model(2)),
        extract_features(items, names[1:]),
        IsotonicCalibrator().fit(draws.random(ROWS), draws.random(ROWS) > 0.5),
        groups(items, "site"),
        metrics.reliability_curve(draws.random(ROWS) > 0.5, draws.random(ROWS), bins=50),
        metrics.cumulative_differences(draws.random(ROWS) > 0.5, draws.random(ROWS)),
        metrics.pit_histogram(truth, quantiles, probabilities=probabilities.tolist()),
        metrics.interval_size_stratified_coverage(truth, bounds, bins=40),
        metrics.interval_coverage_by_group(truth, bounds, groups=np.arange(ROWS) % 30),
        metrics.interval_worst_slab_coverage(truth, bounds[:, :, 0], features=draws.normal(size=(ROWS, 9))),
        *metrics.registry.METRICS.values(),
        one["signal 3"].aurc,
    )


def within(value: Any, seen: set[int]) -> Iterator[Any]:
    """Yield every object of the package within an object, including itself."""
    if id(value) in seen or type(value).__module__.startswith(INSIDE):
        return
    seen.add(id(value))
    if type(value).__module__.startswith("abstain"):
        yield value
    parts: list[Any] = []
    if is_dataclass(value):
        parts = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, msgspec.Struct):
        parts = [getattr(value, name) for name in value.__struct_fields__]
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (tuple, list)):
        parts = list(value)
    for part in parts:
        yield from within(part, seen)


@cache
def objects() -> tuple[Any, ...]:
    seen: set[int] = set()
    return tuple(each for root in made() for each in within(root, seen))


def test_every_representation_is_short() -> None:
    for each in objects():
        text = repr(each)
        assert len(text) <= MOST_CHARACTERS, f"{type(each).__name__}: {text}"
        assert text.count("\n") < MOST_LINES, f"{type(each).__name__}: {text}"
        assert "array(" not in text, f"{type(each).__name__}: {text}"


# Classes that are tested elsewhere, or that only the command line uses.
ELSEWHERE = {
    *("Calibration", "TrainedCalibration", "VerbalizedCalibration"),  # see tests/calibrators
    *("RunPlan", "Prepared", "SignalPlan", "QuestionSet", "Question", "Example", "Wording", "FinishedLog"),
    *(
        "BootstrapWeights",
        "JackknifeWeights",
        "Replicates",
        "Intervals",
        "Points",
        "RiskTable",
        "Determination",
    ),
    *("EvaluationResult", "MetricScore", "ItemPrediction", "Scorer", "RiskCoverageDisplay"),
    *("ThresholdedClassifier", "Column", "Table", "Terminal", "ConformalResults", "Need", "Variant"),
    *("ConsistencySignals", "TokenSignals", "Outcome", "Rank", "GateCondition"),
    *("BaseMetric", "BrierDecomposition", "CalibrationTest", "ClassificationScores", "CoverageBin", "Search"),
    *("DeferralConfusion", "Instrument", "PopulationTable", "RegressionScores", "TieSensitivity", "Totals"),
    *("Strata", "Aggregation", "Within"),
}


def test_every_public_class_is_among_the_tested_objects() -> None:
    tested = {kind for each in objects() for kind in type(each).__mro__}
    plain = {
        kind
        for kind in public_classes()
        if not kind.__module__.startswith((*INSIDE, "abstain.compat")) and not issubclass(kind, Exception)
    }
    missed = {kind.__name__ for kind in plain - tested} - ELSEWHERE
    assert {name for name in missed if not name.endswith("Calibrator")} == set()


def test_results_show_their_main_numbers() -> None:
    items, one, _, many, *_ = made()
    assert repr(one).startswith("Result of 800 items\n  confidence: AURC 0.")
    assert repr(one).splitlines()[-1] == "  ... and 7 more"
    assert repr(many).splitlines()[-1].endswith(" more differences")
    assert repr(one.metrics).startswith("Metrics in 30 groups\n  accuracy: 0.")
    assert repr(one["signal 3"]).startswith("ConfidenceResult of signal 3\n  cmax: 0.")
    assert repr(made()[5]).startswith("800 intervals of 800 clusters\n  nominal 0.5: ")
    assert repr(made()[11]).startswith("Policy\n  ")
    assert repr(items.signals["signal 0"]) == "Signal(800 values, 0 absent)"
    assert repr(one["signal 3"].aurc) == f"Estimate({one['signal 3'].aurc})"


def test_the_representation_of_a_question_hides_its_text(tmp_path: Path) -> None:
    table = tmp_path / "questions.csv"
    table.write_text("question,truth,note\nIs Mrs. Example ill?,yes,seen by Dr. Example\n")
    found = read_questions(table, question="question", truth="truth")
    assert "Example" not in repr(found) + repr(found.questions[0])
    assert repr(found.questions[0]).startswith("Question(id=")


def test_few_lines_shows_all_lines_that_fit() -> None:
    eleven = [f"line {number}" for number in range(11)]
    assert few_lines("head", eleven).count("\n") == 11
    assert "more" not in few_lines("head", eleven)
    assert few_lines("head", [*eleven, "last"]).splitlines()[-1] == "  ... and 2 more"
    assert len(few_lines("h" * 2000, ["x" * 2000] * 3)) <= MOST_CHARACTERS
