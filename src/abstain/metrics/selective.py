"""Selective prediction: the risk of a model at each coverage.

Answered items are sorted by confidence, descending. Each distinct confidence is one operating point, and all items of a
tied block are accepted together. After ``k`` of ``N`` items with loss sum ``S``::

    coverage = k / N        selective risk = S / k        generalized risk = S / N

AURC is the area under the curve of selective risk over coverage on ``[0, Cmax]``. AUGRC is the area under the curve of
generalized risk. ``N`` includes the abstained items. Areas that end at different ``Cmax`` are not comparable.

All functions take one loss and one confidence per item, ``abstained`` (a mask over the same items, or the number of
additional items that were declined) and ``sample_weight`` (multiplicities: a weight of 2 counts the item twice). Areas
also take ``convention``, the rule of integration (see `CONVENTIONS`). The curves are in `abstain.metrics.curves`, the
integration is in `abstain.metrics._curve`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abstain import _validate, labels
from abstain._row_names import row_name
from abstain.errors import ArgumentError, DataError
from abstain.metrics import _conditions as undefined_if
from abstain.metrics import _curve
from abstain.metrics._columns import Columns, ratio
from abstain.metrics._curve import BALANCED_CURVE, CURVE, GROWTH, TOLERANCE, CurveNeeds, Limited, RankedCurve
from abstain.metrics._specification import (
    CONDITIONAL,
    CONVENTIONS,
    HIGHER,
    LOWER,
    MATCHED,
    NEITHER,
    PENALIZED,
    MetricSpecification,
    OperatingPoint,
    Parameter,
    specify,
)
from abstain.metrics.scales import (
    Scale,
    accuracy_area_scale,
    answers_up_to,
    balanced_area_scale,
    coverage_scale,
    mean_scale,
    rejection_scale,
    risk_scale,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from abstain._types import Floats


__all__ = [
    "CONVENTIONS",
    "auarc",
    "augrc",
    "augrc_at_coverage",
    "augrc_optimal",
    "aurc",
    "aurc_achievable",
    "aurc_at_coverage",
    "aurc_optimal",
    "class_balanced_aurc",
    "cmax",
    "coverage_at_risk",
    "eaugrc",
    "eaurc",
    "prediction_rejection_ratio",
    "risk_at_coverage",
]


def aurc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the curve of selective risk over coverage, up to Cmax.

    The integral of ``S/k`` over coverage on ``[0, Cmax]``. Lower is better. If nothing is answered, it is 0.0, the
    integral over an empty range, which is not a good result. Reference: Geifman, Uziel and El-Yaniv, "Bias-Reduced
    Uncertainty Estimation for Deep Neural Classifiers", 2019.

    >>> aurc([0, 2, 0], [2, 2, 1], abstained=5) * 48
    17.0
    """
    return _value("aurc", loss, confidence, abstained, sample_weight, convention=convention)


def augrc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the curve of generalized risk (loss of the answers / all items) over coverage, up to Cmax.

    The integral of ``S/N`` over coverage on ``[0, Cmax]``. Lower is better. For 0/1 losses, the generalized risk is the
    number of errors among the answers divided by the number of all items, and without abstentions the area is
    ``(1 - AUROC)*acc*(1 - acc) + (1 - acc)**2 / 2``. Reference: Traub et al., "Overcoming Common Flaws in the
    Evaluation of Selective Classification Systems", 2024.

    >>> augrc([0, 2, 0], [2, 2, 1], abstained=5) * 16
    1.0
    """
    return _value("augrc", loss, confidence, abstained, sample_weight, convention=convention)


def aurc_optimal(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC of a perfect ranking: items sorted by loss, ascending, each a separate operating point.

    The confidence is not used. It is accepted so that all metrics can be called in the same way.

    >>> aurc_optimal([1, 0])          # risks 0 and 1/2 at coverages 1/2 and 1
    0.125
    """
    return _value("aurc_optimal", loss, confidence, abstained, sample_weight, convention=convention)


