"""The prose check finds the habits that it names, and only in prose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import check_prose  # noqa: E402


def habits(name: str, content: str) -> list[str]:
    path = ROOT / name
    return [finding.rule.name for finding in check_prose.find_habits(check_prose.read_texts(path, content))]


@pytest.mark.parametrize(
    ("text", "habit"),
    [
        ("An error where the file is missing.", "where"),
        ("It returns what was given.", "headless what"),
        ("The table says so.", "say or tell"),
        ("The loss; else the default.", "else, left out"),
        ("A row stands twice.", "stand"),
        ("This is no table.", "is no X"),
        ("A metric of its own.", "of its own"),
        ("The share of answers.", "share"),
        ("One; two; three.", "two semicolons"),
    ],
)
def test_a_habit_is_found_in_every_kind_of_text(text: str, habit: str) -> None:
    assert habits("docs/page.md", f"# Title\n\n{text}\n") == [habit]
    assert habits("src/abstain/module.py", f'"""{text}"""\n') == [habit]
    assert habits("src/abstain/module.py", f"# {text}\n") == [habit]
    assert habits("src/abstain/module.py", f"MESSAGE = {text + ' Add it.'!r}\n") == [habit]


def test_code_and_right_uses_are_not_findings() -> None:
    assert not habits("docs/page.md", "```sql\nSELECT 1 WHERE x; else\n```\n\nUse `where`.\n")
    assert not habits("docs/page.md", "There is no interval. The point where both meet.\n")
    assert not habits(
        "src/abstain/module.py", '"""Return it.\n\n    >>> print("what was asked")\n    alone\n"""\n'
    )
    assert not habits("src/abstain/module.py", 'QUERY = "SELECT a FROM b WHERE c"\n')


def test_names_of_tests_are_checked() -> None:
    assert habits("tests/test_x.py", "def test_nobody_asks_for_it() -> None: ...\n") == [
        "ask",
        "whoever, nobody",
    ]


def test_the_project_follows_the_rules() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_prose.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
