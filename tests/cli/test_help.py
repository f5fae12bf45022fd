"""`--help` shows the common options, `--help-all` shows all of them, and both fit the terminal."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from abstain.cli import LazyCommands
from abstain.cli._program import COMMON_OPTIONS

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
COMMANDS = [command for command in GENERATE["COMMANDS"] if command]
WITH_ALL = [command for command in COMMANDS if command not in GENERATE["SHORT_COMMANDS"]]
WIDTH = 80


@cache
def help_text(*arguments: str, width: int = WIDTH) -> str:
    """The help of a command on a terminal of this width."""
    environment = os.environ | {"COLUMNS": str(width), "TERMINAL_WIDTH": str(width), "NO_COLOR": "1"}
    call = [sys.executable, "-m", "abstain", *arguments]
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def full_help(*command: str, width: int = WIDTH) -> str:
    return help_text(*command, "--help-all" if command in WITH_ALL else "--help", width=width)


def parameters(*command: str) -> list[Any]:
    loaded = LazyCommands()[command[0]]
    params: list[Any] = (loaded.commands[command[1]] if len(command) > 1 else loaded).params
    return params


def options(*command: str) -> set[str]:
    return {flag for parameter in parameters(*command) for flag in parameter.opts}


def examples(text: str) -> list[list[str]]:
    """The commands of the examples, with continued lines joined."""
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [shlex.split(line) for line in lines if line.startswith("    abstain ")]


def without_spaces(text: str) -> str:
    """A text without spaces and line breaks, which may also follow a hyphen."""
    return "".join(text.split())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_full_help_has_every_option_at_80_columns(command: tuple[str, ...]) -> None:
    text = full_help(*command)
    assert max(map(len, text.splitlines())) <= WIDTH
    for parameter in parameters(*command):
        # Older versions of typer have no help of arguments, which are not options.
        help_line = getattr(parameter, "help", None) or ""
        assert without_spaces(help_line) in without_spaces(text), parameter.name


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_help_of_an_option_takes_at_most_two_lines_at_100_columns(command: tuple[str, ...]) -> None:
    text = full_help(*command, width=100)
    assert max(map(len, text.splitlines())) <= 100
    assert "[default" not in text
    assert "[required" not in text
    for entry in re.findall(r"^  (?:-|[A-Z]+ ).*(?:\n {8,}\S.*)*", text, flags=re.MULTILINE):
        first, *further = entry.splitlines()
        # Long names are on a separate line.
        lines = further if re.fullmatch(r"\S+(?: \S+)*", first.strip()) else [first, *further]
        assert len(lines) <= 2, entry


@pytest.mark.parametrize("command", WITH_ALL, ids=" ".join)
def test_the_short_help_shows_common_and_required_options(command: tuple[str, ...]) -> None:
    text = help_text(*command, "--help")
    shown = set(re.findall(r"^  .*?(--[a-z-]+)", text, flags=re.MULTILINE))
    common = set(COMMON_OPTIONS[command[-1]].split())
    assert common | {"--help", "--help-all"} <= shown
    required = [parameter for parameter in parameters(*command) if parameter.required]
    for parameter in required:
        assert parameter.param_type_name == "argument" or common & set(parameter.opts), parameter.name
    assert text.endswith(f"\nMore options: abstain {' '.join(command)} --help-all\n")
    assert len(text.splitlines()) < len(full_help(*command).splitlines())


def test_commands_with_common_options_are_those_with_help_all() -> None:
    assert {command[-1] for command in WITH_ALL} == set(COMMON_OPTIONS)
    for command in COMMANDS:
        assert ("--help-all" in options(*command)) == (command in WITH_ALL)


def test_all_options_are_parsed_and_completed_although_the_short_help_omits_them() -> None:
    assert "--threads" not in help_text("evaluate", "--help")
    environment = os.environ | {"_ABSTAIN_COMPLETE": "complete_bash", "COMP_WORDS": "abstain evaluate --thr"}
    environment["COMP_CWORD"] = "2"
    call = [sys.executable, "-c", "from abstain.cli import main; main()"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == ["--threads"]


def test_the_four_probabilities_have_one_unit_and_are_explained() -> None:
    expected = {
        ("evaluate", "--level"): "the probability that a confidence interval covers the true value",
        ("threshold", "--sure"): "Probability with which the risk guarantee holds.",
        ("intervals", "--nominal"): "the probability that a prediction contains the truth",
        ("power", "--power"): "the probability of detecting a true difference of this size",
    }
    for (command, flag), meaning in expected.items():
        (option,) = (parameter for parameter in parameters(command) if flag in parameter.opts)
        assert option.metavar == "PROPORTION"
        assert meaning in option.help


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_has_three_examples_with_existing_options(command: tuple[str, ...]) -> None:
    found = examples(help_text(*command, "--help"))
    assert len(found) >= 3
    assert sum(tuple(example[1 : 1 + len(command)]) == command for example in found) >= 2
    for example in found:
        called = tuple(example[1:3]) if example[1] == "calibrate" else (example[1],)
        assert {part for part in example if re.match(r"--?[a-z]", part)} <= options(*called), example


@pytest.mark.parametrize("command", [(), ("calibrate",)], ids=str)
def test_a_list_of_commands_is_complete_at_80_columns(command: tuple[str, ...]) -> None:
    text = help_text(*command, "--help")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "..." not in text.partition("\n")[2]
    for name in LazyCommands() if not command else LazyCommands()[command[0]].commands:
        assert re.search(rf"^  {name}  +\S", text, flags=re.MULTILINE), name


def test_the_list_of_commands_has_one_line_per_command_under_five_headings() -> None:
    text = help_text("--help")
    headings = re.findall(r"^([A-Z]\w+):$", text, flags=re.MULTILINE)
    assert headings == ["Options", "Run", "Evaluate", "Decide", "Report", "Learn"]
    for name in LazyCommands():
        assert re.search(rf"^  {name}  +[A-Z].*\.$", text, flags=re.MULTILINE), name