def augrc_optimal(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AUGRC of a perfect ranking: items sorted by loss, ascending, each a separate operating point.

    >>> augrc_optimal([1, 0])
    0.125
    """
    return _value("augrc_optimal", loss, confidence, abstained, sample_weight, convention=convention)


def eaurc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the excess AURC over a perfect ranking: ``AURC - AURC_optimal``.

    Lower is better; 0 for a perfect ranking.

    >>> eaurc([1, 0], [0.9, 0.1])     # 7/8 - 1/8
    0.75
    """
    return _value("eaurc", loss, confidence, abstained, sample_weight, convention=convention)


def eaugrc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the excess AUGRC over a perfect ranking: ``AUGRC - AUGRC_optimal``.

    Lower is better; 0 for a perfect ranking.

    >>> eaugrc([1, 0], [0.9, 0.1])    # 3/8 - 1/8
    0.25
    """
    return _value("eaugrc", loss, confidence, abstained, sample_weight, convention=convention)


def aurc_achievable(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the lower convex hull of the risk-coverage curve.

    Lower is better. Points between two corners of the hull are mixtures of two thresholds: one is applied to some
    items, the other one to the rest. In the convention "interpolated", the hull is that of the loss sum over the
    count, starting at zero answers, and the area is exact for such mixtures. For 0/1 losses it is the achievable AURC
    of fd-shifts. In the other conventions it is the hull of selective risk over coverage. Reference: Traub et al.,
    "Overcoming Common Flaws in the Evaluation of Selective Classification Systems", 2024.

    >>> aurc_achievable([0, 1, 0], [3, 2, 1]) < aurc([0, 1, 0], [3, 2, 1])
    True
    >>> round(aurc_achievable([1, 0], [2, 1], convention="interpolated"), 6)    # the hull is one straight line
    0.5
    """
    return _value("aurc_achievable", loss, confidence, abstained, sample_weight, convention=convention)


def auarc(
    loss: ArrayLike,
    confidence: ArrayLike,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the curve of selective accuracy over coverage, up to Cmax.

    The integral of ``1 - S/k`` over coverage on ``[0, Cmax]``, which is ``Cmax - AURC``, or ``1 - AURC`` if no item is
    declined. Higher is better. Losses must be 0 or 1. If nothing is answered, it is 0.0, the worst value. Reference:
    Nadeem, Zucker and Hanczar, "Accuracy-Rejection Curves (ARCs) for Comparing Classification Methods with a Reject
    Option", 2010.

    >>> auarc([0, 1], [0.9, 0.4])                     # 1 - AURC, 1 - 1/8
    0.875
    >>> auarc([0, 1], [0.9, 0.4], abstained=2)        # the same over half of the items
    0.4375
    """
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    _validate.binary(np.where(rows.answered, rows.loss, 0.0), "loss")
    return _BY_NAME["auarc"].in_convention(convention).point(rows)


def prediction_rejection_ratio(
    loss: ArrayLike,
    confidence: ArrayLike,
    area: str = "aurc",
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return ``(random - area) / (random - optimal)``: 1 for a perfect ranking, 0 for a random one.

    Higher is better. The random area is the area of a ranking in which all answered items are tied, which is the
    average over all orders. The ratio is NaN if all losses are equal, because then no ranking is better than another.
    With ``area="augrc"`` rejected items count as right, as in Malinin et al., "Incorporating Uncertainty into Deep
    Learning for Spoken Language Assessment", 2017. With ``area="aurc"`` they are excluded.

    Args:
        loss: one loss per item.
        confidence: one confidence per item.
        area: "aurc" or "augrc".
        abstained: a mask over the items, or the number of additional items that were declined.
        sample_weight: multiplicities.
        convention: how the area is integrated.

    >>> round(prediction_rejection_ratio([0, 0, 1], [0.9, 0.8, 0.1]), 6)
    1.0
    >>> prediction_rejection_ratio([0, 0, 1], [0.5, 0.5, 0.5])
    0.0
    """
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    metric = replace(_BY_NAME["prediction_rejection_ratio"], value=_area(area, "area"))
    return metric.in_convention(convention).point(rows)


def class_balanced_aurc(
    loss: ArrayLike,
    confidence: ArrayLike,
    y_true: ArrayLike,
    *,
    abstained: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the AURC in which every true class has the same weight: an item has weight ``N / (C * n)``.

    ``C`` is the number of classes in the ground truth, and ``n`` is the number of items in the class of the item,
    abstained ones included. A class of ten items therefore contributes as much to coverage and risk as a class of a
    thousand. Lower is better.

    Args:
        loss: one loss per item.
        confidence: one confidence per item.
        y_true: the true class of every item, including abstained ones.
        abstained: a mask over the items.
        sample_weight: multiplicities.
        convention: how the area is integrated.

    >>> class_balanced_aurc([0, 0, 0, 1], [4, 3, 2, 1], ["a", "a", "a", "b"])    # b is half of all
    0.125
    """
    if abstained is not None and np.ndim(abstained) == 0:
        raise ArgumentError(
            "abstained must be a mask with one entry per item: additional items have no class and so no weight"
        )
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    truth = labels.truths(y_true)
    _validate.same_length(len(rows), y_true=truth)
    missing = labels.missing(truth)
    if missing.any():
        raise DataError(
            f"y_true is missing at {row_name(int(np.argmax(missing)))}; remove rows without a ground truth"
        )
    return _BY_NAME["class_balanced_aurc"].in_convention(convention).point(replace(rows, truth=truth))


def aurc_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the curve of selective risk, up to a coverage (or Cmax, if that is smaller).

    The AURC on ``[0, min(coverage, Cmax)]``, interpolated linearly at the end. Lower is better.

    >>> aurc_at_coverage([0, 1], [2, 1], 0.5)
    0.0
    """
    end = _validate.coverage(coverage)
    return _value(
        "aurc_at_coverage", loss, confidence, abstained, sample_weight, convention=convention, at=end
    )


def augrc_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return the area under the curve of generalized risk, up to a coverage (or Cmax, if that is smaller).

    The AUGRC on ``[0, min(coverage, Cmax)]``, interpolated linearly at the end. Lower is better.

    >>> augrc_at_coverage([1, 1], [2, 1], 0.5)    # a triangle: 0.5 * 0.5 / 2
    0.125
    """
    end = _validate.coverage(coverage)
    return _value(
        "augrc_at_coverage", loss, confidence, abstained, sample_weight, convention=convention, at=end
    )


def risk_at_coverage(
    loss: ArrayLike,
    confidence: ArrayLike,
    coverage: float,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the selective risk at the first operating point with at least this coverage; NaN above Cmax.

    Lower is better. With absolute errors as losses this is MAE@coverage.

    >>> risk_at_coverage([0, 2, 0, 2], [1.0, 0.8, 0.5, 0.3], 0.5)
    1.0
    >>> risk_at_coverage([0], [1.0], 0.5, abstained=3)      # only a quarter can be reached
    nan
    """
    end = _validate.coverage(coverage)
    return _value("risk_at_coverage", loss, confidence, abstained, sample_weight, at=end)


def coverage_at_risk(
    loss: ArrayLike,
    confidence: ArrayLike,
    risk: float,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the largest coverage at which the selective risk is at most this risk; 0 if there is none.

    Higher is better. Only operating points are considered: a tied block is never split.

    >>> coverage_at_risk([0, 0, 1, 1], [4, 3, 2, 1], 0.34)
    0.75
    """
    bound = _validate.real(risk, "risk")
    return _value("coverage_at_risk", loss, confidence, abstained, sample_weight, at=bound)


def cmax(
    loss: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    abstained: ArrayLike | int | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the maximum coverage, the proportion of items that were answered: answered / all items.

    It depends neither on the losses nor on the confidence.

    >>> cmax([0, 2, 0], [2, 2, 1], abstained=5)
    0.375
    """
    return _value("cmax", loss, confidence, abstained, sample_weight)


def _value(
    name: str,
    loss: ArrayLike,
    confidence: ArrayLike | None,
    abstained: ArrayLike | int | None,
    sample_weight: ArrayLike | None,
    *,
    at: float | None = None,
    convention: str = "trapezoid",
) -> float:
    """Return one metric of one ranking, with all cluster weights 1."""
    rows = Columns.ranked(loss, confidence, abstained=abstained, sample_weight=sample_weight)
    return replace(_BY_NAME[name], value=at).in_convention(convention).point(rows)


def _area(name: str, argument: str) -> str:
    return _validate.choice(name, argument, ("aurc", "augrc"))


# The quantities that each metric reads from the curve, and its computation.


def _risk_needs(metric: MetricSpecification) -> CurveNeeds:
    growth = () if metric.convention == "trapezoid" else (GROWTH[metric.convention],)
    return CurveNeeds(risk=True, growth=frozenset(growth))


def _excess_risk_needs(metric: MetricSpecification) -> CurveNeeds:
    return _risk_needs(metric) | CurveNeeds(optimum=True)


def _ratio_needs(metric: MetricSpecification) -> CurveNeeds:
    return _excess_risk_needs(metric) if metric.value == "aurc" else CurveNeeds(optimum=True)


def _hull_needs(metric: MetricSpecification) -> CurveNeeds:
    mixed = metric.convention == "interpolated"
    return CurveNeeds(risk=True, hull=not mixed, running=mixed)


def _truncated_needs(metric: MetricSpecification) -> CurveNeeds:
    running = metric.convention != "trapezoid"
    return CurveNeeds(risk=True, areas_to=frozenset((metric.value,)), running=running)


def _compute_aurc(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return curve.aurc(metric.convention)


def _compute_augrc(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return curve.augrc(metric.convention)


def _compute_aurc_optimal(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    optimum = curve.optimum(metric.convention)
    return _curve.aurc(optimum, curve.total, metric.convention, by_item=True)


def _compute_augrc_optimal(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return _curve.augrc(curve.optimum(metric.convention), curve.total, metric.convention)


def _compute_eaurc(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return _compute_aurc(curve, metric) - _compute_aurc_optimal(curve, metric)


def _compute_eaugrc(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return _compute_augrc(curve, metric) - _compute_augrc_optimal(curve, metric)


def _compute_aurc_achievable(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    return curve.aurc_achievable(metric.convention)


def _compute_auarc(curve: RankedCurve | Limited, metric: MetricSpecification) -> Floats:
    all_wrong = _curve.one_block(curve.count, curve.count)
    return _curve.aurc(all_wrong, curve.total, metric.convention) - _compute_aurc(curve, metric)


def _compute_rejection_ratio(curve: RankedCurve, metric: MetricSpecification) -> Floats:
    """The gain over a random ranking, divided by the largest possible gain; NaN if all losses are the same."""
    random_order = _curve.one_block(curve.sums.count, curve.sums.loss)
    optimum = curve.optimum(metric.convention)
    if metric.value == "aurc":
        random = _curve.aurc(random_order, curve.total, metric.convention)
        area, optimal = _compute_aurc(curve, metric), _compute_aurc_optimal(curve, metric)
    else:
        random = _curve.augrc(random_order, curve.total, metric.convention)
        area, optimal = _compute_augrc(curve, metric), _compute_augrc_optimal(curve, metric)
    one_loss = optimum.first_count == optimum.count
    return np.where(one_loss, np.nan, ratio(random - area, random - optimal))


def _limited(curve: RankedCurve, coverage: float) -> Limited:
    """Limit a ranking to a coverage, using the pass over the ranks that its metrics share."""
    count = np.minimum(coverage * curve.total, curve.sums.count)
    return Limited(curve, curve.sums, curve.crossing(coverage, areas=True), count)


def _compute_risk_at_coverage(curve: RankedCurve, metric: MetricSpecification) -> Floats:
    crossing = curve.crossing(metric.value - TOLERANCE, areas=False)
    return crossing.loss_at / crossing.count_at


def _operating_point_scale(columns: Columns, coverage: float) -> Scale:
    """Return the scale of the risk at the first operating point with at least a coverage: a mean of its answers."""
    largest = columns.worst_loss
    if not columns.highest_coverage or not largest > 0.0 or columns.unranked:
        return Scale(low=0.0)
    kept = answers_up_to(columns, coverage - TOLERANCE)
    return mean_scale(columns, columns.loss[kept], kept, high=largest)


_AREA_OF_RISK = {"scale_at": risk_scale("area"), "coverage_power": 1}
_AREA_OF_GENERALIZED_RISK = {"scale_at": risk_scale("generalized"), "coverage_power": 2}
_COMMON = {"direction": LOWER, "unit": "loss", "family": CURVE, "comparison": MATCHED}
_RANKED = {"loss": "loss", "confidence": "confidence", "abstained": "abstained"}
_AT_COVERAGE = Parameter("coverage", 0.5, _validate.coverage)
_ranked = specify(undefined_if.NOT_ALL_RANKED, undefined_if.NO_LOSS, arguments=_RANKED, **_COMMON)
_unranked = specify(
    undefined_if.NO_LOSS,
    arguments={"loss": "loss", "abstained": "abstained"},
    direction=NEITHER,
    unit="loss",
    family=CURVE,
)
METRICS: tuple[MetricSpecification, ...] = (
    _ranked(
        coverage_at_risk,
        curve_needs=lambda metric: CurveNeeds(risk=True, bounds=frozenset((metric.value + TOLERANCE,))),
        compute=lambda curve, metric: ratio(curve.sums.within[metric.value + TOLERANCE], curve.total),
        direction=HIGHER,
        unit="proportion",
        comparison=PENALIZED,
        parameter=Parameter("risk", 0.1, _validate.real),
        operating_point=lambda columns, risk: OperatingPoint(columns, risk=risk),
    ),
    _ranked(
        risk_at_coverage,
        curve_needs=lambda metric: CurveNeeds(risk_at=frozenset((metric.value - TOLERANCE,))),
        compute=_compute_risk_at_coverage,
        undefined_at=undefined_if.unreached,
        parameter=_AT_COVERAGE,
        scale_at=_operating_point_scale,
        operating_point=lambda columns, coverage: OperatingPoint(columns, coverage=coverage),
    ),
    _ranked(
        aurc_at_coverage,
        curve_needs=_truncated_needs,
        compute=lambda curve, metric: _limited(curve, metric.value).aurc(metric.convention),
        parameter=_AT_COVERAGE,
        matched=_compute_aurc,
        **_AREA_OF_RISK,
    ),
    _ranked(
        augrc_at_coverage,
        curve_needs=_truncated_needs,
        compute=lambda curve, metric: _limited(curve, metric.value).augrc(metric.convention),
        parameter=_AT_COVERAGE,
        matched=_compute_augrc,
        **_AREA_OF_GENERALIZED_RISK,
    ),
    _ranked(aurc, curve_needs=_risk_needs, compute=_compute_aurc, matched=_compute_aurc, **_AREA_OF_RISK),
    _ranked(
        augrc,
        curve_needs=lambda _: CurveNeeds(),
        compute=_compute_augrc,
        matched=_compute_augrc,
        **_AREA_OF_GENERALIZED_RISK,
    ),
    _ranked(
        eaurc,
        curve_needs=_excess_risk_needs,
        compute=_compute_eaurc,
        matched=_compute_eaurc,
        **_AREA_OF_RISK,
    ),
    _ranked(
        eaugrc,
        curve_needs=lambda _: CurveNeeds(optimum=True),
        compute=_compute_eaugrc,
        matched=_compute_eaugrc,
        **_AREA_OF_GENERALIZED_RISK,
    ),
    _ranked(
        aurc_achievable,
        curve_needs=_hull_needs,
        compute=_compute_aurc_achievable,
        matched=_compute_aurc_achievable,
        **_AREA_OF_RISK,
    ),
    _ranked(
        auarc,
        undefined_if.NOT_RIGHT_OR_WRONG,
        curve_needs=_risk_needs,
        compute=_compute_auarc,
        direction=HIGHER,
        unit="proportion",
        matched=_compute_auarc,
        scale_at=accuracy_area_scale,
        coverage_power=1,
    ),
    _ranked(
        prediction_rejection_ratio,
        undefined_if.NOTHING_ANSWERED,
        undefined_if.ONE_LOSS,
        curve_needs=_ratio_needs,
        compute=_compute_rejection_ratio,
        direction=HIGHER,
        unit="ratio",
        comparison=CONDITIONAL,
        parameter=Parameter("area", "aurc", _area, number=False),
        scale_at=rejection_scale,
    ),
    _ranked(
        class_balanced_aurc,
        arguments=_RANKED | {"y_true": "truth"},
        family=BALANCED_CURVE,
        matched=_compute_aurc,
        scale_at=balanced_area_scale,
        coverage_power=1,
    ),
    _unranked(
        cmax,
        curve_needs=lambda _: CurveNeeds(ranking=False),
        compute=lambda curve, _: curve.cmax,
        unit="proportion",
        scale_at=coverage_scale,
    ),
    _unranked(
        aurc_optimal,
        curve_needs=lambda _: CurveNeeds(ranking=False, optimum=True),
        compute=_compute_aurc_optimal,
        scale_at=risk_scale("area", power=2.0),
    ),
    _unranked(
        augrc_optimal,
        curve_needs=lambda _: CurveNeeds(ranking=False, optimum=True),
        compute=_compute_augrc_optimal,
        scale_at=risk_scale("generalized", power=2.0),
    ),
)
_BY_NAME = {metric.name: metric for metric in METRICS}
