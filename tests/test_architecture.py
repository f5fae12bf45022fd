"""How the package is put together: packages keep their private modules to themselves, and call paths are short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import abstain
from examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(abstain.__file__).parent
# How many modules `abstain evaluate run.json` calls a function of. Whoever makes it shorter lowers the number.
LONGEST_WALK = 45

_WALK = """
import contextlib, io, runpy, sys
walked = set()
def note(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event != "call" or not name.startswith("abstain") or frame.f_code.co_name == "<module>":
        return
    caller = frame.f_back
    while caller is not None:  # what runs while a module is imported is no step of the walk
        if caller.f_code.co_name == "<module>" and caller.f_globals.get("__name__") != "__main__":
            return
        caller = caller.f_back
    walked.add(name)
sys.argv = ["abstain", "evaluate", sys.argv[1], "--mode", "few_shot", "--bootstrap-resamples", "5", "--json"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.setprofile(note)
    runpy.run_module("abstain", run_name="__main__")
sys.setprofile(None)
print(*sorted(walked), sep="\\n")
"""


def room_of(module: str) -> str:
    """The room that a module stands in: `abstain.report.html._page` in `report`, `abstain._validate` in none."""
    parts = module.split(".")
    inside = len(parts) > 2 or (SOURCES / parts[-1]).is_dir()
    return parts[1] if inside and len(parts) > 1 else ""


def imports() -> Iterator[tuple[str, str]]:
    """Every module of the package and what it imports, wherever in the module that stands."""
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((module, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{module} imports from a place that moves with it"
                yield module, node.module
                yield from ((module, f"{node.module}.{name.name}") for name in node.names)


def is_private_module(name: str) -> bool:
    parts = name.split(".")
    private = any(part.startswith("_") and not part.startswith("__") for part in parts[2:])
    place = SOURCES.joinpath(*parts[1:])
    return private and (place.is_dir() or place.with_suffix(".py").exists())


def test_rooms_keep_their_private_modules_to_themselves() -> None:
    found = {
        f"{module} imports {name}"
        for module, name in imports()
        if name.startswith("abstain.") and is_private_module(name) and room_of(module) != room_of(name)
    }
    assert found == set()


def test_the_rule_sees_what_it_forbids() -> None:
    assert is_private_module("abstain.cli._options")
    assert not is_private_module("abstain.cli._options.Reading")
    assert not is_private_module("abstain._validate")
    assert [
        room_of(name) for name in ("abstain.cli._options", "abstain.cli", "abstain._files", "abstain")
    ] == [
        "cli",
        "cli",
        "",
        "",
    ]


def test_a_walk_through_the_house_is_short() -> None:
    command = [sys.executable, "-c", _WALK, str(EXAMPLES / "run_a.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    walked = done.stdout.split()
    assert {"abstain.cli.evaluate", "abstain.readers._read", "abstain.items"} <= set(walked)
    assert len(walked) <= LONGEST_WALK, walked
