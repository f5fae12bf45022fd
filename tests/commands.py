"""Calls of the command line in this process."""

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
    """Return a function that runs a command in a folder: exit code, stdout, and stderr joined into one line."""
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
