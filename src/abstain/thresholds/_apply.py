"""Apply a policy: answer or defer, for every row of items, of a data frame or of a table file.

Rows need no label. A row is answered if the model answered it and its confidence reaches the threshold. A row without
a confidence is deferred. Data with another confidence than the policy's are rejected. A warning reports if confidences
or coverage have changed since the policy was chosen, because the guarantee may then be void.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abstain import _outputs, _validate
from abstain._confidences import load_calibrations
from abstain._row_names import rows_named_by
from abstain._text import few_lines
from abstain.confidence import find_variant, signals_needed
from abstain.errors import ArgumentError, DataError, ResultWarning
from abstain.groups import group_names
from abstain.items import Items
from abstain.readers import open_table
from abstain.thresholds._answered_rows import policy_confidence
from abstain.thresholds._drift import confidence_drift, drift_warnings, expected_coverage

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from abstain._confidences import CalibrationLike
    from abstain._types import Mask
    from abstain.readers import SourceTable
    from abstain.thresholds._policy import Policy


ANSWER, DEFER, COLUMN = "answer", "defer", "decision"
_OPTIONS = ("output", "column", "abstained", "calibration", "inputs")
# Spreadsheets are written as CSV, and a JSON list of objects as one object per line.
_OUTPUT_SUFFIX = {**dict.fromkeys((".xlsx", ".xlsb", ".xls", ".ods"), ".csv"), ".json": ".jsonl"}


@dataclass(frozen=True, eq=False, slots=True)
class Applied:
    """The decisions of a policy.

    Attributes:
        answer: one per row: True if the policy answers, False if it defers.
        coverage: proportion of rows that are answered.
        expected: proportion that was answered on the data that the policy was chosen on; NaN if unknown.
        drift: largest difference between the distributions of confidences then and now.
        frame: the data frame with the decision as an additional column, if a frame was passed.
        path: the file that was written, if any.
        warnings: warnings that apply to these decisions.
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
        """The decisions in sentences."""
        count, answered = len(self.answer), int(self.answer.sum())
        lines = [
            f"{answered:,} of {count:,} rows ({self.coverage:.1%}) are answered, {count - answered:,} deferred."
        ]
        if not math.isnan(self.expected):
            lines.append(
                f"On the data that the policy was chosen on, {self.expected:.1%} were answered; the distributions of "
                f"the confidence differ by at most {self.drift:.1%}."
            )
        return lines

    def __str__(self) -> str:
        return self.lines[0]

    def __repr__(self) -> str:
        return few_lines("Decisions of a policy", self.lines)


