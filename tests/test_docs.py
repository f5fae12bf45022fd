"""Documentation that can become outdated is generated or tested."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import abstain
from abstain.confidence import variants
from abstain.evaluation import parse_condition
from abstain.metrics import selective
from abstain.metrics.registry import METRICS
from examples import EXAMPLES

ROOT = Path(__file__).parent.parent
PUBLIC_MODULES = {
    *(
        "abstain.calibrators",
        "abstain.confidence",
        "abstain.errors",
        "abstain.evaluation",
        "abstain.inference",
    ),
    *("abstain.evaluation.conformal", "abstain.inference.calibration", "abstain.items", "abstain.losses"),
    *("abstain.integrations.sklearn", "abstain.integrations.inspect", "abstain.matching", "abstain.readers"),
    *(
        "abstain.report.charts",
        "abstain.report.html",
        "abstain.resampling",
        "abstain.results",
        "abstain.runs",
    ),
    *("abstain.compat.mapie", "abstain.compat.objects", "abstain.compat.rows", "abstain.thresholds"),
    *(f"abstain.metrics.{name}" for name in ("abstention", "answers", "base", "calibration", "curves")),
    *(
        f"abstain.metrics.{name}"
        for name in ("instruments", "intervals", "quantiles", "registry", "regression")
    ),
    *(f"abstain.metrics.{name}" for name in ("reliability", "selective", "sets")),
}
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.mark.parametrize("path", GENERATE["PAGES"], ids=lambda path: path.name)
def test_generated_pages_are_current(path: Path) -> None:
    if path.name == "cli.md" and [int(part) for part in version("typer").split(".")[:2]] < [0, 28]:
        pytest.skip("the page was made with typer 0.28")
    # Releases of the libraries that print help differ in line breaks, not in words.
    assert path.read_text().split() == GENERATE["PAGES"][path]().split(), "run make docs"


def test_every_command_is_on_the_command_line_page() -> None:
    listed = set(re.findall(r"^  (\w+)  ", GENERATE["help_text"](()), flags=re.MULTILINE))
    assert {command[0] for command in GENERATE["COMMANDS"] if command} == listed


def test_every_selective_metric_and_every_variant_is_defined() -> None:
    text = (ROOT / "docs" / "definitions.md").read_text()
    metrics = [metric.name for metric in selective.METRICS]
    for name in [*metrics, "tie_sensitivity", *(variant.name for variant in variants())]:
        assert f"`{name}`" in text, name
    for convention in selective.CONVENTIONS:
        assert f"| `{convention}` |" in text


def test_links_between_pages_have_a_target() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.slow
def test_readme_commands_run(tmp_path: Path) -> None:
    """Run every `abstain` line of the README on a run file, a table and a log with the names that it uses."""
    readme = (ROOT / "README.md").read_text()
    (tmp_path / "run.json").write_bytes((EXAMPLES / "run_a.json").read_bytes())
    rows = [f"{row % 2},{row * 7 % 3 % 2},{1 / (row + 1)},p{row % 12}" for row in range(60)]
    (tmp_path / "preds.csv").write_text("\n".join(["label,pred,prob,patient_id", *rows]))
    (tmp_path / "logs").mkdir()
    (log,) = re.findall(r"logs/\S+\.eval", readme)
    samples = [
        {
            "id": number,
            "target": "a",
            "scores": {"s": {"value": "CIN"[number % 3], "metadata": {"confidence": 0.5}}},
        }
        for number in range(30)
    ]
    header = {
        "version": 2,
        "status": "success",
        "eval": {"task": "triage", "model": "m", "created": "2026-11-15"},
    }
    (tmp_path / log).write_text(json.dumps({**header, "samples": samples}))
    blocks = re.findall(r"```sh\n(.*?)```", readme, flags=re.DOTALL)
    commands = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line for line in commands if line.startswith("abstain ")]
    assert len(commands) >= 2
    for line in commands:
        arguments = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr


def test_readme_examples_import_only_abstain() -> None:
    imported = re.findall(r"^>>> (?:import|from) (.*)$", (ROOT / "README.md").read_text(), re.M)
    assert imported
    assert all(re.fullmatch(r"abstain|abstain\.metrics import \w+", line) for line in imported), imported


def test_the_readme_names_every_command_that_works_on_data() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "abstain", "--help"], capture_output=True, text=True, check=True
    )
    commands = set(re.findall(r"^  (\w+) +\S.*$", shown.stdout.partition("Run:")[2], re.M))
    table = re.findall(r"^\| .*`abstain .*\|$", (ROOT / "README.md").read_text(), re.M)
    listed = {command for row in table for command in re.findall(r"`abstain (\w+)`", row)}
    assert listed == commands - {"metrics", "demo", "schema"}


def test_every_page_is_in_the_navigation() -> None:
    """Decisions are listed on their index page; contributing.md is made from CONTRIBUTING.md."""
    navigation = (ROOT / "mkdocs.yml").read_text()
    decisions = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").as_posix()
        if page.parent.name == "decisions" and page.name != "README.md":
            assert page.name in decisions, f"docs/decisions/README.md does not link to {page.name}"
        else:
            assert re.search(rf"(?:- |: ){re.escape(path)}$", navigation, re.M), (
                f"mkdocs.yml does not list {path}"
            )


def test_every_section_index_links_to_its_pages() -> None:
    for index in (ROOT / "docs").rglob("index.md"):
        text = index.read_text()
        for page in index.parent.glob("*.md"):
            if index.parent != ROOT / "docs" and page != index:
                assert f"({page.name})" in text, f"{index.parent.name}/index.md does not link to {page.name}"


def test_pages_use_one_word_per_meaning() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        words = re.findall(
            r"\b(?:caution\w*|take care|significan\w+|(?:a|the|every|which) figure)\b", page.read_text()
        )
        assert not words, f"{page.name}: {words}"


# The source of a metric: a person and a year, a tool, this project, or common usage.
SOURCE = re.compile(r"\((?:[^()]*, )?(?:18|19|20)\d\d\)|krisis|[Oo]ur own|common usage")


def definition_of(name: str, place: str) -> str:
    """Return the definition of a metric: its section, or its row in a table."""
    page, _, anchor = place.partition("#")
    text = (ROOT / page).read_text()
    if anchor == name:
        return text.partition(f"\n### {name}\n")[2].partition("\n##")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ") and f"`{name}`" in line.split("|")[1]]
    return next(line for line in rows if line.count("|") >= 4)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_definition_names_its_source(name: str) -> None:
    definition = definition_of(name, METRICS[name].definition)
    said = definition.rsplit("|", 2)[1] if definition.startswith("|") else definition
    assert SOURCE.search(" ".join(said.split())), (
        f"{METRICS[name].definition} does not name the source of {name}"
    )


def test_every_convention_names_its_source() -> None:
    text = (ROOT / "docs" / "definitions.md").read_text()
    for convention in selective.CONVENTIONS:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{convention}` |")]
        assert SOURCE.search(row.rsplit("|", 2)[1]), convention


PAGES_WITH_REFERENCES = [
    page for page in (ROOT / "docs").rglob("*.md") if "\n## References\n" in page.read_text()
]


@pytest.mark.parametrize("page", PAGES_WITH_REFERENCES, ids=lambda page: page.name)
def test_cited_works_are_listed(page: Path) -> None:
    text, _, references = page.read_text().partition("\n## References\n")
    listed = " ".join(references.split())
    cited = set(re.findall(r"([A-Z][\w'-]+|et al\.)(?:, | \()((?:18|19|20)\d\d)\)", " ".join(text.split())))
    assert cited
    for last_name, year in cited:
        assert f"{last_name} ({year})" in listed, page.name


def test_the_citation_names_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == abstain.__version__
    page = (ROOT / "docs" / "cite.md").read_text()
    assert f"version = {{{abstain.__version__}}}" in page
    assert f"title   = {{{{{cited['title']}}}}}" in page


def test_only_released_versions_have_a_date() -> None:
    """A version of the changelog has a date or is not released yet, and the citation agrees."""
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert headings[:2] == ["Unreleased", f"{abstain.__version__} (not released yet)"] or re.fullmatch(
        rf"{re.escape(abstain.__version__)} \(\d{{4}}-\d\d-\d\d\)", headings[1]
    )
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    page = (ROOT / "docs" / "cite.md").read_text()
    if "not released yet" in headings[1]:
        assert "date-released" not in cited
        assert "year" not in page.partition("```bibtex")[2].partition("```")[0]
        assert "(not released yet)" in page
    else:
        assert headings[1].endswith(f"({cited['date-released']})")
        assert f"year    = {{{cited['date-released'].year}}}" in page


def test_formulas_are_complete_and_outside_of_code() -> None:
    """A vertical bar would end a table cell, and a dollar sign within code does not start a formula."""
    for page in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
        text = re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL)
        for number, block in enumerate(text.split("\n\n")):
            assert block.count("$") % 2 == 0, f"{page.name}, block {number}: {block[:80]}"
        for row in (line for line in text.splitlines() if line.startswith("|")):
            for formula in re.findall(r"\$([^$]*)\$", row):
                assert "|" not in formula, f"{page.name}: {formula}"


def test_every_public_module_is_in_the_reference() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "reference" / "python").glob("*.md"))
    listed = set(re.findall(r"^::: (abstain[\w.]*)$", pages, flags=re.MULTILINE))
    assert listed | {name.rpartition(".")[0] for name in listed} >= PUBLIC_MODULES
    for name in listed:
        module, _, function = name.rpartition(".")
        exported = import_module(name) if name in PUBLIC_MODULES else getattr(import_module(module), function)
        assert exported.__doc__, name


def test_listed_members_of_the_reference_exist() -> None:
    for page in (ROOT / "docs" / "reference" / "python").glob("*.md"):
        for module, options in re.findall(
            r"^::: (\S+)\n((?: {4}.*\n)+)", page.read_text(), flags=re.MULTILINE
        ):
            members = yaml.safe_load(options)["options"].get("members", [])
            missing = [name for name in members if not hasattr(import_module(module), name)]
            assert not missing, f"{page.name}: {module} has no {missing}"


def test_the_workflow_of_the_gate_guide_is_valid() -> None:
    page = (ROOT / "docs" / "guides" / "ci-gates.md").read_text()
    (workflow,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    steps = yaml.safe_load(workflow)["jobs"]["gate"]["steps"]
    (command,) = [step["run"] for step in steps if step.get("name") == "Gate"]
    conditions = re.findall(r'--fail-if "([^"]+)"', command)
    assert [parse_condition(condition).metric.name for condition in conditions] == ["augrc", "cmax"]


def test_the_documented_json_keys_are_in_the_schemas() -> None:
    text = (ROOT / "docs" / "reference" / "json-schemas.md").read_text()
    schemas = "".join(
        GENERATE["run_abstain"]("schema", kind) for kind in re.findall(r"abstain schema (\w+) >", text)
    )
    rows = re.findall(r"^\| (`.*?) \|", text.partition("## Results JSON")[2], flags=re.MULTILINE)
    keys = [key.rstrip("[]") for row in rows for key in re.findall(r"`([\w.]+(?:\[\])?)`", row)]
    assert len(keys) > 10
    for key in keys:
        assert f'"{key.split(".")[0]}": ' in schemas, key


def test_workflows_use_make_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = set()
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for job in yaml.safe_load(workflow.read_text())["jobs"].values():
            for step in job["steps"]:
                called |= set(re.findall(r"^make ([a-z-]+)", step.get("run", "")))
    assert {
        "check",
        "test",
        "test-nightly",
        "test-lowest",
        "test-numpy",
        "test-browser",
        "docs",
        "fuzz",
    } <= called
    assert called <= targets


def test_every_security_property_names_its_tests() -> None:
    properties = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("\n- ")[1:]
    assert len(properties) > 10
    for description in properties:
        paths = re.findall(r"`(tests\w*/[\w/.]*)`", description)
        assert paths, description
        assert all((ROOT / path).exists() for path in paths), paths
