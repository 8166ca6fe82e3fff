"""The admin API: what the router knows of pods and users, for who has its token. Nothing in it names a person."""

from __future__ import annotations

import errno
import hmac
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from aiohttp import web

from agents.router.balancer import Balancer
from agents.router.knowledge import Knowledge
from agents.router.routing import SHOWN_CHARACTERS
from berth.runtime.health import MAX_CONNECTIONS
from berth.runtime.proxy.upstream import Address
from berth.runtime.site import Site

log = structlog.get_logger(__name__)

LEAST_TOKEN: Final = 16
"""Characters of a token at least."""
MOST_SHOWN: Final = 1000
"""Users that are shown at most."""


class Admin:
    """Serves the admin API."""

    def __init__(self, balancer: Balancer, knowledge: Knowledge, *, token_file: Path, host: str, port: int) -> None:
        """Prepare.

        Args:
            balancer: the pods.
            knowledge: the users.
            token_file: holds the token; read for each request, so that it can be exchanged.
            host: address to listen on; empty: all.
            port: 0 picks a free one, readable as :attr:`port` after start.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds no token.
        """
        self._balancer = balancer
        self._knowledge = knowledge
        self._token_file = token_file
        app = web.Application(middlewares=[self._authenticated])
        app.router.add_get("/v1/backends", self._backends)
        app.router.add_get("/v1/associations", self._associations)
        self._site = Site(app, host=host, port=port, most=MAX_CONNECTIONS)
        self._token()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return self._site.port

    async def start(self) -> None:
        """Listen.

        Raises:
            ValueError: address or port cannot be used.
        """
        try:
            await self._site.start()
        except (OSError, OverflowError) as error:
            why = "is taken" if getattr(error, "errno", None) == errno.EADDRINUSE else f"cannot be used: {error}"
            raise ValueError(f"--router-admin-port {self.port} {why}; choose another") from error

    async def stop(self) -> None:
        """Stop listening."""
        await self._site.stop()

    def _token(self) -> bytes:
        token = self._token_file.read_bytes().strip()
        if len(token) < LEAST_TOKEN:
            raise ValueError(
                f"--router-admin-token-file {self._token_file}: write at least {LEAST_TOKEN} characters to it"
            )
        return token

    @web.middleware
    async def _authenticated(self, request: web.Request, handler: Any) -> web.StreamResponse:
        scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
        try:
            right = self._token()
        except (OSError, ValueError) as error:
            log.error("the admin API has no token", error=str(error))
            raise web.HTTPServiceUnavailable(text="there is no token to compare with\n") from error
        if scheme.lower() != "bearer" or not hmac.compare_digest(shown.encode(errors="surrogateescape"), right):
            raise web.HTTPUnauthorized(text="show the token\n", headers={"WWW-Authenticate": "Bearer"})
        answer: web.StreamResponse = await handler(request)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    async def _backends(self, _request: web.Request) -> web.Response:
        balancer = self._balancer
        return web.json_response(
            {
                "backends": [
                    {
                        "pod": backend.pod,
                        "node": backend.node,
                        "address": _shown(backend.address),
                        "requests": balancer.load(backend.address),
                        "inTrouble": balancer.in_trouble(backend.address),
                    }
                    for backend in balancer.backends
                ]
            }
        )

    async def _associations(self, _request: web.Request) -> web.Response:
        nodes: Mapping[str, str] = self._knowledge.nodes
        shown = sorted(nodes.items())[:MOST_SHOWN]
        return web.json_response(
            {
                "policy": self._knowledge.instructions.policy,
                "keyKnown": bool(self._knowledge.key),
                "users": len(nodes),
                "associations": [{"user": user[:SHOWN_CHARACTERS], "node": node} for user, node in shown],
            }
        )


def _shown(address: Address) -> str:
    """Return an address as a URL has it."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
