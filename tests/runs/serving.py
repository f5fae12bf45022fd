"""A proxy that lets some requests to a real server fail, a scripted server, and the command line in a process."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
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


@contextlib.contextmanager
def scripted(
    message: Callable[[dict[str, Any]], dict[str, Any]],
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the address of a server with both interfaces of OpenAI, and the questions that it received.

    `message` returns ``content`` or ``refusal`` for a request, optionally with ``logprobs``.
    """
    requests: list[dict[str, Any]] = []

    class Server(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            form = _chat_completion if self.path.endswith("/chat/completions") else _response
            if "This call checks the connection" in json.dumps(request):
                reply = {"content": '{"answer": null}'}
            else:
                requests.append(request)
                reply = message(request)
            content = json.dumps(form(request["model"], reply)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def _chat_completion(model: str, message: dict[str, Any]) -> dict[str, Any]:
    logprobs = {"content": message["logprobs"], "refusal": None} if "logprobs" in message else None
    texts = {"content": message.get("content"), "refusal": message.get("refusal")}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": logprobs}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{**choice, "message": {"role": "assistant", **texts}}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _response(model: str, message: dict[str, Any]) -> dict[str, Any]:
    part = (
        {"type": "refusal", "refusal": message["refusal"]}
        if message.get("refusal")
        else {"type": "output_text", "text": message["content"], "annotations": []}
    )
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "completed",
        "output": [
            {"id": "1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "abstain", *map(str, arguments)]


def environment(**variables: str) -> dict[str, str]:
    without_keys = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**without_keys, "LOCAL_API_KEY": "none", **variables}


def _stop_at_hangup() -> None:
    """Restore the default of SIGHUP, which tests that were started with nohup ignore."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def abstain(folder: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line until it ends."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env=environment(**variables),
        preexec_fn=_stop_at_hangup,
    )
