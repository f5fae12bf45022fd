"""Apply a policy: answer or defer, for every row of items, of a data frame or of a table file.

Rows need no truth. A row is answered where the model answered and its confidence reaches the threshold; a row without
a confidence is deferred. Data whose confidence is not the policy's are refused, and how far confidences and the share
answered have moved from those that the policy was chosen on is told: where they have, the promise may be void.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _outputs, _validate
from abstain._places import rows_named_by
from abstain._text import few_lines
from abstain.confidence import find_variant, signals_needed
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.groups import group_names
from abstain.items import Items
from abstain.readers import open_table

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain.readers import SourceTable
    from abstain.thresholds._policy import Policy

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

ANSWER, DEFER, COLUMN = "answer", "defer", "decision"
# So far may confidences, or the share answered, move before it is told, whatever chance would do.
_LEAST_DRIFT = 0.1
# How unlikely chance must be to be ruled out: once in a hundred data sets like the policy's own.
_KOLMOGOROV, _NORMAL = 1.628, 2.576
_READ = ("output", "column", "abstained", "calibration", "inputs")


@dataclass(frozen=True, eq=False, slots=True)
class Applied:
    """What a policy decides.

    Attributes:
        answer: True where the policy answers, False where it defers, one per row.
        coverage: the share of rows that are answered.
        expected: the share that was answered on the data that the policy was chosen on; NaN where it is not known.
        drift: the largest difference between the distributions of confidences then and now.
        frame: the data frame with one more column, where one was given.
        path: the file that was written, where one was.
        warnings: what the reader must know.
    """

    answer: Mask
    coverage: float
    expected: float
    drift: float
    frame: Any = None
    path: Path | None = None
    warnings: tuple[ResultWarning, ...] = ()

    @property
    def lines(self) -> list[str]:
        """What was decided, in sentences."""
        count, answered = len(self.answer), int(self.answer.sum())
        lines = [
            f"{answered:,} of {count:,} rows ({_share(self.coverage)}) are answered, {count - answered:,} deferred."
        ]
        if not math.isnan(self.expected):
            lines.append(
                f"The share answered was {_share(self.expected)} where the policy was chosen; the distributions of the "
                f"confidence differ by {_share(self.drift)} at most."
            )
        return lines

    def __str__(self) -> str:
        return self.lines[0]

    def __repr__(self) -> str:
        return few_lines("Decisions of a policy", self.lines)


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def apply_policy(
    policy: Policy,
    source: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    column: str = COLUMN,
    abstained: str | None = None,
    calibration: CalibrationLike = None,
    inputs: Iterable[str | os.PathLike[str]] = (),
    **unknown: Any,
) -> Applied:
    """Decide for every row, and where there is a frame or a file give it back with the decision.

    Args:
        policy: the policy.
        source: items, a data frame, or the path of a CSV, Parquet or JSONL table.
        output: where the table with the decision goes, of the same format.
        column: what the new column is called; it says "answer" or "defer".
        abstained: the boolean column of rows that the model itself declined; a column of that name when left out.
        calibration: the artifact that the policy's confidence needs, or its path.
        inputs: further files that must not be written over.
        unknown: nothing else is read, and any further argument is an error.

    >>> import polars
    >>> from abstain import Items, choose_threshold
    >>> sure = [(200 - row) / 200 for row in range(200)]
    >>> items = Items.from_arrays([1] * 200, [1] * 150 + [0] * 50, confidence=sure)
    >>> policy = choose_threshold(items, risk=0.1)
    >>> new = polars.DataFrame({"confidence": [0.9, 0.1, None]})
    >>> apply_policy(policy, new).frame["decision"].to_list()
    ['answer', 'defer', 'defer']
    """
    for argument in unknown:
        raise ArgumentError(
            f"apply_policy takes no {argument}{_validate.suggestion(argument, _READ)}; of a table it reads the columns "
            f"of the policy's confidence ({policy.confidence.name}) and abstained, and needs no truth"
        )
    if not policy.promises:
        raise ArgumentError("this policy promises nothing, and so it answers nothing; see its reason")
    if isinstance(source, Items):
        return _applied_to_items(policy, source, calibration)
    table = open_table(source)
    if column in table.kinds:
        raise ArgumentError(
            f"{table.label}: has a column {column!r} already; name the new one otherwise (--column)"
        )
    with rows_named_by(table.paths):
        items = _items_of(policy, table, abstained, calibration)
    done = _applied_to_items(policy, items, calibration)
    if not table.paths:
        if output is not None:
            raise ArgumentError("output is for files; the frame with the decision is in what is returned")
        return _with(done, frame=table.marked(column, done.answer, (DEFER, ANSWER), None))
    if output is None:
        return done
    place = _outputs.check_output(output, inputs=[*table.paths, *inputs])
    read = _ending(table.paths[0])
    written = _WRITTEN_AS.get(read, read)
    if _ending(place) != written:
        raise ArgumentError(f"{output}: the table is written row by row; give it the ending {written}")
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        table.marked(column, done.answer, (DEFER, ANSWER), part)
        _outputs.write_files({output: part}, inputs=[*table.paths, *inputs])
    return _with(done, path=place)


def _with(done: Applied, *, frame: Any = None, path: Path | None = None) -> Applied:
    return Applied(done.answer, done.coverage, done.expected, done.drift, frame, path, done.warnings)


# A workbook is read as CSV, and written as such; of a list of objects, each is written on a line.
_WRITTEN_AS = {**dict.fromkeys((".xlsx", ".xlsb", ".xls", ".ods"), ".csv"), ".json": ".jsonl"}


def _ending(path: Path) -> str:
    return path.suffix.lower()


def _applied_to_items(policy: Policy, items: Items, calibration: CalibrationLike) -> Applied:
    from abstain.thresholds._check import stated_for  # noqa: PLC0415

    if not len(items):
        raise DataError("there is no row to decide on: the source is empty")
    stated = stated_for(policy, items.judged, calibration)
    groups = group_names(items, policy.by) if policy.by is not None and not policy.worst else None
    limits = policy.thresholds(groups, len(items))
    values = stated.values[items.judged.answered]
    answer = np.zeros(len(items), np.bool_)
    answer[items.answered] = values >= limits[items.answered]
    coverage = float(answer.mean())
    _refuse_another_scale(policy, values)
    expected, drift = expected_coverage(policy), moved(policy, values)
    warnings = (*stated.warnings, *drift_warnings(policy, values, coverage, len(items.cluster_ids)))
    return Applied(answer, coverage, expected, drift, warnings=warnings)


def _items_of(
    policy: Policy, table: SourceTable, abstained: str | None, calibration: CalibrationLike
) -> Items:
    """The rows of a table with what the policy's confidence is made of; truths are not needed, and not read."""
    from abstain._confidences import load_calibrations  # noqa: PLC0415

    name = policy.confidence.name
    needed = signals_needed(name)
    if needed is None:
        base = name.removeprefix("calibrated:")
        features = [part for one in load_calibrations(calibration) for part in one.feature_names]
        needed = tuple(features) or signals_needed("verbalized" if base == name else base) or ()
    missing = [part for part in needed if part not in table.kinds]
    if missing:
        raise ArgumentError(
            f"{table.label}: the policy's confidence is {name}, and there is no column {missing[0]!r}"
            f"{_validate.suggestion(missing[0], table.kinds)}; a threshold for one confidence says nothing of another; "
            f"{table.listed_columns}"
        )
    signals = {part: table.numbers(part, gaps=True) for part in needed}
    if policy.confidence.percent:
        signals = {part: values / 100.0 for part, values in signals.items()}
    length = len(next(iter(signals.values())))
    declined = np.zeros(length, np.bool_)
    flagged = abstained or ("abstained" if "abstained" in table.kinds else None)
    if flagged is not None:
        declined |= table.flags(flagged)
    if find_variant(name) is None and name in signals:
        declined |= np.isnan(signals[name])
    metadata = {}
    if policy.by is not None and not policy.worst:
        metadata[policy.by] = table.labels(policy.by)
    answers = np.zeros(length)
    return Items.from_arrays(answers, answers, abstained=declined, signals=signals, metadata=metadata)


