"""What the threshold explorer knows: the working points of every confidence, as JSON within the page.

Counts are exact; risks are rounded to six significant digits, far below what a screen shows. Thresholds keep
all their digits, because they are what somebody will copy.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abstain.evaluation import Line, WorkingPoints
    from abstain.report.html._panels import Side

__all__ = ["embedded_json", "explorer_data"]

_DIGITS = 6


def explorer_data(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the explorer's data; with more than one side, the side's label stands before each confidence."""
    found: dict[str, Any] = {"sides": [], "curves": [], "start": 0}
    leaders = []
    for side in sides:
        profile = side.profile
        if profile is None:
            continue
        number = len(found["sides"])
        leaders.append(profile.leader)
        found["sides"].append(
            {"mean": _rounded(profile.random.selective_risk[:1])[0], "optimal": _line(profile.optimal)}
        )
        for name, points in profile.points.items():
            if len(points):
                line = profile.lines[name]
                found["curves"].append(
                    {
                        "key": f"{side.label}: {name}" if side.label else name,
                        "name": name,
                        "side": number,
                        "n": side.system.population.items,
                        **_points(points),
                        # A curve that is offered point by point is drawn through these points.
                        "line": None if points.in_curve == len(points) else _line(line),
                    }
                )
    # The page opens with what its verdict speaks of.
    names = [curve["name"] for curve in found["curves"]]
    found["start"] = names.index(leaders[0]) if leaders and leaders[0] in names else 0
    return found


def embedded_json(value: object) -> Markup:
    """Return JSON that can stand in a script element: no text in it can end the element or begin a comment."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _points(points: WorkingPoints) -> dict[str, Any]:
    return {
        "whole": points.in_curve,
        "t": points.threshold.tolist(),
        "k": points.answered.tolist(),
        "w": points.wrong.tolist(),
        "r": _rounded(points.selective_risk),
        "rl": _rounded(points.selective_low),
        "rh": _rounded(points.selective_high),
        "g": _rounded(points.generalized_risk),
        "gl": _rounded(points.generalized_low),
        "gh": _rounded(points.generalized_high),
    }


def _line(line: Line) -> dict[str, list[float | None]]:
    return {
        "c": _rounded(line.coverage),
        "r": _rounded(line.selective_risk),
        "g": _rounded(line.generalized_risk),
    }


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.{_DIGITS}g}") for value in values]
