"""Who speaks: tokens are shown to the API server, which says whose they are; its answers count for a short while.

A token has to be made for us (its audience) and bound to a pod, so that it says which pod speaks and is worth nothing
once that is gone. No token is kept, but the hash of it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from cachetools import TTLCache

from berth.api.latency_exchange import AUDIENCE
from berth.kube.client import ApiClient
from berth.kube.errors import readable
from berth.kube.resources import TOKEN_REVIEWS

TRUSTED_SECONDS: Final = 60.0
"""How long an answer counts: a pod that is gone is believed for so long, but looked up beside it."""
MOST_KEPT: Final = 20_000
"""Answers that are kept; a meter and an agent for each pod and node."""
AT_ONCE: Final = 8
"""Questions that are asked at once; who has to wait for longer than that is sent away."""
MOST_WAITING: Final = 200
"""Callers who wait for an answer at most."""
MAX_TOKEN: Final = 8192
"""Characters of a token at most."""
_ACCOUNT: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io/"


class Caller(NamedTuple):
    """Who speaks."""

    namespace: str
    """of the service account, and so of the pod"""
    account: str
    """name of the service account"""
    pod: str
    """name of the pod"""
    uid: str
    """uid of the pod"""
    node: str
    """name of the pod's node; empty where the API server does not tell"""


class TooManyError(Exception):
    """Too many wait for an answer; come again later."""


class _User(msgspec.Struct):
    username: str = ""
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    authenticated: bool = False
    audiences: list[str] | None = None
    user: _User | None = None


class _Review(msgspec.Struct):
    """A TokenReview that is answered."""

    status: _Status = msgspec.field(default_factory=_Status)


class Callers:
    """Asks the API server, each token once in a while."""

    def __init__(self, client: ApiClient, clock: Callable[[], float]) -> None:
        """Prepare; `clock` tells seconds of a monotonic clock."""
        self._client = client
        self._known: TTLCache[bytes, Caller | None] = TTLCache(MOST_KEPT, TRUSTED_SECONDS, clock)
        self._asking: dict[bytes, asyncio.Task[Caller | None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def of(self, token: str) -> Caller | None:
        """Return who shows a token; None for one that is not valid here.

        Raises:
            TooManyError: too many are asked about.
            ApiError, aiohttp.ClientError, OSError: the API server does not answer.
        """
        if not token or len(token) > MAX_TOKEN:
            return None
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        # Not asked first whether it is there, as `get` does too: it may expire in between.
        with suppress(KeyError):
            return self._known[key]
        task = self._asking.get(key)
        if task is None:
            if len(self._asking) >= MOST_WAITING:
                raise TooManyError
            task = self._asking[key] = asyncio.create_task(self._ask(token))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        # Who goes away while it is asked must not take the answer from others.
        caller = await asyncio.shield(task)
        self._known[key] = caller
        return caller

    async def _ask(self, token: str) -> Caller | None:
        body = {
            "apiVersion": TOKEN_REVIEWS.api_version,
            "kind": TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [AUDIENCE]},
        }
        async with self._slots:
            answer = await self._client.create(TOKEN_REVIEWS, body, repeat=True)
        with readable(answer):
            status = msgspec.json.decode(answer, type=_Review).status
        return caller_of(msgspec.to_builtins(status))


def caller_of(status: dict[str, Any]) -> Caller | None:
    """Return whom the status of a TokenReview names; None if it is no pod, or the token is not made for us."""
    user = status.get("user") or {}
    name, extra = str(user.get("username", "")), user.get("extra") or {}
    if not status.get("authenticated") or AUDIENCE not in (status.get("audiences") or ()):
        return None
    if not name.startswith(_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    pod, uid, node = (next(iter(extra.get(f"{_EXTRA}{key}") or ()), "") for key in ("pod-name", "pod-uid", "node-name"))
    return Caller(namespace, account, pod, uid, node) if pod and uid else None
