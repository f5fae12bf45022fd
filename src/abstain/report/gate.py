"""The gate's verdict for people and for CI systems: a table, a Markdown summary, JUnit XML."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from abstain.report.tables import Column, Table, render, table_text
from abstain.report.text import plain_text
from abstain.report.views import format_count, loss_line

if TYPE_CHECKING:
    from abstain.evaluation import GateResult

_COLUMNS = (
    Column("condition", "fails if"),
    Column("verdict"),
    Column("counted_as", detail=True),
    Column("metric", detail=True),
    Column("relation", detail=True),
    Column("number", digits=3, detail=True),
    Column("bound", digits=3, detail=True),
    Column("coverage", digits=3, detail=True),
    Column("measured", estimate=True),
    Column("conclusion"),
)


def gate_table(result: GateResult) -> Table:
    """Return one row per condition."""
    rows = tuple(
        (
            check.condition.text,
            check.verdict,
            result.counted(check),
            check.condition.measured,
            check.condition.relation,
            check.condition.number,
            check.bound,
            check.coverage,
            check.estimate,
            check.sentence,
        )
        for check in result.checks
    )
    compared = "in the smaller of run and baseline" if result.unpaired else "that run and baseline share"
    counts = {"of the run": result.clusters, compared: result.compared}
    over = [f"{format_count(count, result.cluster_noun)} {whose}" for whose, count in counts.items() if count]
    notes = [
        f"Verdicts by {100 * result.level:g}% confidence intervals over {', changes over '.join(over)}. Inconclusive: "
        "the interval contains the bound."
    ]
    if result.loss is not None:
        notes.append(f"Risk is the mean of {loss_line(result.loss)}.")
    if result.confidence:
        notes.append(f"Answers are ranked by {result.confidence}.")
    notes += [str(warning) for warning in result.warnings]
    return Table(f"Gate: {result.verdict}", _COLUMNS, rows, tuple(notes))


def gate_text(result: GateResult, width: int | None = None) -> str:
    """Return the verdict of the gate and of each condition, for the terminal."""
    columns = (Column("verdict"), Column("conclusion"))
    rows = tuple((check.verdict, check.sentence) for check in result.checks)
    return table_text(Table(f"gate: {result.verdict}", columns, rows, gate_table(result).notes), width)


def gate_markdown(result: GateResult) -> str:
    """Return the summary that CI systems show."""
    return render([gate_table(result)], "markdown")


def gate_annotations(result: GateResult) -> str:
    """Return GitHub annotations: an error for each failed condition, a warning for each inconclusive one."""
    lines = []
    for check in result.checks:
        counted = result.counted(check)
        if counted != "pass":
            kind = "error" if counted == "fail" else "warning"
            # An annotation is one line, in which GitHub interprets these characters.
            sentence = plain_text(check.sentence).replace("%", "%25").replace("\r", " ").replace("\n", " ")
            lines.append(f"::{kind} title=abstain gate, {check.verdict}::{sentence}\n")
    return "".join(lines)


def gate_junit(result: GateResult) -> str:
    """Return JUnit XML: one test case per condition; an inconclusive one is an error unless it counts as pass or fail.

    XML has no control characters, not even escaped, so that they are replaced; the library escapes the rest.
    """
    counted = [result.counted(check) for check in result.checks]
    counts = {
        "tests": str(len(counted)),
        "failures": str(counted.count("fail")),
        "errors": str(counted.count("inconclusive")),
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "abstain gate", **counts})
    for check, verdict in zip(result.checks, counted, strict=True):
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": "abstain.gate", "name": plain_text(f"fails if {check.condition}")},
        )
        sentence = plain_text(check.sentence)
        if verdict == "pass":
            ET.SubElement(case, "system-out").text = f"{check.verdict}: {sentence}"
        else:
            tag = "failure" if verdict == "fail" else "error"
            ET.SubElement(case, tag, {"message": sentence, "type": check.verdict}).text = sentence
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"
