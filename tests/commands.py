"""The command line, called in this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from abstain import cli

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    Run = Callable[..., tuple[int, str, str]]

__all__ = ["caller"]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> Run:
    """Return what calls the command line in a folder: its code, what it printed, and what it said, in one line."""
    monkeypatch.chdir(folder)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["abstain", *(str(argument) for argument in arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        text = capsys.readouterr()
        assert isinstance(code, int)
        return code, text.out, " ".join(text.err.split())

    return call
