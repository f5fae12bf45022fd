"""The page: which panels a result has, and what stands around them.

There is one builder. Numbers about answers and abstentions (one system, two or many) and numbers about intervals or
sets bring their panels, sentences and definitions each; the page shows what there is.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from abstain.report import views
from abstain.report.html import _words
from abstain.report.html._compared import compared_panel
from abstain.report.html._explorer import embedded_json, explorer_data
from abstain.report.html._further import coverage_panel, metric_panels, mistakes_panel
from abstain.report.html._panels import (
    curves_panel,
    estimates_panel,
    population_panel,
    reliability_panel,
    sides_of,
    source_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from abstain.evaluation import Result
    from abstain.evaluation.conformal import CoverageResult
    from abstain.report.html._parts import Panel

__all__ = ["Asked", "page_of"]

_UNNAMED = {"left", "right"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the reader asked the page for beside the result: mistakes, what the model wrote, and news of the work."""

    mistakes: int = 0
    responses: bool = False
    progress: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class _Page:
    """What one kind of result brings to the page."""

    title: str
    subtitle: str
    verdict: Sequence[str]
    warnings: Sequence[str]
    panels: Sequence[Panel]
    definitions: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    explorer: dict[str, Any] | None = None


def page_of(
    answers: Result | None, coverage: CoverageResult | None, made: datetime, asked: Asked
) -> dict[str, Any]:
    """Return what the template shows of answers, of intervals or sets, or of both."""
    found = [] if answers is None else [_answers_page(answers, asked)]
    found += [] if coverage is None else [_coverage_page(coverage)]
    panels = [panel for page in found for panel in page.panels]
    if answers is not None and asked.mistakes:
        several = len(answers.systems) > 1
        panels.append(
            mistakes_panel(answers.first, asked.mistakes, responses=asked.responses, several=several)
        )
    # What heads the page is told by the first; where both are there, each panel tells its own verdict.
    first = found[0]
    return {
        "title": first.title,
        "subtitle": first.subtitle,
        "verdict": first.verdict,
        "warnings": [warning for page in found for warning in page.warnings],
        "panels": panels,
        "definitions": [definition for page in found for definition in page.definitions],
        "facts": [*(fact for page in found for fact in page.facts), *_made(made)],
        "explorer_json": embedded_json(first.explorer),
        "sections": [
            ("verdict", "Verdict"),
            *((panel.anchor, panel.short) for panel in panels),
            ("definitions", "Definitions"),
            ("provenance", "Provenance"),
        ],
    }


def _answers_page(result: Result, asked: Asked) -> _Page:
    """What a result about answers and abstentions brings."""
    sides = sides_of(result, asked.progress)
    alone = len(result.systems) == 1
    panels = [
        population_panel(result),
        compared_panel(result),
        estimates_panel(sides),
        curves_panel(sides),
        reliability_panel(sides),
        *metric_panels(result),
    ]
    settings = result.settings
    calibrations = dict.fromkeys(used for system in result.systems.values() for used in system.calibrations)
    return _Page(
        title=_title(result),
        subtitle=_subtitle(result),
        verdict=_words.system_verdict(result.only, sides[0].profile)
        if alone
        else _words.comparison_verdict(result),
        warnings=views.warning_lines(result),
        panels=[panel for panel in panels if panel is not None],
        definitions=_words.definitions(result),
        facts=[
            *(
                fact
                for name, system in result.systems.items()
                for fact in _inputs("" if alone else name, system.provenance)
            ),
            *(
                ("calibrator", f"{used.calibrator.method}, SHA-256 of its run {used.source.sha256}")
                for used in calibrations
            ),
            ("resamples", _resampling(settings.resamples, settings.seed, settings.level)),
            ("convention", settings.convention),
        ],
        explorer=explorer_data(sides),
    )


def _coverage_page(result: CoverageResult) -> _Page:
    """What a result about intervals or sets brings."""
    settings = result.settings
    path = result.provenance.get("path")
    return _Page(
        title=str(path).replace("\\", "/").rsplit("/", 1)[-1] if path else result.kind.capitalize(),
        subtitle=f"{result.rows:,} {result.kind} in {result.clusters:,} clusters.",
        verdict=_words.coverage_verdict(result),
        warnings=[str(warning) for warning in result.warnings],
        panels=[coverage_panel(result)],
        definitions=_words.coverage_definitions(result),
        facts=[
            *_inputs(result.kind, result.provenance),
            (f"resamples of {result.kind}", _resampling(settings.resamples, settings.seed, settings.level)),
        ],
    )


def _title(result: Result) -> str:
    """The names of the systems; where they have none, what their items came from."""
    if len(result.systems) > 1 and not set(result.systems) <= _UNNAMED:
        return " against ".join(result.systems)
    return " against ".join(dict.fromkeys(source_of(system) for system in result.systems.values()))


def _subtitle(result: Result) -> str:
    """The size, the match and the loss in one line."""
    population, matching, noun = result.population, result.matching, result.cluster_noun
    items = population.items if matching is None else matching.judged
    clusters = population.included if matching is None else matching.clusters
    parts = [f"{items:,} items of {clusters:,} {noun}{'' if clusters == 1 else 's'}"]
    parts += [] if matching is None else [f"matched by {' and '.join(matching.by)}"]
    parts += [] if result.loss is None else [views.loss_line(result.loss)]
    return f"{'; '.join(parts)}."


def _resampling(resamples: int, seed: int, level: float) -> str:
    return f"{resamples:,}, seed {seed}, level {level:g}"


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
    versions = [f"{name} {version(name)}" for name in ("abstain", "numpy", "scipy")]
    return [
        ("made at", made.isoformat(timespec="seconds")),
        ("versions", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]
