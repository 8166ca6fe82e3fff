"""Where the latency controller is, by the ConfigMap that the one writes who leads."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_INSTANCE, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.decoding import ObjectDecoder, at_any_depth
from berth.kube.errors import ApiError
from berth.kube.objects import ConfigMap
from berth.kube.reflector import Reflector
from berth.kube.resources import CONFIGMAPS, version_number
from berth.kube.watch_lines import EVENT_DECODER
from berth.runtime.measuring.calls import Endpoint

log = structlog.get_logger(__name__)

REFUSED_SECONDS: Final = 300.0
"""Seconds for which nothing is watched that may not be, as by rights of an older version; it is read."""
_SELECTED: Final = f"metadata.name={CONFIGMAP}"
_OBJECTS: Final = ObjectDecoder(ConfigMap)


class _Stated(NamedTuple):
    """What the ConfigMap says."""

    endpoint: Endpoint
    instance: str


class PublishedServer:
    """The one that leads; for a :class:`~berth.runtime.measuring.calls.ControllerCalls`.

    The ConfigMap is read when the controller does not answer. While somebody waits to ask again it is watched, in one
    request that the API server answers from memory: as many requests as there are attempts, and none beyond them.
    """

    def __init__(self, client: ApiClient, namespace: str, token_file: Path) -> None:
        """Prepare.

        Args:
            client: open API client.
            namespace: that of the controller.
            token_file: holds the pod's token.
        """
        self.token_file = token_file
        """holds the pod's token"""
        self._client = client
        self._namespace = namespace
        self._known: _Stated | None = None
        self._version = -1
        self._heard = False
        self._not_before = 0.0

    async def endpoint(self, *, again: bool) -> Endpoint:
        """Return what the ConfigMap says, read when there is reason to; what it said last while it says nothing."""
        heard, self._heard = self._heard, False
        if self._known is None or (again and not heard):
            try:
                self._known = await self._read()
            except ValueError as error:
                if self._known is None:
                    raise
                log.debug("the latency controller is asked where it was", error=str(error))
        return self._known.endpoint

    async def another_within(self, seconds: float) -> bool:
        """Wait so many seconds at most for another controller than the last; return whether there is one.

        Waits that are shorter than a second, as after the first failure, are waits and nothing else.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        if seconds >= 1.0 and clock() >= self._not_before:
            try:
                async with asyncio.timeout_at(end):
                    if await self._hear(int(seconds)):
                        return True
                # Of a watch that ended before its time nobody knows what it would have told.
                self._heard = self._heard and clock() > end - 2.0
            except TimeoutError:
                pass
            except ApiError as error:
                self._heard = False
                if not (error.retryable or error.expired):
                    self._not_before = clock() + REFUSED_SECONDS
            except (ValueError, *TRANSPORT_ERRORS):
                self._heard = False  # what is wrong there is said when it is read
        await asyncio.sleep(max(0.0, end - clock()))
        return False

    async def _hear(self, seconds: int) -> bool:
        """Watch the ConfigMap for so long, from how it is now; return at once when it says another controller."""
        before = self._known
        chunks = self._client.watch_chunks(
            CONFIGMAPS,
            resource_version="0",
            namespace=self._namespace,
            field_selector=_SELECTED,
            timeout_seconds=seconds,
        )
        async with aclosing(chunks):
            async for lines in chunks:
                for line in filter(None, lines):
                    if self._take(line) and self._known != before:
                        return True
        return False

    def _take(self, line: bytes) -> bool:
        """Take in a line of the watch; return whether it is what the ConfigMap says, and not what it said before."""
        event = at_any_depth(EVENT_DECODER.decode, line)
        if event.type not in ("ADDED", "MODIFIED"):
            return False
        found = _OBJECTS.decode(event.object)
        stated, version = _stated(found), version_number(found.metadata.resource_version)
        # An API server that is behind others begins with what they have told already.
        if stated is None or version < self._version:
            return False
        self._known, self._version, self._heard = stated, version, True
        return True

    @property
    def _name(self) -> str:
        return f"ConfigMap {self._namespace}/{CONFIGMAP}"

    async def _read(self) -> _Stated:
        try:
            found = await self._client.get(CONFIGMAPS, CONFIGMAP, namespace=self._namespace)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            raise ValueError(f"{self._name} cannot be read: {error}") from error
        self._version = version_number(found.metadata.resource_version)
        return self._said(_stated(found))

    def _said(self, stated: _Stated | None) -> _Stated:
        if stated is None:
            raise ValueError(f"{self._name} does not say where the latency controller is")
        return stated


class FollowedServer(PublishedServer):
    """The same by a watch, while it runs: for those who are too many to read again and again, and may not come late.

    Each controller says in the ConfigMap which process it is: one that begins anew at the same address is another.
    """

    def __init__(self, client: ApiClient, namespace: str, token_file: Path) -> None:
        """Prepare; see :class:`PublishedServer`."""
        super().__init__(client, namespace, token_file)
        self._watch = Reflector(client, CONFIGMAPS, namespace=namespace, field_selector=_SELECTED)
        self._watch.refused_seconds = REFUSED_SECONDS
        self._watch.add_handler(self._changed)
        self._another = asyncio.Event()

    def another(self) -> asyncio.Event:
        """Return what is set once there is another controller than now."""
        return self._another

    async def run(self) -> None:
        """Follow the ConfigMap until cancelled."""
        await self._watch.run()

    async def endpoint(self, *, again: bool) -> Endpoint:
        """Return what the ConfigMap says; it is read where it cannot be followed, as by rights of an older version."""
        await self._watch.tried.wait()
        if self._watch.failures:
            return await super().endpoint(again=again)
        return self._said(self._known).endpoint

    def _changed(self, _before: ConfigMap | None, after: ConfigMap | None) -> None:
        stated = _stated(after) if after is not None else None
        if stated is None:
            return  # whoever has taken it away has not ended the controller
        if stated != self._known:
            self._known = stated
            if self._watch.tried.is_set():  # else nobody has been told of any
                self._another.set()
                self._another = asyncio.Event()


def _stated(found: ConfigMap) -> _Stated | None:
    """Where the controller is; None where the data do not say it."""
    url, certificates = (found.data.get(key, "") for key in (CONFIGMAP_URL, CONFIGMAP_CA))
    if not url.startswith("https://") or not certificates.strip():
        return None
    endpoint = Endpoint(url, certificates.encode(), SERVER_NAME)
    return _Stated(endpoint, found.data.get(CONFIGMAP_INSTANCE, ""))
