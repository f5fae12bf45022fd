"""Charts of numbers with their intervals, one row each: a metric of every confidence, of every group, and differences.

Which side of a difference is better is decided by its verdict, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from abstain import _validate
from abstain.errors import ArgumentError
from abstain.inference import INCONCLUSIVE
from abstain.metrics.registry import METRICS, metric_name
from abstain.report.charts._look import BLUE, GREY, INK, chart_of, describe_interval, finish_chart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abstain.evaluation import Difference, MetricTable, Result, SystemResult
    from abstain.inference import Estimate
    from abstain.report.charts._look import Chart

_WIDTH, _ROW = 460, 22
_MOST_GROUPS = 40
# The point of a difference is filled if one side is better, otherwise hollow and grey.
_DECIDED, _UNDECIDED = "decided", INCONCLUSIVE


def metric_chart(system: SystemResult | Result, metric: str = "augrc", *, title: str = "") -> Chart:
    """Draw one metric of every confidence with its interval, the lowest first.

    Args:
        system: a system, or a result with only one system.
        metric: the metric, such as "augrc", "aurc", "eaurc", "cmax" or "risk_at_coverage@0.5".
        title: the heading. Default: the name of the metric.
    """
    keys = {key for variant in system.values() for key in variant.estimates}
    key = _find_key(metric, keys)
    estimates = {name: variant.estimates[key] for name, variant in system.items()}
    order = sorted(estimates, key=lambda name: (not estimates[name].defined, estimates[name].value))
    subtitle = describe_interval(next(iter(estimates.values())), system.cluster_noun)
    specification = METRICS.get(key.partition("@")[0])
    if specification and (specification.unit, specification.direction) == ("loss", "lower"):
        subtitle += "; lower is better"
    label = metric_name(key)
    return _forest([(name, estimates[name], "") for name in order], label, title or label, subtitle)


def differences_chart(
    result: Result, metric: str | None = None, *, confidence: str | None = None, title: str = ""
) -> Chart:
    """Draw the differences between systems by one metric with their intervals, at matched coverage too.

    A filled point is a difference by which one system is better. A hollow grey point is inconclusive or not comparable.

    Args:
        result: a result with two or more systems.
        metric: one of its metrics. Default: AUGRC if it was evaluated, otherwise the first one.
        confidence: the confidence. Default: all of them.
        title: the heading.
    """
    if not result.differences:
        raise ArgumentError(
            "there is no difference to draw: the result has one system; compare it with another one"
        )
    metrics = dict.fromkeys(each.metric for each in result.differences if not each.matched)
    key = _find_key(metric or ("augrc" if "augrc" in metrics else next(iter(metrics))), metrics)
    shown = [each for each in result.differences if each.metric == key and not each.group]
    if confidence is not None:
        _validate.choice(confidence, "confidence", dict.fromkeys(each.confidence for each in shown))
        shown = [each for each in shown if each.confidence == confidence]
    name = metric_name(key)
    rows = [
        (label, each.estimate, _UNDECIDED if each.winner is None else _DECIDED)
        for label, each in zip(_labels(shown), shown, strict=True)
    ]
    intervals = describe_interval(shown[0].estimate, result.cluster_noun)
    if shown[0].family > 1 and not result.settings.simultaneous:
        intervals += "; each for one comparison by itself"
    subtitle = [intervals, f"{_describe_sides(shown)}; hollow: inconclusive or not comparable"]
    pairs = {(each.left, each.right) for each in shown}
    first, second = pairs.pop() if len(pairs) == 1 else ("second", "first named")
    label = f"difference in {name}, {second} - {first}"
    return _forest(rows, label, title or f"Differences in {name}", subtitle, rule=0.0)


def groups_chart(table: MetricTable, metric: str, *, noun: str = "cluster") -> Chart:
    """Draw one metric of every group with its interval; the dashed line is the metric over all items.

    Of more than 40 groups, the worst are drawn.

    Args:
        table: the metrics of a system, by group.
        metric: one of its metrics.
        noun: the word for a cluster.
    """
    overall = table[metric]
    shown = table.worst_groups(metric, _MOST_GROUPS)
    rows = [(group.label, group.estimates[metric], "") for group in shown]
    subtitle = f"{describe_interval(overall, noun)}; dashed: all items"
    if len(shown) < len(table.groups):
        subtitle += f"; the worst {len(shown)} of {len(table.groups):,} groups"
    return _forest(rows, metric, f"{metric} by group", subtitle, rule=overall.value)


def _describe_sides(shown: Sequence[Difference]) -> str:
    """Return the meaning of the two sides of 0. The minuend is named first in a row's label."""
    others = {each.right for each in shown}
    name = others.pop() if len(others) == 1 else "the system named first"
    side = "below" if shown[0].direction == "lower" else "above"
    means = {"lower": "lower, which is better", "higher": "higher, which is better", "neither": "higher"}
    return f"{side} 0 {name} is {means[shown[0].direction]}"


