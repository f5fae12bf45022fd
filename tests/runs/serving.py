"""A proxy that lets some requests to a real server fail, and the command line in a separate process."""

from __future__ import annotations

import contextlib
import http.server
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MODEL = "openai-api/local/tiny"


@contextlib.contextmanager
def failing(address: str, status: Callable[[int, bytes], int]) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a proxy and the status of every request; a nonzero `status(number, body)` is an error."""
    statuses: list[int] = []
    lock = threading.Lock()

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                statuses.append(0)
                number = len(statuses)
            code = status(number, body)
            if code:
                content = b'{"error": {"message": "the patient said", "code": null}}'
            else:
                request = urllib.request.Request(
                    address.removesuffix("/v1") + self.path, body, {"Content-Type": "application/json"}
                )
                with urllib.request.urlopen(request) as answer:
                    code, content = answer.status, answer.read()
            statuses[number - 1] = code
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", statuses
    finally:
        server.shutdown()
        server.server_close()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "abstain", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    without_keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**without_keys, "LOCAL_API_KEY": "none", **variables}


def abstain(folder: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line until it ends."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=environment(**variables),
    )
