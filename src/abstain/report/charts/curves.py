"""Charts of risk over coverage: one confidence with its band, several confidences, or several systems.

What is drawn is a system's profile: the curve, the interval of the risk at each threshold, the curve of a perfect
ranking and that of a random one. Metrics with their intervals are drawn by `forest`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.losses import SHARES
from abstain.report.charts._look import (
    BLUE,
    COLOURS,
    DASHES,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SHAPES,
    chart_of,
    finished,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from abstain.evaluation import Line, Profile, Result, Settings, SystemResult, WorkingPoints
    from abstain.report.charts._look import Chart

__all__ = ["RISKS", "curves_chart", "risk_coverage_chart", "systems_chart"]

RISKS = ("selective", "generalized")
_WIDTH, _HEIGHT = 460, 300
_TITLES = {
    "selective": "selective risk (mean loss of what is answered)",
    "generalized": "generalized risk (loss per item asked)",
}
_MOST_CURVES = len(COLOURS)
# Below this coverage a handful of items make the risk; it may leave the picture.
_EARLY = 0.05


def risk_coverage_chart(
    system: SystemResult | Result,
    confidence: str | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risk of one confidence over coverage, with its band, the optimal and the random curve.

    Args:
        system: a system, or a result with one alone.
        confidence: which of its confidences; the first when left out.
        risk: "selective" or "generalized".
        profile: its profile, where it is at hand.
    """
    import altair as alt  # noqa: PLC0415

    _validate.choice(risk, "risk", RISKS)
    profile = system.profile() if profile is None else profile
    name = _chosen(confidence, profile.points)
    points, line = profile.points[name], profile.lines[name]
    top = _top(profile, [name], risk)
    x, y = _axes(alt, top, risk, system)
    band = _band_rows(points, risk, top)
    layers = [_beyond(system, x, top)]
    if band:
        base = chart_of(band).encode(x=x, y="low:Q", y2="high:Q")
        # A single point has no area.
        layers.append(
            base.mark_area(color=BLUE, opacity=0.2)
            if len(band) > 1
            else base.mark_rule(color=BLUE, opacity=0.5)
        )
    drawn = {"this ranking": line, "perfect ranking": profile.optimal, "random order": profile.random}
    rows = [row | {"line": label} for label, one in drawn.items() for row in _rows(one, risk, top)]
    domain = list(drawn)
    layers.append(
        chart_of(rows)
        .mark_line(clip=True, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "line:N",
                sort=domain,
                scale=alt.Scale(domain=domain, range=[BLUE, ORANGE, GREY]),
                legend=_legend(alt),
            ),
            strokeDash=alt.StrokeDash(
                "line:N",
                sort=domain,
                scale=alt.Scale(domain=domain, range=[[1, 0], [6, 3], [2, 2]]),
                legend=None,
            ),
            tooltip=_tooltip(alt, "line"),
        )
    )
    promised = _promised(alt, points, risk, x, top) if risk == "selective" else []
    words = _band_words(system.settings, system.cluster_noun)
    words += "; grey: declined by the model" if system.population.abstained else ""
    if promised:
        words += f"; triangles: risk promised, {100 * system.settings.level:g}% sure"
    title = f"{risk.capitalize()} risk, {name}"
    return finished(alt.layer(*layers, *promised), title, words, width=_WIDTH, height=_HEIGHT)


def systems_chart(
    result: Result,
    confidence: str | None = None,
    *,
    risk: str = "selective",
    profiles: Mapping[str, Profile] | None = None,
) -> Chart:
    """Draw the risks of several systems over coverage on one set of axes, each with its band.

    Systems are told apart by the dashes and the marks of their lines, and by their names beside them, not by colour
    alone.

    Args:
        result: a result with two systems or more.
        confidence: which confidence ranks the answers; the first that all systems have when left out.
        risk: "selective" or "generalized".
        profiles: the profiles of the systems by name, where they are at hand.
    """
    import altair as alt  # noqa: PLC0415

    _validate.choice(risk, "risk", RISKS)
    names = list(result.systems)[:_MOST_CURVES]
    drawn = {name: result.systems[name].profile() if profiles is None else profiles[name] for name in names}
    first, *others = drawn.values()
    slot = _chosen(confidence, [name for name in first.points if all(name in each.points for each in others)])
    top = max(_top(profile, [slot], risk) for profile in drawn.values())
    x, y = _axes(alt, top, risk, result.first)
    lines = {name: _rows(profile.lines[slot], risk, top) for name, profile in drawn.items()}
    look = _look_of(alt, "system", names)
    bands = [
        {"system": name, **row}
        for name, profile in drawn.items()
        for row in _band_rows(profile.points[slot], risk, top)
    ]
    rows = [{"system": name, **row} for name, line in lines.items() for row in line]
    marks = [{"system": name, **row} for name, line in lines.items() for row in _spread(line)]
    layers = [
        chart_of(bands).mark_area(opacity=0.13).encode(x=x, y="low:Q", y2="high:Q", color=look["color"]),
        chart_of(rows)
        .mark_line(clip=True, strokeWidth=2)
        .encode(x=x, y=y, color=look["color"], strokeDash=look["dash"], tooltip=_tooltip(alt, "system")),
        chart_of(marks)
        .mark_point(filled=True, size=50, opacity=1)
        .encode(x=x, y="risk:Q", color=look["color"], shape=look["shape"]),
        chart_of(_beside(lines, top))
        .mark_text(align="left", dx=8, fontSize=11, color=INK)
        .encode(x=x, y="risk:Q", text="system:N"),
    ]
    told = [_band_words(result.settings, result.cluster_noun)]
    if len(result.systems) > len(names):
        told.append(f"not drawn: {_listed(list(result.systems)[len(names) :])}")
    title = f"{risk.capitalize()} risk, {' and '.join(names) if len(names) == 2 else f'{len(names)} systems'}"
    return finished(alt.layer(*layers), title, told, width=_WIDTH, height=_HEIGHT)


