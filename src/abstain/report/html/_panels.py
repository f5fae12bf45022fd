"""The panels of the report: what the template shows, taken out of results.

Everything here is text, numbers and estimates; the template escapes all of it. Only charts come as markup, and
they are made by the chart renderer from specifications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from abstain.evaluation import Comparison, Evaluation
from abstain.report.charts import (
    difference_chart,
    figures_chart,
    reliability_diagram,
    risk_coverage_chart,
)
from abstain.report.html import _words
from abstain.report.html._explorer import embedded_json
from abstain.report.html._further import conformal_verdict
from abstain.report.html._parts import Figure, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from abstain.evaluation import SystemsComparison
    from abstain.evaluation._profile import Profile
    from abstain.evaluation.conformal import ConformalEvaluation
    from abstain.inference import Estimate

    Sides = Mapping[str, tuple[Evaluation, Profile]]

__all__ = [
    "cautions",
    "comparison_view",
    "conformal_page",
    "curve_figures",
    "facts",
    "reliability_figures",
    "sections",
    "side_views",
    "sides_of",
    "subtitle_of",
    "systems_page",
    "title_of",
    "verdict",
]

_OUTCOMES = (
    ("answered", "answered", "answered"),
    ("abstained", "abstained", "abstained"),
    ("items_failed", "failed", "failed"),
    ("items_unscored", "unscored", "without truth"),
)
_COMPARED = (("Cmax", "cmax"), ("AURC", "aurc"), ("AUGRC", "augrc"))
_SECTIONS = (
    ("verdict", "Verdict", "verdict"),
    ("population", "Who was judged", "sides"),
    ("comparison", "Comparison", "comparison"),
    ("estimates", "Estimates", "sides"),
    ("curves", "Curves and threshold", "explorer"),
    ("reliability", "Reliability", "reliability"),
    ("definitions", "Definitions", "definitions"),
    ("provenance", "Provenance", "facts"),
)


@dataclass(frozen=True, slots=True)
class NamedCaution:
    """A caution and the confidences that it holds for; none where it holds for all."""

    message: str
    names: Sequence[str]


def sides_of(
    result: Evaluation | Comparison, progress: Callable[[int], None] | None
) -> dict[str, tuple[Evaluation, Profile]]:
    """Return the evaluations of a result by label, each with its profile."""
    sides = {"": result} if isinstance(result, Evaluation) else {"left": result.left, "right": result.right}
    return {label: (side, side.profile(progress=progress)) for label, side in sides.items()}


def title_of(sides: Sides) -> str:
    """Return where the items came from."""
    return " against ".join(dict.fromkeys(_source(side) for side, _ in sides.values()))


def _source(evaluation: Evaluation) -> str:
    path, mode = evaluation.provenance.get("path"), evaluation.provenance.get("mode")
    name = _file_name(path) if path else "Items"
    return f"{name} ({mode})" if mode else name


def subtitle_of(evaluation: Evaluation) -> str:
    """Return the size and the loss in one line."""
    population, loss = evaluation.population, evaluation.loss
    return (
        f"{population.items:,} items of {population.included:,} {evaluation.cluster_noun}"
        f"{'' if population.included == 1 else 's'}; loss {loss.name} = {loss.definition}."
    )


def verdict(result: Evaluation | Comparison, profile: Profile) -> list[str]:
    """Return the verdict in words."""
    if isinstance(result, Comparison):
        return _words.comparison_verdict(result)
    return _words.evaluation_verdict(result, profile)


def cautions(sides: Sides, result: Evaluation | Comparison) -> list[NamedCaution]:
    """Return each caution once, with the names of all that it holds for."""
    messages: dict[str, list[str]] = {str(caution): [] for caution in result.cautions}
    for label, (evaluation, _) in sides.items():
        messages |= {str(caution): [] for caution in evaluation.cautions}
        for name, variant in evaluation.items():
            for caution in variant.cautions:
                messages.setdefault(str(caution), []).append(f"{label} {name}".strip())
    return [NamedCaution(message, names) for message, names in messages.items()]


def side_views(sides: Sides) -> list[dict[str, Any]]:
    """Return population and estimates of each side."""
    return [_side_view(label, *side) for label, side in sides.items()]


def _side_view(label: str, evaluation: Evaluation, profile: Profile) -> dict[str, Any]:
    population, settings = evaluation.population, evaluation.settings
    counts = [(kind, name, getattr(population, field)) for field, kind, name in _OUTCOMES]
    total = sum(count for _, _, count in counts)
    strip, start = [], 0.0
    for kind, name, count in counts:
        if count or kind in ("answered", "abstained"):
            share = 100.0 * count / total
            strip.append(
                {"kind": kind, "name": name, "count": count, "start": f"{start:.3f}", "share": f"{share:.3f}"}
            )
            start += share
    at = f"{settings.area_coverage:g}"
    figures = {
        "AURC": "aurc",
        "AUGRC": "augrc",
        "e-AURC": "eaurc",
        "e-AUGRC": "eaugrc",
        "achievable AURC": "aurc_achievable",
        f"AURC@{at}": "aurc_at_coverage",
        f"AUGRC@{at}": "augrc_at_coverage",
    }
    first = next(iter(evaluation.values()), None)
    several = len(evaluation) > 1
    return {
        "label": f"{label}: {_source(evaluation)}" if label else "",
        "noun": evaluation.cluster_noun,
        "population": population,
        "strip": strip,
        "strip_words": "Items: " + ", ".join(f"{part['count']:,} {part['name']}" for part in strip),
        "cmax": first and first.cmax,
        "headings": list(figures),
        "estimates": [
            (name, [getattr(variant, field) for field in figures.values()])
            for name, variant in evaluation.items()
        ],
        "leader": profile.leader if several else "",
        "areas_chart": figure(
            figures_chart(evaluation), "AUGRC of every confidence with its interval", wide=True
        )
        if several and population.answered
        else None,
        "grid": settings.coverage_grid,
        "risks": [(name, variant.risk_at_coverage) for name, variant in evaluation.items()],
    }


def comparison_view(result: Evaluation | Comparison) -> dict[str, Any] | None:
    """Return the table of differences, or None where nothing is compared."""
    if isinstance(result, Evaluation):
        return None
    rows = []
    for name, delta in result.deltas.items():
        left, right = result.left[name], result.right[name]
        for place, (label, field) in enumerate(_COMPARED):
            sides = (getattr(left, field), getattr(right, field), getattr(delta, field))
            rows.append(_compared(name, label, sides, first=place == 0))
        matched = [coverage for coverage, change in delta.risk_at_coverage.items() if change.defined]
        if matched:
            at = matched[-1]
            three = (left.risk_at_coverage[at], right.risk_at_coverage[at], delta.risk_at_coverage[at])
            rows.append(_compared(name, f"risk at {100 * at:g}%", three, first=False))
    overlap, noun = result.overlap, result.left.cluster_noun
    words = (
        f"Paired over the {overlap.included:,} of {overlap.total:,} shared {noun}s that are judged on both sides, "
        "with the same draws on both."
    )
    chart = figure(
        difference_chart(result), "Difference in AUGRC with its interval, by confidence", wide=True
    )
    return {"rows": rows, "words": words, "chart": chart}


def _compared(
    name: str, figure: str, three: tuple[Estimate, Estimate, Estimate], *, first: bool
) -> dict[str, Any]:
    left, right, delta = three
    return {
        "name": name,
        "first": first,
        "figure": figure,
        "left": left,
        "right": right,
        "delta": delta,
        "words": _who(delta, more_coverage=figure == "Cmax"),
    }


def _who(change: Estimate, *, more_coverage: bool) -> str:
    interval = change.interval
    if not change.defined or interval is None:
        return "no interval"
    low, high = interval
    if low <= 0.0 <= high:
        return "cannot tell"
    if more_coverage:
        return "right answers more" if low > 0 else "right answers less"
    return "left is better" if low > 0 else "right is better"


def curve_figures(evaluation: Evaluation, profile: Profile) -> dict[str, Any] | None:
    """Return the still charts that stand where scripts do not run, or None where there is no curve."""
    drawable = [name for name, points in profile.points.items() if len(points)]
    if not drawable:
        return None
    name = profile.leader
    return {
        f"{risk}_chart": figure(
            risk_coverage_chart(evaluation, name, risk=risk, profile=profile),
            f"{risk} risk over coverage, {name}",
        )
        for risk in ("selective", "generalized")
    }


def reliability_figures(sides: Sides) -> tuple[list[Figure], list[str]]:
    """Return a reliability diagram of each confidence within [0, 1], and the names of the others."""
    figures, left_out, seen = [], [], set()
    for label, (evaluation, profile) in sides.items():
        for name in evaluation:
            title = f"{label}: {name}" if label else name
            curve = profile.reliability.get(name)
            if curve is None:
                left_out += [title] if len(profile.points[name]) else []
            elif (same := (label, curve.confidence.tobytes(), curve.count.tobytes())) not in seen:
                seen.add(same)
                told = f"Reliability of {title}: accuracy against stated confidence"
                figures.append(figure(reliability_diagram(curve, title=title), told))
    return figures, left_out


def conformal_page(result: ConformalEvaluation, made: datetime) -> dict[str, Any]:
    """Return what a page about intervals or sets shows around its panel."""
    settings = result.settings
    path = result.provenance.get("path")
    percent = f"{100 * settings.confidence_level:g}%"
    return _bare_page() | {
        "title": _file_name(path) if path else result.kind.capitalize(),
        "subtitle": f"{result.rows:,} {result.kind} in {result.clusters:,} clusters.",
        "verdict": conformal_verdict(result),
        "cautions": [NamedCaution(str(caution), ()) for caution in result.cautions],
        "definitions": [
            ("Coverage", "The share of truths that lie within their closed interval, or in their set."),
            (
                "Verdict",
                f"Covered where the exact binomial {percent} interval of the coverage, scaled to clusters, lies at or "
                f"above the level less a margin of {settings.margin:g}; under-covered where it lies below; else "
                "undecided.",
            ),
            (
                "Intervals",
                f"{percent} percentile intervals of {settings.resamples:,} resamples of whole clusters "
                f"(seed {settings.seed}).",
            ),
        ],
        "facts": [
            *_inputs("", result.provenance),
            ("resamples", _resampling(settings.resamples, settings.seed, settings.confidence_level)),
            *_made(made),
        ],
    }


def systems_page(result: SystemsComparison, made: datetime) -> dict[str, Any]:
    """Return what a page about several systems shows around its panel."""
    settings, matching = result.settings, result.matching
    percent = f"{100 * settings.level:g}%"
    return _bare_page() | {
        "title": " against ".join(result.systems),
        "subtitle": f"{matching.judged:,} items of {matching.clusters:,} {result.cluster_noun}s, "
        f"matched by {' and '.join(matching.by)}.",
        "verdict": result.words,
        "cautions": [NamedCaution(str(caution), ()) for caution in result.cautions],
        "definitions": [
            *((name, metric.summary.replace("``", "")) for name, metric in result.metrics.items()),
            (
                "Difference",
                f"Right less left over the same items with the same draws, with {percent} percentile intervals of "
                f"{settings.resamples:,} resamples of whole {result.cluster_noun}s (seed {settings.seed}).",
            ),
            (
                "Better",
                "Said where the p-value, corrected by Holm's method for all differences of the comparison, is at most "
                f"{1 - settings.level:.2g}. Systems that answer different shares are compared at a coverage that both "
                "reach, too. A system that answers nothing never wins.",
            ),
        ],
        "facts": [
            *(fact for name, system in result.systems.items() for fact in _inputs(name, system.provenance)),
            ("resamples", _resampling(settings.resamples, settings.seed, settings.level)),
            *_made(made),
        ],
    }


def _bare_page() -> dict[str, Any]:
    """A page without the parts that need answers ranked by a confidence."""
    return {
        "sides": [],
        "comparison": None,
        "explorer": None,
        "explorer_json": embedded_json(None),
        "reliability": [],
    }


def _resampling(resamples: int, seed: int, level: float) -> str:
    return f"{resamples:,}, seed {seed}, level {level:g}"


def _file_name(path: object) -> str:
    return str(path).replace("\\", "/").rsplit("/", 1)[-1]


def _inputs(label: str, provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    names = {
        "path": "input",
        "mode": "mode",
        "sha256": "input SHA-256",
        "run_id": "run",
        "git_commit": "commit of the run",
    }
    return [
        (f"{label} {name}".strip(), str(provenance[key]))
        for key, name in names.items()
        if provenance.get(key) is not None
    ]


def _made(made: datetime) -> list[tuple[str, str]]:
    import platform  # noqa: PLC0415
    from importlib.metadata import version  # noqa: PLC0415

    versions = [f"{name} {version(name)}" for name in ("abstain", "numpy", "scipy")]
    return [
        ("made at", made.isoformat(timespec="seconds")),
        ("versions", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]


def facts(sides: Sides, made: datetime) -> list[tuple[str, str]]:
    """Return where the numbers come from and what made them."""
    found = [
        fact for label, (evaluation, _) in sides.items() for fact in _inputs(label, evaluation.provenance)
    ]
    evaluation = next(iter(sides.values()))[0]
    settings = evaluation.settings
    found += [
        ("calibrator", f"{used.calibrator.method}, SHA-256 of its run {used.source.sha256}")
        for used in evaluation.calibrations
    ]
    resampling = _resampling(settings.resamples, settings.seed, settings.level)
    return [*found, ("resamples", resampling), ("convention", settings.convention), *_made(made)]


def sections(context: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return anchors and names of the sections that the page has, in their order."""
    found = [(anchor, name) for anchor, name, needs in _SECTIONS if context[needs]]
    place = next(index for index, (anchor, _) in enumerate(found) if anchor == "definitions")
    found[place:place] = [(panel.anchor, panel.short) for panel in context["panels"]]
    return found
