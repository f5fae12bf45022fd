"""The page that the documentation shows, made from what was counted."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from simulations.coverage import RANGE, Tallied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["page"]

Row = tuple[str, str]
Record = dict[str, Any]

_INTRODUCTION = """\
# Simulated coverage

Made from `simulations/results.jsonl` by `make docs`; `make simulate` counts further. How often do intervals at level
0.95 hold the value of the population, through the same calls that users make?

**Populations.** Items come in clusters that share an effect, strong or weak. Clusters have 8 items each, or 1 to some
50. Errors are frequent (three answers in ten) or rare (one in fifty). Confidences are continuous, or of five levels.
The model abstains where it is hard. That makes eight scenarios with frequent errors and eight with rare ones; the
exact ones are in `simulations/scenarios.py`.

**How to read it.** *Coverage* is that of the scenario with the lowest, and of the one with the highest, with the
Monte-Carlo error of the lowest in brackets. The lowest of eight is lower than any of them by chance alone, by about
one and a half times that error. *Bounds* is the share of intervals that are exact bounds, because nothing varied;
*none* the share of data sets without an interval, mostly because the metric was undefined. *Width* is the mean width.
The percentile interval of the bootstrap (1,000 resamples) stands beside where it was simulated, on the same data
sets.
"""
# Why some intervals hold the truth more often than they say, or less.
_WIDE = {
    "upper end alone: chance makes it positive, and only how large it can be is told": (
        *("interval hsic", "smooth_calibration_error", "set coverage_gap[true class]"),
    ),
    "the interval is made around the debiased value, and never leaves the plain one out": (
        "expected_calibration_error",
    ),
    "read off the intervals of the curve, each of which must hold": (
        *("coverage_at_risk@0.1", "coverage_at_accuracy@0.9"),
    ),
    "a whole number of classes: the interval holds a whole step": (
        *("set width_quantile[0.5]", "set width_quantile[0.95]"),
    ),
    "the lowest of several parts: its upper end is as far as for all of them together": (
        *(
            "interval size_stratified_coverage",
            "set size_stratified_coverage",
            "set worst_coverage[true class]",
        ),
    ),
    "over all steps that the coverage could fall on, where there are few levels": (
        *("risk_at_coverage@0.2", "risk_at_coverage@0.5", "risk_at_coverage@0.7"),
    ),
}
_NARROW = {
    "a heavy tail: few rows carry most of it, and most data sets hold none of them": (
        *("negative_log_likelihood", "interval winkler_score"),
    ),
    "a size that is rare in the population is missing from many data sets, and then another one is the lowest": (
        "set size_stratified_coverage",
    ),
    "by chance, the lowest of several small parts lies below that of the population": (
        *("interval size_stratified_coverage", "set worst_coverage[true class]"),
    ),
    "few rows lie beyond so high a quantile": ("interval width_quantile[0.95]",),
}
_USUAL_WIDE = "few errors, or few clusters, leave little to go by, and the interval is on the safe side"
_USUAL_NARROW = "not explained yet"


def page(results: Path, differences: Path) -> str:
    """Return the page of what was counted so far."""
    by_method: dict[str, dict[tuple[int, Row], list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in _records(results):
        row = (record["metric"], record["errors"])
        by_method[record["method"]][record["clusters"], row].append(record)
    own = by_method.pop("jackknife", {})
    lines = [_INTRODUCTION, *_leaving(own)]
    for clusters in sorted({clusters for clusters, _ in own}):
        rows = {row: records for (count, row), records in own.items() if count == clusters}
        others = {
            method: {row: records for (count, row), records in found.items() if count == clusters}
            for method, found in sorted(by_method.items())
        }
        lines += _table(clusters, rows, {method: found for method, found in others.items() if found})
    return "\n".join([*lines, *_differences(_records(differences)), ""])


def _records(path: Path) -> list[Record]:
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    # Later lines stand in for earlier ones.
    return list({(record["cell"], record.get("metric")): record for record in found}.values())


def _tallied(record: Record) -> Tallied:
    return Tallied(**{part.name: record[part.name] for part in fields(Tallied)})


def _table(
    clusters: int, rows: Mapping[Row, list[Record]], others: Mapping[str, Mapping[Row, list[Record]]]
) -> list[str]:
    runs = sorted({record["runs"] for records in rows.values() for record in records})
    scenarios = len({record["cell"] for records in rows.values() for record in records})
    sets = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
    heads = ["metric", "errors", "coverage", "bounds", "none", "width"]
    heads += [f"{method}: {what}" for method in others for what in ("coverage", "width")]
    lines = [f"## {clusters:,} clusters", "", f"{sets} data sets per scenario, {scenarios} scenarios.", ""]
    lines += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(rows):
        counts = [_tallied(record) for record in rows[row]]
        together = _together(counts)
        cells = [f"`{row[0]}`", row[1], _coverage(counts), _share(together.bounds, together.intervals)]
        cells += [_share(together.undefined, together.runs), _width(together)]
        for found in others.values():
            beside = [_tallied(record) for record in found.get(row, [])]
            cells += [_coverage(beside), _width(_together(beside))] if beside else ["", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _together(counts: Iterable[Tallied]) -> Tallied:
    total = Tallied()
    for each in counts:
        total = total.plus(each)
    return total


def _coverage(counts: Sequence[Tallied]) -> str:
    told = sorted((each for each in counts if each.intervals), key=lambda each: each.coverage)
    if not told:
        return "none"
    low, high = told[0], told[-1]
    # At a coverage of 1 the formula would say that there is no error.
    proportion = min(low.coverage, 1.0 - 1.0 / low.intervals)
    error = math.sqrt(proportion * (1.0 - proportion) / low.intervals)
    return f"{low.coverage:.3f} ({error:.3f}) to {high.coverage:.3f}"


def _share(part: int, whole: int) -> str:
    if not part:
        return ""
    return f"{100 * part / whole:.0f}%" if part / whole >= 0.005 else "below 1%"


def _width(tallied: Tallied) -> str:
    if not tallied.intervals:
        return ""
    mean = tallied.width / tallied.intervals
    return f"{mean:.3f}" if math.isfinite(mean) else "infinite"


def _leaving(own: Mapping[tuple[int, Row], list[Record]]) -> list[str]:
    """Which rows leave the range, and why: below in any scenario, above in all scenarios together."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {
        side: defaultdict(lambda: defaultdict(list)) for side in ("below", "above")
    }
    for (clusters, (metric, errors)), records in sorted(own.items()):
        counts = [_tallied(record) for record in records]
        place = f"{errors}, {clusters:,}"
        if any(each.too_narrow for each in counts):
            found["below"][_reason(_NARROW, metric, _USUAL_NARROW)][metric].append(place)
        elif _together(counts).too_wide:
            found["above"][_reason(_WIDE, metric, _USUAL_WIDE)][metric].append(place)
    below, above = (
        sum(len(places) for metrics in found[side].values() for places in metrics.values())
        for side in ("below", "above")
    )
    lines = [
        f"## Where coverage leaves {RANGE[0]:g} to {RANGE[1]:g}",
        "",
        f"Of {len(own):,} rows of the tables below, {below:,} fall below the range in at least one scenario, and "
        f"{above:,} lie above it over all of them, each by as much as chance would do once in a thousand simulations. "
        "Exact bounds do not count as too wide. In brackets: errors, and numbers of clusters.",
        "",
    ]
    for side, reasons in found.items():
        for why, metrics in reasons.items():
            told = "; ".join(f"`{metric}` ({_places(places)})" for metric, places in metrics.items())
            lines.append(f"- **{side.capitalize()}: {why}.** {told}.")
    return [*lines, ""]


