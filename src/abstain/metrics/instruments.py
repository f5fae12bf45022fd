"""Instruments: questionnaires whose items add up to a total score with severity tiers, declared as data.

A participant's total is the sum of all items. If items were declined, the total is only known to lie between two
bounds, with the declined items at the lowest and at the highest score of the item scale. If both bounds are in the same
tier, the tier is known. `total_items` turns items into one row per participant, which every metric can evaluate. An
unknown total is an abstention, never a sum of the answered items only.

To add an instrument, pass an `Instrument`, or a JSON object with the same keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _validate
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError
from abstain.items import Items, Outcome
from abstain.metrics import _conditions as undefined_if
from abstain.metrics._columns import Columns
from abstain.metrics._specification import HIGHER, LABELS, Family, MetricSpecification, Parameter
from abstain.metrics.coverage import means_statistic
from abstain.metrics.scales import proportion_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from abstain._types import Floats
    from abstain._validate import Column
    from abstain.resampling import Statistic


__all__ = [
    "INSTRUMENTS",
    "Instrument",
    "Totals",
    "find_instrument",
    "severity_tier_accuracy",
    "total_items",
    "totals",
]


@dataclass(frozen=True, slots=True)
class Instrument:
    """A questionnaire: its items, their scale, and the lowest total of each tier.

    >>> INSTRUMENTS["PHQ-8"].total_scale, INSTRUMENTS["PHQ-8"].tier(12)
    ((0.0, 24.0), 'moderate')
    """

    name: str
    items: tuple[str, ...]
    item_scale: tuple[float, float]
    tiers: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        if not self.items or len(set(self.items)) != len(self.items):
            raise ArgumentError(f"instrument {self.name}: item names are required and must be unique")
        _validate.scale(self.item_scale, "item_scale")
        lowest = [low for _, low in self.tiers]
        if not lowest or lowest != sorted(set(lowest)) or lowest[0] != self.total_scale[0]:
            raise ArgumentError(
                f"instrument {self.name}: tiers must ascend from the lowest total, {self.total_scale[0]:g}"
            )

    @classmethod
    def from_mapping(cls, content: Mapping[str, Any]) -> Instrument:
        """Build an instrument from the content of a JSON file.

        >>> tiers = [["low", 0], ["high", 3]]
        >>> own = {"name": "two questions", "items": ["a", "b"], "item_scale": [0, 3], "tiers": tiers}
        >>> Instrument.from_mapping(own).tier(4)
        'high'
        """
        try:
            low, high = content["item_scale"]
            return cls(
                name=str(content["name"]),
                items=tuple(str(item) for item in content["items"]),
                item_scale=(float(low), float(high)),
                tiers=tuple((str(tier), float(lowest)) for tier, lowest in content["tiers"]),
            )
        except (KeyError, TypeError, ValueError) as problem:
            if isinstance(problem, ArgumentError):
                raise
            raise DataError(
                "an instrument needs name, items, item_scale [lowest, highest] and tiers [[name, lowest total], ...]"
            ) from None

    @property
    def total_scale(self) -> tuple[float, float]:
        """The lowest and the highest possible total."""
        low, high = self.item_scale
        return len(self.items) * float(low), len(self.items) * float(high)

    @property
    def edges(self) -> tuple[float, ...]:
        """The lowest total of each tier but the first."""
        return tuple(low for _, low in self.tiers[1:])

    def tier_index(self, totals: ArrayLike) -> NDArray[np.intp]:
        """Return the index of the tier of each total."""
        return np.searchsorted(self.edges, totals, side="right")

    def tier(self, total: float) -> str:
        """Return the name of the tier of a total."""
        return self.tiers[int(self.tier_index(total))][0]


INSTRUMENTS = {
    "PHQ-8": Instrument(
        name="PHQ-8",
        items=(
            "NoInterest",
            "Depressed",
            "Sleep",
            "Tired",
            "Appetite",
            "Failure",
            "Concentrating",
            "Moving",
        ),
        item_scale=(0, 3),
        tiers=(("none", 0), ("mild", 5), ("moderate", 10), ("moderately severe", 15), ("severe", 20)),
    )
}


def find_instrument(instrument: str | Instrument) -> Instrument:
    """Return an instrument by its name; an `Instrument` is returned unchanged."""
    if isinstance(instrument, Instrument):
        return instrument
    return INSTRUMENTS[_validate.choice(instrument, "instrument", INSTRUMENTS)]


@dataclass(frozen=True, eq=False, slots=True)
class Totals:
    """One total per participant, with bounds if items were declined.

    Attributes:
        instrument: the questionnaire.
        cluster: the participant.
        truth: the true total; NaN if an item has no ground truth.
        low: the total with every declined item at its lowest score; NaN if the participant failed.
        high: the total with every declined item at its highest score; NaN if the participant failed.
        answered: the number of answered items.
    """

    instrument: Instrument
    cluster: NDArray[Any]
    truth: Floats
    low: Floats
    high: Floats
    answered: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """True if every item was answered, so that the total is known."""
        return self.low == self.high

    @property
    def decided(self) -> NDArray[np.bool_]:
        """True if both bounds are in the same tier, so that the severity is known."""
        same_tier = self.instrument.tier_index(self.low) == self.instrument.tier_index(self.high)
        return same_tier & ~np.isnan(self.low)

    def tiers(self, which: str = "truth") -> list[str | None]:
        """Return the tier of each participant's "truth", "low" or "high"; None if it is unknown."""
        values = getattr(self, _validate.choice(which, "which", ("truth", "low", "high"))).tolist()
        return [None if np.isnan(value) else self.instrument.tier(value) for value in values]


