"""Documentation that can go stale is generated or tested."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from abstain.confidence import variants
from abstain.metrics import selective
from examples import EXAMPLES

ROOT = Path(__file__).parent.parent
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))


@pytest.mark.parametrize("path", GENERATE["PAGES"], ids=lambda path: path.name)
def test_generated_pages_are_current(path: Path) -> None:
    # How help is wrapped differs between releases of the libraries that print it; its words do not.
    assert path.read_text().split() == GENERATE["PAGES"][path]().split(), "run make docs"


def test_every_verb_is_on_the_command_line_page() -> None:
    listed = set(re.findall(r"^  (\w+)  ", GENERATE["help_text"](()), flags=re.MULTILINE))
    assert {verb[0] for verb in GENERATE["VERBS"] if verb} == listed


def test_every_selective_metric_and_every_variant_is_defined() -> None:
    text = (ROOT / "docs" / "definitions.md").read_text()
    metrics = [metric.name for metric in selective.METRICS]
    for name in [*metrics, "tie_sensitivity", *(variant.name for variant in variants())]:
        assert f"`{name}`" in text, name
    for convention in selective.CONVENTIONS:
        assert f"| `{convention}` |" in text


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """Every `abstain` line of the README, on a run file, a table and a log of that name."""
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


def test_the_readme_names_every_verb_that_answers_a_question() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "abstain", "--help"], capture_output=True, text=True, check=True
    )
    asked = {
        verb: question
        for verb, question in re.findall(r"^  (\w+) +(\S.*)$", shown.stdout.partition("Ask:")[2], re.M)
        if verb not in ("metrics", "demo", "schema")
    }
    table = re.findall(r"^\| (.*?) \| (`abstain .*`) \|$", (ROOT / "README.md").read_text(), re.M)
    told = {verb: question for question, verbs in table for verb in re.findall(r"`abstain (\w+)`", verbs)}
    assert told.keys() == asked.keys()
    # Those that share a row share a question of their own.
    together = {"intervals", "sets", "report", "plot"}
    assert {verb: words for verb, words in told.items() if verb not in together} == {
        verb: words for verb, words in asked.items() if verb not in together
    }


def test_every_page_can_be_found() -> None:
    for folder, index in (("decisions", "docs/decisions/README.md"), ("changes", "README.md")):
        listed = (ROOT / index).read_text()
        for page in (ROOT / "docs" / folder).glob("*.md"):
            assert page.name == "README.md" or page.name in listed, f"{index} does not lead to {page.name}"


def test_pages_keep_to_one_word_per_meaning() -> None:
    """Old words stand only where it is said that they are old."""
    told = {"CHANGELOG.md", "CONTRIBUTING.md", "one-rule-behind-every-door.md"}
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if page.name not in told:
            found = re.findall(
                r"\b(?:caution\w*|take care|significan\w+|(?:a|the|every|which) figure)\b", page.read_text()
            )
            assert not found, f"{page.name}: {found}"
