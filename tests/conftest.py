"""What holds for every test."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import hypothesis
import pytest

from commands import caller

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Run

# A shell that runs tests in the background lets them ignore Ctrl-C, and so would every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example that takes long on a busy machine is not a failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """The command line, in a folder of its own."""
    return caller(monkeypatch, capsys, tmp_path)
