"""Queries over HTTP and HTTPS: what is sent, to whom, and what is put up with."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from controllers.networktopology.sources import prometheus_http as subject
from controllers.networktopology.sources.prometheus_answer import Pair, PrometheusError
from controllers.networktopology.sources.prometheus_presets import own_query
from controllers.networktopology.sources.prometheus_server import PrometheusServer
from tests.support.api_server import Answer, api_server
from tests.support.http_server import http_server
from tests.support.prometheus import answer, series

CERTIFICATE = Path(__file__).resolve().parents[4] / "data" / "server-certificate"
VECTOR = answer(series("n1", "n2", "0.00085"))


def server(url: str, **fields: Any) -> PrometheusServer:
    return PrometheusServer(url, own_query('max({a="é&b"})', "seconds", "node"), **fields)


async def test_the_query_is_asked_and_nothing_else_is_sent() -> None:
    with api_server(lambda _: Answer(200, VECTOR)) as running:
        (found,) = await subject.ask(server(f"{running.url}/prefix/", timeout=2.5))
    assert found.metric == Pair("n1", "n2")
    (request,) = running.requests
    parts = urlsplit(request.path)
    assert (request.method, parts.path) == ("GET", "/prefix/api/v1/query")
    assert parse_qs(parts.query) == {"query": ['max({a="é&b"})'], "timeout": ["3s"]}
    assert "authorization" not in request.headers


async def test_token_and_authority_are_read_for_every_query(tmp_path: Path) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    authority.write_text((CERTIFICATE / "server.crt").read_text())
    with api_server(lambda _: Answer(200, VECTOR), tls=CERTIFICATE) as running:
        for text in ("first\n", "second"):
            token.write_text(text)
            await subject.ask(server(running.url, token_file=token, ca_file=authority))
    assert [request.headers["authorization"] for request in running.requests] == ["Bearer first", "Bearer second"]


async def test_a_server_that_nobody_vouches_for_gets_no_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    with (
        api_server(lambda _: Answer(200, VECTOR), tls=CERTIFICATE) as running,
        pytest.raises(PrometheusError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        await subject.ask(server(running.url, token_file=token))
    assert running.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    with (
        api_server(lambda _: Answer(200, VECTOR)) as other,
        api_server(lambda _: Answer(status, headers={"Location": f"{other.url}/api/v1/query"})) as running,
        pytest.raises(PrometheusError, match=f"status {status}: redirects are not followed"),
    ):
        await subject.ask(server(running.url))
    assert other.requests == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(lambda _: Answer(500)) as proxy, api_server(lambda _: Answer(200, VECTOR)) as running:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert len(await subject.ask(server(running.url))) == 1
    assert proxy.requests == []


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"two words", id="several words"),
        pytest.param(b"a\r\nX-Evil: 1", id="another header"),
        pytest.param("é".encode(), id="no ASCII"),
        pytest.param(b"abc\x7f", id="a control character"),
        pytest.param(b"x" * (subject.MAX_TOKEN + 1), id="endless"),
    ],
)
async def test_what_is_no_token_is_not_sent_and_not_told(tmp_path: Path, content: bytes) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    with (
        api_server(lambda _: Answer(200, VECTOR)) as running,
        pytest.raises(PrometheusError, match=f"^{re.escape(str(token))} holds no token$"),
    ):
        await subject.ask(server(running.url, token_file=token))
    assert running.requests == []


@pytest.mark.parametrize("field", ["token_file", "ca_file"])
async def test_a_file_that_is_not_there_is_named(tmp_path: Path, field: str) -> None:
    with pytest.raises(PrometheusError, match="FileNotFoundError"):
        await subject.ask(server("http://127.0.0.1:1", **{field: tmp_path / "none"}))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        pytest.param("http://127.0.0.1:1", "ClientConnectorError", id="away"),
        pytest.param(f"http://{'a' * 64}.example", "label", id="a name that cannot be"),
    ],
)
async def test_a_server_that_cannot_be_reached(url: str, says: str) -> None:
    with pytest.raises(PrometheusError, match=says):
        await subject.ask(server(url))


async def test_a_server_that_is_away_is_told_in_the_same_words_each_time() -> None:
    """Words that differ are a write of every NetworkTopology's status."""
    texts = set()
    for _ in range(3):
        with pytest.raises(PrometheusError) as raised:
            await subject.ask(server("https://127.0.0.1:1"))
        texts.add(str(raised.value))
    (text,) = texts
    assert re.fullmatch(r"ClientConnectorError: Cannot connect to host 127\.0\.0\.1:1 \[.*\]", text)


