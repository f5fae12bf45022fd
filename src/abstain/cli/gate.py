"""`abstain gate`: a verdict for a pipeline, as an exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abstain.cli._judging import read_systems
from abstain.cli._options import InputFile, Judging, Pairing, Reading, spelled_out
from abstain.cli._tables import TableFormat, hand_over
from abstain.errors import ArgumentError

_FAIL_IF = (
    "A condition under which the run fails, such as 'augrc worse by 0.005', 'cmax below 0.6' or 'ece above 0.1'; "
    "may be given again."
)
_BASELINE = "The run that changes are measured from, on the same items."
_UNDECIDED = "What a condition counts as whose interval spans its bound: pass or fail; else exit code 4."

EXAMPLES = """\b
Exit codes: 0 pass, 1 fail, 4 undecided (2 and 3: the call or the data are wrong).

\b
Examples:
  abstain gate new.json --baseline old.json --fail-if "augrc worse by 0.005"
  abstain gate run.json --mode few_shot --fail-if "cmax below 0.6" --fail-if "aurc above 0.2"
  abstain gate new.csv --baseline old.csv --fail-if "augrc at matched coverage worse by 0" \\
      --undecided pass --junit gate.xml --markdown summary.md
"""


@spelled_out
def gate_command(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run to judge.", show_default=False)],
    fail_if: Annotated[
        list[str], typer.Option("--fail-if", metavar="CONDITION", help=_FAIL_IF, show_default=False)
    ],
    baseline: Annotated[Path | None, typer.Option(metavar="FILE", help=_BASELINE, show_default=False)] = None,
    undecided: Annotated[
        str | None, typer.Option(metavar="VERDICT", help=_UNDECIDED, show_default=False)
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML here.", show_default=False)
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a Markdown summary here.", show_default=False)
    ] = None,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="Which experiment of the run.", show_default=False)
    ] = None,
    baseline_mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE", help="Which experiment of the baseline; else --mode.", show_default=False
        ),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(metavar="NAME", help="What ranks the answers.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where the table goes; else to stdout.", show_default=False
        ),
    ] = None,
    table_format: TableFormat = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; the exit code says it.")
    ] = False,
    judging: Judging,
    pairing: Pairing,
    reading: Reading,
) -> None:
    """Pass or fail a run by conditions on its metrics, judged by their intervals; the exit code says which."""
    from abstain import _files, _validate, gate  # noqa: PLC0415
    from abstain.cli._progress import progress_bar  # noqa: PLC0415
    from abstain.evaluation import parse_condition  # noqa: PLC0415
    from abstain.report.gate import gate_junit, gate_markdown, gate_table, gate_text  # noqa: PLC0415
    from abstain.report.tables import format_of, render  # noqa: PLC0415

    form = format_of(table_format, output)
    conditions = [parse_condition(text) for text in fail_if]
    if undecided is not None:
        _validate.choice(undecided, "undecided", ("pass", "fail"))
    for place in (output, junit, markdown):
        if place is not None:
            _files.check_output(place)
    sources = {"run": InputFile(run, mode)}
    if baseline is not None:
        sources["baseline"] = InputFile(baseline, baseline_mode or mode)
    runs = read_systems(
        sources,
        reading,
        confidences=dict.fromkeys(sources, confidence),
        metrics=[condition.metric for condition in conditions],
        quiet=quiet,
    )
    if len(runs) > len(sources):
        raise ArgumentError(
            "a gate judges one system, and a table here holds several; keep the rows of one of them"
        )
    with progress_bar("resampling", judging.resamples, wanted=not quiet) as progress:
        result = gate(
            runs["run"],
            conditions,
            baseline=runs.get("baseline"),
            confidence=confidence,
            undecided=undecided or "undecided",
            **judging.options,
            **pairing.options,
            progress=progress,
        )
    if junit is not None:
        _files.write_whole(junit, gate_junit(result).encode("utf-8", "replace"))
    if markdown is not None:
        _files.write_whole(markdown, gate_markdown(result).encode("utf-8", "replace"))
    if output is not None or not quiet:
        hand_over(gate_text(result) if form == "text" else render([gate_table(result)], form), output)
    raise typer.Exit(result.exit_code)
