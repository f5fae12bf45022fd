"""The HTML report: one file that needs nothing else, for whoever decides and for whoever checks.

The page carries its styles, its charts and its one script; a content security policy by hash lets nothing else
run and nothing be fetched, so that text from a file or a model stays text. Panels appear where the data allow.
Participant ids and what a model wrote are not in it unless somebody asks for them.
"""

from __future__ import annotations

import base64
import hashlib
import math
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from abstain import _files, _validate
from abstain.evaluation import Result
from abstain.report.charts import unchecked
from abstain.report.html._page import Asked, page_of
from abstain.report.html._parts import figure_markup

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from jinja2 import Environment

    from abstain.evaluation.conformal import CoverageResult

__all__ = ["report_html", "write_report"]


def write_report(
    path: str | os.PathLike[str],
    result: Result | CoverageResult,
    **options: Any,
) -> Path:
    """Write the report of a result to a file; the options are those of `report_html`."""
    place = _files.check_output(path)
    return _files.write_whole(place, report_html(result, **options).encode())


def report_html(
    result: Result | CoverageResult,
    *,
    title: str = "",
    command: str = "",
    created_at: datetime | None = None,
    coverage: CoverageResult | None = None,
    mistakes: int = 0,
    responses: bool = False,
    progress: Callable[[int], None] | None = None,
) -> str:
    """Return the report of a result as one HTML page.

    Args:
        result: what `evaluate`, `compare`, `evaluate_intervals` or `evaluate_sets` returns.
        title: the heading; the source, or the names of the systems, when left out.
        command: what makes these numbers again.
        created_at: when; now when left out.
        coverage: intervals or sets of the same model, for a panel of their own.
        mistakes: how many of the most confident wrong answers to list, with the ids of their clusters.
        responses: show what the model was asked and wrote beside these mistakes, where the source has it.
        progress: called with the number of resamples done since the last call.
    """
    from markupsafe import Markup  # noqa: PLC0415

    import abstain  # noqa: PLC0415

    asked = Asked(_validate.whole(mistakes, "mistakes"), responses, progress)
    made = created_at or datetime.now(UTC)
    style, script = _text("report.css"), _text("explorer.js")
    with unchecked():
        if isinstance(result, Result):
            context = page_of(result, coverage, made, asked)
        else:
            context = page_of(None, result, made, asked)
    context |= {
        "created": made.strftime("%Y-%m-%d %H:%M %Z").strip(),
        "version": abstain.__version__,
        "command": command,
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": _hash(style),
        "script_hash": _hash(script),
    }
    if title:
        context["title"] = title
    return str(_environment().get_template("report.html").render(context))


@cache
def _text(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _fixed(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}"


def _number(value: float, digits: int | None) -> str:
    """A number as a table prints it: nothing where there is none, and never 0 where it is more than that."""
    if math.isnan(value):
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    least = 0.1 ** (3 if digits is None else digits)
    return f"<{least:g}" if 0.0 < value < least else _fixed(value, 3 if digits is None else digits)


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
    environment.filters |= {"fixed": _fixed, "number": _number, "grouped": lambda value: f"{value:,}"}
    environment.globals["figure"] = figure_markup
    return environment
