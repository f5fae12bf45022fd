"""Logs written by Inspect AI and lm-evaluation-harness, once per session, in separate processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _make(program: str, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, str(HERE / program), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def inspect_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make("make_inspect_logs.py", tmp_path_factory.mktemp("inspect"))


@pytest.fixture(scope="session")
def lm_eval_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _make("make_lm_eval_samples.py", tmp_path_factory.mktemp("lm_eval"))
