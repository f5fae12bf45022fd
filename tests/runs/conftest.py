"""Fixtures: a tiny model on a local server, created once per session."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from offline.local_model import make_model, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a real llama.cpp server."""
    model = make_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with serving(model) as address:
        yield address


@pytest.fixture(autouse=True)
def collect_garbage() -> Iterator[None]:
    """Close the files that Inspect leaves open, so that their warnings do not fail a later test."""
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore warnings from Inspect and its libraries, which would otherwise be errors."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
