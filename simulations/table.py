"""The page "Simulated coverage of confidence intervals", generated from the counts."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from simulations.coverage import RANGE, CoverageCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["coverage_page"]

Row = tuple[str, str]
Record = dict[str, Any]

_INTRODUCTION = """\
# Simulated coverage of confidence intervals

How often does a confidence interval at level 0.95 contain the true value? To find out, data sets are drawn from
populations whose metrics are known, and evaluated with the functions that users call. `make docs` generates this page
from `simulations/results.jsonl`, and `make simulate` adds data sets to that file.

**What was simulated.** Items belong to clusters with a common effect, which is strong or weak. Clusters have 8 items
each, or from 1 to about 50. Errors are frequent (30% of the answers) or rare (2%). Confidences are continuous or have
five levels. The model abstains on hard items. These choices give 16 scenarios: eight with frequent errors and eight
with rare errors. Five more scenarios have few answers (one item in eight), or errors that come together: 5% of the
clusters are wholly wrong, and the others are wholly right. Scenarios are defined in `simulations/scenarios.py`. Every
registered metric is simulated. `coverage_at_accuracy` is the coverage at the corresponding risk.

**How to read the tables.** A row combines the scenarios with frequent errors, with rare errors, with few answers, or
with errors that come together. The first columns are about the default interval, the jackknife.