async def test_addresses_that_a_name_has_in_another_order_are_no_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server gives them in another order each time, and the system another one to begin with."""
    told = set()
    for order in (("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")):
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 1)) for address in order]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, found=found, **__: found)
        with pytest.raises(PrometheusError) as caught:
            await subject.ask(server("https://prometheus.example:1"))
        told.add(str(caught.value))
    assert told == {"ClientConnectorError: Cannot connect to host prometheus.example:1 [Connection refused]"}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(OSError(111, "Connect call failed ('::1', 1, 0, 0)"), "Connection refused", id="one address"),
        *(
            pytest.param(
                OSError(f"Multiple exceptions: [Errno {first}] Connect call failed ('a', 1), [Errno {second}] no"),
                "Connection refused, Network is unreachable",
                id=f"several, each for a reason of its own, {first} first",
            )
            for first, second in ((111, 101), (101, 111))
        ),
        pytest.param(socket.gaierror(-2, "Name or service not known"), "Name or service not known", id="no address"),
    ],
)
def test_why_no_address_takes_a_connection(error: OSError, says: str) -> None:
    key = ConnectionKey("prometheus", 9090, True, True, None, None, None)
    told = subject._told(aiohttp.ClientConnectorError(key, error))
    assert told == f"ClientConnectorError: Cannot connect to host prometheus:9090 [{says}]"


async def test_what_is_no_http_is_told_shortly_and_in_one_line() -> None:
    async def greet(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nNo\x00Header: " + b"z" * 5000 + b"\r\n\r\n")
        await writer.drain()

    async with http_server(greet) as running:
        with pytest.raises(PrometheusError, match="Invalid header") as raised:
            await subject.ask(server(f"http://127.0.0.1:{running.port}"))
    text = str(raised.value)
    assert "\n" not in text
    assert len(text) <= 400


async def test_an_answer_must_come_whole_and_in_time() -> None:
    async def drip(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1\r\n \r\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with http_server(drip) as running:
        with pytest.raises(PrometheusError, match=r"^no answer within 0\.2 s$"):
            await subject.ask(server(f"http://127.0.0.1:{running.port}", timeout=0.2))


async def test_an_answer_that_never_ends_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_BYTES", 2**20)

    async def pour(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
            await writer.drain()

    async with http_server(pour) as running:
        with pytest.raises(PrometheusError, match="more than 1 MiB"):
            await subject.ask(server(f"http://127.0.0.1:{running.port}"))


async def test_a_compressed_answer_is_refused() -> None:
    """A thousandth of what it says would be on its way."""
    with (
        api_server(lambda _: Answer(200, gzip.compress(VECTOR), {"Content-Encoding": "gzip"})) as running,
        pytest.raises(PrometheusError, match="compressed"),
    ):
        await subject.ask(server(running.url))


async def test_an_error_of_prometheus_is_told() -> None:
    error = {"status": "error", "errorType": "bad_data", "error": "unexpected end of input"}
    with (
        api_server(lambda _: Answer(400, error)) as running,
        pytest.raises(PrometheusError, match="status 400, bad_data: unexpected end of input"),
    ):
        await subject.ask(server(running.url))


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("body", "says"),
    [
        pytest.param(b"Unauthorized", "with no answer of Prometheus", id="a proxy"),
        pytest.param({"status": "error", "error": "no such tenant"}, "no such tenant", id="a server with words"),
    ],
)
async def test_who_is_refused_is_told_which_token_to_mend(tmp_path: Path, status: int, body: Any, says: str) -> None:
    token = tmp_path / "token"
    token.write_text("expired")
    with api_server(lambda _: Answer(status, body)) as running:
        with pytest.raises(PrometheusError, match=rf"status {status}.*{says}.*; the token of {token} is not accepted"):
            await subject.ask(server(running.url, token_file=token))
        with pytest.raises(PrometheusError, match=rf"status {status}.*{says}.*; name .*--prometheus-token-file"):
            await subject.ask(server(running.url))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"status": "error", "error": "not valid: ey.J/x+9=="}, id="in words"),
        pytest.param(b'{"status":"error","errorType":"ey.J\\/x+9=="}', id="with slashes as PHP writes them"),
        pytest.param({"status": "error", "error": "-" * 190 + "ey.J/x+9=="}, id="where the words are cut"),
        pytest.param({"status": "error", "error": "bad token ey.J/x+9..."}, id="shortened"),
        pytest.param({"status": "error", "error": "bad token ey.J%2Fx%2B9%3D%3D"}, id="as in a URL"),
        pytest.param({"status": "error", "error": "bad token ey.J&#x2F;x+9=="}, id="as in a page"),
        pytest.param(
            {"status": "success", "warnings": ["ey.J/x+9=="], "data": {"resultType": "vector"}}, id="a warning"
        ),
    ],
)
@pytest.mark.parametrize("status", [200, 401, 500])
async def test_a_token_that_comes_back_is_not_told(tmp_path: Path, status: int, body: Any) -> None:
    token = tmp_path / "token"
    token.write_text("ey.J/x+9==")
    with (
        api_server(lambda _: Answer(status, body)) as running,
        pytest.raises(PrometheusError, match=f"status {status}, whose words are not told") as raised,
    ):
        await subject.ask(server(running.url, token_file=token))
    assert "ey." not in str(raised.value)
    assert ("is not accepted" in str(raised.value)) == (status == 401)


def test_a_long_page_is_searched_for_a_long_token_without_a_search_for_each_part() -> None:
    token = "".join(f"{number:x}" for number in range(0x4000, 0x5000))
    page = "<p>The token is not known. " * 2500
    begun = time.process_time()
    assert not subject._repeats(token, page)
    assert subject._repeats(token, page + token[-8:])
    assert not subject._repeats(token, page + token[-7:])
    assert time.process_time() - begun < 0.5


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"ERR unknown command: Authorization: Bearer %s\r\n\r\n", id="no status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX Refused: %s\r\n\r\n", id="no header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\n", id="no chunk"),
    ],
)
async def test_a_token_in_what_is_no_http_is_not_told(tmp_path: Path, answer: bytes) -> None:
    token = tmp_path / "token"
    token.write_text("eyJhbGciOiJSUzI1NiJ9.c2VjcmV0")

    async def repeat(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer % token.read_bytes())
        await writer.drain()

    async with http_server(repeat) as running:
        with pytest.raises(PrometheusError) as raised:
            await subject.ask(server(f"http://127.0.0.1:{running.port}", token_file=token))
    assert "eyJh" not in str(raised.value)
    assert "c2Vj" not in str(raised.value)
