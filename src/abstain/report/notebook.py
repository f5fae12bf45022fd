"""How results look in a notebook: verdicts, tables and warnings, as plain HTML without script or style."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from abstain.evaluation import Result
from abstain.report import coverage, views
from abstain.report.tables import Table, plain_text, table_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abstain.evaluation.conformal import CoverageResult

__all__ = ["result_html"]


def result_html(result: Result | CoverageResult) -> str:
    """Return a result as HTML: whom it is about, what can be said, its tables, and its warnings."""
    return _evaluated(result) if isinstance(result, Result) else _coverage(result)


def _evaluated(result: Result) -> str:
    if len(result.systems) == 1:
        system = result.only
        lines = [
            views.population_line(system),
            views.loss_line(system.loss),
            f"answer rate {system.coverage}",
        ]
        tables = [views.areas_table(system)]
        if system.metrics is not None:
            tables += [views.metrics_table(system.metrics), views.groups_table(system.metrics)]
        return _page(lines, [], tables, views.warning_lines(result))
    differences = views.differences_table(result, views.chosen(result))
    lines = [f"{len(result.systems)} systems, {views.basis_line(result)}", views.loss_line(result.loss)]
    tables = [Table("", differences.columns, differences.rows), views.systems_table(result)]
    return _page(lines, views.sentences(result), tables, views.warning_lines(result))


def _coverage(result: CoverageResult) -> str:
    line = f"{result.rows:,} {result.kind} of {result.clusters:,} clusters"
    tables = [coverage.claims_table(result), coverage.metrics_table(result)]
    return _page([line], [], tables, list(map(str, result.warnings)))


def _page(lines: Sequence[str], said: Sequence[str], tables: Sequence[Table], warnings: Sequence[str]) -> str:
    head = "".join(f"<p>{escape(plain_text(line))}</p>" for line in lines if line)
    body = "".join(table_html(table) for table in tables if table.rows)
    return f"<div>{head}{_list('', said)}{body}{_list('warnings', warnings)}</div>"


def _list(title: str, texts: Sequence[str]) -> str:
    if not texts:
        return ""
    parts = "".join(f"<li>{escape(plain_text(text))}</li>" for text in texts)
    return f"{f'<p>{title}</p>' if title else ''}<ul>{parts}</ul>"
