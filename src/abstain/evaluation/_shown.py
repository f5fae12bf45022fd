"""Methods that draw a result, write it as a report or a table, and show it in a notebook.

This is the only module of a lower layer that imports `abstain.report`, and only when one of the methods is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from pathlib import Path


class Shown:
    """A result that can be drawn, shown in a notebook, and written as a report or as tables."""

    __slots__ = ()

    def plot(self, chart: str | None = None, **options: Any) -> Any:
        """Return a chart, which a notebook displays; for charts and options see `abstain.report.charts.draw`."""
        from abstain.report import charts  # noqa: PLC0415

        return charts.draw(self, chart, **options)  # type: ignore[arg-type]

    def report(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the HTML report; see `abstain.report.html.report_html` for the options."""
        from abstain.report import html  # noqa: PLC0415

        return html.write_report(path, self, **options)  # type: ignore[arg-type]

    def to_markdown(self) -> str:
        """Return the tables of the result in Markdown.

        >>> from abstain import Items, evaluate
        >>> items = Items.from_arrays([1, 0] * 10, [1, 0] * 5 + [0, 1] * 5, confidence=[0.9] * 10 + [0.5] * 10)
        >>> print(evaluate(items, metrics="accuracy", interval="none").to_markdown().splitlines()[4])
        | accuracy | 0.500 |
        """
        return self._render("markdown")

    def to_latex(self) -> str:
        r"""Return the tables of the result in LaTeX, for the package booktabs.

        >>> from abstain import Items, evaluate
        >>> items = Items.from_arrays([1, 0] * 10, [1, 0] * 5 + [0, 1] * 5, confidence=[0.9] * 10 + [0.5] * 10)
        >>> print(evaluate(items, metrics="accuracy", interval="none").to_latex().splitlines()[1])
        \begin{table}
        """
        return self._render("latex")

    def _render(self, form: str) -> str:
        from abstain.report import paper  # noqa: PLC0415

        return paper.render_result(self, form)  # type: ignore[arg-type]

    def _methods(self) -> str:
        from abstain.report import paper  # noqa: PLC0415

        return paper.methods_paragraph(self)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        from abstain.report import html  # noqa: PLC0415

        return html.result_html(self)  # type: ignore[arg-type]
