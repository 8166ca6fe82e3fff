"""One instant query to Prometheus over HTTP: bounded in time and size, and its token goes nowhere else."""

from __future__ import annotations

import asyncio
import math
import re
import ssl
from pathlib import Path
from typing import Final

import aiohttp
from yarl import URL

from berth.api.text import one_line
from controllers.networktopology.sources.prometheus_answer import PrometheusError, Series, decode_answer
from controllers.networktopology.sources.prometheus_server import PrometheusServer

QUERY_PATH: Final = "/api/v1/query"
MAX_BYTES: Final = 32 * 2**20
"""Largest answer that is read: some 200,000 pairs."""
MAX_TOKEN: Final = 16_384
"""Longest token, in characters."""
_ADDRESS: Final = re.compile(r" ssl:<[^<>]* at 0x[0-9a-fA-F]+>")
_LONGEST_TEXT: Final = 400
REFUSED: Final = (401, 403)
"""Status of an answer to somebody who is not known, or may not ask."""


async def ask(server: PrometheusServer) -> list[Series]:
    """Return the instant vector that the server's query has now.

    Redirects are not followed and no proxy of the environment is used: the token is for this server alone.

    Raises:
        PrometheusError: there is no answer, or none to make use of.
    """
    try:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        token = "" if server.token_file is None else await asyncio.to_thread(_token, server.token_file)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        context = await asyncio.to_thread(ssl.create_default_context, cafile=server.ca_file)
        async with asyncio.timeout(server.timeout):
            status, body = await _get(server, headers, context)
    except TimeoutError:
        raise PrometheusError(f"no answer within {server.timeout:g} s") from None
    except (aiohttp.ClientError, OSError, UnicodeError) as error:  # the last of a host name that cannot be
        raise PrometheusError(_told(error)) from None
    try:
        return await asyncio.to_thread(decode_answer, status, body)
    except PrometheusError as error:
        # Proxies name what they refuse, and what is told stands in objects that others read.
        repeated = bool(token) and token.encode() in body.replace(b"\\/", b"/")
        text = (
            f"status {status} with the token in the answer, whose words are not told for that"
            if repeated
            else str(error)
        )
        raise PrometheusError(f"{text}; {_remedy(server)}" if status in REFUSED else text) from None


async def _get(server: PrometheusServer, headers: dict[str, str], context: ssl.SSLContext) -> tuple[int, bytes]:
    url = URL(server.url.rstrip("/") + QUERY_PATH)
    params = {"query": server.query.promql, "timeout": f"{math.ceil(server.timeout)}s"}
    async with (
        aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.get(url, params=params, headers=headers, ssl=context, allow_redirects=False) as response,
    ):
        if 300 <= response.status < 400:
            raise PrometheusError(f"status {response.status}: redirects are not followed; name the server itself")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise PrometheusError("the answer is compressed, which was not asked for")
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > MAX_BYTES:
                raise PrometheusError(f"the answer has more than {MAX_BYTES // 2**20} MiB; ask for fewer pairs")
        return response.status, bytes(body)


def _told(error: Exception) -> str:
    """Return what a failed request says, without where in memory its SSL context was: the same each time."""
    text = _ADDRESS.sub("", str(error))
    return one_line(f"{type(error).__name__}: {text}", _LONGEST_TEXT)


def _remedy(server: PrometheusServer) -> str:
    """Return what helps where the server knows not who asks."""
    if server.token_file is None:
        return "name the file of a token that the server knows (--prometheus-token-file)"
    return f"the token of {server.token_file} is not accepted; put a valid one there, it is read for every query"


def _token(path: Path) -> str:
    """Return the token of a file; what is wrong with it is said without it.

    Raises:
        PrometheusError: it holds none.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        token = file.read(MAX_TOKEN + 1).strip()
    if not token or len(token) > MAX_TOKEN or not token.isascii() or any(byte <= 0x20 for byte in token):
        raise PrometheusError(f"{path} holds no token")
    return token.decode()
