"""Writes the status of the node's SocketStatus, and makes the object when there is none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from agents.node import boot_clock
from agents.node.pinning.report import by_the_clock
from berth.api.labels import BERTH_GROUP
from berth.api.socketstatus import AGENT_CONDITIONS, API_VERSION, KIND, PLURAL, SocketStatusStatus
from berth.kube.client import ApiClient
from berth.kube.custom_object import CustomObject, decoded
from berth.kube.decoding import ObjectDecoder
from berth.kube.errors import ApiError, readable
from berth.kube.resources import NODES, Resource

log = structlog.get_logger(__name__)

FIELD_MANAGER: Final = "berth-pinning"
"""Who owns the fields of the status."""
SOCKET_STATUSES: Final = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, CustomObject, namespaced=False)
"""The kind."""
_DECODER: Final = ObjectDecoder(CustomObject)
INTERVAL_SECONDS: Final = 2.0
"""Least seconds from one write to the next."""
REPEAT_SECONDS: Final = 300.0
"""Greatest: the time of the last write says that the agent works."""
LATE_SECONDS: Final = 60.0
"""How much later than that a write may come, as while the API server is away."""
STEP_SECONDS: Final = 2.0
"""By how much the clock and the time that has passed may differ without it having been set."""
_FIELDS: Final = [to_camel(name) for name in SocketStatusStatus.model_fields if name != "conditions"]
"""What a status has on the wire beside conditions."""
_NOT_DECLARED: Final = "field not declared in schema"
"""What the API server says of a field that its definition of the kind does not have: it takes nothing of the rest."""


class StatusWriter:
    """The status of one node."""

    def __init__(self, client: ApiClient, node: str, *, boot: Callable[[], float] = boot_clock.now) -> None:
        """Prepare without I/O.

        Args:
            client: open API client.
            node: name of the node and of its SocketStatus.
            boot: seconds since the machine started.
        """
        self._client = client
        self._node = node
        self._boot = boot
        self._written: SocketStatusStatus | None = None
        self._written_at = 0.0
        self._last = -REPEAT_SECONDS
        self._old_definition = False
        """whether the definition that is applied is of before caches were told"""

    def overdue(self, now: float) -> bool:
        """Return whether to write even if nothing has changed; `now` is in monotonic seconds."""
        return now - self._last >= REPEAT_SECONDS

    def step(self, time: datetime) -> timedelta:
        """Return by how much the clock, which tells `time`, has been set since the last write; whole seconds."""
        if self._written is None or self._written.time is None:
            return timedelta()
        step = (time - self._written.time).total_seconds() - (self._boot() - self._written_at)
        return timedelta(seconds=round(step) if abs(step) >= STEP_SECONDS else 0)

    def last(self, there: SocketStatusStatus, time: datetime) -> SocketStatusStatus:
        """Return what was said last, with its times as the clock tells them that says `time` now.

        A watch may still show what was there before, whose times would be set back by what the clock was set since.
        """
        return by_the_clock(self._written or there, self.step(time), time)

    def due(self, status: SocketStatusStatus, there: SocketStatusStatus, now: float) -> bool:
        """Return whether to write: something has changed, somebody else changed it, or the last write is long ago.

        Args:
            status: what there is to say.
            there: what the object says.
            now: monotonic seconds.
        """
        written, status = self._written, self._shown(status)
        same = written is not None and _alike(self._shown(written), status) and _alike(there, status)
        return self.overdue(now) if same else now - self._last >= INTERVAL_SECONDS

    async def write(self, status: SocketStatusStatus, now: float) -> None:
        """Write the status by server-side apply; an object that is not there, or no longer, is made first.

        Raises:
            berth.kube.errors.ApiError: the API server refuses it, or there is no such node.
            berth.kube.client.TRANSPORT_ERRORS: it cannot be reached.
        """
        if self.overdue(now):
            self._old_definition = False  # another one may have been applied
        self._last, at = now, self._boot()
        try:
            await self._tell(status)
        except ApiError as error:
            if self._old_definition or _NOT_DECLARED not in error.message:
                raise
            self._old_definition = True
            log.warning(
                "caches and cores not told", problem="the definition of SocketStatus is older than the agent; apply it"
            )
            await self._tell(status)
        self._written, self._written_at = status, at

    def _shown(self, status: SocketStatusStatus) -> SocketStatusStatus:
        """As much of a status as the definition has fields for, as far as that is known."""
        if not self._old_definition:
            return status
        sockets = tuple(each.model_copy(update={"pinned_caches": None, "core_count": None}) for each in status.sockets)
        pods = tuple(each.model_copy(update={"cache": None}) for each in status.pods)
        return status.model_copy(update={"sockets": sockets, "pods": pods})

    async def _tell(self, status: SocketStatusStatus) -> None:
        shown = self._shown(status)
        body = {"status": shown.to_api()}
        try:
            answer = await self._apply(body, subresource="status")
        except ApiError as error:
            if error.invalid:
                # With what others have written a list may be too long. Where it is refused without, nothing is lost.
                await self._set(body["status"])
                # What is set, and not applied, would stay when it is applied no more.
                await self._set({})
            elif error.not_found:
                await self._apply({}, owner=await self._owner())
            else:
                raise
            answer = await self._apply(body, subresource="status")
        with readable(answer):
            there = status_in(_DECODER.decode(answer))
        if not _alike(there, shown):
            # Apply takes away what the same manager has applied before, and nothing else: pods would be assigned to
            # sockets that somebody has invented, and this would be written for ever.
            log.warning("what others have written into the status is taken out", node=self._node)
            await self._set(body["status"])

    async def _set(self, status: dict[str, Any]) -> None:
        """Have the status say this alone, but for conditions, of which others have their own."""
        patch = {name: status.get(name) for name in _FIELDS}
        await self._client.merge_patch(
            SOCKET_STATUSES, self._node, {"status": patch}, subresource="status", field_manager=FIELD_MANAGER
        )

    async def _apply(
        self, body: dict[str, Any], *, subresource: str | None = None, owner: dict[str, Any] | None = None
    ) -> bytes:
        metadata = {"name": self._node, **({"ownerReferences": [owner]} if owner else {})}
        document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, **body}
        return await self._client.apply(
            SOCKET_STATUSES, self._node, document, field_manager=FIELD_MANAGER, subresource=subresource
        )

    async def _owner(self) -> dict[str, Any]:
        """The node as owner, so that the object goes with it.

        Without a node none is made: an agent runs for a while after its node was deleted, and what it made then would
        stay for ever.
        """
        node = await self._client.get(NODES, self._node)
        return {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node.metadata.uid}


def status_in(there: CustomObject | None) -> SocketStatusStatus:
    """The status that an object has, without conditions of others; an empty one where it has none that can be read."""
    try:
        found = SocketStatusStatus.model_validate(decoded(there.status)) if there else SocketStatusStatus()
    except ValidationError:
        return SocketStatusStatus()
    # What is written is owned: those of others would stay for ever as they were read.
    own = tuple(condition for condition in found.conditions if condition.type in AGENT_CONDITIONS)
    return found.model_copy(update={"conditions": own})


def told_lately(there: SocketStatusStatus, now: datetime) -> bool:
    """Return whether somebody has written a status so short a time ago that he may be about to write again."""
    return there.time is not None and 0.0 <= (now - there.time).total_seconds() < REPEAT_SECONDS + LATE_SECONDS


def _alike(one: SocketStatusStatus, other: SocketStatusStatus) -> bool:
    """Whether two say the same, as the API server would show it, at whatever time."""
    shown, of_other = one.to_api(), other.to_api()
    shown.pop("time", None)
    of_other.pop("time", None)
    return shown == of_other
