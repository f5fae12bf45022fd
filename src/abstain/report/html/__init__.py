"""The HTML report: one file that needs nothing else, for whoever decides and for whoever checks.

The page carries its styles, its charts and its one script; a content security policy by hash lets nothing else
run and nothing be fetched, so that text from a file or a model stays text. Panels appear where the data allow.
Participant ids and what a model wrote are not in it unless somebody asks for them.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from abstain import _files, _validate
from abstain.evaluation import Comparison, Evaluation, SystemsComparison
from abstain.report.charts import unchecked
from abstain.report.html import _panels, _words
from abstain.report.html._explorer import embedded_json, explorer_data
from abstain.report.html._further import conformal_panel, metric_panels, mistakes_panel, systems_panel
from abstain.report.html._parts import figure_markup

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from jinja2 import Environment

    from abstain.evaluation.conformal import ConformalEvaluation

    Result = Evaluation | Comparison | SystemsComparison | ConformalEvaluation

__all__ = ["report_html", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    result: Result,
    **options: Any,
) -> Path:
    """Write the report of a result to a file; the options are those of `report_html`."""
    place = _files.check_output(path)
    return _files.write_whole(place, report_html(result, **options).encode())


def report_html(
    result: Result,
    *,
    title: str = "",
    command: str = "",
    created_at: datetime | None = None,
    conformal: ConformalEvaluation | None = None,
    mistakes: int = 0,
    responses: bool = False,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Return the report of a result as one HTML page.

    Args:
        result: what `evaluate`, `compare`, `compare_systems`, `evaluate_intervals` or `evaluate_sets` returns.
        title: the heading; the source when left out.
        command: what makes these numbers again.
        created_at: when; now when left out.
        conformal: intervals or sets of the same model, for a panel of their own.
        mistakes: how many of the most confident wrong answers to list, with the ids of their clusters.
        responses: show what the model was asked and wrote beside these mistakes, where the source has it.
        progress: called with the number of resamples done since the last call.
    """
    from markupsafe import Markup  # noqa: PLC0415

    import abstain  # noqa: PLC0415

    _validate.whole(mistakes, "mistakes")
    made = created_at or datetime.now(UTC)
    style, script = _text("report.css"), _text("explorer.js")
    context: dict[str, Any] = {
        "created": made.strftime("%Y-%m-%d %H:%M %Z").strip(),
        "version": abstain.__version__,
        "command": command,
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    with unchecked():
        if isinstance(result, (Evaluation, Comparison)):
            context |= _judged(result, made, conformal, mistakes, responses=responses, progress=progress)
        elif isinstance(result, SystemsComparison):
            context |= _panels.systems_page(result, made)
            context["panels"] = [systems_panel(result)]
        else:
            context |= _panels.conformal_page(result, made)
            context["panels"] = [conformal_panel(result)]
    if title:
        context["title"] = title
    context["sections"] = _panels.sections(context)
    return str(_environment().get_template("report.html").render(context))


def _judged(
    result: Evaluation | Comparison,
    made: datetime,
    conformal: ConformalEvaluation | None,
    mistakes: int,
    *,
    responses: bool,
    progress: Callable[[int], None] | None,
) -> dict[str, Any]:
    """What a page about answers and abstentions shows."""
    sides = _panels.sides_of(result, progress)
    first, profile = next(iter(sides.values()))
    reliability, left_out = _panels.reliability_figures(sides)
    panels = metric_panels(result)
    panels += [] if conformal is None else [conformal_panel(conformal)]
    panels += [mistakes_panel(first, mistakes, responses=responses)] if mistakes else []
    return {
        "title": _panels.title_of(sides),
        "subtitle": _panels.subtitle_of(first),
        "verdict": _panels.verdict(result, profile),
        "cautions": _panels.cautions(sides, result),
        "sides": _panels.side_views(sides),
        "comparison": _panels.comparison_view(result),
        "explorer": _panels.curve_figures(first, profile),
        "explorer_json": embedded_json(explorer_data(sides)),
        "reliability": reliability,
        "reliability_left_out": left_out,
        "panels": panels,
        "noun": first.cluster_noun,
        "interval_words": _words.interval_words(first),
        "level_words": f"{100 * first.settings.level:g}%",
        "band_words": _words.band_words(first),
        "definitions": _words.definitions(first),
        "facts": _panels.facts(sides, made),
    }


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _fixed(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}"


@cache
def _environment() -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=DictLoader({"report.html": _text("report.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "fixed": _fixed,
        "grouped": lambda value: f"{value:,}",
        "plain": lambda value: f"{value:g}",
    }
    environment.globals["figure"] = figure_markup
    return environment
