"""Slow, literal implementations of the definitions, one Python loop each, to check the fast kernels against."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Point = tuple[float, float]


def operating_points(loss: Sequence[float], confidence: Sequence[float]) -> list[tuple[int, float]]:
    """Return (items accepted, loss sum) after each tied block, most confident first."""
    ranked = sorted(zip(confidence, loss, strict=True), key=lambda pair: -pair[0])
    points, count, total = [], 0, 0.0
    for _, tied_block in itertools.groupby(ranked, key=lambda pair: pair[0]):
        for _, value in tied_block:
            count += 1
            total += value
        points.append((count, total))
    return points


def trapezoid(points: Sequence[Point]) -> float:
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))


def aurc(loss: Sequence[float], confidence: Sequence[float], n: int) -> float:
    points = [(k / n, s / k) for k, s in operating_points(loss, confidence)]
    return trapezoid([(0.0, points[0][1]), *points]) if points else 0.0


def augrc(loss: Sequence[float], confidence: Sequence[float], n: int) -> float:
    return trapezoid([(0.0, 0.0), *((k / n, s / n) for k, s in operating_points(loss, confidence))])


def cut(points: list[Point], end: float) -> list[Point]:
    kept: list[Point] = []
    for point in points:
        if point[0] >= end:
            if kept:
                left = kept[-1]
                proportion = (end - left[0]) / (point[0] - left[0]) if point[0] > left[0] else 1.0
                kept.append((end, left[1] + proportion * (point[1] - left[1])))
            return kept
        kept.append(point)
    return kept


def aurc_at(loss: Sequence[float], confidence: Sequence[float], n: int, end: float) -> float:
    points = [(k / n, s / k) for k, s in operating_points(loss, confidence)]
    return trapezoid(cut([(0.0, points[0][1]), *points], min(end, points[-1][0]))) if points else 0.0


def augrc_at(loss: Sequence[float], confidence: Sequence[float], n: int, end: float) -> float:
    points = [(0.0, 0.0), *((k / n, s / n) for k, s in operating_points(loss, confidence))]
    return trapezoid(cut(points, min(end, points[-1][0])))


def optimal_confidence(loss: Sequence[float]) -> list[float]:
    """Return a confidence without ties that ranks items by ascending loss."""
    order = sorted(range(len(loss)), key=lambda row: loss[row])
    confidence = [0.0] * len(loss)
    for rank, row in enumerate(order):
        confidence[row] = -float(rank)
    return confidence


def achievable(loss: Sequence[float], confidence: Sequence[float], n: int) -> float:
    hull: list[Point] = []
    for k, s in operating_points(loss, confidence):
        point = (k / n, s / k)
        while len(hull) >= 2:
            (ax, ay), (bx, by) = hull[-2], hull[-1]
            if (bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax) > 1e-10:
                break
            hull.pop()
        hull.append(point)
    return trapezoid([(0.0, hull[0][1]), *hull]) if hull else 0.0


def risk_at(loss: Sequence[float], confidence: Sequence[float], n: int, coverage: float) -> float | None:
    for k, s in operating_points(loss, confidence):
        if k / n >= coverage - 1e-9:
            return s / k
    return None


def expected_risks(loss: Sequence[float], confidence: Sequence[float]) -> list[float]:
    """Return the selective risk after each single item; in a tied block, its expectation."""
    risks, count, total = [], 0, 0.0
    for k, s in operating_points(loss, confidence):
        mean = (s - total) / (k - count)
        risks += [(total + step * mean) / (count + step) for step in range(1, k - count + 1)]
        count, total = k, s
    return risks
