"""The HTML report: one file that needs nothing else, for whoever decides and for whoever checks.

The page carries its styles, its charts and its one script; a content security policy by hash lets nothing else
run and nothing be fetched, so that text from a file or a model stays text. Panels appear where the data allow.
Participant ids and what a model wrote are not in it unless somebody asks for them.
"""

from __future__ import annotations

import base64
import hashlib
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from abstain import _files
from abstain.report.html import _panels, _words
from abstain.report.html._explorer import embedded_json, explorer_data

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from jinja2 import Environment

    from abstain.evaluation import Comparison, Evaluation

__all__ = ["report_html", "write_report"]


def write_report(path: str | os.PathLike[str], result: Evaluation | Comparison, **options: Any) -> Path:
    """Write the report of a result to a file; the options are those of `report_html`."""
    place = _files.check_output(path)
    return _files.write_whole(place, report_html(result, **options).encode())


def report_html(
    result: Evaluation | Comparison,
    *,
    title: str = "",
    command: str = "",
    created_at: datetime | None = None,
    mistakes: int = 0,
    responses: bool = False,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Return the report of an evaluation or a comparison as one HTML page.

    Args:
        result: what `evaluate` or `compare` returns.
        title: the heading; the source when left out.
        command: what makes these numbers again.
        created_at: when; now when left out.
        mistakes: how many of the most confident wrong answers to list, with the ids of their clusters.
        responses: show what the model wrote beside these mistakes, where the source has it.
        progress: called with the number of resamples done since the last call.
    """
    from markupsafe import Markup  # noqa: PLC0415

    import abstain  # noqa: PLC0415

    sides = _panels.sides_of(result, progress)
    first, profile = next(iter(sides.values()))
    style, script = _text("report.css"), _text("explorer.js")
    made = created_at or datetime.now(UTC)
    reliability, left_out = _panels.reliability_figures(sides)
    context = {
        "title": title or _panels.title_of(sides),
        "subtitle": _panels.subtitle_of(first),
        "created": made.strftime("%Y-%m-%d %H:%M %Z"),
        "version": abstain.__version__,
        "verdict": _panels.verdict(result, profile),
        "cautions": _panels.cautions(sides, result),
        "sides": _panels.side_views(sides),
        "comparison": _panels.comparison_view(result),
        "explorer": _panels.curve_figures(first, profile),
        "explorer_json": embedded_json(explorer_data(sides)),
        "reliability": reliability,
        "reliability_left_out": left_out,
        "mistakes": _panels.mistakes_view(first, mistakes, responses=responses),
        "noun": first.cluster_noun,
        "interval_words": _words.interval_words(first),
        "level_words": f"{100 * first.settings.level:g}%",
        "band_words": _words.band_words(first),
        "definitions": _words.definitions(first),
        "facts": _panels.facts(sides, made, python=platform.python_version()),
        "command": command,
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    context["sections"] = _panels.sections(context)
    return str(_environment().get_template("report.html").render(context))


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
    environment.globals["figure"] = _panels.figure_markup
    return environment
