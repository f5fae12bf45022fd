"""`abstain plot`: one chart of one or two inputs, as PNG, SVG, PDF, HTML or Vega-Lite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abstain.cli._judging import Question, evaluated
from abstain.cli._options import Inputs, Judging, Pairing, Quiet, Reading, spelled_out

_OUTPUT = "The figure; its ending says the format: .svg, .png, .pdf, .html or .json (Vega-Lite)."
_CHART = "Of one input: curve, curves, areas or reliability. Of two: difference, left or right."
_OF = "Which confidence a curve or reliability diagram is of; else the first."
_SHOWN = "Which metric areas and differences show: augrc, aurc, eaurc, eaugrc, cmax."

EXAMPLES = """\b
Examples:
  abstain plot run.json --mode few_shot -o curve.svg
  abstain plot run.json --mode few_shot --confidence all --chart areas -o areas.pdf
  abstain plot run.json --mode few_shot --confidence token_msp --chart reliability -o reliability.png
"""


@spelled_out
def plot_command(
    *,
    inputs: Inputs,
    question: Question,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help=_OUTPUT, show_default=False)],
    chart: Annotated[str | None, typer.Option(metavar="NAME", help=_CHART, show_default=False)] = None,
    of: Annotated[str | None, typer.Option(metavar="NAME", help=_OF, show_default=False)] = None,
    risk: Annotated[str, typer.Option(metavar="NAME", help="selective or generalized.")] = "selective",
    shown: Annotated[str, typer.Option("--show", metavar="NAME", help=_SHOWN)] = "augrc",
    quiet: Quiet = False,
    judging: Judging,
    pairing: Pairing,
    reading: Reading,
) -> None:
    """Draw one chart: risk over coverage with its band, areas, reliability, or differences."""
    from abstain.report.charts import check_chart_output, draw, save_chart  # noqa: PLC0415

    check_chart_output(output)
    result = evaluated(inputs, question, reading, pairing, judging, quiet=quiet, selective=True).result
    save_chart(draw(result, chart, confidence=of, risk=risk, metric=shown), output)
    typer.echo(str(output) if quiet else f"figure: {output}")