| column | meaning |
|---|---|
| coverage | The proportion of intervals that contain the true value, in the scenario with the lowest proportion and \
in the scenario with the highest. It should be about 0.95. The Monte Carlo standard error of the lowest proportion is \
in parentheses. The lowest of several proportions is too low by chance, by about one and a half standard errors. |
| bounds | The proportion of intervals of values that no cluster changes (for example, there is no error) |
| none | The proportion of data sets without an interval, mostly because the metric is undefined |
| width | The mean width of the intervals |
| percentile, bca | Coverage and width of the bootstrap intervals (1,000 resamples) for some of the same data sets, if \
they were simulated |
"""
# Reasons why the coverage of some intervals is above or below the range.
_WIDE = {
    "chance makes the metric positive, so the interval has only an upper limit": (
        *("interval hsic", "interval_hsic", "smooth_calibration_error", "top_label_calibration_error"),
        *("set coverage_gap[true class]", "set_coverage_gap@0.9", "set_weighted_coverage_gap@0.9"),
    ),
    "the interval is computed around the debiased value and extended to the plain value": (
        "expected_calibration_error",
    ),
    "the interval combines intervals along the risk-coverage curve, all of which must hold": (
        "coverage_at_risk@0.1",
    ),
    "the metric is a whole number of classes, so the interval contains a whole step": (
        *("set width_quantile[0.5]", "set width_quantile[0.95]"),
    ),
    "the metric is the lowest of several groups, and the upper limit holds for all groups jointly": (
        *(
            "interval size_stratified_coverage",
            "set size_stratified_coverage",
            "set worst_coverage[true class]",
            "interval_size_stratified_coverage",
            "set_size_stratified_coverage",
            "set_coverage_by_label",
        ),
    ),
    "with few confidence levels, the interval contains all steps at which the coverage may be reached": (
        *("risk_at_coverage@0.2", "risk_at_coverage@0.5", "risk_at_coverage@0.7"),
    ),
}
_TOGETHER = "errors together"
_NARROW = {
    "the metric has a heavy tail: it depends mostly on few rows, which most data sets do not contain": (
        *(
            "negative_log_likelihood",
            "interval winkler_score",
            "winkler_score@0.9",
            "weighted_interval_score@0.9",
        ),
        *("root_mean_squared_error without a scale", "mean_absolute_error without a scale", "pearson_r"),
    ),
    "many data sets do not contain a size that is rare in the population, so another size has the lowest coverage": (
        *("set size_stratified_coverage", "set_size_stratified_coverage"),
    ),
    "the lowest value of several small groups is below that of the population by chance": (
        *("interval size_stratified_coverage", "set worst_coverage[true class]", "set_coverage_by_label"),
        "interval_size_stratified_coverage",
    ),
    "few rows are above such a high quantile": ("interval width_quantile[0.95]",),
}
_NARROW_TOGETHER = "a wholly wrong cluster is rare, and most data sets contain none or one of them"
_USUAL_WIDE = "few errors or few clusters give little information, so the interval is conservative"
_USUAL_NARROW = "not explained yet"


def coverage_page(results: Path) -> str:
    """Return the page as Markdown."""
    by_method: dict[str, dict[tuple[int, Row], list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in _read_records(results):
        row = (record["metric"], record.get("setting") or record["errors"])
        by_method[record["method"]][record["clusters"], row].append(record)
    jackknife = by_method.pop("jackknife", {})
    lines = [_INTRODUCTION, *_outside_range(jackknife)]
    for clusters in sorted({clusters for clusters, _ in jackknife}):
        rows = {row: records for (count, row), records in jackknife.items() if count == clusters}
        others = {
            method: {row: records for (count, row), records in all_rows.items() if count == clusters}
            for method, all_rows in sorted(by_method.items())
        }
        others = {method: other_rows for method, other_rows in others.items() if other_rows}
        lines += _table(clusters, rows, others)
    return "\n".join([*lines, ""])


def _read_records(path: Path) -> list[Record]:
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines]
    # A later line replaces an earlier one.
    return list({(record["cell"], record.get("metric")): record for record in records}.values())


def _counts(record: Record) -> CoverageCounts:
    return CoverageCounts(**{part.name: record[part.name] for part in fields(CoverageCounts)})


def _table(
    clusters: int, rows: Mapping[Row, list[Record]], others: Mapping[str, Mapping[Row, list[Record]]]
) -> list[str]:
    runs = sorted({record["runs"] for records in rows.values() for record in records})
    scenarios = len({record["cell"] for records in rows.values() for record in records})
    data_sets = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
    heads = ["metric", "errors", "coverage", "bounds", "none", "width"]
    heads += [f"{method}: {column}" for method in others for column in ("coverage", "width")]
    lines = [f"## {clusters:,} clusters", "", f"{scenarios} scenarios with {data_sets} data sets each.", ""]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(rows):
        by_scenario = [_counts(record) for record in rows[row]]
        total = _sum(by_scenario)
        cells = [f"`{row[0]}`", row[1], _coverage(by_scenario), _percent(total.bounds, total.intervals)]
        cells += [_percent(total.undefined, total.runs), _width(total)]
        for other_rows in others.values():
            other = [_counts(record) for record in other_rows.get(row, [])]
            cells += [_coverage(other), _width(_sum(other))] if other else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _sum(by_scenario: Iterable[CoverageCounts]) -> CoverageCounts:
    total = CoverageCounts()
    for counts in by_scenario:
        total = total.plus(counts)
    return total


def _coverage(by_scenario: Sequence[CoverageCounts]) -> str:
    with_intervals = sorted(
        (counts for counts in by_scenario if counts.intervals), key=lambda counts: counts.coverage
    )
    if not with_intervals:
        return "none"
    low, high = with_intervals[0], with_intervals[-1]
    # At a coverage of 1 the formula would give an error of 0.
    proportion = min(low.coverage, 1.0 - 1.0 / low.intervals)
    error = math.sqrt(proportion * (1.0 - proportion) / low.intervals)
    return f"{low.coverage:.3f} ({error:.3f}) to {high.coverage:.3f}"


def _percent(part: int, total: int) -> str:
    if not part:
        return ""
    return f"{100 * part / total:.0f}%" if part / total >= 0.005 else "below 1%"


def _width(counts: CoverageCounts) -> str:
    if not counts.intervals:
        return ""
    mean = counts.width / counts.intervals
    return f"{mean:.3f}" if math.isfinite(mean) else "infinite"


def _outside_range(jackknife: Mapping[tuple[int, Row], list[Record]]) -> list[str]:
    """Return the section about rows outside the range: below in any scenario, or above in all of them together."""
    reasons: dict[tuple[str, str, str], str] = {}
    cluster_counts: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for (clusters, (metric, errors)), records in sorted(jackknife.items()):
        by_scenario = [_counts(record) for record in records]
        if any(counts.too_narrow for counts in by_scenario):
            usual = _NARROW_TOGETHER if errors == _TOGETHER else _USUAL_NARROW
            side, reason = "below", _reason(_NARROW, metric, usual)
        elif _sum(by_scenario).too_wide:
            side, reason = "above", _reason(_WIDE, metric, _USUAL_WIDE)
        else:
            continue
        reasons[side, metric, errors] = reason
        cluster_counts[side, metric, errors].append(clusters)
    below, above = (
        sum(len(counts) for (side, _, _), counts in cluster_counts.items() if side == wanted)
        for wanted in ("below", "above")
    )
    lines = [
        f"## Coverage outside the range from {RANGE[0]:g} to {RANGE[1]:g}",
        "",
        f"The tables below have {len(jackknife):,} rows. The coverage of {below:,} rows is below the range in at least "
        f"one scenario, so these intervals are too narrow. The coverage of {above:,} rows is above the range in all "
        "scenarios together, so these intervals are wider than necessary. A row counts only if chance would cause such "
        "a deviation less than once in a thousand simulations. Values that no cluster changes are not too wide.",
        "",
        "| coverage | metric | errors | numbers of clusters | reason |",
        "|---|---|---|---|---|",
    ]
    for key in sorted(reasons, key=lambda key: (key[0] == "above", reasons[key], key)):
        side, metric, errors = key
        listed = ", ".join(f"{clusters:,}" for clusters in cluster_counts[key])
        lines.append(f"| {side} | `{metric}` | {errors} | {listed} | {reasons[key]} |")
    return [*lines, ""]


def _reason(reasons: Mapping[str, Sequence[str]], metric: str, usual: str) -> str:
    return next((reason for reason, names in reasons.items() if metric in names), usual)
