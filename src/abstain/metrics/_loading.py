"""Where metrics of the user's come from: entry points of installed packages, and import paths."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from abstain import _validate
from abstain.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY_POINT_GROUP = "abstain.metrics"


def entry_point_metrics() -> dict[str, Any]:
    """Return what the entry points of installed packages name, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (it reads the environment; few calls need it)

    return {entry.name: _loaded(entry) for entry in entry_points(group=ENTRY_POINT_GROUP)}


def imported_metric(path: str) -> Any:
    """Import ``package.module:Class``, looking in the working directory too, as `python -m` does."""
    module_name, _, attribute = path.partition(":")
    with _working_directory_importable():
        try:
            module = importlib.import_module(module_name)
        except Exception as problem:
            # Whatever a module of the user's does when it is imported, the call that named it is what to mend.
            reason = f"{type(problem).__name__}: {problem}"
            raise ArgumentError(f"metric {path!r}: cannot import {module_name!r} ({reason})") from problem
    if not hasattr(module, attribute):
        hint = _validate.suggestion(attribute, vars(module))
        raise ArgumentError(f"metric {path!r}: {module_name} has no {attribute!r}{hint}")
    return getattr(module, attribute)


def _loaded(entry: Any) -> Any:
    try:
        return entry.load()
    except Exception as problem:
        raise ArgumentError(
            f"the entry point {entry.name!r} ({entry.value}) cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem


@contextlib.contextmanager
def _working_directory_importable() -> Iterator[None]:
    here = os.getcwd()  # noqa: PTH109  (what goes onto the path is text)
    added = here not in sys.path and "" not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)