def curves_chart(
    system: SystemResult | Result,
    confidences: Iterable[str] | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risks of several confidences over coverage, without bands, which would hide each other.

    Args:
        system: a system, or a result with one alone.
        confidences: which; the first eight that are not the same ranking when left out. What is left out is said.
        risk: "selective" or "generalized".
        profile: its profile, where it is at hand.
    """
    import altair as alt  # noqa: PLC0415

    _validate.choice(risk, "risk", RISKS)
    profile = system.profile() if profile is None else profile
    distinct, same = _distinct(profile)
    asked = distinct[:_MOST_CURVES] if confidences is None else confidences
    names = [_chosen(name, profile.points) for name in asked]
    top = _top(profile, names, risk)
    x, y = _axes(alt, top, risk, system)
    rows = [row | {"confidence": name} for name in names for row in _rows(profile.lines[name], risk, top)]
    look = _look_of(alt, "confidence", names)
    lines = (
        chart_of(rows)
        .mark_line(clip=True, strokeWidth=1.8)
        .encode(x=x, y=y, color=look["color"], strokeDash=look["dash"], tooltip=_tooltip(alt, "confidence"))
    )
    spread = [
        {"confidence": name, **row}
        for name in names
        for row in _spread(_rows(profile.lines[name], risk, top))
    ]
    marks = (
        chart_of(spread)
        .mark_point(filled=True, size=40, opacity=1)
        .encode(x=x, y="risk:Q", color=look["color"], shape=look["shape"])
    )
    references = [
        chart_of(_rows(line, risk, top))
        .mark_line(color=GREY, strokeDash=dash, clip=True)
        .encode(x=x, y="risk:Q")
        for line, dash in ((profile.optimal, [6, 3]), (profile.random, [2, 2]))
    ]
    told = ["grey lines: perfect ranking of the same answers (dashed), random order (dotted)"]
    told[0] += "; grey area: declined by the model" if system.population.abstained else ""
    if confidences is None:
        told += [f"the same ranking: {' = '.join(group)}" for group in same]
        told += [f"not drawn: {_listed(distinct[_MOST_CURVES:])}"] if len(distinct) > _MOST_CURVES else []
    layers = alt.layer(_beyond(system, x, top), *references, lines, marks)
    title = f"{risk.capitalize()} risk over coverage"
    return finished(layers, title, told, width=_WIDTH, height=_HEIGHT)


def _chosen(confidence: str | None, known: Collection[str]) -> str:
    """Return the confidence to draw, which must be among the known ones. Default: the first."""
    if not known:
        raise ArgumentError(
            "there is no confidence that all systems have; name one (--confidence, confidence=)"
        )
    return next(iter(known)) if confidence is None else _validate.choice(confidence, "confidence", known)


def _axes(alt: Any, top: float, risk: str, system: SystemResult | Result) -> tuple[Any, Any]:
    x = alt.X(
        "coverage:Q",
        title="coverage (share of items answered)",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    # A loss that is a share is told in per cent, as coverage is.
    share = system.loss is not None and system.loss.name in SHARES
    look = {"axis": alt.Axis(format="%" if top < 0.1 else ".0%")} if share else {}
    y = alt.Y("risk:Q", title=_TITLES[risk], scale=alt.Scale(domain=[0, top], nice=False), **look)
    return x, y


def _promised(alt: Any, points: WorkingPoints, risk: str, x: Any, top: float) -> list[Any]:
    """The points that are promised for some risk, as one layer; none where there are none."""
    least = {place: bound for bound, place in sorted(points.promised.items(), reverse=True)}
    risks = getattr(points, f"{risk}_risk")
    rows = [
        {"coverage": float(points.coverage[place]), "risk": min(float(risks[place]), top), "promised": bound}
        for place, bound in least.items()
    ]
    if not rows:
        return []
    marks = chart_of(rows).mark_point(shape="triangle-up", color=GREEN, filled=True, size=45, clip=True)
    told = [
        alt.Tooltip("promised:Q", format=".0%", title="risk promised to be at most"),
        alt.Tooltip("coverage:Q", format=".1%"),
    ]
    return [marks.encode(x=x, y="risk:Q", tooltip=told)]


def _beyond(system: SystemResult | Result, x: Any, top: float) -> Any:
    """The coverage that cannot be reached, because the model declined."""
    population = system.population
    cmax = population.answered / population.items
    area = [{"coverage": cmax, "end": 1.0, "bottom": 0.0, "top": top}] if cmax < 1.0 else []
    shade = chart_of(area).mark_rect(color=GREY, opacity=0.08)
    return shade.encode(x=x, x2="end:Q", y="bottom:Q", y2="top:Q")


def _rows(line: Line, risk: str, top: float) -> list[dict[str, Any]]:
    risks = getattr(line, f"{risk}_risk")
    pairs = zip(line.coverage.tolist(), risks.tolist(), strict=True)
    # What leaves the picture at its top is cut there, not drawn beyond the frame.
    return [{"coverage": coverage, "risk": min(value, top)} for coverage, value in pairs]


def _top(profile: Profile, names: Sequence[str], risk: str) -> float:
    """The upper end of the axis: all curves fit, and the band where more than a handful of items make it."""
    tops = [float(getattr(profile.random, f"{risk}_risk").max(initial=0.0))]
    for name in names:
        points = profile.points[name]
        settled = points.coverage >= min(_EARLY, float(points.coverage.max(initial=0.0)))
        for field in (f"{risk}_risk", f"{risk}_high"):
            values = getattr(points, field)[settled]
            tops += [float(value) for value in values if not math.isnan(value)]
    return 1.08 * max(tops) or 1.0


def _distinct(profile: Profile) -> tuple[list[str], list[list[str]]]:
    """Names of confidences that are different rankings, and those that are the same one: they share their points."""
    groups: dict[int, list[str]] = {}
    for name, points in profile.points.items():
        groups.setdefault(id(points), []).append(name)
    return [names[0] for names in groups.values()], [names for names in groups.values() if len(names) > 1]


def _look_of(alt: Any, field: str, names: Sequence[str]) -> dict[str, Any]:
    """How lines of several names are told apart: by colour, by dashes and by marks, with one legend for all three."""
    ranges: dict[str, list[Any]] = {"color": list(COLOURS), "dash": DASHES, "shape": SHAPES}
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


def _band_rows(points: WorkingPoints, risk: str, top: float) -> list[dict[str, Any]]:
    ends = (points.coverage, getattr(points, f"{risk}_low"), getattr(points, f"{risk}_high"))
    return [
        {"coverage": coverage, "low": min(low, top), "high": min(high, top)}
        for coverage, low, high in zip(*(column.tolist() for column in ends), strict=True)
        if not math.isnan(low)
    ]


def _spread(line: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points of a line that lie a tenth of the coverage apart, where its marks stand."""
    kept: list[dict[str, Any]] = []
    for row in line:
        if row["coverage"] >= (kept[-1]["coverage"] if kept else 0.0) + 0.1:
            kept.append(row)
    return kept or list(line[-1:])


def _beside(lines: Mapping[str, Sequence[dict[str, Any]]], top: float) -> list[dict[str, Any]]:
    """Where the name of each line stands: at its end, and clear of the other names."""
    ends = sorted((line[-1]["risk"], line[-1]["coverage"], name) for name, line in lines.items() if line)
    placed: list[dict[str, Any]] = []
    lowest = 0.0
    for risk, coverage, name in ends:
        height = max(risk, lowest)
        placed.append({"system": name, "coverage": coverage, "risk": height})
        lowest = height + 0.05 * top
    # What was pushed beyond the top is moved down again, and those below it with it.
    highest = top
    for row in reversed(placed):
        row["risk"] = min(row["risk"], highest)
        highest = row["risk"] - 0.05 * top
    return placed


def _listed(names: Sequence[str]) -> str:
    """Names in a line, the first few of many."""
    return ", ".join(names[:_MOST_CURVES]) + (", ..." if len(names) > _MOST_CURVES else "")


def _legend(alt: Any) -> Any:
    return alt.Legend(orient="bottom", title=None, columns=4, labelLimit=220, symbolType="stroke")


def _tooltip(alt: Any, name: str) -> list[Any]:
    return [f"{name}:N", alt.Tooltip("coverage:Q", format=".3f"), alt.Tooltip("risk:Q", format=".4f")]


def _band_words(settings: Settings, noun: str) -> str:
    if settings.interval == "none":
        return "no band: no intervals were asked for"
    held = "for all thresholds together" if settings.simultaneous else "at each threshold"
    return f"band: {100 * settings.level:g}% {settings.interval} intervals over {noun}s, {held}"
