"""Results as HTML: the report, which is one self-contained file, and the representation in a notebook.

The report contains its styles, its charts and its one script. A content security policy by hash blocks all other
scripts and all requests, so that text from a file or a model stays text. It begins with the conclusion in sentences,
then the warnings, then the evidence. Results about answers and abstentions, and results about prediction intervals or
sets, each have their panels, sentences and definitions. Participant ids and the responses of a model are included only
on request. The representation in a notebook is plain HTML without script or style, and one picture.
"""

from __future__ import annotations

import base64
import html
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

import abstain
from abstain import _outputs, _validate
from abstain.evaluation import Result
from abstain.report import coverage as covered
from abstain.report import views
from abstain.report.charts import chart_svg, content_hash, main_chart, title_text, unchecked
from abstain.report.html import _panels, _sentences
from abstain.report.tables import Table, number_cell, table_html
from abstain.report.text import plain_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from abstain.evaluation import Line, OperatingPoints, Settings
    from abstain.evaluation.conformal import CoverageResult, CoverageSettings
    from abstain.report.html._panels import Side
    from abstain.report.html._parts import Panel

__all__ = ["report_html", "result_html", "write_report"]

_UNNAMED = {"left", "right"}
_DIGITS = 6


def write_report(
    path: str | os.PathLike[str],
    result: Result | CoverageResult,
    **options: Any,
) -> Path:
    """Write the report of a result to a file; the options are those of `report_html`."""
    output = _outputs.check_output(path)
    return _outputs.write_whole(output, report_html(result, **options).encode())


def report_html(
    result: Result | CoverageResult,
    *,
    title: str = "",
    command: str = "",
    created_at: datetime | None = None,
    coverage: CoverageResult | None = None,
    risk: float | str | None = None,
    mistakes: int = 0,
    responses: bool = False,
    optional_metrics: Collection[str] = (),
    progress: Callable[[int], None] | None = None,
) -> str:
    """Return the report of a result as one HTML page.

    Args:
        result: the result of `evaluate`, `compare`, `evaluate_intervals` or `evaluate_sets`.
        title: the heading. Default: the source, or the names of the systems.
        command: the command that computes these numbers again.
        created_at: the time of creation. Default: now.
        coverage: the result for prediction intervals or sets of the same model, for a separate panel.
        risk: the largest acceptable risk, such as 0.05 or "5%", chosen before looking at the data. The page begins
            with the threshold for it.
        mistakes: how many of the most confident wrong answers to list, with the ids of their clusters.
        responses: True to show the prompts and responses of these mistakes, if the source has them.
        optional_metrics: metrics that the page omits if no system has the data for them.
        progress: called with the number of resamples done since the last call.
    """
    listed = _validate.whole(mistakes, "mistakes")
    created = created_at or datetime.now(UTC)
    style, script = _text("report.css"), _text("explorer.js")
    with unchecked():
        if isinstance(result, Result):
            pages = [_answers_page(result, progress, risk, optional_metrics)]
            pages += [] if coverage is None else [_coverage_page(coverage)]
        else:
            pages = [_coverage_page(result)]
        panels = [panel for page in pages for panel in page.panels]
        if isinstance(result, Result) and listed:
            several = len(result.systems) > 1
            panels.append(_panels.mistakes_panel(result.first, listed, responses=responses, several=several))
    # The title and the conclusion of the page are those of the first kind of result.
    first = pages[0]
    return _template().render(
        title=title or first.title,
        subtitle=first.subtitle,
        conclusion=first.conclusion,
        warnings=[warning for page in pages for warning in page.warnings],
        panels=panels,
        definitions=[definition for page in pages for definition in page.definitions.items()],
        facts=[*(fact for page in pages for fact in page.facts), *_creation_facts(created)],
        explorer_json=embedded_json(first.explorer),
        sections=[
            ("conclusion", "Conclusion"),
            *((panel.anchor, panel.short) for panel in panels),
            ("definitions", "Definitions"),
            ("provenance", "Source"),
        ],
        created=created.strftime("%Y-%m-%d %H:%M %Z").strip(),
        version=abstain.__version__,
        command=command,
        style=Markup(style),
        script=Markup(script),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
    )


