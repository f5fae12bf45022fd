"""Packages whose names are loaded when they are first used, so that nobody waits for a room that is not entered.

Such a package imports its public names for type checkers, and opens a door for everybody else:

    if TYPE_CHECKING:
        from abstain.evaluation._gate import gate
    else:
        __getattr__, __dir__ = door(__name__)

What stands under ``if TYPE_CHECKING`` is the one list of where each name lives: type checkers, the linter of imports
and the door all read it there.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["door"]


def door(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are loaded when they are first used."""
    module = sys.modules[package]

    @cache
    def homes() -> dict[str, str]:
        return _homes(package)

    def load(name: str) -> Any:
        home = homes()[name] if name in module.__all__ else package
        if home != package:
            value = getattr(import_module(home), name)
            setattr(module, name, value)
            return value
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)

    def names() -> list[str]:
        return list(module.__all__)

    return load, names


def _homes(package: str) -> dict[str, str]:
    """Where each name of a package lives: what its source imports under ``if TYPE_CHECKING``."""
    loader: Any = sys.modules[package].__spec__.loader  # type: ignore[union-attr]
    source = loader.get_source(package)
    if source is None:
        raise ImportError(f"{package} cannot be loaded without its source", name=package)
    return {
        name.asname or name.name: node.module
        for block in ast.parse(source).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for name in node.names
    }
