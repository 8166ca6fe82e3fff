"""Requests of kopf that expect a stated name in the API server's certificate (``tls-server-name`` of a kubeconfig).

aiohttp takes that name with each request, where kopf states none.
"""

from __future__ import annotations

from typing import Any

import aiohttp


def request_class(server_name: str | None) -> type[aiohttp.ClientRequest]:
    """Make the class of requests for a session; without a name they expect that of the URL."""

    class NamedRequest(aiohttp.ClientRequest):
        def __init__(self, *args: Any, server_hostname: str | None = None, **more: Any) -> None:
            super().__init__(*args, server_hostname=server_hostname or server_name, **more)

    return NamedRequest
