"""Writes the node's ProbeReport, and makes it when there is none."""

from __future__ import annotations

from typing import Any, Final

from berth.api.labels import BERTH_GROUP
from berth.api.probereport import API_VERSION, KIND, PLURAL, ProbeReportStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.resources import NODES, Resource

FIELD_MANAGER: Final = "berth-node"
"""Who owns the fields of a report."""
PROBE_REPORTS: Final[Resource[dict[str, Any]]] = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, dict, namespaced=False)
"""The kind, as the agent writes it."""


class ReportWriter:
    """The report of one node."""

    def __init__(self, client: ApiClient, node: str) -> None:
        """Prepare without I/O.

        Args:
            client: open API client.
            node: name of the node and of its report.
        """
        self._client = client
        self._node = node

    async def write(self, status: ProbeReportStatus) -> None:
        """Set the status; a report that is not there, or no longer, is made first.

        Not by server-side apply: peers that another manager has written would stay beside the agent's for ever,
        and be too many with them.

        Raises:
            berth.kube.errors.ApiError: the API server refuses it.
            berth.kube.client.TRANSPORT_ERRORS: it cannot be reached.
        """
        try:
            await self._set(status)
        except ApiError as error:
            if not error.not_found:
                raise
            await self._make()
            await self._set(status)

    async def _set(self, status: ProbeReportStatus) -> None:
        await self._client.set_status(PROBE_REPORTS, self._node, status.to_api(), field_manager=FIELD_MANAGER)

    async def _make(self) -> None:
        owners = await self._owners()
        metadata = {"name": self._node, **({"ownerReferences": list(owners)} if owners else {})}
        document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}
        await self._client.apply(PROBE_REPORTS, self._node, document, field_manager=FIELD_MANAGER)

    async def _owners(self) -> tuple[dict[str, Any], ...]:
        """The node as owner, so that its report goes with it; none while nobody has made the node."""
        try:
            node = await self._client.get(NODES, self._node)
        except ApiError as error:
            if not error.not_found:
                raise
            return ()
        return ({"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node.metadata.uid},)
