"""The conditions under which metrics are undefined.

A specification lists its conditions in the order in which they are checked. The first condition that holds is the
reason. Its code is written to files and to ``MetricScore.details["reason"]``, its sentence to tables and estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from abstain import labels
from abstain.metrics._curve import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from abstain.metrics._columns import Columns
    from abstain.metrics.instruments import Instrument


@dataclass(frozen=True, slots=True)
class Condition:
    """A state of the rows in which a metric is undefined."""

    code: str
    sentence: str
    holds: Callable[[Columns], bool]


NOTHING_ANSWERED = Condition(
    "no_non_abstained_predictions", "nothing was answered", lambda rows: not rows.answered.any()
)
ALL_CORRECT = Condition(
    "every_row_is_correct",
    "every item was answered correctly",
    lambda rows: bool((rows.correct == 1.0).all()),
)
NOTHING_PREDICTED = Condition(
    "no_non_abstained_predictions",
    "nothing was answered with a prediction",
    lambda rows: not rows.predicted.any(),
)
ONE_CLASS = Condition(
    "needs_at_least_two_classes_in_ground_truth",
    "the ground truth has fewer than two classes",
    lambda rows: labels.classes(rows.truth)[1] < 2,
)
NO_GUIDANCE = Condition(
    "no_should_abstain_metadata",
    "no row has guidance on whether to abstain: should_abstain is missing in the metadata",
    lambda rows: not rows.guided.any(),
)
NO_CONFIDENCE = Condition(
    "no_rows_with_confidence", "no answered row has a confidence", lambda rows: not rows.stated.any()
)
NOT_ALL_RANKED = Condition(
    "answered_rows_without_confidence",
    "some answered rows have no confidence, so they cannot be ranked; choose another confidence",
    lambda rows: rows.unranked,
)
NOT_BINARY = Condition(
    "non_binary_labels_or_predictions",
    "some labels or predictions are neither 0 nor 1; name the positive class (--positive, positive=)",
    lambda rows: bool((rows.stated & ~rows.binary).any()),
)
POSITIVE_UNNAMED = Condition(
    "non_binary_labels_or_predictions",
    "the labels are text; name the positive class (--positive, positive=)",
    lambda rows: rows.positive_unnamed,
)
NOT_NUMBERS = Condition(
    "labels_are_not_numbers",
    "some labels or answers are text",
    lambda rows: bool((rows.predicted & np.isnan(rows.truth_number + rows.prediction_number)).any()),
)
CONSTANT = Condition(
    "constant_truth_or_prediction",
    "the labels or the answers do not vary",
    lambda rows: any(
        len(np.unique(values[rows.predicted])) < 2 for values in (rows.truth_number, rows.prediction_number)
    ),
)
NEVER_ABSTAINED = Condition(
    "no_abstentions",
    "no row with guidance was declined",
    lambda rows: not (rows.guided & rows.abstained).any(),
)
NOTHING_TO_DECLINE = Condition(
    "nothing_to_abstain_from",
    "no row should have been declined, and no row was answered incorrectly",
    lambda rows: (
        not (
            (rows.should_abstain == 1.0)
            | ((rows.should_abstain == 0.0) & rows.answered & (rows.correct == 0.0))
        ).any()
    ),
)
NOTHING_TO_ANSWER = Condition(
    "nothing_to_answer",
    "no row with guidance should have been answered",
    lambda rows: not (rows.should_abstain == 0.0).any(),
)
ONE_GUIDANCE = Condition(
    "one_kind_of_row",
    "all rows with guidance and a confidence have the same guidance, and an AUROC compares two kinds",
    lambda rows: len(np.unique(rows.should_abstain[rows.guided & ~np.isnan(rows.confidence)])) < 2,
)
ONE_CORRECTNESS = Condition(
    "one_kind_of_row",
    "the answers are all right or all wrong, and an AUROC compares two kinds",
    lambda rows: len(np.unique(rows.correct[rows.stated])) < 2,
)
ONE_EVENT = Condition(
    "one_kind_of_row",
    "the labels are all positive or all negative, and an AUROC compares two kinds",
    lambda rows: len(np.unique(rows.event[rows.stated])) < 2,
)
NO_POSITIVE_ANSWER = Condition(
    "no_positive_answers",
    "no answer is the positive label (default: 1)",
    lambda rows: not ((rows.prediction_is_positive == 1.0) & rows.answered).any(),
)
NO_POSITIVE_TRUTH = Condition(
    "no_positive_truths",
    "no answered row has the positive label (default: 1) as its ground truth",
    lambda rows: not ((rows.event == 1.0) & rows.answered).any(),
)
NO_INTERVALS = Condition(
    "no_intervals",
    "no answered row has an interval; name the columns of its bounds (--low and --high, low= and high=)",
    lambda rows: not rows.bounded.any(),
)
CONSTANT_BOUNDED = Condition(
    "constant_truth",
    "the labels do not vary, and the criterion divides by their range",
    lambda rows: len(np.unique(rows.truth_number[rows.bounded])) < 2,
)
SINGLE_INTERVAL = Condition(
    "single_interval",
    "there is only one interval, and a dependence needs at least two",
    lambda rows: rows.bounded.sum() < 2,
)
NO_SETS = Condition(
    "no_sets",
    "no answered row has a set; name its column (--set, set=)",
    lambda rows: not rows.gathered.any(),
)
NO_LOSS = Condition(
    "no_loss",
    "the requested loss is not defined for these labels",
    lambda rows: rows.lossless,
)

NOT_RIGHT_OR_WRONG = Condition(
    "losses_not_0_or_1",
    "some losses are neither 0 nor 1, and accuracy is the proportion of correct answers; use the loss zero_one",
    lambda rows: not np.isin(rows.loss[rows.answered], (0.0, 1.0)).all(),
)
ONE_LOSS = Condition(
    "one_loss",
    "all answers have the same loss, so no ranking is better than another",
    lambda rows: len(np.unique(rows.loss[rows.answered & (rows.weight > 0.0)])) < 2,
)


def unreached(rows: Columns, coverage: float) -> Condition | None:
    """Return the condition of a coverage that these rows cannot reach, or None."""
    highest = rows.highest_coverage
    if highest >= coverage - TOLERANCE:
        return None
    return _always("coverage_not_reached", f"coverage {coverage:g} cannot be reached: Cmax is {highest:.3f}")


def not_totals(rows: Columns, instrument: Instrument) -> Condition | None:
    """Return the condition of rows that are not totals of an instrument but its items, or None."""
    if rows.scale in (None, instrument.total_scale):
        return None
    return _always(
        "not_totals", f"the rows are not totals of {instrument.name}; compute totals with total_items"
    )


def _always(code: str, sentence: str) -> Condition:
    return Condition(code, sentence, lambda _: True)
