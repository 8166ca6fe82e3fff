"""Writes into SocketStatuses which socket each pod is assigned: what is decided and bound, node by node.

The Binding comes first and carries the socket in the pod's annotation; the assignment follows once the watch shows the
pod bound. Whoever leads finds in pods and SocketStatuses all that it needs: a socket that was bound with and is not
assigned yet is assigned then, and one of a pod that is gone, or was never bound, is taken back. A list is written as a
whole by server-side apply, under a name of its own, so that what others assign stays theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from berth.api.socketstatus import API_VERSION, KIND, MAX_PODS, PLACEMENT_MANAGER
from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.managed_fields import owned_items
from berth.kube.resources import SOCKET_STATUSES
from berth.scheduling.cache.cache import Cache
from controllers.placement.metrics import SOCKET_WRITES

log = structlog.get_logger(__name__)

FIELD_MANAGER: Final = PLACEMENT_MANAGER
"""Name under which the API server keeps track of the assignments of this controller."""
RETRY_SECONDS: Final = 5.0
"""Seconds until an assignment is written again that could not be."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class SocketAssignments:
    """Keeps spec.assignments of the SocketStatuses."""

    client: ApiClient
    """open API client"""
    cache: Cache
    """the cluster, and the sockets that were chosen"""
    idle: Callable[[], Awaitable[None]]
    """waits until the cache belongs to the event loop"""
    synced: Callable[[], Awaitable[None]]
    """waits until the cache has seen all pods, SocketStatuses and profiles: a pod that is not known yet is not gone"""
    now: Callable[[], datetime] = _now
    """the time of day"""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _nodes: dict[str, None] = field(default_factory=dict)

    def changed(self, node: str) -> None:
        """The assignments of a node may be others than those that its SocketStatus has."""
        self._nodes[node] = None
        self._changed.set()

    async def run(self) -> None:
        """Write until cancelled."""
        await self.synced()
        while True:
            await self._until_changed()
            try:
                await self.write_all()
            except Exception:
                # Placement must go on, and the annotations of the pods say the same.
                log.exception("sockets not assigned")

    async def _until_changed(self) -> None:
        """Wait for a change, or until what could not be written is due again."""
        try:
            async with asyncio.timeout(RETRY_SECONDS if self._nodes else None):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def write_all(self) -> None:
        """Write what differs, of every node that has changed; what could not be written stays to be done."""
        for node in list(self._nodes):
            await self.idle()
            self._nodes.pop(node, None)
            self.cache.seat_left_out(node)
            body = self.wanted(node)
            if body is not None and not await self._write(node, body):
                self._nodes[node] = None

    def wanted(self, node: str) -> dict[str, Any] | None:
        """Return what is to be applied; None without a SocketStatus, and where it says the same already."""
        state = self.cache.state
        sockets = state.sockets.sockets(node)
        if not sockets.uid:
            return None
        time = self.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        assignments: list[dict[str, Any]] = []
        for uid, seat in sorted(state.sockets.seats(node).items()):
            record = state.record(uid)
            if record is None or record.assumed or seat.settled is None:
                continue
            namespace, _, name = record.key.partition("/")
            same = sockets.assignments.get(uid) == seat.settled
            assignments.append(
                {
                    "uid": uid,
                    "namespace": namespace,
                    "name": name,
                    "interferenceClass": seat.resident.workload.interference_class.value,
                    "socket": seat.settled,
                    "time": (same and sockets.times.get(uid)) or time,
                }
            )
        del assignments[MAX_PODS:]
        letters = {each["uid"]: each["interferenceClass"] for each in assignments}
        told = all(letters.get(uid) == letter for uid, letter in sockets.classes.items())
        if told and {each["uid"]: each["socket"] for each in assignments} == sockets.assignments:
            return None
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            # The uid keeps it from creating an object that was deleted meanwhile.
            "metadata": {"name": node, "uid": sockets.uid},
            "spec": {"assignments": assignments},
        }

    async def _write(self, node: str, body: dict[str, Any]) -> bool:
        """Apply; returns whether that is settled. One that is gone is: the watch tells of it."""
        try:
            try:
                await self._apply(node, body)
            except ApiError as error:
                if not (error.invalid and await self._take_out(node, body)):
                    raise
                await self._apply(node, body)
        except (ApiError, *TRANSPORT_ERRORS) as error:
            SOCKET_WRITES.labels("failed").inc()
            if isinstance(error, ApiError) and error.not_found:
                return True
            log.warning("sockets not assigned", node=node, error=str(error) or repr(error))
            return False
        SOCKET_WRITES.labels("written").inc()
        return True

    async def _apply(self, node: str, body: dict[str, Any]) -> None:
        await self.client.apply(SOCKET_STATUSES, node, body, field_manager=FIELD_MANAGER)

    async def _take_out(self, node: str, body: dict[str, Any]) -> bool:
        """Take out whole assignments that are applied no more and of which others own a part; whether there are any.

        The API server would leave them that part, and refuses the list since no assignment may be without the rest.
        """
        raw = await self.client.get(SOCKET_STATUSES.raw, node)
        owned: set[str] = set()
        for entry in raw["metadata"].get("managedFields", ()):
            if entry.get("manager") == FIELD_MANAGER:
                owned.update(owned_items(entry, "spec", "assignments", key="uid"))
        owned.difference_update(each["uid"] for each in body["spec"]["assignments"])
        there = raw.get("spec", {}).get("assignments", ())
        left = [each for each in there if each["uid"] not in owned]
        if len(left) == len(there):
            return False
        # Whoever has written since it was read wins: it is tried again.
        metadata = {key: raw["metadata"][key] for key in ("uid", "resourceVersion")}
        taken = {"metadata": metadata, "spec": {"assignments": left}}
        await self.client.merge_patch(SOCKET_STATUSES, node, taken, field_manager=FIELD_MANAGER)
        return True
