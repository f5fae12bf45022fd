"""The request for a threshold: risk limit, certainty, test and search, with defaults that suit the rows.

Items in clusters are tested over clusters. Few clusters are tested by a method that does not need
many of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate
from abstain.errors import ArgumentError, DataError
from abstain.thresholds._risk_table import JOINT, SELECTIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain._types import Floats
    from abstain.thresholds._answered_rows import AnsweredRows

# With fewer effective clusters, the test with a pseudo-cluster violated too many guarantees in simulations.
FEW_CLUSTERS = 12


def rate(value: float | str, name: str = "risk") -> float:
    """Return a proportion strictly between 0 and 1, from a number or from text such as "5%".

    >>> rate("5%"), rate(0.05), rate("0.05")
    (0.05, 0.05, 0.05)
    >>> rate(5)
    Traceback (most recent call last):
        ...
    abstain.errors.ArgumentError: risk must lie strictly between 0 and 1 (0% and 100%), got 5; did you mean 5%?
    """
    text = str(value).strip()
    is_percent = text.endswith("%")
    number = _validate.real(text[:-1] if is_percent else text, name)  # type: ignore[arg-type]
    proportion = number / 100.0 if is_percent else number
    if 0.0 < proportion < 1.0:
        return proportion
    hint = f"; did you mean {number:g}%?" if not is_percent and 1.0 <= number < 100.0 else ""
    raise ArgumentError(f"{name} must lie strictly between 0 and 1 (0% and 100%), got {text}{hint}")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ThresholdRequest:
    """Arguments of `choose_threshold` that fit together.

    `method` and `search` are empty until `with_method_for` sets them. Conformal risk control (crc) has no `sure`.
    """

    risk: float
    sure: float | None
    risk_type: str = SELECTIVE
    method: str = ""
    search: str = ""
    start: float | None = None
    grid: Floats | None = None
    largest_cluster: int | None = None
    needless: float | None = None
    by: str | None = None
    worst: bool = False

    def __post_init__(self) -> None:
        if self.sure is None and self.risk_type != JOINT:
            raise ArgumentError(
                "a guarantee on average (crc) is only possible for the joint risk; choose the risk type joint "
                "(risk_type=, --risk-type), or pass the probability with which the guarantee holds (sure=, --sure)"
            )
        if self.sure is None and self.method not in ("", "crc"):
            raise ArgumentError(
                f"{self.method} needs the probability with which the guarantee holds; pass it (sure=, --sure)"
            )
        if self.worst and self.by is None:
            raise ArgumentError("worst needs groups; name their column (by=, --by)")
        if self.needless is not None and (self.by is not None or self.method == "sgr" or self.sure is None):
            raise ArgumentError(
                "needless needs one threshold for all items and a test; it cannot be combined with by, crc or sgr"
            )

    @property
    def delta(self) -> float:
        """The allowed probability that the guarantee fails."""
        return math.nan if self.sure is None else 1.0 - self.sure

    @property
    def least_answers(self) -> float:
        """The number of independent answers without an error that is just enough to show the risk."""
        return math.log(self.delta) / math.log1p(-self.risk)

    def with_method_for(self, rows: AnsweredRows, *, finite_sample: bool) -> ThresholdRequest:
        """Return the request with a test and a search that are valid for these rows."""
        method = self.method
        if self.sure is None:
            method = "crc"
        elif not method and not rows.clustered:
            method = "binomial" if rows.binary else "hoeffding-bentkus"
        elif not method:
            method = "gaffke" if finite_sample or rows.effective_clusters < FEW_CLUSTERS else "pseudo-cluster"
        if finite_sample and method == "pseudo-cluster":
            raise ArgumentError(
                "pseudo-cluster is asymptotic, but finite_sample requires a test that is not; remove one of the two"
            )
        if method in ("binomial", "sgr") and rows.clustered:
            raise ArgumentError(
                f"{method} needs independent items, but some {rows.cluster_noun}s have several items, and the "
                "guarantee would fail too often; choose pseudo-cluster or gaffke"
            )
        if method in ("binomial", "sgr") and not rows.binary:
            raise ArgumentError(f"{method} needs a loss that is 0 or 1; choose hoeffding-bentkus or gaffke")
        if method == "sgr" and self.risk_type == JOINT:
            raise ArgumentError(
                "sgr limits the risk among answers; choose the risk type selective (risk_type=, --risk-type), or "
                "another method"
            )
        search = {"sgr": "binary-search", "crc": "none"}.get(method) or self.search or "fixed-sequence"
        return replace(self, method=method, search=search)

    def largest_cluster_of(self, rows: AnsweredRows) -> float:
        """Return the largest number of items that a cluster can have: as declared. Default: the largest observed."""
        if not rows.clustered:
            return 1.0
        observed, declared = float(rows.asked.max()), self.largest_cluster
        if declared is not None and observed > declared:
            raise DataError(
                f"a cluster has {observed:g} items, but largest_cluster is {declared}; pass the largest possible number"
            )
        return observed if declared is None else float(declared)


def descending_grid(grid: Sequence[float]) -> Floats:
    """Return distinct thresholds, the largest first."""
    thresholds = sorted({_validate.real(value, "grid") for value in grid}, reverse=True)
    if not thresholds:
        raise ArgumentError("grid must contain at least one threshold")
    return np.array(thresholds)
