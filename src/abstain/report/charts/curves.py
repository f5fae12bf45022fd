"""Charts of risk over coverage: one confidence with its band, several confidences, or several systems.

They draw a system's profile: the curve, the interval of the risk at each threshold, the curve of a perfect ranking and
that of a random one. `forest` draws metrics with their intervals.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.losses import SHARES
from abstain.report.charts import _look
from abstain.report.charts._look import BLUE, COLOURS, GREY, chart_of, finish_chart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from abstain.evaluation import Line, OperatingPoints, Profile, Result, Settings, SystemResult
    from abstain.report.charts._look import Chart

RISKS = ("selective", "generalized")
_WIDTH, _HEIGHT = 460, 300
_TITLES = {
    "selective": "selective risk (mean loss of the answers)",
    "generalized": "generalized risk (loss of the answers per item)",
}
_MOST_CURVES = len(COLOURS)
# Bands of more systems would hide each other.
_MOST_BANDS = 3
# Below this coverage the risk is that of a handful of items, and the axis need not include it.
_EARLY = 0.05
_COVERAGE_AXIS = alt.X(
    "coverage:Q",
    title="coverage (proportion of items answered)",
    scale=alt.Scale(domain=[0, 1], nice=False),
    axis=alt.Axis(format=".0%", tickCount=5),
)


def risk_coverage_chart(
    system: SystemResult | Result,
    confidence: str | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risk of one confidence over coverage, with its band, the optimal and the random curve.

    Args:
        system: a system, or a result with only one system.
        confidence: one of its confidences. Default: the first one.
        risk: "selective" or "generalized".
        profile: its profile, if it was computed already.
    """
    _validate.choice(risk, "risk", RISKS)
    profile = system.profile() if profile is None else profile
    name = _choose_confidence(confidence, profile.points)
    points, line = profile.points[name], profile.lines[name]
    top = _axis_top(profile, [name], risk)
    y = _risk_axis(top, risk, system)
    band = _band_rows(points, risk, top)
    layers = [_unreachable_area(system, top)]
    if band:
        base = chart_of(band).encode(x=_COVERAGE_AXIS, y="low:Q", y2="high:Q")
        # A single point has no area.
        layers.append(
            base.mark_area(color=BLUE, opacity=0.2)
            if len(band) > 1
            else base.mark_rule(color=BLUE, opacity=0.5)
        )
    lines = {"this ranking": line, "perfect ranking": profile.optimal, "random order": profile.random}
    rows = [row | {"line": label} for label, each in lines.items() for row in _line_rows(each, risk, top)]
    domain = list(lines)
    layers.append(
        chart_of(rows)
        .mark_line(clip=True, strokeWidth=2)
        .encode(
            x=_COVERAGE_AXIS,
            y=y,
            color=alt.Color(
                "line:N",
                sort=domain,
                scale=alt.Scale(domain=domain, range=[BLUE, _look.ORANGE, GREY]),
                legend=alt.Legend(
                    orient="bottom", title=None, columns=4, labelLimit=220, symbolType="stroke"
                ),
            ),
            strokeDash=alt.StrokeDash(
                "line:N",
                sort=domain,
                scale=alt.Scale(domain=domain, range=[[1, 0], [6, 3], [2, 2]]),
                legend=None,
            ),
            tooltip=_tooltip("line"),
        )
    )
    guaranteed = _guaranteed_points(points, top) if risk == "selective" else []
    subtitle = _describe_band(system.settings, system.cluster_noun)
    subtitle += "; grey area: declined by the model" if system.population.abstained else ""
    if guaranteed:
        subtitle += f"; triangles: guaranteed risk, {100 * system.settings.level:g}% sure"
    title = f"{risk.capitalize()} risk, {name}"
    return finish_chart(alt.layer(*layers, *guaranteed), title, subtitle, width=_WIDTH, height=_HEIGHT)


