"""Charts of selective prediction: risk over coverage with its band, several confidences at once, areas, differences.

What is drawn is an evaluation's profile: the curve, the interval of the risk at each threshold, the curve of a
perfect ranking and that of a random one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.report.charts._look import BLUE, COLOURS, GREY, INK, ORANGE, data, finished, heading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import altair as alt

    from abstain.evaluation import Comparison, Evaluation, MetricTable, SystemsComparison
    from abstain.evaluation._profile import Line, Profile
    from abstain.inference import Estimate
    from abstain.report.charts._look import Chart

__all__ = [
    "FIGURE_NAMES",
    "RISKS",
    "curves_chart",
    "difference_chart",
    "figures_chart",
    "groups_chart",
    "risk_coverage_chart",
    "systems_chart",
]

RISKS = ("selective", "generalized")
FIGURE_NAMES = {
    "cmax": "Cmax",
    "aurc": "AURC",
    "augrc": "AUGRC",
    "eaurc": "e-AURC",
    "eaugrc": "e-AUGRC",
    "aurc_achievable": "achievable AURC",
    "aurc_at_coverage": "AURC up to a coverage",
    "augrc_at_coverage": "AUGRC up to a coverage",
}
_WIDTH, _HEIGHT, _ROW = 460, 300, 22
_TITLES = {
    "selective": "selective risk (mean loss of what is answered)",
    "generalized": "generalized risk (loss per item asked)",
}
_MOST_CURVES = len(COLOURS)
# Below this coverage a handful of items make the risk; it may leave the picture.
_EARLY = 0.05


def risk_coverage_chart(
    evaluation: Evaluation,
    confidence: str | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risk of one confidence over coverage, with its band, the optimal and the random curve.

    Args:
        evaluation: what `evaluate` returns.
        confidence: which of its confidences; the first when left out.
        risk: "selective" or "generalized".
        profile: the evaluation's profile, where it is at hand.
    """
    import altair as alt  # noqa: PLC0415

    _validate.choice(risk, "risk", RISKS)
    name = evaluation[next(iter(evaluation)) if confidence is None else confidence].name
    profile = evaluation.profile() if profile is None else profile
    points, line = profile.points[name], profile.lines[name]
    top = _top(profile, [name], risk)
    x, y = _axes(alt, top, risk)
    band = [
        {"coverage": coverage, "low": min(low, top), "high": min(high, top)}
        for coverage, low, high in zip(
            points.coverage.tolist(),
            getattr(points, f"{risk}_low").tolist(),
            getattr(points, f"{risk}_high").tolist(),
            strict=True,
        )
        if not math.isnan(low)
    ]
    layers = [_beyond(alt, evaluation, x, top)]
    if len(band) > 1:
        layers.append(
            alt.Chart(data(band))
            .mark_area(color=BLUE, opacity=0.2)
            .encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
        )
    elif band:
        layers.append(
            alt.Chart(data(band)).mark_rule(color=BLUE, opacity=0.5).encode(x=x, y="low:Q", y2="high:Q")
        )
    drawn = {"this ranking": line, "perfect ranking": profile.optimal, "random order": profile.random}
    rows = [row | {"line": label} for label, one in drawn.items() for row in _rows(one, risk, top)]
    domain = list(drawn)
    layers.append(
        alt.Chart(data(rows))
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
            tooltip=["line:N", alt.Tooltip("coverage:Q", format=".3f"), alt.Tooltip("risk:Q", format=".4f")],
        )
    )
    return finished(
        alt.layer(*layers).properties(
            width=_WIDTH,
            height=_HEIGHT,
            title=heading(f"{risk.capitalize()} risk, {name}", _band_words(evaluation)),
        )
    )


