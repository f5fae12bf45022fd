"""`abstain gate`: pass or fail a run, as an exit code for CI."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from abstain.cli import _options as opt
from abstain.cli._pipeline import announcer, column_arguments, files_of, progress_bars
from abstain.cli._program import OUTPUT
from abstain.cli._publishing import check_outputs, encode_text, write_files
from abstain.cli._terminal import print_json, print_text
from abstain.errors import ArgumentError, FormatError

if TYPE_CHECKING:
    from abstain.thresholds import Policy

_RUN = "Run to evaluate: a run file, a table or a log."
_FAIL_IF = (
    "Fail under this condition, such as 'augrc worse by 5%' or 'cmax below 0.6'; may be repeated. @FILE reads one "
    "per line."
)
_GITHUB = "Print failures as GitHub annotations, and append the table to the job summary."
_POLICY = "Policy file of `abstain threshold`: fail if its risk guarantee is broken."
_BASELINE = "Run to compare with, on the same items unless --unpaired."
_BASELINE_MODE = "Experiment of the baseline. Default: --mode."
_INCONCLUSIVE = "How to count an inconclusive condition: pass or fail. Default: exit code 4."
_OUTPUT = "File for the table. Default: stdout."

EXAMPLES = """\b
Exit codes: 0 pass, 1 fail, 4 inconclusive (2 wrong usage, 3 wrong data).
Areas are compared at the coverage that both runs reach. Add a condition on
the coverage, so that a run cannot pass by declining more.

\b
Examples:
  abstain gate new.json --baseline old.json --fail-if "augrc worse by 0.005" \\
      --fail-if "cmax lower by 0.05"
  abstain gate run.json --mode few_shot --fail-if "cmax below 0.6" \\
      --fail-if "aurc above 0.2"
  abstain gate new.csv --baseline old.csv \\
      --fail-if "accuracy worse by 0.02" --inconclusive pass \\
      --junit gate.xml --markdown summary.md
  abstain gate test.csv --policy policy.json
  abstain gate new.json --baseline old.json --fail-if @gates.txt --github
