"""What the site has beyond the pages in docs/: a reference made from docstrings, formulas, search, the order of pages.

Used by mkdocs while it builds. The reference is not kept in the repository: its examples are run where they
stand, in the code. Formulas are written in LaTeX and become MathML, which browsers draw by themselves: no script and
no font is needed. The site opens from disk, and is searched there.
"""

from __future__ import annotations

import html
import importlib
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

MODULES = {
    "abstain": "Read, evaluate, compare",
    "abstain.items": "Items",
    "abstain.evaluation": "Results of evaluations",
    "abstain.evaluation.conformal": "Intervals and sets, judged",
    "abstain.matching": "Matching",
    "abstain.losses": "Losses",
    "abstain.inference": "Intervals and the verdict",
    "abstain.inference.calibration": "Calibration metrics with intervals",
    "abstain.resampling": "Tallies and measures",
    "abstain.metrics.selective": "Selective prediction",
    "abstain.metrics.curves": "Risk-coverage curves",
    "abstain.metrics.answers": "Accuracy",
    "abstain.metrics.regression": "Regression",
    "abstain.metrics.abstention": "Abstention safety",
    "abstain.metrics.calibration": "Calibration",
    "abstain.metrics.reliability": "Reliability curves",
    "abstain.metrics.intervals": "Prediction intervals",
    "abstain.metrics.quantiles": "Predictive quantiles",
    "abstain.metrics.sets": "Prediction sets",
    "abstain.metrics.base": "Metrics of your own",
    "abstain.metrics.registry": "Registry",
    "abstain.compat.rows": "Selective prediction, row by row",
    "abstain.compat.objects": "Metric objects",
    "abstain.compat.mapie": "MAPIE's names",
    "abstain.calibrators": "Calibrators",
    "abstain.confidence": "Confidences",
    "abstain.integrations.sklearn": "A classifier that may decline, scorers and a display for scikit-learn",
    "abstain.integrations.inspect": "Metrics for Inspect AI",
    "abstain.report.charts": "Charts",
    "abstain.report.html": "HTML report",
    "abstain.errors": "Errors",
}
# Pages from disk may start no worker, and the theme searches in one.
WORKER = Path(__file__).parent / "worker_from_disk.js"
_SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Yields", "Examples", "Example")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every module of `MODULES`."""
    for name in MODULES:
        files.append(File.generated(config, f"reference/python/{name}.md", content=module_page(name)))
    return files


def on_page_content(output: str, page: object, config: MkDocsConfig, files: Files) -> str:
    """Turn LaTeX into MathML."""
    del page, config, files
    return with_formulas(output)


def with_formulas(text: str) -> str:
    """Return HTML in which every formula that arithmatex found is MathML."""
    return re.sub(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', _formula, text, flags=re.DOTALL)


def _formula(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)


def on_post_page(output: str, page: object, config: MkDocsConfig) -> str:
    """Search from disk without the script that the theme would fetch for it."""
    del page, config
    return with_own_worker(output)


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """The same for pages that are no documents, such as the one for a page that is not there."""
    del template_name, config
    return with_own_worker(output_content)


def with_own_worker(output: str) -> str:
    """Return a page that fetches nothing: our own stand-in for a worker takes the place of the theme's."""
    return re.sub(r'<script src="https://[^"]*"></script>', f"<script>{WORKER.read_text()}</script>", output)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the order of the pages; what is found in a folder is listed by name."""
    docs = config.docs_dir
    python = [{title: f"reference/python/{name}.md"} for name, title in MODULES.items()]
    config.nav = [
        {"Home": "index.md"},
        {"Tutorials": ["tutorial.md", *_pages(docs, "tutorials")]},
        {"How to": _pages(docs, "how-to")},
        {"Definitions": ["definitions.md", *_pages(docs, "definitions")]},
        {"Reference": [*_pages(docs, "reference"), {"Python": python}]},
        {"How to cite": "cite.md"},
        {"Changes": _pages(docs, "changes")},
        {"Decisions": ["decisions/README.md", *_pages(docs, "decisions")]},
    ]
    return config


def _pages(docs: str, folder: str) -> list[str]:
    return [
        f"{folder}/{path.name}"
        for path in sorted(Path(docs, folder).glob("*.md"))
        if path.name != "README.md"
    ]


def module_page(name: str) -> str:
    """Return the page of one module: its docstring, then every public name."""
    module = importlib.import_module(name)
    lines = [f"# {MODULES[name]}", "", f"`{name}`", "", markdown(inspect.getdoc(module) or ""), ""]
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isroutine(value):
            lines += _entry(public, value, "##")
    return "\n".join(lines)


def _entry(name: str, value: Any, level: str) -> list[str]:
    lines = [f"{level} {name}", ""]
    if signature := _signature(name, value):
        lines += ["```python", signature, "```", ""]
    lines += [markdown(inspect.getdoc(value) or ""), ""]
    if inspect.isclass(value):
        for member, part in vars(value).items():
            described = part.__func__ if isinstance(part, (classmethod, staticmethod)) else part
            if not member.startswith("_") and (inspect.isroutine(described) or isinstance(part, property)):
                lines += _entry(f"{name}.{member}", described, "###")
    return lines


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = found.replace(
        parameters=[part.replace(annotation=inspect.Parameter.empty) for part in found.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    return f"{name}{plain}"


def markdown(text: str) -> str:
    """Return a docstring as Markdown: sections become lists, examples become code."""
    lines: list[str] = []
    section = ""
    code = False
    for line in re.sub(r"``(.+?)``", r"`\1`", text).splitlines():
        heading = re.fullmatch(rf"({'|'.join(_SECTIONS)}):", line.strip())
        if heading:
            section = heading[1]
            lines += ["", f"**{section}**", ""]
            continue
        if section and line and not line.startswith(" "):
            section = ""
        starts = line.lstrip().startswith(">>>")
        if starts and not code:
            lines += ["", "```pycon"]
            code = True
        elif code and not line.strip():
            lines += ["```"]
            code = False
        if code:
            lines.append(line.strip() if starts else line)
        elif section and (named := re.match(r"\s{4}(\S[^:]*): (.*)", line)):
            lines.append(f"- `{named[1]}`: {named[2]}")
        elif section and line.strip():
            lines.append(f"  {line.strip()}")
        else:
            lines.append(re.sub(r"::$", ":", line))
    return "\n".join([*lines, "```"] if code else lines)
