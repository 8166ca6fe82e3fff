"""The node agent as a component: one process on each node."""

from __future__ import annotations

import socket
from typing import ClassVar

from agents.node.bandwidth.duty import BandwidthDuty
from agents.node.probing.duty import ProbingDuty
from agents.node.settings import NodeSettings
from agents.node.throughput.duty import ThroughputDuty
from agents.node.users.duty import UserDuty
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.measuring.published import FollowedServer
from berth.runtime.settings import ComponentSettings


class NodeAgent:
    """Measures the node that it runs on."""

    Settings: ClassVar[type[ComponentSettings]] = NodeSettings

    def __init__(self, context: ComponentContext, settings: NodeSettings) -> None:
        """Prepare without I/O."""
        node = settings.name or socket.gethostname().lower()
        self._bandwidth = BandwidthDuty(context.client, settings, node)
        self._throughput = ThroughputDuty(settings, lambda: self._probing.addresses)
        self._users = UserDuty(
            FollowedServer(context.client, settings.namespace, settings.latency_token_file)
            if settings.latency_token_file is not None
            else None
        )
        self._probing = ProbingDuty(
            context, settings, node, self._bandwidth.report, self._throughput.found, self._users.found
        )

    async def run(self) -> None:
        """Work until cancelled."""
        users = self._users.run(self._probing.measure_user)
        await run_together(self._bandwidth.run(), self._probing.run(), self._throughput.run(), users)
