"""What `--help` shows on a terminal of 80 columns: everything, and three examples that can be typed."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from abstain.cli import _Loaded

ROOT = Path(__file__).parents[2]
VERBS = runpy.run_path(str(ROOT / "docs" / "generate.py"))["COMMANDS"]
WIDTH = 80


def shown(*verb: str) -> str:
    """The help of a verb, as a terminal of 80 columns has it."""
    environment = os.environ | {"COLUMNS": str(WIDTH), "TERMINAL_WIDTH": str(WIDTH), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "abstain", *verb, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def command(*verb: str) -> Any:
    found = _Loaded()[verb[0]]
    return found.commands[verb[1]] if len(verb) > 1 else found


def options(*verb: str) -> set[str]:
    return {flag for parameter in command(*verb).params for flag in parameter.opts}


def examples(text: str) -> list[list[str]]:
    """The commands of the examples, those over several lines put together again."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [shlex.split(line) for line in lines if line.startswith("    abstain ")]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb], ids=" ".join)
def test_a_verb_says_everything_at_80_columns(verb: tuple[str, ...]) -> None:
    text = shown(*verb)
    assert max(map(len, text.splitlines())) <= WIDTH
    for parameter in command(*verb).params:
        # Older versions of typer have no help of arguments, which are not options.
        assert words(getattr(parameter, "help", None) or "") in words(text), parameter.name


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb], ids=" ".join)
def test_a_verb_has_three_examples_whose_options_there_are(verb: tuple[str, ...]) -> None:
    found = examples(shown(*verb))
    assert len(found) >= 3
    assert sum(tuple(example[1 : 1 + len(verb)]) == verb for example in found) >= 2
    for example in found:
        called = tuple(example[1:3]) if example[1] == "calibrate" else (example[1],)
        assert {part for part in example if re.match(r"--?[a-z]", part)} <= options(*called), example


@pytest.mark.parametrize("verb", [(), ("calibrate",)], ids=str)
def test_a_list_of_verbs_is_whole_at_80_columns(verb: tuple[str, ...]) -> None:
    text = shown(*verb)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "..." not in text.partition("\n")[2]
    for name in _Loaded() if not verb else _Loaded()[verb[0]].commands:
        assert re.search(rf"^  {name}  +\S", text, flags=re.MULTILINE), name
