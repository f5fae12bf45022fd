"""The panels of a comparison: two systems side by side, or many with their ranks and every pair.

Tables and verdicts are those of `abstain.report.views`; a page chooses their columns. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from abstain.report import views
from abstain.report.charts import differences_chart, interval_words, metric_name
from abstain.report.html import _words
from abstain.report.html._parts import Figure, Panel, TableView, figure, sentence
from abstain.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation import Difference, Result
    from abstain.report.html._parts import Part

__all__ = ["compared_panel"]

_OF_TWO = ("confidence", "label", "group", "left_value", "right_value", "difference", "p", "in_words")
_OF_MANY = ("left", "right", "confidence", "label", "group", "difference", "p", "p_holm", "sentence")
_TOLD_ELSEWHERE = ("cmax", "items")
_MOST_CHARTS = 3


def compared_panel(result: Result) -> Panel | None:
    """Return the panel of what is compared; None where there is one system."""
    if len(result.systems) == 1:
        return None
    return _pair_panel(result) if len(result.systems) == 2 else _systems_panel(result)


def _pair_panel(result: Result) -> Panel:
    table = _differences(result, _OF_TWO)
    title = f"Left and right: {_single_intervals(result)}. Right - left: {_difference_intervals(result)}."
    parts: list[Part] = [
        _basis(result),
        TableView(replace(table, title=title), "Differences", compact=True),
        *_charts(result),
    ]
    return Panel("comparison", "Comparison, right - left", "Comparison", parts)


def _systems_panel(result: Result) -> Panel:
    differences = _differences(result, _OF_MANY)
    title = f"Systems over the compared items. {sentence(_single_intervals(result))}"
    parts: list[Part] = [
        _basis(result),
        TableView(replace(_systems(result), title=title), "Systems with their ranks", compact=True),
        _words.each_by_itself(result),
        TableView(
            replace(differences, title=f"Right - left: {_difference_intervals(result)}."),
            "Differences between systems",
        ),
        *_charts(result),
    ]
    return Panel("systems", "Systems compared, right - left", "Systems", parts)


def _systems(result: Result) -> Table:
    """Every system with its metrics and ranks; Cmax is the coverage once more, and the items are the same for all."""
    table = views.systems_table(result)
    table = table.only([place for place, each in enumerate(table.columns) if each.key not in _TOLD_ELSEWHERE])
    named = [replace(each, heading=metric_name(each.title)) for each in table.columns]
    return replace(table, columns=tuple(named))


def _basis(result: Result) -> str:
    """What the differences rest on."""
    which = "on both sides" if len(result.systems) == 2 else "in all systems"
    return f"Paired over what is judged {which}: {views.basis_line(result)}."


def _differences(result: Result, keys: Sequence[str]) -> Table:
    """The differences that a summary shows, with the columns that a page has room for."""
    told = views.chosen(result)
    table = views.differences_table(result, told)
    places = {column.key: place for place, column in enumerate(table.columns)}
    kept = [key for key in keys if key in places]
    headings = {"sentence": "in words"}
    if len(result.systems) == 2:
        named = zip(("left", "right"), result.systems, strict=True)
        headings |= {f"{side}_value": side if side == name else f"{side}: {name}" for side, name in named}
    columns = [
        replace(column, detail=False, heading=headings.get(column.key, column.heading))
        for column in (table.columns[places[key]] for key in kept)
    ]
    rows = []
    for each, row in zip(told, table.rows, strict=True):
        worded = {"label": _named(each, str(row[places["label"]])), "confidence": each.confidence or "any"}
        rows.append(tuple(worded.get(key, row[places[key]]) for key in kept))
    return Table("", tuple(columns), tuple(rows))


def _named(each: Difference, label: str) -> str:
    """A metric as people write it, with what the view says of it."""
    return metric_name(each.metric) + label.removeprefix(each.metric)


def _single_intervals(result: Result) -> str:
    """What the intervals of the systems' own numbers are."""
    return interval_words(result.first.coverage, result.cluster_noun)


def _difference_intervals(result: Result) -> str:
    """What the intervals of differences are: those of the first that has one."""
    told = next((each for each in result.differences if each.compared), result.differences[0])
    return interval_words(told.estimate, told.cluster_noun)


def _charts(result: Result) -> list[Figure]:
    defined = {each.metric for each in result.differences if not each.group and each.estimate.defined}
    drawn = [key for key in _words.headline_metrics(result) if key in defined]
    # Who answers more stands in the table; it is drawn where nothing else can be.
    drawn = [key for key in drawn if key != "cmax"] or drawn
    return [
        figure(
            differences_chart(result, key),
            f"Differences in {metric_name(key)} with their intervals",
            wide=True,
        )
        for key in drawn[:_MOST_CHARTS]
    ]