def result_html(result: Result | CoverageResult) -> str:
    """Return a result as HTML for a notebook: its population, findings, tables, warnings and main chart."""
    findings: list[str] = []
    if not isinstance(result, Result):
        lines = [f"{result.rows:,} {result.kind} of {result.clusters:,} clusters"]
        tables = [covered.nominal_table(result), covered.metrics_table(result)]
        warnings = [str(warning) for warning in result.warnings]
    elif len(result.systems) == 1:
        system = result.only
        answer_rate = f"answer rate {system.coverage}"
        lines = [views.population_line(system), views.loss_line(system.loss), answer_rate]
        tables = [views.areas_table(system)]
        if system.metrics is not None:
            tables += [views.metrics_table(system.metrics), views.groups_table(system.metrics)]
        warnings = views.warning_lines(result)
    else:
        lines = [f"{len(result.systems)} systems, {views.basis_line(result)}", views.loss_line(result.loss)]
        findings = views.summary_sentences(result)
        differences = views.differences_table(result, views.choose_differences(result))
        tables = [Table("", differences.columns, differences.rows), views.systems_table(result)]
        warnings = views.warning_lines(result)
    head = "".join(f"<p>{html.escape(plain_text(line))}</p>" for line in lines if line)
    body = "".join(table_html(table) for table in tables if table.rows)
    heading = "<p>warnings</p>" if warnings else ""
    return f"<div>{head}{_list(findings)}{body}{heading}{_list(warnings)}{_picture(result)}</div>"


def _list(texts: Sequence[str]) -> str:
    parts = "".join(f"<li>{html.escape(plain_text(text))}</li>" for text in texts)
    return f"<ul>{parts}</ul>" if parts else ""


def _picture(result: Result | CoverageResult) -> str:
    """Return the main chart as an image, so that its element ids cannot clash with those of another chart."""
    with unchecked():
        chart = main_chart(result)
        if chart is None:
            return ""
        image = base64.b64encode(chart_svg(chart).encode()).decode()
    title = html.escape(plain_text(title_text(chart.title)))
    return f'<p><img alt="{title}" src="data:image/svg+xml;base64,{image}"></p>'


@dataclass(frozen=True, slots=True)
class _Page:
    """The parts of the page about one kind of result."""

    title: str
    subtitle: str
    conclusion: Sequence[str]
    warnings: Sequence[str]
    panels: Sequence[Panel]
    definitions: Mapping[str, str]
    facts: Sequence[tuple[str, str]]
    explorer: dict[str, Any] | None = None


def _answers_page(
    result: Result,
    progress: Callable[[int], None] | None,
    risk: float | str | None,
    optional_metrics: Collection[str],
) -> _Page:
    """Return the parts of the page about answers and abstentions."""
    settings, systems = result.settings, result.systems
    policies = {}
    if risk is not None:
        policies = {name: system.policy(risk, sure=settings.level) for name, system in systems.items()}
    sides = _panels.sides_of(result, progress)
    metrics = _panels.shown_metrics(result, optional_metrics)
    conclusion = _sentences.guarantee_sentences(policies)
    if len(systems) == 1:
        conclusion += _sentences.system_verdict(result.only, sides[0].profile)
    else:
        profiles = {side.system.name: side.profile for side in sides}
        conclusion += _sentences.comparison_verdict(result, profiles)
    facts = []
    for name, system in systems.items():
        facts += _inputs(name if len(systems) > 1 else "", system.provenance)
    for used in dict.fromkeys(used for system in systems.values() for used in system.calibrations):
        facts.append(("calibrator", f"{used.calibrator.method}, SHA-256 of its run {used.source.sha256}"))
    panels = [
        _panels.compared_panel(result, sides, metrics),
        _panels.population_panel(result),
        _panels.estimates_panel(sides),
        _panels.curves_panel(sides),
        _panels.reliability_panel(sides),
        *_panels.metric_panels(result, metrics),
    ]
    return _Page(
        title=_title(result),
        subtitle=_subtitle(result),
        conclusion=conclusion,
        warnings=[
            *views.warning_lines(result),
            *dict.fromkeys(str(each) for policy in policies.values() for each in policy.warnings),
        ],
        panels=[panel for panel in panels if panel is not None],
        definitions={
            **_sentences.definitions(result, metrics),
            **_sentences.guarantee_definitions(result, policies),
        },
        facts=[*facts, ("confidence intervals", _intervals(settings)), ("convention", settings.convention)],
        explorer=_explorer(sides),
    )


