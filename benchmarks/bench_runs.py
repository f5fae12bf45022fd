"""Runs: the CPU time of `abstain run` per sample, relative to an Inspect task with the same questions.

The server runs in a separate process and replies immediately. The start-up time is excluded: each program runs with few
questions and with many, and the difference is reported.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._measure import report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

FEW, MANY, ROUNDS = 20, 220, 2
MODEL = "openai-api/local/tiny"
_CPU = (
    "import resource; used = resource.getrusage(resource.RUSAGE_SELF); print(used.ru_utime + used.ru_stime)"
)
_INSPECT = f"""
import csv, sys
import inspect_ai
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate
table, address, count, folder = sys.argv[1:]
with open(table) as file:
    rows = list(csv.DictReader(file))[: int(count)]
samples = [Sample(id=row["id"], input=row["question"] + PROMPT, target=row["truth"]) for row in rows]
inspect_ai.eval(
    Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match()),
    model=get_model({MODEL!r}, base_url=address), log_dir=folder, display="none", log_level="critical",
    fail_on_error=False, ctl_server=False, max_connections=10,
)
"""
_OURS = f"""
import contextlib, io, sys
table, address, count, folder = sys.argv[1:]
sys.argv = ["abstain", "run", table, "--model", {MODEL!r}, "--base-url", address, "--limit", count, "--max-connections",
    "10", "--signals", SIGNALS, "--log-dir", folder, "-o", folder + "/run.json", "-q"]
from abstain.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
"""


class _ConstantReply(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    content = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "tiny",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": '{"answer": "yes", "confidence": 4}'},
                }
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
        }
    ).encode()

    def do_POST(self) -> None:
        """Send the same reply to every request."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_: Any) -> None:
        """Print no log."""


def _serve(pipe: Connection) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _ConstantReply)
    pipe.send(server.server_address[1])
    server.serve_forever()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Yield the address of a server that replies immediately."""
    receiver, sender = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(sender,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}/v1"
    finally:
        process.kill()


def cpu(program: str, table: Path, address: str, count: int) -> float:
    """Return the CPU time of a program in a separate process, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", program + _CPU, str(table), address, str(count), folder],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "LOCAL_API_KEY": "none"},
        )
    return float(done.stdout.split()[-1])


def per_sample(program: str, table: Path, address: str) -> float:
    few, many = (cpu(program, table, address, count) for count in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main() -> None:
    from abstain.runs._replies import ReplyForm  # noqa: PLC0415

    prompt = "\n\n" + ReplyForm(choices=("yes", "no")).instructions
    with tempfile.TemporaryDirectory() as name, serving() as address:
        table = Path(name) / "questions.csv"
        rows = "".join(f"{number},Is {number} prime?,yes,yes|no\n" for number in range(MANY))
        table.write_text("id,question,truth,choices\n" + rows)
        inspect_program = _INSPECT.replace("PROMPT", repr(prompt))
        for signals in ("none", "verbalized"):
            ours = _OURS.replace("SIGNALS", repr(signals))
            pairs = [
                (per_sample(inspect_program, table, address), per_sample(ours, table, address))
                for _ in range(ROUNDS)
            ]
            theirs, mine = (min(column) for column in zip(*pairs, strict=True))
            note = f"{1000 * mine:.1f} ms against {1000 * theirs:.1f} ms"
            report(
                f"CPU per sample, signals {signals}: abstain run / Inspect task",
                mine / theirs,
                most=1.3,
                note=note,
            )
