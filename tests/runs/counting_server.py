"""A small OpenAI-compatible server on this machine that counts its requests and can delay, refuse or drop them."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Reply to a request: an HTTP status, and the content of a reply (status 200) or of an error.
Reply = tuple[int, str]
ANSWER = (200, '{"answer": "yes", "confidence": 4}')
# The status of a connection that is closed without a response.
DROPPED = 0


@dataclass
class Server:
    """A running server.

    Attributes:
        address: its base URL.
        bodies: the body of every request.
        hold: replies wait until it is set; set at the start.
        arrivals: notified about every request.
    """

    address: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    arrivals: threading.Condition = field(default_factory=threading.Condition)

    @property
    def requests(self) -> int:
        return len(self.bodies)

    def wait_for(self, requests: int) -> None:
        """Wait until a number of requests have arrived."""
        with self.arrivals:
            assert self.arrivals.wait_for(lambda: len(self.bodies) >= requests, timeout=300)


@contextlib.contextmanager
def serving_replies(
    reply: Callable[[int, dict[str, Any]], Reply] = lambda _number, _body: ANSWER,
) -> Iterator[Server]:
    """Serve `reply(number, body)` of every request, whose number begins at 1."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if not content:  # the client was killed
                return
            body = json.loads(content)
            with server.arrivals:
                server.bodies.append(body | {"path": self.path})
                number = len(server.bodies)
                server.arrivals.notify_all()
            status, text = reply(number, body)
            server.hold.wait()
            if status == DROPPED:
                self.close_connection = True
                return
            reply_bytes = json.dumps(
                _completion(text) if status == 200 else {"error": {"message": text}}
            ).encode()
            with contextlib.suppress(OSError):  # the client was killed
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply_bytes)))
                self.end_headers()
                self.wfile.write(reply_bytes)

        def handle(self) -> None:
            with contextlib.suppress(ConnectionError):  # the client was killed
                super().handle()

        def log_message(self, *_: Any) -> None:
            pass

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{http_server.server_address[1]}/v1")
    server.hold.set()
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.hold.set()
        http_server.shutdown()
        http_server.server_close()


def _completion(text: str) -> dict[str, Any]:
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
