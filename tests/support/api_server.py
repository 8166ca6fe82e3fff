"""A small HTTP server in a thread that a test scripts, for what a real API server does not do on request."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kubernetes_asyncio.client import Configuration

from berth.kube.connection import Connection


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    """with the query"""
    headers: dict[str, str]
    """names in lower case"""
    body: bytes


@dataclass
class Answer:
    """What to send back."""

    status: int = 200
    body: Any = b""
    """bytes, or what becomes JSON"""
    headers: dict[str, str] = field(default_factory=dict)


class ApiServer:
    """The running server and what it was asked."""

    def __init__(self, answer: Callable[[Request], Answer], *, tls: Path | None = None) -> None:
        """Listen on a free port of this machine; `tls` is a directory with server.crt and server.key."""
        self.requests: list[Request] = []
        self._arrived = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one segment: the body would wait for the client to acknowledge the head, 40 ms.
            wbufsize = -1
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.command, self.path, headers, body)
                with outer._arrived:
                    outer.requests.append(request)
                    made = answer(request)
                    outer._arrived.notify_all()
                data = made.body if isinstance(made.body, bytes) else json.dumps(made.body).encode()
                self.send_response(made.status)
                for name, value in {"Content-Length": str(len(data)), **made.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_CONNECT = handle_any  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self._scheme = "https" if tls else "http"
        if tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(tls / "server.crt", tls / "server.key")
            # The handshake is left to the thread of the connection: it must not stop the listener.
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"{self._scheme}://127.0.0.1:{self.http.server_address[1]}"

    def connection(self, **settings: Any) -> Connection:
        """A connection to it; settings are those of kubernetes_asyncio's Configuration."""
        configuration = Configuration()
        configuration.host = self.url
        for name, value in settings.items():
            setattr(configuration, name, value)
        return Connection(configuration=configuration, namespace="default")

    def kubeconfig(self, directory: Path, **cluster: str) -> str:
        """Path of a kubeconfig for it; `cluster` are more fields of the cluster, with underscores for dashes."""
        more = {name.replace("_", "-"): value for name, value in cluster.items()}
        document = {
            "clusters": [{"name": "c", "cluster": {"server": self.url, **more}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = directory / "kubeconfig"
        path.write_text(json.dumps(document))
        return str(path)

    def count(self, method: str) -> int:
        """How many requests of a method have come."""
        return sum(request.method == method for request in self.requests)

    def wait(self, condition: Callable[[], bool], *, seconds: float = 20.0) -> bool:
        """Block the calling thread until a request makes the condition true; False after `seconds`."""
        with self._arrived:
            return self._arrived.wait_for(condition, timeout=seconds)


@contextmanager
def api_server(answer: Callable[[Request], Answer], *, tls: Path | None = None) -> Iterator[ApiServer]:
    """Serve until the end of the block; answers are made one at a time."""
    server = ApiServer(answer, tls=tls)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()


def refusal(status: int, reason: str, message: str = "words") -> Answer:
    """A metav1.Status."""
    return Answer(status, {"kind": "Status", "code": status, "reason": reason, "message": message})