def curves_chart(
    evaluation: Evaluation,
    confidences: Iterable[str] | None = None,
    *,
    risk: str = "selective",
    profile: Profile | None = None,
) -> Chart:
    """Draw the risks of several confidences over coverage, without bands, which would hide each other.

    Args:
        evaluation: what `evaluate` returns.
        confidences: which; the first eight that are not the same ranking when left out.
        risk: "selective" or "generalized".
        profile: the evaluation's profile, where it is at hand.
    """
    import altair as alt  # noqa: PLC0415

    _validate.choice(risk, "risk", RISKS)
    profile = evaluation.profile() if profile is None else profile
    names = _distinct(profile) if confidences is None else [evaluation[name].name for name in confidences]
    top = _top(profile, names, risk)
    x, y = _axes(alt, top, risk)
    rows = [row | {"confidence": name} for name in names for row in _rows(profile.lines[name], risk, top)]
    colour = alt.Color(
        "confidence:N", sort=names, scale=alt.Scale(domain=names, range=list(COLOURS)), legend=_legend(alt)
    )
    lines = (
        alt.Chart(data(rows))
        .mark_line(clip=True, strokeWidth=1.8)
        .encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[
                "confidence:N",
                alt.Tooltip("coverage:Q", format=".3f"),
                alt.Tooltip("risk:Q", format=".4f"),
            ],
        )
    )
    references = [
        alt.Chart(data(_rows(line, risk, top)))
        .mark_line(color=GREY, strokeDash=dash, clip=True)
        .encode(x=x, y="risk:Q")
        for line, dash in ((profile.optimal, [6, 3]), (profile.random, [2, 2]))
    ]
    told = "dashed: perfect ranking of the same answers; dotted: random order; grey: declined by the model"
    return finished(
        alt.layer(_beyond(alt, evaluation, x, top), *references, lines).properties(
            width=_WIDTH, height=_HEIGHT, title=heading(f"{risk.capitalize()} risk over coverage", told)
        )
    )


def figures_chart(evaluation: Evaluation, figure: str = "augrc", *, title: str = "") -> Chart:
    """Draw one figure of every confidence with its interval, the best first.

    Args:
        evaluation: what `evaluate` returns.
        figure: which, such as "augrc", "aurc", "eaurc" or "cmax".
        title: the heading; the figure's name when left out.
    """
    _validate.choice(figure, "figure", FIGURE_NAMES)
    found = {name: getattr(result, figure) for name, result in evaluation.items()}
    order = sorted(found, key=lambda name: (not found[name].defined, found[name].value))
    told = (
        f"{_interval_words(evaluation)}; lower is better" if figure != "cmax" else _interval_words(evaluation)
    )
    return _forest(
        [(name, found[name]) for name in order], FIGURE_NAMES[figure], title or FIGURE_NAMES[figure], told
    )


def difference_chart(comparison: Comparison, figure: str = "augrc", *, title: str = "") -> Chart:
    """Draw the differences right - left of one figure with their intervals.

    Args:
        comparison: what `compare` returns.
        figure: which, such as "augrc", "aurc", "eaurc" or "cmax".
        title: the heading.
    """
    _validate.choice(figure, "figure", FIGURE_NAMES)
    rows = [(name, getattr(delta, figure)) for name, delta in comparison.deltas.items()]
    told = _interval_words(comparison.left)
    if figure != "cmax":
        told += "; left of 0 the right side is better"
    label = f"difference in {FIGURE_NAMES[figure]}, right - left"
    return _forest(rows, label, title or f"Difference in {FIGURE_NAMES[figure]}", told, rule=0.0)


def systems_chart(comparison: SystemsComparison, metric: str | None = None) -> Chart:
    """Draw the differences between systems by one metric with their intervals, at matched coverage too.

    Args:
        comparison: what `compare_systems` returns.
        metric: which of its metrics; the first when left out.
    """
    name = _validate.choice(metric or next(iter(comparison.metrics)), "metric", comparison.metrics)
    rows = [
        (
            f"{each.right} - {each.left}{f' at coverage {each.coverage:.2f}' if each.matched else ''}",
            each.difference,
        )
        for each in comparison.differences
        if each.metric == name
    ]
    settings = comparison.settings
    told = (
        f"{100 * settings.level:g}% intervals, {settings.resamples:,} resamples of {comparison.cluster_noun}s"
        if settings.resamples
        else "no intervals: 0 resamples"
    )
    return _forest(rows, f"difference in {name}", f"Differences in {name}", told, rule=0.0)


