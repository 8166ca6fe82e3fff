"""One instant query to Prometheus over HTTP: bounded in time and size, and its token goes nowhere else."""

from __future__ import annotations

import asyncio
import html
import math
import os
import re
import ssl
from pathlib import Path
from typing import Final
from urllib.parse import unquote

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
_ERROR_NUMBER: Final = re.compile(r"\[Errno (\d+)\]")
_LONGEST_TEXT: Final = 400
_STRETCH: Final = 8
"""Characters in a row that make a part of a token known."""
_READ: Final = 65_536
"""Bytes of an answer that are searched for it; no words that come later are told."""
_WITHHELD: Final = "whose words are not told, as a part of the token is in them"
REFUSED: Final = (401, 403)
"""Status of an answer to somebody who is not known, or may not ask."""


async def ask(server: PrometheusServer) -> list[Series]:
    """Return the instant vector that the server's query has now.

    Redirects are not followed and no proxy of the environment is used: the token is for this server alone.

    Raises:
        PrometheusError: there is no answer, or none to make use of.
    """
    token = ""
    try:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if server.token_file is not None:
            token = await asyncio.to_thread(_token, server.token_file)
            headers["Authorization"] = f"Bearer {token}"
        context = await asyncio.to_thread(ssl.create_default_context, cafile=server.ca_file)
        async with asyncio.timeout(server.timeout):
            status, body = await _get(server, headers, context)
    except TimeoutError:
        raise PrometheusError(f"no answer within {server.timeout:g} s") from None
    except (aiohttp.ClientError, OSError, UnicodeError) as error:  # the last of a host name that cannot be
        told = f"{type(error).__name__}, {_WITHHELD}" if _repeats(token, str(error)) else _told(error)
        raise PrometheusError(told) from None
    try:
        return await asyncio.to_thread(decode_answer, status, body)
    except PrometheusError as error:
        repeated = await asyncio.to_thread(_repeats, token, str(error), body[:_READ].decode(errors="replace"))
        text = f"status {status}, {_WITHHELD}" if repeated else str(error)
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


def _repeats(token: str, *texts: str) -> bool:
    """Return whether a stretch of the token is in a text: proxies name what they refuse, and shorten it.

    What is told stands in objects that others read.
    """
    forms = [form for text in texts for form in (text, unquote(html.unescape(text.replace("\\/", "/"))))]
    length = min(_STRETCH, len(token))
    # By the stretches of the text: a search of it for each of the token's takes a second where both are long.
    parts = {token[first : first + length] for first in range(len(token) - length + 1)}
    return bool(token) and any(
        form[first : first + length] in parts for form in forms for first in range(len(form) - length + 1)
    )


def _told(error: Exception) -> str:
    """Return what a failed request says, the same each time.

    Left out are where in memory its SSL context was, and the addresses that were tried: a name server gives them in
    another order each time.
    """
    text = _ADDRESS.sub("", str(error))
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        cause = error.os_error
        found = [int(number) for number in _ERROR_NUMBER.findall(str(cause))]
        numbers = found or ([cause.errno] if cause.errno is not None and cause.errno > 0 else [])
        reasons = sorted({os.strerror(number) for number in numbers}) or [cause.strerror or str(cause)]
        text = f"Cannot connect to host {error.host}:{error.port} [{', '.join(reasons)}]"
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
    if not 0 < len(token) <= MAX_TOKEN or not all(0x20 < byte < 0x7F for byte in token):
        raise PrometheusError(f"{path} holds no token")
    return token.decode()
