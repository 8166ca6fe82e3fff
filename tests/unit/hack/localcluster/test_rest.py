"""The tooling's HTTP client against a server that answers as scripted; real API servers: integration tests."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, ClassVar

import pytest

from hack.localcluster import ClusterError
from hack.localcluster.rest import Api, ApiError


class Scripted(http.server.BaseHTTPRequestHandler):
    """Gives the next scripted answer and notes the request."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[list[tuple[int, dict[str, str], bytes]]] = []
    requests: ClassVar[list[dict[str, Any]]] = []

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self.requests.append(
            {
                "line": f"{self.command} {self.path}",
                "body": self.rfile.read(length).decode(),
                "authorization": self.headers.get("Authorization"),
                "client": self.client_address,
            }
        )
        status, headers, content = self.answers.pop(0)
        if status == 0:
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = answer  # noqa: N815 (names that the base class looks for)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (name in the base class)
        """Say nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Address of a server that works through `Scripted.answers`."""
    Scripted.answers.clear()
    Scripted.requests.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def script(*answers: tuple[int, dict[str, str], bytes]) -> None:
    Scripted.answers.extend(answers)


OK: tuple[int, dict[str, str], bytes] = (200, {}, b'{"a": 1}')
BUSY = (429, {"Retry-After": "0"}, b"")


def test_json_goes_out_and_comes_in_with_the_token(url: str) -> None:
    script(OK)
    assert Api(url, token="secret").request("POST", "/things", {"b": [2]}) == {"a": 1}
    (request,) = Scripted.requests
    assert request["line"] == "POST /things"
    assert json.loads(request["body"]) == {"b": [2]}
    assert request["authorization"] == "Bearer secret"


def test_without_a_token_no_header_is_sent(url: str) -> None:
    script(OK)
    Api(url).request("GET", "/")
    assert Scripted.requests[0]["authorization"] is None


def test_one_connection_serves_many_requests(url: str) -> None:
    script(OK, OK, OK)
    api = Api(url)
    for _ in range(3):
        api.request("GET", "/")
    api.close()
    assert len({request["client"] for request in Scripted.requests}) == 1


def test_an_empty_answer_is_none(url: str) -> None:
    script((200, {}, b""))
    assert Api(url).request("DELETE", "/x") is None


def test_too_many_requests_are_repeated(url: str) -> None:
    script(BUSY, BUSY, OK)
    assert Api(url).request("GET", "/") == {"a": 1}
    assert len(Scripted.requests) == 3


def test_too_many_requests_end_in_an_error(url: str) -> None:
    script(BUSY, BUSY)
    with pytest.raises(ApiError, match="GET /: 429") as caught:
        Api(url, retries=1).request("GET", "/")
    assert caught.value.status == 429


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"message": "not yours"}', "POST /x: 403 not yours", id="status object"),
        pytest.param(b'{"kind": "Other"}', 'POST /x: 403 {"kind": "Other"}', id="other object"),
        pytest.param(b"[1]", r"POST /x: 403 [1]", id="list"),
        pytest.param(b"go away", "POST /x: 403 go away", id="text"),
    ],
)
def test_an_error_status_raises_with_the_servers_message(url: str, body: bytes, message: str) -> None:
    script((403, {}, body))
    with pytest.raises(ClusterError) as caught:
        Api(url).request("POST", "/x", {})
    assert str(caught.value) == message


def test_a_connection_cut_in_an_answer_is_an_os_error_and_the_next_request_reconnects(url: str) -> None:
    script((0, {}, b""), OK)
    api = Api(url)
    with pytest.raises(OSError, match=r".+"):
        api.request("GET", "/")
    assert api.request("GET", "/") == {"a": 1}


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (500, False), (401, False), (0, False)])
def test_healthy(url: str, status: int, healthy: bool) -> None:
    script((status, {}, b"ok"))
    assert Api(url).healthy("/healthz") is healthy


def test_an_unreachable_server_is_not_healthy(url: str) -> None:
    # A port that nobody listens on: below the range of anything here, reserved for the discard service.
    assert not Api("http://127.0.0.1:9", timeout=2).healthy("/healthz")


def test_lines_of_an_answer_come_one_by_one_on_a_connection_of_their_own(url: str) -> None:
    script(OK, (200, {}, b'{"a": 1}\n{"a": 2}\n'), OK)
    api = Api(url, token="secret")
    api.request("GET", "/")
    assert list(api.lines("/things?watch=1")) == [b'{"a": 1}\n', b'{"a": 2}\n']
    api.request("GET", "/")
    first, watch, last = Scripted.requests
    assert (watch["line"], watch["authorization"]) == ("GET /things?watch=1", "Bearer secret")
    assert (first["client"], last["client"] == watch["client"]) == (last["client"], False)


def test_lines_that_are_refused_are_an_error_and_those_that_are_cut_an_os_error(url: str) -> None:
    script((410, {}, b"too old"), (0, {}, b""))
    with pytest.raises(ApiError, match="GET /things: 410 too old") as caught:
        next(Api(url).lines("/things"))
    assert caught.value.status == 410
    with pytest.raises(OSError, match=r".+"):
        next(Api(url).lines("/things"))


def test_a_line_may_be_awaited_for_longer_than_the_beginning_of_the_answer() -> None:
    """Nothing changes for hours, say."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        lines = Api(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.5).lines("/things")
        with ThreadPoolExecutor() as pool:
            first = pool.submit(next, lines)
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                assert wait([first], timeout=1.0).not_done
                connection.sendall(b"a change\n")
                assert first.result(60) == b"a change\n"
        lines.close()  # type: ignore[attr-defined]
