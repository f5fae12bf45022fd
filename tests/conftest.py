"""Settings and fixtures for all tests."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import hypothesis
import pytest

from commands import caller

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run

# A shell makes background processes ignore Ctrl-C, and the processes that the tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow example on a busy machine is not a failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Return a function that runs a command in a temporary folder."""
    return caller(monkeypatch, capsys, tmp_path)
