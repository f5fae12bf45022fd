"""The README shows the output of the program as it is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_output_in_the_readme_is_current() -> None:
    readme = (ROOT / "README.md").read_text().replace("\\\n", "")
    blocks = re.findall(r"```console\n\$ (.*?)\n(.*?)```", readme, re.DOTALL)
    assert blocks
    for command, expected in blocks:
        arguments = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=True)
        assert done.stdout.startswith(expected)
