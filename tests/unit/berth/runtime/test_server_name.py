"""The name that kopf's requests expect in the API server's certificate."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest

from berth.runtime.server_name import request_class
from tests.support.api_server import Answer, api_server

CERTIFICATE = Path(__file__).resolve().parents[3] / "data" / "server-certificate"


@pytest.mark.parametrize(
    ("host", "name", "trusted"),
    [
        pytest.param("localhost", "127.0.0.1", True, id="the-name-in-the-certificate"),
        pytest.param("127.0.0.1", "elsewhere.example", False, id="another-name"),
        pytest.param("127.0.0.1", None, True, id="the-host-of-the-url"),
        pytest.param("localhost", None, False, id="another-host-in-the-url"),
    ],
)
async def test_the_certificate_has_to_have_the_stated_name(host: str, name: str | None, trusted: bool) -> None:
    context = ssl.create_default_context(cafile=str(CERTIFICATE / "server.crt"))
    connector = aiohttp.TCPConnector(ssl=context)
    with api_server(lambda _: Answer(200, {}), tls=CERTIFICATE) as server:
        url = server.url.replace("127.0.0.1", host)
        async with aiohttp.ClientSession(connector=connector, request_class=request_class(name)) as session:
            if trusted:
                async with session.get(url) as answer:
                    assert answer.status == 200
            else:
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await session.get(url)
