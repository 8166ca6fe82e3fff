"""Where the latency controller is, by the ConfigMap that the one writes who leads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_INSTANCE, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import ConfigMap
from berth.kube.reflector import Reflector
from berth.kube.resources import CONFIGMAPS
from berth.runtime.measuring.calls import Endpoint


class PublishedServer:
    """The one that leads; for a :class:`~berth.runtime.measuring.calls.ControllerCalls`."""

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
        self._known: Endpoint | None = None

    async def endpoint(self, *, again: bool) -> Endpoint:
        """Return what the ConfigMap says, read when there is reason to."""
        if self._known is None or again:
            self._known = await self._read()
        return self._known

    @property
    def _name(self) -> str:
        return f"ConfigMap {self._namespace}/{CONFIGMAP}"

    async def _read(self) -> Endpoint:
        try:
            found = await self._client.get(CONFIGMAPS, CONFIGMAP, namespace=self._namespace)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            raise ValueError(f"{self._name} cannot be read: {error}") from error
        return self._stated(_endpoint(found.data))

    def _stated(self, endpoint: Endpoint | None) -> Endpoint:
        if endpoint is None:
            raise ValueError(f"{self._name} does not say where the latency controller is")
        return endpoint


class FollowedServer(PublishedServer):
    """The same by a watch, while it runs: for those who are too many to read again and again, and may not come late.

    Each controller says in the ConfigMap which process it is: one that begins anew at the same address is another.
    """

    def __init__(self, client: ApiClient, namespace: str, token_file: Path) -> None:
        """Prepare; see :class:`PublishedServer`."""
        super().__init__(client, namespace, token_file)
        self._watch = Reflector(client, CONFIGMAPS, namespace=namespace, field_selector=f"metadata.name={CONFIGMAP}")
        self._watch.add_handler(self._changed)
        self._stands: tuple[Endpoint, str] | None = None
        self._another = asyncio.Event()

    def another(self) -> asyncio.Event:
        """Return what is set once there is another controller than now."""
        return self._another

    async def run(self) -> None:
        """Follow the ConfigMap until cancelled."""
        await self._watch.run()

    async def endpoint(self, *, again: bool) -> Endpoint:
        """Return what the ConfigMap says; it is read where it may not be followed, as by rights of an older version."""
        await self._watch.tried.wait()
        if self._watch.refusal is not None:
            return await super().endpoint(again=again)
        return self._stated(self._stands[0] if self._stands is not None else None)

    def _changed(self, _before: ConfigMap | None, after: ConfigMap | None) -> None:
        endpoint = _endpoint(after.data) if after is not None else None
        if after is None or endpoint is None:
            return  # whoever has taken it away has not ended the controller
        stands = endpoint, after.data.get(CONFIGMAP_INSTANCE, "")
        if stands != self._stands:
            self._stands = stands
            if self._watch.tried.is_set():  # else nobody has been told of any
                self._another.set()
                self._another = asyncio.Event()


def _endpoint(data: Mapping[str, str]) -> Endpoint | None:
    """Where the controller is; None where the data do not say it."""
    url, certificates = (data.get(key, "") for key in (CONFIGMAP_URL, CONFIGMAP_CA))
    if not url.startswith("https://") or not certificates.strip():
        return None
    return Endpoint(url, certificates.encode(), SERVER_NAME)