def row_thresholds(policy: Policy, groups: NDArray[Any] | None, length: int) -> Floats:
    """Return the threshold of every row, infinite where nothing is promised; see `Policy.thresholds`."""
    if policy.by is None or policy.worst:
        return np.full(length, math.inf if policy.threshold is None else policy.threshold)
    if groups is None:
        raise ArgumentError(f"the policy has one threshold per {policy.by}, and that column is not here")
    known = {each.group: math.inf if each.threshold is None else each.threshold for each in policy.groups}
    # A group that nobody has seen has no promise, and is deferred.
    return np.array([known.get(name, math.inf) for name in groups.tolist()], dtype=np.float64)


def expected_coverage(policy: Policy) -> float:
    """Return the share of items that the policy answers on the data that it was chosen on."""
    if policy.by is None or policy.worst:
        return math.nan if policy.seen is None else policy.seen.coverage
    answered = sum(each.seen.answered for each in policy.groups if each.seen is not None)
    return answered / policy.data.items


def moved(policy: Policy, values: Floats) -> float:
    """Return the largest difference between the distribution of confidences then and now (Kolmogorov and Smirnov).

    Of the policy's own the quantiles are known, so that it is told to a hundredth.
    """
    if not len(values):
        return math.nan
    then = np.array(policy.confidence.quantiles)
    shares = np.linspace(0.0, 1.0, len(then))
    now = np.sort(values)
    # Between two quantiles nothing is known: only what goes beyond both ends of the step counts.
    below = np.searchsorted(now, then, side="left") / len(now)
    upto = np.searchsorted(now, then, side="right") / len(now)
    first = np.searchsorted(then, then, side="left")
    last = np.searchsorted(then, then, side="right") - 1
    return float(np.maximum(below - shares[last], shares[first] - upto).max(initial=0.0))