"""


@opt.expand_option_groups
def gate_command(
    *,
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help=_RUN, show_default=False),
    ],
    fail_if: Annotated[list[str] | None, opt.named("--fail-if", "CONDITION", _FAIL_IF)] = None,
    policy: Annotated[Path | None, opt.named("--policy", "FILE", _POLICY)] = None,
    baseline: Annotated[Path | None, opt.named("--baseline", "FILE", _BASELINE)] = None,
    inconclusive: Annotated[str | None, opt.named("--inconclusive", "VERDICT", _INCONCLUSIVE)] = None,
    junit: Annotated[Path | None, opt.named("--junit", "FILE", "JUnit XML file to write.")] = None,
    markdown: Annotated[Path | None, opt.named("--markdown", "FILE", "Markdown file to write.")] = None,
    github: Annotated[bool, typer.Option("--github", help=_GITHUB, rich_help_panel=OUTPUT)] = False,
    mode: opt.RunMode = None,
    baseline_mode: Annotated[str | None, opt.named("--baseline-mode", "MODE", _BASELINE_MODE)] = None,
    confidence: opt.RankedBy = None,
    output: Annotated[Path | None, opt.output_to(_OUTPUT)] = None,
    table_format: opt.TableFormat = None,
    as_json: opt.AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing; only the exit code reports the verdict.")
    ] = False,
    intervals: opt.IntervalOptions,
    matching: opt.MatchOptions,
    reading: opt.ReadOptions,
    engine: opt.EngineOptions,
) -> None:
    """Pass or fail a run by conditions on the confidence intervals of its metrics. The exit code is the verdict."""
    from abstain import _validate, gate  # noqa: PLC0415
    from abstain.evaluation import parse_condition  # noqa: PLC0415
    from abstain.report.gate import gate_annotations, gate_junit, gate_markdown, gate_table, gate_text  # noqa: PLC0415
    from abstain.report.tables import format_of, render  # noqa: PLC0415

    _check_printing(table_format, as_json=as_json, quiet=quiet, github=github)
    form = format_of(table_format, output)
    listed_in = [Path(text[1:]) for text in fail_if or [] if text.startswith("@")]
    conditions = [parse_condition(text) for argument in fail_if or [] for text in _conditions_of(argument)]
    if not conditions and policy is None:
        raise ArgumentError("a gate needs a condition (--fail-if) or a policy (--policy)")
    if inconclusive is not None:
        _validate.choice(inconclusive, "inconclusive", ("pass", "fail"))
    files = [*files_of(run, baseline, policy, intervals, reading), *listed_in]
    job_summary = os.environ.get("GITHUB_STEP_SUMMARY") if github else None
    check_outputs(output, junit, markdown, inputs=files)
    chosen = None if policy is None else _guaranteed(policy, confidence)
    sources = {"new": opt.InputFile(run, mode)}
    if baseline is not None:
        sources["baseline"] = opt.InputFile(baseline, baseline_mode or mode)
    confidences = dict.fromkeys(sources, confidence if chosen is None else chosen.confidence.name)
    columns = column_arguments(
        sources,
        reading,
        confidences,
        [condition.metric for condition in conditions] or None,
        all_columns=chosen is not None and chosen.by is not None,
    )
    with progress_bars(intervals.interval, intervals.resamples, wanted=not quiet) as progress:
        result = gate(
            run,
            conditions,
            policy=chosen,
            baseline=baseline,
            confidence=confidence,
            inconclusive=inconclusive or "inconclusive",
            **intervals.options,
            **matching.options,
            **engine.options,
            **columns,
            progress=progress,
            on_read=announcer(confidences, quiet=quiet),
        )
    text = gate_text(result) if form == "text" else render([gate_table(result)], form)
    texts = {junit: gate_junit(result), markdown: gate_markdown(result), output: text}
    if as_json:
        print_json(render([gate_table(result)], "json"))
    elif output is None and not quiet:
        print_text(text, end="")
    if github:
        print_text(gate_annotations(result), end="")
    write_files(
        {path: encode_text(content) for path, content in texts.items() if path is not None}, inputs=files
    )
    if job_summary:
        # Other steps of the job append to the same file.
        with Path(job_summary).open("a", encoding="utf-8", errors="replace") as file:
            file.write(gate_markdown(result))
    raise typer.Exit(result.exit_code)


def _check_printing(table_format: str | None, *, as_json: bool, quiet: bool, github: bool) -> None:
    """Raise if options contradict --json."""
    if as_json and github:
        raise ArgumentError("--json and --github exclude each other: both print to stdout")
    if as_json and quiet:
        raise ArgumentError("--json and --quiet exclude each other: one prints the result, the other nothing")
    if as_json and table_format is not None:
        raise ArgumentError("--json and --format exclude each other: both choose the printed format")


def _guaranteed(path: Path, confidence: str | None) -> Policy:
    """Read a policy, which is for one confidence."""
    from abstain import read_policy  # noqa: PLC0415

    policy = read_policy(path)
    if confidence not in (None, policy.confidence.name):
        raise ArgumentError(
            f"the policy is for the confidence {policy.confidence.name}, not for {confidence}"
        )
    return policy


def _conditions_of(argument: str) -> list[str]:
    """Return the conditions of an argument: the text itself, or the lines of @FILE without comments."""
    if not argument.startswith("@"):
        return [argument]
    from abstain import _files  # noqa: PLC0415

    path = argument[1:]
    try:
        lines = _files.read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: not UTF-8 text; write one condition per line") from None
    conditions = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not conditions:
        raise ArgumentError(f"{path}: has no conditions; write one per line, such as augrc worse by 5%")
    return conditions


COMMANDS: opt.Commands = {"gate": (gate_command, EXAMPLES)}
