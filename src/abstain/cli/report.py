"""`abstain report`: an HTML report of one or more inputs."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import evaluate_inputs, files_of
from abstain.cli._publishing import check_outputs, command_line, encode_text, new_name, write_files
from abstain.cli._terminal import print_text, progress_bar
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from abstain.evaluation import Result

_OUTPUT = "Report to write (.html). Default: a new file in this directory, whose name is printed."
_RISK = "Largest acceptable risk, such as 5%: the report starts with the coverage that keeps to it."
_TITLE = "Title of the report. Default: the names of the inputs."
_MISTAKES = "Number of confident wrong answers to list, with the ids of their clusters."
_RESPONSES = "With --mistakes: also show prompts and responses, if the input has them."

# The metrics of the abstention panel unless others are requested; unavailable metrics are listed with a reason.
METRICS = (
    "accuracy",
    "selective_accuracy",
    "answer_rate",
    "reliable_accuracy",
    "effective_reliability",
    "abstention_precision",
    "abstention_recall",
    "over_conservativeness",
)

EXAMPLES = """\b
Examples:
  abstain report run.json --mode few_shot -o report.html
  abstain report preds.csv --cluster patient --risk 5% -o report.html
  abstain report run.json --mode few_shot --confidence all --loss abs \\
      -o report.html --open
  abstain report --input run.json --mode zero_shot --input run.json \\
      --mode few_shot -o comparison.html
"""


@opt.expand_option_groups
def report_command(
    *,
    inputs: opt.Inputs,
    question: opt.MetricOptions,
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    risk: Annotated[str | None, opt.named("--risk", "PROPORTION", _RISK)] = None,
    title: Annotated[str, opt.named("--title", "TEXT", _TITLE)] = "",
    mistakes: Annotated[int, typer.Option(metavar="N", help=_MISTAKES)] = 0,
    responses: Annotated[bool, typer.Option("--responses", help=_RESPONSES)] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    quiet: opt.Quiet = False,
    intervals: opt.IntervalOptions,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Write an HTML report: verdicts, estimates, curves, a threshold explorer, and the command that made it."""
    from abstain import _validate  # noqa: PLC0415
    from abstain.report.html import report_html  # noqa: PLC0415
    from abstain.report.tables import PAGE, format_of  # noqa: PLC0415
    from abstain.thresholds import rate  # noqa: PLC0415

    _validate.whole(mistakes, "mistakes")
    acceptable = None if risk is None else rate(risk)
    if responses and not mistakes:
        raise ArgumentError("--responses requires --mistakes N, the number of answers to show")
    format_of(None, output, served=(PAGE,))
    files = files_of(inputs, question, intervals, reading)
    check_outputs(output, inputs=files)
    result = evaluate_inputs(
        inputs,
        replace(question, metrics=question.metrics or list(METRICS)),
        reading,
        matching,
        intervals,
        engine,
        quiet=quiet,
        most=None,
        selective=True,
        all_columns=True,
    )
    path = output or new_name(_stem(result), "-report.html")
    steps = result.settings.resamples * sum(len(system) for system in result.systems.values())
    with progress_bar("drawing", steps, wanted=not quiet) as progress:
        page = report_html(
            result,
            title=title,
            command=command_line(sys.argv[1:]),
            risk=acceptable,
            mistakes=mistakes,
            responses=responses,
            optional_metrics=() if question.metrics else METRICS,
            progress=progress,
        )
    write_files({path: encode_text(page)}, inputs=files)
    print_text(path if quiet else f"report: {path}")
    if open_it:
        typer.launch(str(path))


def _stem(result: Result) -> str:
    """Return the stem of the default name: the inputs and their modes."""
    parts = []
    for system in result.systems.values():
        parts += [Path(str(system.provenance["path"])).stem, system.provenance.get("mode")]
    return "-".join(dict.fromkeys(str(part) for part in parts if part))


COMMANDS: opt.Commands = {"report": (report_command, EXAMPLES)}
