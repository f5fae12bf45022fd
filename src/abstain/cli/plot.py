"""`abstain plot`: draw one chart of one or several inputs as PNG, SVG, PDF, HTML or Vega-Lite."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import evaluate_inputs, files_of
from abstain.cli._publishing import check_outputs, write_files
from abstain.cli._terminal import print_text

_OUTPUT = "Chart to write; its ending sets the format: .svg, .png, .pdf, .html or .json (Vega-Lite)."
_CHART = "One input: curve, curves, areas or reliability. Several inputs: difference, or curve."
_SYSTEM = "Input to draw, by its name. Default: all inputs."
_OF = "Confidence of a curve or a reliability diagram. Default: the first."
_RISK = "Risk of a curve: selective or generalized."
_SHOWN = "Metric of the charts areas and difference: augrc, aurc, eaurc, eaugrc or cmax."

EXAMPLES = """\b
Examples:
  abstain plot run.json --mode few_shot -o curve.svg
  abstain plot run.json --mode few_shot --confidence all --chart areas \\
      -o areas.pdf
  abstain plot run.json --mode few_shot --confidence token_msp \\
      --chart reliability -o reliability.png
  abstain plot old.json new.json --mode few_shot --chart curve -o both.svg
"""


@opt.expand_option_groups
def plot_command(
    *,
    inputs: opt.Inputs,
    question: opt.MetricOptions,
    output: Annotated[Path, opt.output_to(_OUTPUT)],
    chart: Annotated[str | None, opt.named("--chart", "NAME", _CHART)] = None,
    of: Annotated[str | None, opt.named("--of", "NAME", _OF)] = None,
    of_system: Annotated[str | None, opt.named("--of-system", "NAME", _SYSTEM)] = None,
    risk: Annotated[str, typer.Option(metavar="NAME", help=_RISK)] = "selective",
    shown: Annotated[str, typer.Option("--show", metavar="NAME", help=_SHOWN)] = "augrc",
    quiet: opt.Quiet = False,
    intervals: opt.IntervalOptions,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Draw one chart: a risk-coverage curve with its confidence band, areas, reliability, or differences."""
    from abstain.report.charts import chart_content, chart_format, draw  # noqa: PLC0415

    form = chart_format(output)
    files = files_of(inputs, question, intervals, reading)
    check_outputs(output, inputs=files)
    result = evaluate_inputs(
        inputs, question, reading, matching, intervals, engine, quiet=quiet, most=None, selective=True
    )
    figure = draw(result, chart, confidence=of, risk=risk, metric=shown, system=of_system)
    write_files({output: chart_content(figure, form)}, inputs=files)
    print_text(output if quiet else f"chart: {output}")


COMMANDS: opt.Commands = {"plot": (plot_command, EXAMPLES)}
