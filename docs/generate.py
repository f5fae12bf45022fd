"""Regenerate the pages that are made from the code: `make docs`. A test fails if a page is out of date.

Some pages are generated completely. In others, only the output below each `$ abstain ...` line of a `console` block is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from abstain.metrics.registry import BUNDLES, METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
SIMULATIONS = HERE.parent / "simulations"
# By the name of a page about a simulation: the module, and the file of its counts.
SIMULATED = {
    "coverage": ("table", "results"),
    **{name: (name, name) for name in ("declining", "differences", "groups", "guarantees", "planning")},
}
# Pages with the output of commands.
WITH_OUTPUTS = ("quick-start.md", "concepts/reading-the-output.md")
COMMANDS: tuple[tuple[str, ...], ...] = (
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
# The other commands have few options, and no --help-all.
SHORT_COMMANDS = ((), ("metrics",), ("demo",), ("schema",))


def command_line_page() -> str:
    """Return the page with the help of every command."""
    lines = [
        "# Command line",
        "",
        "This page is generated from `--help-all` by `make docs`; `--help` shows the common options. See also the",
        "[exit codes](exit-codes.md).",
        "",
    ]
    for command in COMMANDS:
        name = " ".join(("abstain", *command))
        lines += [f"## {name}", "", "```text", help_text(command), "```", ""]
    return "\n".join(lines)


def help_text(command: tuple[str, ...]) -> str:
    """Return the full help of a command at a width of 100."""
    option = "--help" if command in SHORT_COMMANDS else "--help-all"
    output = run_abstain(*command, option).replace("python -m abstain", "abstain")
    # Some releases of typer print the Python type of an argument after its name.
    return re.sub(r" <[\w\[\]]+>", "", output)


def run_abstain(*arguments: str, folder: Path | None = None) -> str:
    """Return the output of a command at a width of 100, without trailing blanks."""
    environment = os.environ | {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "abstain", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment,
        cwd=folder,
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def page_with_outputs(path: Path) -> str:
    """Return a page in which every output in a `console` block is current; commands run in a copy of docs/data."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        shutil.copytree(HERE / "data", data)
        return re.sub(
            r"(?<=```console\n)(.*?)(?=```)",
            lambda match: _console_block(match[1], data),
            path.read_text(),
            flags=re.DOTALL,
        )


def _console_block(block: str, folder: Path) -> str:
    commands = re.findall(r"^\$ (.*)$", block.replace("\\\n", ""), flags=re.MULTILINE)
    written = re.findall(r"^\$ (?:.*\\\n)*.*$", block, flags=re.MULTILINE)
    outputs = [run_abstain(*shlex.split(command)[1:], folder=folder) for command in commands]
    return "".join(f"{command}\n{output}\n" for command, output in zip(written, outputs, strict=True))


def metrics_page() -> str:
    """Return the page of every metric, from the registry."""
    lines = [
        "# Metrics",
        "",
        "This page is generated from the registry by `make docs`. `abstain evaluate --metric NAME` computes a",
        "metric, and `NAME@VALUE` sets its parameter. Metrics marked with * use the answered rows only. The column",
        "*compared* is the kind of metric, which decides",
        "[how two systems are compared](../definitions/comparison.md#what-a-comparison-concludes).",
        "If you do not know which metric you need, see [choosing a metric](../concepts/choosing-a-metric.md).",
        "",
        "| metric | better | compared | unit | needs | definition in short |",
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


def simulated_page(name: str) -> str:
    """Return the page about a simulation, by the name of the page."""
    if str(HERE.parent) not in sys.path:
        sys.path.append(str(HERE.parent))
    module, counts = SIMULATED[name]
    page: str = getattr(import_module(f"simulations.{module}"), f"{name}_page")(
        SIMULATIONS / f"{counts}.jsonl"
    )
    return page


def citation_page() -> str:
    """Return the page about citing, from CITATION.cff."""
    cited = yaml.safe_load((HERE.parent / "CITATION.cff").read_text())
    authors = [author["name"] for author in cited["authors"]]
    released = cited.get("date-released")
    fields = {
        "title": f"{{{cited['title']}}}",
        # Braces keep a name of several words together that is not the name of a person.
        "author": " and ".join(f"{{{name}}}" for name in authors),
        # A version that has not been released has no year.
        **({"year": str(released.year)} if released else {}),
        "version": cited["version"],
        "license": cited["license"],
    }
    lines = [f"  {name:8}= {{{value}}}," for name, value in fields.items()]
    when = str(released.year) if released else "not released yet"
    text = f"{' and '.join(authors)} ({when}). {cited['title']} (version {cited['version']})."
    return "\n".join(
        [
            "# Citing abstain",
            "",
            "This page is generated from `CITATION.cff` by `make docs`. Cite the version that computed your numbers",
            "(`abstain --version`), because a number may change between versions. The changelog lists such changes.",
            "",
            "```bibtex",
            "@software{abstain,",
            *lines,
            "}",
            "```",
            "",
            f"As text: {text}",
            "",
            "Cite the authors of the metrics, too: the [definitions](definitions.md) name who introduced each one.",
            "If you report an area under a risk-coverage curve, name its [convention](definitions.md#conventions).",
            "",
        ]
    )


PAGES: dict[Path, Callable[[], str]] = {
    **{HERE / name: partial(page_with_outputs, HERE / name) for name in WITH_OUTPUTS},
    HERE / "cite.md": citation_page,
    **{HERE / "definitions" / f"simulated-{name}.md": partial(simulated_page, name) for name in SIMULATED},
    HERE / "reference" / "cli.md": command_line_page,
    HERE / "reference" / "metrics.md": metrics_page,
}


if __name__ == "__main__":
    for path, make in PAGES.items():
        path.write_text(make())
        print(path)