def totals(items: Items, instrument: str | Instrument = "PHQ-8") -> Totals:
    """Return every participant's total and its bounds.

    >>> own = Instrument("two questions", ("a", "b"), (0, 3), (("low", 0), ("high", 3)))
    >>> rows = Items.from_arrays([1, 2, 0, 0], [1, 3, 2, None], abstained=[0, 0, 0, 1],
    ...     cluster=["p", "p", "q", "q"], item=["a", "b", "a", "b"])
    >>> scores = totals(rows, own)
    >>> scores.low.tolist(), scores.high.tolist(), scores.decided.tolist()
    ([4.0, 2.0], [4.0, 5.0], [True, False])
    """
    form = find_instrument(instrument)
    shape = (len(items.cluster_ids), len(form.items))
    truth, low, high = (np.full(shape, np.nan) for _ in range(3))
    answered = np.zeros(shape, np.intp)
    cells = (items.cluster_index, _item_columns(items, form))
    truth[cells] = _validate.floats(items.truth, "truth")
    prediction = _validate.floats(items.prediction, "prediction")
    unanswered = np.isnan(prediction) | ~items.answered
    failed = items.outcome == Outcome.FAILED
    for bound, end in ((low, form.item_scale[0]), (high, form.item_scale[1])):
        bound[cells] = np.where(failed, np.nan, np.where(unanswered, end, prediction))
    answered[cells] = items.answered
    return Totals(
        instrument=form,
        cluster=items.cluster_ids,
        truth=truth.sum(axis=1),
        low=low.sum(axis=1),
        high=high.sum(axis=1),
        answered=answered.sum(axis=1),
    )


def total_items(
    items: Items, instrument: str | Instrument = "PHQ-8", *, answered_when: str = "complete"
) -> Items:
    """Return one item per participant: the total, which is an abstention if it is unknown.

    Args:
        items: the items of the instrument.
        instrument: the instrument, or its name.
        answered_when: "complete" if every item must be answered; "tier" if the bounds must be in the same tier, in
            which case the total is the midpoint between them.
    """
    _validate.choice(answered_when, "answered_when", ("complete", "tier"))
    sums = totals(items, instrument)
    counted = sums.complete if answered_when == "complete" else sums.decided
    failed = np.isnan(sums.low)
    result = Items.from_arrays(
        sums.truth,
        np.where(counted, 0.5 * (sums.low + sums.high), np.nan),
        abstained=~counted & ~failed,
        failed=failed,
        cluster=sums.cluster,
        item=np.repeat(f"{sums.instrument.name} total", len(sums)),
        metadata=_constant_columns(items),
        scale=sums.instrument.total_scale,
    )
    return replace(result, cluster_noun=items.cluster_noun, provenance=items.provenance)