def apply_policy(
    policy: Policy,
    source: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    column: str = COLUMN,
    abstained: str | None = None,
    calibration: CalibrationLike = None,
    inputs: Iterable[str | os.PathLike[str]] = (),
    safe_csv: bool = False,
    **unknown: Any,
) -> Applied:
    """Decide for every row; add the decision to a data frame, or write it to a file.

    Args:
        policy: the policy.
        source: items, a data frame, or the path of a CSV, Parquet or JSONL table.
        output: path of the table with the decision, in the same format.
        column: name of the new column, whose values are "answer" and "defer".
        abstained: the boolean column of rows that the model itself declined. Default: a column of that name, if any.
        calibration: the calibration file that the policy's confidence needs, or its path.
        inputs: further files that must not be overwritten.
        safe_csv: begin every cell of a CSV file that a spreadsheet would run as a formula with an apostrophe. Default:
            the cells of the table are not changed.
        unknown: any other argument is an error.

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
            f"apply_policy takes no {argument}{_validate.suggestion(argument, _OPTIONS)}; from a table it reads only "
            f"the columns of the policy's confidence ({policy.confidence.name}) and abstained"
        )
    if not policy.has_guarantee:
        raise ArgumentError("this policy has no risk guarantee, so it answers nothing; see its reason")
    if safe_csv and output is None:
        raise ArgumentError("safe_csv (--safe-csv) is for an output file; pass output= (-o)")
    if isinstance(source, Items):
        return _decide(policy, source, calibration)
    table = open_table(source)
    if column in table.kinds:
        raise ArgumentError(
            f"{table.label}: there is already a column {column!r}; pass another name (column=, --column)"
        )
    with rows_named_by(table.paths):
        items = _read_items(policy, table, abstained, calibration)
    applied = _decide(policy, items, calibration)
    if not table.paths:
        if output is not None:
            raise ArgumentError(
                "output is for files; for a data frame, use the frame of the returned decisions"
            )
        return replace(applied, frame=table.marked(column, applied.answer, (DEFER, ANSWER), None))
    if output is None:
        return applied
    path = _outputs.check_output(output, inputs=[*table.paths, *inputs])
    suffix = table.paths[0].suffix.lower()
    suffix = _OUTPUT_SUFFIX.get(suffix, suffix)
    if path.suffix.lower() != suffix:
        raise ArgumentError(
            f"{output}: the output has the format of the table; use the file extension {suffix}"
        )
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "part"
        write = table.marked_for_spreadsheets if safe_csv else table.marked
        write(column, applied.answer, (DEFER, ANSWER), part)
        _outputs.write_files({output: part}, inputs=[*table.paths, *inputs])
    return replace(applied, path=path)


def _decide(policy: Policy, items: Items, calibration: CalibrationLike) -> Applied:
    if not len(items):
        raise DataError("there is no row to decide on: the source is empty")
    items = replace(items, weight=None)  # a decision concerns every row
    ranking = policy_confidence(policy, items.evaluated, calibration)
    groups = group_names(items, policy.by) if policy.by is not None and not policy.worst else None
    thresholds = policy.thresholds(groups, len(items))
    values = ranking.values[items.evaluated.answered]
    _check_range(policy, values)
    answer = np.zeros(len(items), np.bool_)
    answer[items.answered] = values >= thresholds[items.answered]
    coverage = float(answer.mean())
    return Applied(
        answer,
        coverage,
        expected=expected_coverage(policy),
        drift=confidence_drift(policy, values),
        warnings=(*ranking.warnings, *drift_warnings(policy, values, coverage, len(items.cluster_ids))),
    )


def _read_items(
    policy: Policy, table: SourceTable, abstained: str | None, calibration: CalibrationLike
) -> Items:
    """Return the rows of a table with the signals of the policy's confidence; truths are not read."""
    name = policy.confidence.name
    needed = signals_needed(name)
    if needed is None:
        base = name.removeprefix("calibrated:")
        features = [
            part
            for calibration_file in load_calibrations(calibration)
            for part in calibration_file.feature_names
        ]
        needed = tuple(features) or signals_needed("verbalized" if base == name else base) or ()
    missing = [part for part in needed if part not in table.kinds]
    if missing:
        raise ArgumentError(
            f"{table.label}: the policy's confidence is {name}, and there is no column {missing[0]!r}"
            f"{_validate.suggestion(missing[0], table.kinds)}. A threshold is valid for one confidence only; "
            f"{table.listed_columns}"
        )
    signals = {part: table.numbers(part, gaps=True) for part in needed}
    if policy.confidence.percent:
        signals = {part: values / 100.0 for part, values in signals.items()}
    length = len(next(iter(signals.values())))
    declined = np.zeros(length, np.bool_)
    declined_column = abstained or ("abstained" if "abstained" in table.kinds else None)
    if declined_column is not None:
        declined |= table.flags(declined_column)
    if find_variant(name) is None and name in signals:
        declined |= np.isnan(signals[name])
    metadata = {}
    if policy.by is not None and not policy.worst:
        metadata[policy.by] = table.labels(policy.by)
    answers = np.zeros(length)
    return Items.from_arrays(answers, answers, abstained=declined, signals=signals, metadata=metadata)


def _check_range(policy: Policy, values: NDArray[np.float64]) -> None:
    """Reject confidences outside [0, 1] if all of the policy's were inside: they cannot be the same confidence."""
    if not len(values):
        return
    quantiles, low, high = policy.confidence.quantiles, values.min(), values.max()
    if quantiles[0] >= 0.0 and quantiles[-1] <= 1.0 and (high > 1.0 or low < 0.0):
        raise DataError(
            f"the confidences range from {low:g} to {high:g}, but those of the policy were between 0 and 1; pass the "
            "policy's confidence"
        )
