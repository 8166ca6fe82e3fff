"""Advertises the capacity of the node's link as an extended resource, which pods request like any other."""

from __future__ import annotations

from typing import Final

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.kube.client import ApiClient
from berth.kube.resources import NODES

REPEAT_SECONDS: Final = 120.0
"""Seconds from one patch to the next. One that changes nothing is not stored and wakes nobody."""
WRITE_SECONDS: Final = 30.0
"""Seconds to one of another capacity, or after one that failed: some links change their speed all the time."""


class Advertisement:
    """The capacity in the status of one node."""

    def __init__(self, client: ApiClient, node: str) -> None:
        """Prepare without I/O; ``node`` is the name of the node."""
        self._client = client
        self._node = node
        self._stated: int | None = None
        self._tried = float("-inf")

    def due(self, capacity: int | None, now: float) -> bool:
        """Return whether to write: a capacity that is new, or one that somebody may have removed meanwhile.

        While it is unknown nothing is written, and what was advertised stays: a cable that is out for a minute must not
        make a node refuse pods for good.

        Args:
            capacity: bit/s, if known.
            now: seconds of the boot clock.
        """
        waits = REPEAT_SECONDS if capacity == self._stated else WRITE_SECONDS
        return capacity is not None and now - self._tried >= waits

    async def write(self, capacity: int, now: float) -> None:
        """Write capacity and allocatable.

        A kubelet keeps the capacity of resources that it does not know and makes the allocatable of it; it sets both to
        0 when it restarts without a record of device plugins. Where no kubelet runs nobody else makes the allocatable.

        Args:
            capacity: bit/s.
            now: seconds of the boot clock.

        Raises:
            berth.kube.errors.ApiError: the API server refuses it.
            berth.kube.client.TRANSPORT_ERRORS: it cannot be reached.
        """
        self._stated, self._tried = None, now
        amounts = {RESOURCE_BANDWIDTH: str(capacity)}
        status = {"capacity": amounts, "allocatable": amounts}
        await self._client.strategic_patch(NODES, self._node, {"status": status}, subresource="status")
        self._stated = capacity
