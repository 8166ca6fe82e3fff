"""The node agent as a component: one process on each node."""

from __future__ import annotations

import socket

from agents.node.probing.duty import ProbingDuty
from agents.node.settings import NodeSettings
from berth.runtime.component import ComponentContext


class NodeAgent:
    """Measures the node that it runs on."""

    Settings = NodeSettings

    def __init__(self, context: ComponentContext, settings: NodeSettings) -> None:
        """Prepare without I/O."""
        node = settings.name or socket.gethostname().lower()
        self._probing = ProbingDuty(context, settings, node)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._probing.run()