def _find_key(metric: str, keys: Mapping[str, Any] | set[str]) -> str:
    """Return the key of an evaluated metric. Its parameter is optional if the metric has only one."""
    candidates = [key for key in keys if key.partition("@")[0] == metric]
    if metric not in keys and len(candidates) == 1:
        return candidates[0]
    return _validate.choice(metric, "metric", sorted(keys) if isinstance(keys, set) else keys)


def _labels(shown: Sequence[Difference]) -> list[str]:
    """Return the labels of rows: the pair or the confidence, both if both differ between rows, and the coverage.

    If the rows differ only in their coverage, they are labelled by it, because the axis names the pair.
    """
    coverages = [each.where for each in shown]
    if len(shown) > 1 and all(coverages) and len({(e.left, e.right, e.confidence) for e in shown}) == 1:
        return coverages
    pairs = [f"{each.right} - {each.left}" for each in shown]
    confidences = [each.confidence for each in shown]
    differing = [names for names in (pairs, confidences) if len(set(names)) > 1] or [pairs]
    labels = map(", ".join, zip(*differing, strict=True))
    return [" ".join(filter(None, [label, each.where])) for label, each in zip(labels, shown, strict=True)]


def _forest(
    rows: Sequence[tuple[str, Estimate, str]],
    label: str,
    title: str,
    subtitle: str | list[str],
    *,
    rule: float | None = None,
) -> Chart:
    """Return points with interval bars, one row per name in the given order, and a dashed line at `rule`."""
    records: list[dict[str, Any]] = []
    for name, estimate, verdict in rows:
        if estimate.defined:
            low, high = estimate.interval or (estimate.value, estimate.value)
            record = {"name": name, "value": estimate.value, "low": low, "high": high}
            records.append(record | {"text": str(estimate), "verdict": verdict})
    order = list(dict.fromkeys(record["name"] for record in records))
    base = chart_of(records).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, labelColor=INK))
    )
    scale = alt.Scale(zero=rule == 0.0, nice=True)
    axis = alt.Axis(tickCount=6)
    undecided = alt.datum.verdict == _UNDECIDED
    colour = alt.condition(undecided, alt.value(GREY), alt.value(BLUE))
    bars = base.mark_rule(strokeWidth=2, opacity=0.6).encode(
        x=alt.X("low:Q", title=label, scale=scale, axis=axis), x2="high:Q", color=colour
    )
    dots = base.mark_point(size=60, opacity=1, strokeWidth=1.5).encode(
        x=alt.X("value:Q", scale=scale),
        stroke=colour,
        fill=alt.condition(undecided, alt.value("white"), alt.value(BLUE)),
        tooltip=["name:N", alt.Tooltip("text:N", title=label)],
    )
    layers = [bars, dots]
    if rule is not None:
        line = chart_of([{"rule": rule}]).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x="rule:Q")
        layers.insert(0, line)
    height = _ROW * max(len(records), 2)
    return finish_chart(alt.layer(*layers), title, subtitle, row_labels=order, width=_WIDTH, height=height)