def systems_chart(
    result: Result,
    confidence: str | None = None,
    *,
    risk: str = "selective",
    profiles: Mapping[str, Profile] | None = None,
) -> Chart:
    """Draw the risks of several systems over coverage on one set of axes; at most three have bands.

    Systems differ in the dashes and marks of their lines and are labelled with their names, not only coloured.

    Args:
        result: a result with two systems or more.
        confidence: the confidence that ranks the answers. Default: the first that all systems have.
        risk: "selective" or "generalized".
        profiles: the profiles of the systems by name, if they were computed already.
    """
    _validate.choice(risk, "risk", RISKS)
    names = list(result.systems)[:_MOST_CURVES]
    if profiles is None:
        profiles = {name: result.systems[name].profile() for name in names}
    profiles = {name: profiles[name] for name in names}
    first, *others = profiles.values()
    in_all = [name for name in first.points if all(name in other.points for other in others)]
    shared = _choose_confidence(confidence, in_all)
    top = max(_axis_top(profile, [shared], risk) for profile in profiles.values())
    y = _risk_axis(top, risk, result.first)
    lines = {name: _line_rows(profile.lines[shared], risk, top) for name, profile in profiles.items()}
    styles = _line_styles("system", names)
    banded = profiles if len(profiles) <= _MOST_BANDS else {}
    bands = [
        {"system": name, **row}
        for name, profile in banded.items()
        for row in _band_rows(profile.points[shared], risk, top)
    ]
    layers = [
        chart_of(bands)
        .mark_area(opacity=0.13)
        .encode(x=_COVERAGE_AXIS, y="low:Q", y2="high:Q", color=styles["color"]),
        *_marked_lines("system", lines, styles, y, width=2, size=50),
        chart_of(_label_positions(lines, top))
        .mark_text(align="left", dx=8, fontSize=11, color=_look.INK)
        .encode(x=_COVERAGE_AXIS, y="risk:Q", text="system:N"),
    ]
    subtitle = [_describe_band(result.settings, result.cluster_noun)] if banded else []
    if len(result.systems) > len(names):
        subtitle.append(f"not drawn: {_shorten_list(list(result.systems)[len(names) :])}")
    title = f"{risk.capitalize()} risk, {' and '.join(names) if len(names) == 2 else f'{len(names)} systems'}"
    return finish_chart(alt.layer(*layers), title, subtitle, end_labels=names, width=_WIDTH, height=_HEIGHT)