def drift_warnings(
    policy: Policy, values: Floats, coverage: float, clusters: int
) -> tuple[ResultWarning, ...]:
    """Return the warnings that confidences, or the share answered, have moved further than chance would move them."""
    found = []
    counts = 1.0 / max(policy.confidence.clusters, 1) + 1.0 / max(clusters, 1)
    drift, expected = moved(policy, values), expected_coverage(policy)
    if drift > max(_LEAST_DRIFT, _KOLMOGOROV * math.sqrt(counts)):
        message = (
            f"the confidences have moved: their distribution differs by {_share(drift)} from that of the data that the "
            "policy was chosen on, more than chance would do; the promise may be void"
        )
        found.append(ResultWarning("confidence_drift", message))
    if not math.isnan(expected):
        noise = _NORMAL * math.sqrt(expected * (1.0 - expected) * counts)
        if abs(coverage - expected) > max(_LEAST_DRIFT, noise):
            message = (
                f"the share answered has moved from {_share(expected)} to {_share(coverage)}, more than chance would "
                "do; the promise may be void"
            )
            found.append(ResultWarning("coverage_drift", message))
    return tuple(found)


def _refuse_another_scale(policy: Policy, values: Floats) -> None:
    """Refuse confidences that cannot be the policy's: beyond 0 to 1 where all of its own lay within."""
    quantiles = policy.confidence.quantiles
    if (
        len(values)
        and quantiles[0] >= 0.0
        and quantiles[-1] <= 1.0
        and (values.max() > 1.0 or values.min() < 0.0)
    ):
        raise DataError(
            f"the confidences reach from {values.min():g} to {values.max():g}, and those of the policy lay within 0 "
            "and 1; this is not the policy's confidence"
        )