def _coverage_page(result: CoverageResult) -> _Page:
    """Return the parts of the page about prediction intervals or sets."""
    path, intervals = result.provenance.get("path"), _intervals(result.settings)
    return _Page(
        title=_panels.file_name(path) if path else result.kind.capitalize(),
        subtitle=f"{result.rows:,} {result.kind} in {result.clusters:,} clusters.",
        conclusion=_sentences.coverage_verdict(result),
        warnings=[str(warning) for warning in result.warnings],
        panels=[_panels.coverage_panel(result)],
        definitions=_sentences.coverage_definitions(result),
        facts=[
            *_inputs(result.kind, result.provenance),
            (f"confidence intervals of {result.kind}", intervals),
        ],
    )


def _title(result: Result) -> str:
    """Return the names of the systems or, if they have none, their sources."""
    if len(result.systems) > 2:
        return _sentences.join_names(list(result.systems))
    if len(result.systems) == 2 and not set(result.systems) <= _UNNAMED:
        return " against ".join(result.systems)
    return " against ".join(dict.fromkeys(_panels.source_of(system) for system in result.systems.values()))


def _subtitle(result: Result) -> str:
    """Return the number of items, how they were matched, and the loss."""
    items = _sentences.describe_items(result, details=False)
    return f"{items[:1].upper()}{items[1:]}. {_sentences.describe_loss(result)}".strip()


def _intervals(settings: Settings | CoverageSettings) -> str:
    resamples = f", {settings.resamples:,} resamples, seed {settings.seed}" if settings.resamples else ""
    return f"{settings.interval}, level {settings.level:g}{resamples}"


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


def _creation_facts(created: datetime) -> list[tuple[str, str]]:
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy"))
    versions = f"abstain {abstain.__version__}, {libraries}, Python {platform.python_version()}"
    return [("created at", created.isoformat(timespec="seconds")), ("versions", versions)]


def _explorer(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the data of the threshold explorer: the operating points of every confidence of every system.

    Counts are exact, risks are rounded to six significant digits, and thresholds keep all digits, because users copy
    them.
    """
    data: dict[str, Any] = {"sides": [], "curves": [], "start": 0}
    leaders = []
    for side in sides:
        profile = side.profile
        if profile is None:
            continue
        number = len(data["sides"])
        leaders.append(profile.leader)
        data["sides"].append(
            {
                "mean": _rounded(profile.random.selective_risk[:1])[0],
                "optimal": _line(profile.optimal),
                "loss": "" if side.system.loss is None else side.system.loss.name,
            }
        )
        for name, points in profile.points.items():
            if len(points):
                data["curves"].append(
                    {
                        "key": side.title(name),
                        "name": name,
                        "side": number,
                        "n": side.system.population.items,
                        **_points(points),
                        # A curve that was not thinned is drawn through its operating points.
                        "line": None if points.in_curve == len(points) else _line(profile.lines[name]),
                    }
                )
    # The explorer starts with the confidence of the conclusion.
    names = [curve["name"] for curve in data["curves"]]
    data["start"] = names.index(leaders[0]) if leaders and leaders[0] in names else 0
    return data


def embedded_json(value: object) -> Markup:
    """Return JSON for a script element: no text in it can end the element or begin a comment."""
    return htmlsafe_json_dumps(value, allow_nan=False, separators=(",", ":"))


def _points(points: OperatingPoints) -> dict[str, Any]:
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
        "p": [[risk, index] for risk, index in points.guaranteed.items()],
    }


def _line(line: Line) -> dict[str, list[float | None]]:
    return {
        "c": _rounded(line.coverage),
        "r": _rounded(line.selective_risk),
        "g": _rounded(line.generalized_risk),
    }


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [None if math.isnan(value) else float(f"{value:.{_DIGITS}g}") for value in values]


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "cell": number_cell,
        "grouped": lambda value: f"{value:,}",
        "class_name": lambda part: type(part).__name__,
    }
    return environment.from_string(_text("report.html"))
