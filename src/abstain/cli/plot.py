"""`abstain plot`: one chart of one or two inputs, as PNG, SVG, PDF, HTML or Vega-Lite."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli._compose import Later, with_options_of
from abstain.cli.evaluate import judged_inputs

if TYPE_CHECKING:
    from abstain.cli.evaluate import Judged

_OUTPUT = "The figure; its ending says the format: .svg, .png, .pdf, .html or .json (Vega-Lite)."
_CHART = "Of one input: curve, curves, areas or reliability. Of two: difference, left or right."
_OF = "Which confidence a curve or reliability diagram is of; else the first."
_FIGURE = "What areas and differences show: augrc, aurc, eaurc, eaugrc, cmax."

EXAMPLES = """\b
Examples:
  abstain plot run.json --mode few_shot -o figure.svg
  abstain plot run.json --mode few_shot --confidence all --chart areas -o areas.pdf
  abstain plot run.json --mode few_shot --confidence token_msp --chart reliability -o reliability.png
"""


def _plot(
    judged: Later,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False)],
    chart: Annotated[str | None, typer.Option(metavar="NAME", help=_CHART, show_default=False)] = None,
    of: Annotated[str | None, typer.Option(metavar="NAME", help=_OF, show_default=False)] = None,
    risk: Annotated[str, typer.Option(metavar="NAME", help="selective or generalized.")] = "selective",
    figure: Annotated[str, typer.Option(metavar="NAME", help=_FIGURE)] = "augrc",
) -> None:
    """Draw one chart: risk over coverage with its band, areas, reliability, or differences."""
    from abstain.report.charts import check_chart_output, draw, save_chart  # noqa: PLC0415

    check_chart_output(output)
    done: Judged = judged()
    save_chart(draw(done.result, chart, confidence=of, risk=risk, figure=figure), output)
    typer.echo(str(output) if judged.options["quiet"] else f"figure: {output}")


plot_command = with_options_of(judged_inputs, _plot)