def severity_tier_accuracy(
    y_true: Column,
    y_pred: Column,
    *,
    instrument: str | Instrument = "PHQ-8",
    abstained: Column | None = None,
    sample_weight: Column | None = None,
) -> float:
    """Return the proportion of answered totals that are in the severity tier of the true total.

    Higher is better. NaN if nothing is answered.

    >>> round(severity_tier_accuracy([3, 12, 20], [4, 9, 24]), 6)
    0.666667
    """
    form = find_instrument(instrument)
    columns = Columns.checked(y_true, y_pred, abstained=abstained, sample_weight=sample_weight)
    low, high = form.total_scale
    for name, numbers in (("y_true", columns.truth_number), ("y_pred", columns.prediction_number)):
        _validate.finite(numbers, name, among=columns.answered)
        wrong = columns.answered & ((numbers < low) | (numbers > high))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"{name} is {numbers[row]:g} at {row_name(row)}; a total of {form.name} is from {low:g} to {high:g}"
            )
    return _tier_accuracy(columns, instrument=form).point


def _tier_accuracy(columns: Columns, *, instrument: Instrument) -> Statistic:
    rows = columns.take(columns.predicted)
    right = instrument.tier_index(rows.truth_number) == instrument.tier_index(rows.prediction_number)
    return means_statistic(("severity_tier_accuracy",), [right], rows)


def _item_columns(items: Items, form: Instrument) -> NDArray[np.intp]:
    """Return the index of each item among the instrument's items; every participant must have every item once."""
    index = {name: position for position, name in enumerate(form.items)}
    names = [str(name) for name in items.item.tolist()]
    unknown = [name for name in dict.fromkeys(names) if name not in index]
    # A participant that failed before any item was known is one row without an item name.
    if unknown and unknown != [""]:
        raise DataError(
            f"{form.name} has no item {unknown[0]!r}{_validate.suggestion(unknown[0], index)}; "
            f"its items are {', '.join(index)}"
        )
    item_index = np.array([index.get(name, 0) for name in names], dtype=np.intp)
    counts = np.bincount(
        items.cluster_index * len(index) + item_index, minlength=len(items.cluster_ids) * len(index)
    ).reshape(-1, len(index))
    failed = np.zeros(len(items.cluster_ids), np.bool_)
    failed[items.cluster_index[items.outcome == Outcome.FAILED]] = True
    wrong = (counts != 1) & ~failed[:, None]
    if wrong.any():
        cluster, item = np.argwhere(wrong)[0]
        participant = f"{items.cluster_noun} {_validate.place_name(items.cluster_ids[cluster])}"
        raise DataError(
            f"{participant} has {form.items[item]} {int(counts[cluster, item])} times; a total needs every item once"
        )
    return item_index


def _constant_columns(items: Items) -> dict[str, list[Any]]:
    """Return the metadata that are the same for all items of each participant, which also describe the total."""
    first = np.unique(items.cluster_index, return_index=True)[1]
    columns = {}
    for name, column in items.metadata.items():
        values = column.tolist()
        if all(values[row] == values[first[cluster]] for row, cluster in enumerate(items.cluster_index)):
            columns[name] = [values[row] for row in first]
    return columns


METRICS: tuple[MetricSpecification, ...] = (
    MetricSpecification(
        severity_tier_accuracy,
        LABELS,
        HIGHER,
        "proportion",
        family=Family.of_one(_tier_accuracy),
        undefined=(undefined_if.NOTHING_PREDICTED, undefined_if.NOT_NUMBERS),
        undefined_at=undefined_if.not_totals,
        answered_only=True,
        scale_at=proportion_of(lambda columns: columns.predicted),
        parameter=Parameter(
            "instrument", INSTRUMENTS["PHQ-8"], lambda name, _: find_instrument(name), number=False
        ),
    ),
)