def _reason(reasons: Mapping[str, Sequence[str]], metric: str, usual: str) -> str:
    return next((reason for reason, names in reasons.items() if metric in names), usual)


def _places(places: Sequence[str]) -> str:
    by_errors: dict[str, list[str]] = defaultdict(list)
    for place in places:
        errors, clusters = place.split(", ", 1)
        by_errors[errors].append(clusters)
    return "; ".join(f"{errors}: {', '.join(clusters)}" for errors, clusters in by_errors.items())


def _differences(records: Sequence[Record]) -> list[str]:
    if not records:
        return []
    lines = [
        "## Differences",
        "",
        "Two systems on the same items. *False alarms*: how often they are told apart at 0.05 although they are",
        "equally good, in the scenario with the fewest and in the one with the most. *Power*: how often they are told",
        "apart where one is better by 0.7 in log-odds, at the thresholds at which both methods have one false alarm in",
        "twenty; the mean over scenarios.",
        "",
        "| clusters | errors | metric | data sets | false alarms | percentile: false alarms | power "
        "| percentile: power |",
        "|---|---|---|---|---|---|---|---|",
    ]
    grouped: dict[tuple[int, str, str], list[Record]] = defaultdict(list)
    for record in records:
        for metric, counts in record["metrics"].items():
            grouped[record["clusters"], record["errors"], metric].append({**counts, "runs": record["runs"]})
    for (clusters, errors, metric), found in sorted(grouped.items()):
        alarms = [_between(found, f"{method}_false_alarms") for method in ("jackknife", "percentile")]
        power = [_mean(found, f"{method}_power") for method in ("jackknife", "percentile")]
        runs = max(each["runs"] for each in found)
        cells = [f"{clusters:,}", errors, f"`{metric}`", f"{runs:,}", *alarms, *power]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _between(found: Sequence[Record], key: str) -> str:
    values = [each[key] for each in found]
    return f"{min(values):.3f} to {max(values):.3f}"


def _mean(found: Sequence[Record], key: str) -> str:
    return f"{sum(each[key] for each in found) / len(found):.3f}"
