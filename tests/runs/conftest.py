"""A tiny model that is served on this machine, made once per session."""

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
    """The address of a real server of llama.cpp."""
    model = make_model(tmp_path_factory.mktemp("model") / "tiny.gguf")
    with serving(model) as address:
        yield address


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    """Let what Inspect leaves open be closed here, where its warnings are no errors, and not in a later test."""
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let warnings of Inspect and its libraries be warnings: an error among them would fail what is asked."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))
