"""Where the agents are: the EndpointSlices of their headless Service.

They change when an agent comes or goes. A watch on Nodes would bring every agent every kubelet's heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from berth.api.probereport import MAX_NODE, MAX_ZONE
from berth.kube.endpoint_slices import EndpointSlice

_FAMILIES: Final = ("IPv4", "IPv6")


class AgentPlace(NamedTuple):
    """Where one node's agent is."""

    zone: str
    """zone of the node, empty without one"""
    address: str
    """IP address of its responder"""
    port: int
    """port of its responder"""


def agent_places(slices: Iterable[EndpointSlice], port: int) -> dict[str, AgentPlace]:
    """Return the agents by name of their node.

    While an agent is replaced its node has two; the one that is not going counts, else the ready one. Of several
    addresses the IPv4 one counts. Endpoints without a node or an address, or with
    names that no node or label has, are left out.

    Args:
        slices: all EndpointSlices of the agents' Service.
        port: port of responders whose slice states none.
    """
    best: dict[str, tuple[tuple[bool, bool, int, str], AgentPlace]] = {}
    for item in slices:
        if item.address_type not in _FAMILIES:
            continue
        stated = next((entry.port for entry in item.ports or () if entry.port), port)
        for endpoint in item.endpoints or ():
            # Whatever writes EndpointSlices: what no report can state must not stop one.
            if not 0 < len(endpoint.node_name) <= MAX_NODE or len(endpoint.zone) > MAX_ZONE or not endpoint.addresses:
                continue
            address, state = endpoint.addresses[0], endpoint.conditions
            order = (state.terminating is True, state.ready is False, _FAMILIES.index(item.address_type), address)
            found = (order, AgentPlace(endpoint.zone, address, stated))
            best[endpoint.node_name] = min(best.get(endpoint.node_name, found), found)
    return {name: place for name, (_, place) in best.items()}
