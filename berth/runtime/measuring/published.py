"""Where the latency controller is, by the ConfigMap that the one writes who leads."""

from __future__ import annotations

from pathlib import Path

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
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

    async def _read(self) -> Endpoint:
        name = f"ConfigMap {self._namespace}/{CONFIGMAP}"
        try:
            found = await self._client.get(CONFIGMAPS, CONFIGMAP, namespace=self._namespace)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
        url, certificates = (found.data.get(key, "") for key in (CONFIGMAP_URL, CONFIGMAP_CA))
        if not url.startswith("https://") or not certificates.strip():
            raise ValueError(f"{name} does not say where the latency controller is")
        return Endpoint(url, certificates.encode(), SERVER_NAME)
