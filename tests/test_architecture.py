"""The architecture: private modules stay within their package, and a call path enters few modules."""

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
# The most modules in which `abstain evaluate run.json` calls a function. Lower it if you shorten the call path.
MOST_MODULES = 46

_CALL_PATH = """
import contextlib, io, runpy, sys
entered = set()
def note(frame, event, argument):
    name = frame.f_globals.get("__name__", "")
    if event != "call" or not name.startswith("abstain") or frame.f_code.co_name == "<module>":
        return
    caller = frame.f_back
    while caller is not None:  # calls during the import of a module are not part of the call path
        if caller.f_code.co_name == "<module>" and caller.f_globals.get("__name__") != "__main__":
            return
        caller = caller.f_back
    entered.add(name)
sys.argv = ["abstain", "evaluate", sys.argv[1], "--mode", "few_shot", "--bootstrap-resamples", "5", "--json"]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    sys.setprofile(note)
    runpy.run_module("abstain", run_name="__main__")
sys.setprofile(None)
print(*sorted(entered), sep="\\n")
"""


def package_of(module: str) -> str:
    """Return the package of a module: `report` for `abstain.report.html._page`, "" for `abstain._validate`."""
    parts = module.split(".")
    inside = len(parts) > 2 or (SOURCES / parts[-1]).is_dir()
    return parts[1] if inside and len(parts) > 1 else ""


def imports() -> Iterator[tuple[str, str]]:
    """Yield every module of the package with each of its imports, also within functions."""
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((module, name.name) for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                assert node.level == 0, f"{module} has a relative import"
                yield module, node.module
                yield from ((module, f"{node.module}.{name.name}") for name in node.names)


def is_private_module(name: str) -> bool:
    parts = name.split(".")
    private = any(part.startswith("_") and not part.startswith("__") for part in parts[2:])
    path = SOURCES.joinpath(*parts[1:])
    return private and (path.is_dir() or path.with_suffix(".py").exists())


def test_private_modules_are_imported_only_within_their_package() -> None:
    violations = {
        f"{module} imports {name}"
        for module, name in imports()
        if name.startswith("abstain.") and is_private_module(name) and package_of(module) != package_of(name)
    }
    assert violations == set()


def test_private_modules_and_packages_are_recognised() -> None:
    assert is_private_module("abstain.cli._options")
    assert not is_private_module("abstain.cli._options.ReadOptions")
    assert not is_private_module("abstain._validate")
    assert [
        package_of(name) for name in ("abstain.cli._options", "abstain.cli", "abstain._files", "abstain")
    ] == [
        "cli",
        "cli",
        "",
        "",
    ]


def test_the_call_path_of_an_evaluation_enters_few_modules() -> None:
    command = [sys.executable, "-c", _CALL_PATH, str(EXAMPLES / "run_a.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    entered = done.stdout.split()
    assert {"abstain.cli.evaluate", "abstain.readers._read", "abstain.items"} <= set(entered)
    assert len(entered) <= MOST_MODULES, entered
