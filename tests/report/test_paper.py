"""The methods paragraph of a result, and its tables in Markdown and LaTeX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import abstain
from abstain import Items, compare, evaluate
from abstain.evaluation.conformal import evaluate_intervals, evaluate_sets

SOFTWARE = f"All numbers were computed with abstain {abstain.__version__}."


def system(declined: int, *, wrong: int = 8, failed: int = 0) -> Items:
    """40 items of 20 patients: the least confident ones are declined, and the last ones answered are wrong."""
    answered = 40 - declined
    truth = np.ones(40)
    prediction = np.r_[np.ones(answered - wrong), np.zeros(wrong + declined)]
    return Items.from_arrays(
        truth,
        prediction,
        abstained=[row >= answered for row in range(40)],
        failed=[row < failed for row in range(40)],
        confidence=[(40 - row) / 40 for row in range(40)],
        cluster=[f"p{row % 20}" for row in range(40)],
        item=list(range(40)),
    )


def test_the_methods_of_one_system() -> None:
    result = evaluate(system(10, failed=1), metrics=["accuracy", "augrc"])
    assert result.methods() == (
        "The evaluation included 39 items of 20 clusters. The system answered 29 of them (a coverage of 74.4%) and "
        "declined 10. 1 item that failed was excluded. The loss of an answer was zero_one = 1 if pred != gt else 0. "
        "Answers were ranked by their confidence. The metrics were accuracy, answer rate, selective accuracy "
        "and AUGRC. Areas under curves "
        "were integrated in the convention trapezoid. 95% confidence intervals were computed with a jackknife over 20 "
        "clusters and the t distribution. Intervals of single metrics were Wilson score intervals for bounded metrics. "
        f"{SOFTWARE}"
    )


def test_the_methods_of_two_systems() -> None:
    result = compare({"bold": system(0), "shy": system(10)}, metrics="augrc", margin=0.02, level=0.9)
    assert result.methods() == (
        "The systems bold and shy were compared on 40 items of 20 clusters, matched by cluster and item. The coverage "
        "was 100.0% for bold and 75.0% for shy. The loss of an answer was zero_one = 1 if pred != gt else 0. Answers "
        "were ranked by their confidence. The metrics were answer rate, accuracy, selective "
        "accuracy and AUGRC. Areas under curves were integrated "
        "in the convention trapezoid. 90% confidence intervals were computed with a jackknife over 20 clusters and the "
        "t distribution. Intervals of single metrics were Wilson score intervals for bounded metrics. Systems were "
        "compared by paired differences over the same items. "
        "AUGRC was compared at matched coverage, the largest coverage that both systems of a pair reached. "
        "Differences were tested two-sided at a level of 0.1. The margin of equivalence and "
        f"non-inferiority was 0.02. {SOFTWARE}"
    )


def test_the_methods_of_three_systems_name_holms_method_and_the_reference() -> None:
    three = {"a": system(0), "b": system(0, wrong=12), "c": system(0, wrong=2)}
    text = compare(three, metrics="accuracy", reference="a", simultaneous=True).methods()
    assert "The systems a, b and c were compared on 40 items of 20 clusters" in text
    assert "Every system was compared with a." in text
    assert "p-values were corrected with Holm's method for 2 pairs of systems." in text
    assert "Confidence intervals of differences were simultaneous for all pairs." in text
    assert "matched coverage" not in text
    assert "Areas under curves" not in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"interval": "none"}, "No confidence intervals were computed."),
        (
            {"interval": "percentile", "resamples": 50, "seed": 7},
            "95% confidence intervals were computed with a cluster bootstrap (percentile method, 50 resamples of 20 "
            "clusters, seed 7).",
        ),
        (
            {"resamples": 50},
            "In addition, percentile intervals of a cluster bootstrap were computed (50 resamples, seed 42).",
        ),
    ],
)
def test_the_methods_describe_the_intervals(options: dict[str, Any], sentence: str) -> None:
    assert sentence in evaluate(system(10), metrics="accuracy", **options).methods()


def test_the_methods_of_independent_items_without_errors() -> None:
    items = Items.from_arrays([1] * 20, [1] * 20, confidence=[0.9] * 20)
    assert evaluate(items, metrics="accuracy").methods() == (
        "The evaluation included 20 items, treated as independent. The system answered all of them. The metrics were "
        "accuracy, answer rate and selective accuracy. 95% confidence intervals were computed with a jackknife over "
        "20 rows and the t distribution. Intervals of single metrics were Wilson score intervals for bounded metrics. "
        f"{SOFTWARE}"
    )


def test_the_methods_without_evaluated_items() -> None:
    items = Items.from_arrays([1, 1], [1, 1], failed=[True, True])
    assert evaluate(items, metrics="accuracy").methods() == (
        f"No item could be evaluated. 2 items that failed were excluded. {SOFTWARE}"
    )


def test_the_tables_of_a_result_in_markdown_and_latex() -> None:
    result = evaluate(system(10), metrics="accuracy")
    accuracy = result.only.estimate("accuracy")
    assert f"| accuracy | {accuracy} |" in result.to_markdown()
    assert rf"    accuracy & {accuracy} \\" in result.to_latex()
    both = compare({"bold": system(0), "shy": system(10)}, metrics="augrc")
    assert both.to_markdown().startswith("**Differences between systems**\n\n| confidence | metric |")
    assert both.to_latex().count(r"\begin{table}") == 2


@pytest.mark.parametrize("kind", ["intervals", "sets"])
def test_the_tables_of_intervals_and_sets_in_markdown_and_latex(kind: str) -> None:
    if kind == "intervals":
        truth = np.arange(50.0)
        result = evaluate_intervals(truth, np.column_stack([truth - 1, truth + 1]), nominal=0.9)
    else:
        result = evaluate_sets([0, 1] * 25, [[True, True]] * 50, nominal=0.9)
    coverage = result.by_nominal[0]["coverage"]
    assert f"| 0.9 | coverage | all | 50 | {coverage} | over-covered |" in result.to_markdown()
    assert rf"    0.9 & coverage & all & 50 & {coverage} & over-covered \\" in result.to_latex()
