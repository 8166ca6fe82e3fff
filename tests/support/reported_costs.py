"""ProbeReports of the eight nodes of `tests.support.costs` on a real API server, and what follows from them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hack.localcluster import LocalCluster
from tests.support.costs import EIGHT_NODES
from tests.support.topologies import probe_report, probed_peer

NEAR = {"Z1>Z2": 9, "Z2>Z1": 9, "Z3>Z4": 12, "Z4>Z3": 12}
"""Costs between zones by the latencies that nodes report unless told otherwise."""
SAME_ZONE, OTHER_REGION = 300, 78_400
BETWEEN_ZONES = {"us-west-1": 850, "us-east-1": 1150}


class Reports:
    """The ProbeReports of all nodes."""

    def __init__(self, cluster: LocalCluster) -> None:
        """Write with kubectl."""
        self.cluster = cluster

    def write(self, *, age: float = 0.0, only: tuple[str, ...] = (), **microseconds: int | None) -> None:
        """Have nodes report what the places cost; ``n1_n3=None`` has one pair differ, here without an answer."""
        moment = datetime.now(UTC) - timedelta(seconds=age)
        items = []
        for node, place in EIGHT_NODES.items():
            if only and node not in only:
                continue
            peers = []
            for peer, other in EIGHT_NODES.items():
                usual = (
                    SAME_ZONE if place == other else BETWEEN_ZONES[place[0]] if place[0] == other[0] else OTHER_REGION
                )
                figure = microseconds.get(f"{node}_{peer}".replace("-", ""), usual)
                if peer != node:
                    peers.append(probed_peer(peer, figure, time=moment))
            items.append(probe_report(node, *peers))
        self.apply(*items)

    def apply(self, *items: dict[str, Any]) -> None:
        """Write reports, the status by its subresource."""
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)})
        for arguments in ((), ("--subresource=status",)):
            self.cluster.kubectl("apply", "--server-side", "--force-conflicts", *arguments, "-f", "-", input=document)
