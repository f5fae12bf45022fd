"""Regenerate the pages that are made from the code: `make docs`. A test fails when they are stale."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from abstain.metrics.registry import BUNDLES, METRICS

HERE = Path(__file__).parent
SIMULATIONS = HERE.parent / "simulations"
VERBS: tuple[tuple[str, ...], ...] = (
    (),
    ("evaluate",),
    ("report",),
    ("plot",),
    ("check",),
    ("compare",),
    ("gate",),
    ("threshold",),
    ("apply",),
    ("intervals",),
    ("sets",),
    ("power",),
    ("metrics",),
    ("run",),
    ("calibrate", "verbalized"),
    ("calibrate", "train"),
    ("demo",),
    ("schema",),
)


def command_line_page() -> str:
    """Return the page of every verb and flag, from their own help."""
    lines = ["# Command line", "", "Made from `--help` by `make docs`.", ""]
    for verb in VERBS:
        name = " ".join(("abstain", *verb))
        lines += [f"## {name}", "", "```text", help_text(verb), "```", ""]
    lines += [
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | done; of a gate: pass |",
        "| 1 | of a gate: fail |",
        "| 2 | the call is wrong: a flag, a name, a path; or the system refuses a file |",
        "| 3 | the data are wrong: a file, a row, a signal; or they are more than the memory holds |",
        "| 4 | of a gate: undecided; of a threshold: nothing can be promised |",
        "| 70 | a defect of abstain: please report the line that it prints; `ABSTAIN_DEBUG=1` shows the traceback |",
        "| 130 | interrupted; nothing was written, but for the log of a run (143 after SIGTERM) |",
        "| 141 | the reader of the output went away, as after a pipe to `head` |",
        "",
    ]
    return "\n".join(lines)


def help_text(verb: tuple[str, ...]) -> str:
    """Return what `abstain VERB --help` prints at a width of 100."""
    environment = os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "abstain", *verb, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    # Some releases of typer print the Python type of an argument beside its name; it helps nobody.
    text = re.sub(r" <[\w\[\]]+>", "", done.stdout.replace("python -m abstain", "abstain"))
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def metrics_page() -> str:
    """Return the page of every metric, from the registry."""
    lines = [
        "# Metrics",
        "",
        "Made from the registry by `make docs`. Ask for any of them with `abstain evaluate --metric NAME`, for those",
        "with a parameter with `NAME@VALUE`. Metrics marked with * are over the answered rows only. How two systems",
        "are compared by each kind of metric: [comparison](../definitions/comparison.md#what-a-comparison-concludes).",
        "",
        "| metric | better | compared | unit | needs | what it is |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS.values():
        link = f"[`{metric.name}`](../../{metric.definition})".replace("../../docs/", "../")
        if metric.parameter is not None:
            link += f" @{metric.parameter.name} = {metric.parameter.text(metric.value)}"
        what = metric.summary.replace("|", "\\|")
        cells = (
            link + " *" * metric.answered_only,
            metric.direction,
            metric.comparison,
            metric.unit,
            ", ".join(metric.needs),
            what,
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Bundles", "", "| bundle | metrics |", "|---|---|"]
    lines += [
        f"| `{bundle}` | {', '.join(f'`{name}`' for name in names)} |" for bundle, names in BUNDLES.items()
    ]
    return "\n".join([*lines, ""])


def simulations_page() -> str:
    """Return the page of what the simulations counted."""
    if str(HERE.parent) not in sys.path:
        sys.path.append(str(HERE.parent))
    from simulations.table import page  # noqa: PLC0415

    return page(SIMULATIONS / "results.jsonl", SIMULATIONS / "differences.jsonl")


def guarantees_page() -> str:
    """Return the page of how often simulated promises were broken."""
    if str(HERE.parent) not in sys.path:
        sys.path.append(str(HERE.parent))
    from simulations.guarantees import guarantees_page as page  # noqa: PLC0415

    return page(SIMULATIONS / "guarantees.jsonl")


def declining_page() -> str:
    """Return the page of comparisons with a system that declines most items."""
    if str(HERE.parent) not in sys.path:
        sys.path.append(str(HERE.parent))
    from simulations.declining import declining_page as made  # noqa: PLC0415

    return made(SIMULATIONS / "declining.jsonl")


def citation_page() -> str:
    """Return the page that says how to cite, from CITATION.cff."""
    cited = yaml.safe_load((HERE.parent / "CITATION.cff").read_text())
    authors = [author["name"] for author in cited["authors"]]
    released = cited.get("date-released")
    fields = {
        "title": f"{{{cited['title']}}}",
        # A name of several words that is no person's stands in braces of its own.
        "author": " and ".join(f"{{{name}}}" for name in authors),
        # A version that was not released yet has no year.
        **({"year": str(released.year)} if released else {}),
        "version": cited["version"],
        "license": cited["license"],
    }
    lines = [f"  {name:8}= {{{value}}}," for name, value in fields.items()]
    when = str(released.year) if released else "not released yet"
    text = f"{' and '.join(authors)} ({when}). {cited['title']} (version {cited['version']})."
    return "\n".join(
        [
            "# How to cite",
            "",
            "Made from `CITATION.cff` by `make docs`. Name the version that made your numbers (`abstain --version`):",
            "a number may change between versions, and the changelog says when and why.",
            "",
            "```bibtex",
            "@software{abstain,",
            *lines,
            "}",
            "```",
            "",
            f"In words: {text}",
            "",
            "Metrics have authors, too: the [definitions](definitions.md) say who introduced each one. For an area",
            "under a risk-coverage curve, name the [convention](definitions.md#conventions) with it.",
            "",
        ]
    )


PAGES = {
    HERE / "cite.md": citation_page,
    HERE / "definitions" / "simulated-coverage.md": simulations_page,
    HERE / "definitions" / "simulated-declining.md": declining_page,
    HERE / "definitions" / "simulated-guarantees.md": guarantees_page,
    HERE / "reference" / "cli.md": command_line_page,
    HERE / "reference" / "metrics.md": metrics_page,
}


if __name__ == "__main__":
    for path, make in PAGES.items():
        path.write_text(make())
        print(path)