def groups_chart(table: MetricTable, metric: str) -> Chart:
    """Draw one metric of every group with its interval; the dashed line is the metric over all items.

    Args:
        table: the metrics of an evaluation, by group.
        metric: which of its metrics.
    """
    whole = table[metric]
    rows = [(group.label, group.estimates[metric]) for group in table.groups]
    told = f"{100 * whole.level:g}% intervals" if whole.resamples else "no intervals: 0 resamples"
    told += "; dashed: all items"
    return _forest(rows, metric, f"{metric} by group", told, rule=whole.value)


def _forest(
    rows: Sequence[tuple[str, Estimate]], label: str, title: str, subtitle: str, *, rule: float | None = None
) -> Chart:
    """Points with interval bars, one row a name, in the order given, and a dashed line at `rule`."""
    import altair as alt  # noqa: PLC0415

    records: list[dict[str, Any]] = []
    for name, estimate in rows:
        if estimate.defined:
            low, high = estimate.interval or (estimate.value, estimate.value)
            records.append(
                {"name": name, "value": estimate.value, "low": low, "high": high, "told": str(estimate)}
            )
    order = [record["name"] for record in records]
    base = alt.Chart(data(records)).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, labelColor=INK))
    )
    scale = alt.Scale(zero=rule == 0.0, nice=True)
    bars = base.mark_rule(color=BLUE, strokeWidth=2, opacity=0.6).encode(
        x=alt.X("low:Q", title=label, scale=scale), x2="high:Q"
    )
    dots = base.mark_point(color=BLUE, filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", scale=scale), tooltip=["name:N", alt.Tooltip("told:N", title=label)]
    )
    layers = [bars, dots]
    if rule is not None:
        line = alt.Chart(data([{"rule": rule}])).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x="rule:Q")
        layers.insert(0, line)
    return finished(
        alt.layer(*layers).properties(
            width=_WIDTH, height=_ROW * max(len(records), 2), title=heading(title, subtitle)
        )
    )


def _axes(alt: Any, top: float, risk: str) -> tuple[Any, Any]:
    x = alt.X(
        "coverage:Q",
        title="coverage (share of items answered)",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format=".0%", tickCount=5),
    )
    y = alt.Y("risk:Q", title=_TITLES[risk], scale=alt.Scale(domain=[0, top], nice=False))
    return x, y


def _beyond(alt: Any, evaluation: Evaluation, x: Any, top: float) -> Any:
    """The coverage that cannot be reached, because the model declined."""
    population = evaluation.population
    cmax = population.answered / population.items
    area = [{"coverage": cmax, "end": 1.0, "bottom": 0.0, "top": top}] if cmax < 1.0 else []
    return (
        alt.Chart(data(area))
        .mark_rect(color=GREY, opacity=0.08)
        .encode(x=x, x2="end:Q", y=alt.Y("bottom:Q"), y2="top:Q")
    )


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


def _distinct(profile: Profile) -> list[str]:
    """Names of confidences that are different rankings: those that share their points are the same one."""
    single = {id(points): name for name, points in reversed(list(profile.points.items()))}
    return [name for name in profile.points if name in single.values()][:_MOST_CURVES]


def _legend(alt: Any) -> alt.Legend:
    legend: alt.Legend = alt.Legend(
        orient="bottom", title=None, columns=4, labelLimit=220, symbolType="stroke"
    )
    return legend


def _band_words(evaluation: Evaluation) -> str:
    words = _interval_words(evaluation)
    words = f"band: {words}, at each threshold" if evaluation.settings.resamples else words
    return f"{words}; grey: declined by the model" if evaluation.population.abstained else words


def _interval_words(evaluation: Evaluation) -> str:
    settings = evaluation.settings
    if not settings.resamples:
        return "no intervals: 0 resamples"
    noun = evaluation.cluster_noun
    return f"{100 * settings.level:g}% intervals, {settings.resamples:,} resamples of {noun}s"
