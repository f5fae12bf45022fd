"""Run and evaluate a tiny model on a local server with the questions of this folder: `python -m offline`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from offline.local_model import make_model, serving

QUESTIONS = Path(__file__).parent / "questions.csv"


def main() -> int:
    """Run `abstain run` against the local server, in a new folder, and return its exit code."""
    folder = Path(tempfile.mkdtemp(prefix="abstain-offline-"))
    with serving(make_model(folder / "tiny.gguf")) as address:
        command = [
            *(
                sys.executable,
                "-m",
                "abstain",
                "run",
                str(QUESTIONS),
                "--scale",
                "0,3",
                "--base-url",
                address,
            ),
            *("--model", "openai-api/local/tiny", "--signals", "verbalized,tokens,consistency:3,evidence"),
            *("--max-tokens", "300", "-o", str(folder / "run.json"), "--compute-aurc"),
        ]
        print(" ".join(["abstain", *command[3:]]), flush=True)
        return subprocess.run(command, check=False, env={**os.environ, "LOCAL_API_KEY": "none"}).returncode


if __name__ == "__main__":
    sys.exit(main())