def curves_chart(
    system: SystemResult | Result,
    confidences: Iterable[str] | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risks of several confidences over coverage, without bands, which would hide each other.

    Args:
        system: a system, or a result with only one system.
        confidences: the confidences to draw. Default: the first eight that rank the answers differently; the subtitle
            names the others.
        risk: "selective" or "generalized".
        profile: its profile, if it was computed already.
    """
    _validate.choice(risk, "risk", RISKS)
    profile = system.profile() if profile is None else profile
    distinct, same = _distinct_rankings(profile)
    requested = distinct[:_MOST_CURVES] if confidences is None else confidences
    names = [_choose_confidence(name, profile.points) for name in requested]
    top = _axis_top(profile, names, risk)
    y = _risk_axis(top, risk, system)
    references = [
        chart_of(_line_rows(line, risk, top))
        .mark_line(color=GREY, strokeDash=dash, clip=True)
        .encode(x=_COVERAGE_AXIS, y="risk:Q")
        for line, dash in ((profile.optimal, [6, 3]), (profile.random, [2, 2]))
    ]
    lines = {name: _line_rows(profile.lines[name], risk, top) for name in names}
    styles = _line_styles("confidence", names)
    layers = [
        _unreachable_area(system, top),
        *references,
        *_marked_lines("confidence", lines, styles, y, width=1.8, size=40),
    ]
    subtitle = ["grey lines: perfect ranking of the same answers (dashed), random order (dotted)"]
    subtitle[0] += "; grey area: declined by the model" if system.population.abstained else ""
    if confidences is None:
        subtitle += [f"the same ranking: {' = '.join(group)}" for group in same]
        if len(distinct) > _MOST_CURVES:
            subtitle.append(f"not drawn: {_shorten_list(distinct[_MOST_CURVES:])}")
    title = f"{risk.capitalize()} risk over coverage"
    return finish_chart(alt.layer(*layers), title, subtitle, width=_WIDTH, height=_HEIGHT)


def _choose_confidence(confidence: str | None, names: Collection[str]) -> str:
    """Return the confidence to draw, which must be among the known ones. Default: the first."""
    if not names:
        raise ArgumentError(
            "there is no confidence that all systems have; name one (--confidence, confidence=)"
        )
    return next(iter(names)) if confidence is None else _validate.choice(confidence, "confidence", names)


def _risk_axis(top: float, risk: str, system: SystemResult | Result) -> alt.Y:
    # A loss that is a proportion is printed in percent, as coverage is.
    proportion = system.loss is not None and system.loss.name in SHARES
    axis = alt.Axis(format="%" if top < 0.1 else ".0%") if proportion else alt.Undefined
    return alt.Y("risk:Q", title=_TITLES[risk], scale=alt.Scale(domain=[0, top], nice=False), axis=axis)


def _guaranteed_points(points: OperatingPoints, top: float) -> list[Any]:
    """Return the layer of the points with a guarantee for some risk; empty if there is no such point."""
    if not points.guaranteed:
        return []
    coverage, risk = points.coverage.tolist(), points.selective_risk.tolist()
    smallest_bounds = {index: bound for bound, index in sorted(points.guaranteed.items(), reverse=True)}
    rows = [
        {"coverage": coverage[index], "risk": min(risk[index], top), "guaranteed": bound}
        for index, bound in smallest_bounds.items()
    ]
    marks = chart_of(rows).mark_point(shape="triangle-up", color=_look.GREEN, filled=True, size=45, clip=True)
    tooltip = [
        alt.Tooltip("guaranteed:Q", format=".0%", title="guaranteed risk"),
        alt.Tooltip("coverage:Q", format=".1%"),
    ]
    return [marks.encode(x=_COVERAGE_AXIS, y="risk:Q", tooltip=tooltip)]


def _unreachable_area(system: SystemResult | Result, top: float) -> Any:
    """Return the layer of the coverage that cannot be reached, because the model declined."""
    population = system.population
    cmax = population.answered / population.items
    area = [{"coverage": cmax, "end": 1.0, "bottom": 0.0, "top": top}] if cmax < 1.0 else []
    shade = chart_of(area).mark_rect(color=GREY, opacity=0.08)
    return shade.encode(x=_COVERAGE_AXIS, x2="end:Q", y="bottom:Q", y2="top:Q")


def _line_rows(line: Line, risk: str, top: float) -> list[dict[str, Any]]:
    risks = getattr(line, f"{risk}_risk")
    pairs = zip(line.coverage.tolist(), risks.tolist(), strict=True)
    # Values above the top of the axis are drawn at the top.
    return [{"coverage": coverage, "risk": min(value, top)} for coverage, value in pairs]


def _axis_top(profile: Profile, names: Sequence[str], risk: str) -> float:
    """Return the upper end of the axis: all curves fit, and the band except for its first few items."""
    tops = [float(getattr(profile.random, f"{risk}_risk").max(initial=0.0))]
    for name in names:
        points = profile.points[name]
        settled = points.coverage >= min(_EARLY, float(points.coverage.max(initial=0.0)))
        for field in (f"{risk}_risk", f"{risk}_high"):
            values = getattr(points, field)[settled]
            tops += [float(value) for value in values if not math.isnan(value)]
    return 1.08 * max(tops) or 1.0


def _distinct_rankings(profile: Profile) -> tuple[list[str], list[list[str]]]:
    """Return the names of different rankings, and the groups of names with the same ranking."""
    groups: dict[int, list[str]] = {}
    for name, points in profile.points.items():
        groups.setdefault(id(points), []).append(name)
    return [names[0] for names in groups.values()], [names for names in groups.values() if len(names) > 1]


def _line_styles(field: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the encodings that distinguish named lines: colour, dashes and marks, with one legend for all three."""
    ranges: dict[str, list[Any]] = {"color": list(COLOURS), "dash": _look.DASHES, "shape": _look.SHAPES}
    kinds = {"color": alt.Color, "dash": alt.StrokeDash, "shape": alt.Shape}
    return {
        name: kind(
            f"{field}:N",
            sort=list(names),
            scale=alt.Scale(domain=list(names), range=ranges[name][: len(names)]),
            legend=alt.Legend(
                orient="bottom", title=None, columns=2, labelLimit=220, symbolSize=120, symbolOpacity=1
            ),
        )
        for name, kind in kinds.items()
    }


def _marked_lines(
    field: str,
    lines: Mapping[str, Sequence[dict[str, Any]]],
    styles: Mapping[str, Any],
    y: alt.Y,
    *,
    width: float,
    size: int,
) -> list[Any]:
    """Return the layers of several named lines: the lines, and marks along them."""
    rows = [{field: name, **row} for name, line in lines.items() for row in line]
    marks = [{field: name, **row} for name, line in lines.items() for row in _spread(line)]
    color = styles["color"]
    return [
        chart_of(rows)
        .mark_line(clip=True, strokeWidth=width)
        .encode(x=_COVERAGE_AXIS, y=y, color=color, strokeDash=styles["dash"], tooltip=_tooltip(field)),
        chart_of(marks)
        .mark_point(filled=True, size=size, opacity=1)
        .encode(x=_COVERAGE_AXIS, y="risk:Q", color=color, shape=styles["shape"]),
    ]


def _band_rows(points: OperatingPoints, risk: str, top: float) -> list[dict[str, Any]]:
    ends = (points.coverage, getattr(points, f"{risk}_low"), getattr(points, f"{risk}_high"))
    return [
        {"coverage": coverage, "low": min(low, top), "high": min(high, top)}
        for coverage, low, high in zip(*(column.tolist() for column in ends), strict=True)
        if not math.isnan(low)
    ]


def _spread(line: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points of a line that are a tenth of the coverage apart, for its marks."""
    kept: list[dict[str, Any]] = []
    for row in line:
        if row["coverage"] >= (kept[-1]["coverage"] if kept else 0.0) + 0.1:
            kept.append(row)
    return kept or list(line[-1:])


def _label_positions(lines: Mapping[str, Sequence[dict[str, Any]]], top: float) -> list[dict[str, Any]]:
    """Return the position of each line's name: at its end, without overlapping other names."""
    ends = sorted((line[-1]["risk"], line[-1]["coverage"], name) for name, line in lines.items() if line)
    placed: list[dict[str, Any]] = []
    lowest = 0.0
    for risk, coverage, name in ends:
        height = max(risk, lowest)
        placed.append({"system": name, "coverage": coverage, "risk": height})
        lowest = height + 0.05 * top
    # Names above the top are moved down again, and those below them with them.
    highest = top
    for row in reversed(placed):
        row["risk"] = min(row["risk"], highest)
        highest = row["risk"] - 0.05 * top
    return placed


def _shorten_list(names: Sequence[str]) -> str:
    """Return names in a line, only the first few if there are many."""
    return ", ".join(names[:_MOST_CURVES]) + (", ..." if len(names) > _MOST_CURVES else "")


def _tooltip(name: str) -> list[Any]:
    return [f"{name}:N", alt.Tooltip("coverage:Q", format=".3f"), alt.Tooltip("risk:Q", format=".4f")]


def _describe_band(settings: Settings, noun: str) -> str:
    if settings.interval == "none":
        return "no band: no confidence intervals were requested"
    held = "for all thresholds together" if settings.simultaneous else "at each threshold"
    return f"band: {100 * settings.level:g}% confidence intervals {held} ({settings.interval} over {noun}s)"
