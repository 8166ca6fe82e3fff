"""Where the agents are, from EndpointSlices as the API server sends them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agents.node.probing.endpoints import AgentPlace, agent_places
from berth.kube.endpoint_slices import EndpointSlice

PORT = 9470


def endpoint(node: str, address: str, zone: str = "a", **conditions: bool) -> dict[str, Any]:
    return {"nodeName": node, "addresses": [address], "zone": zone, "conditions": conditions}


def places(*slices: dict[str, Any]) -> dict[str, AgentPlace]:
    return agent_places((msgspec.convert({"addressType": "IPv4", **item}, EndpointSlice) for item in slices), PORT)


@pytest.mark.parametrize(
    ("endpoints", "address"),
    [
        pytest.param([endpoint("n", "10.0.0.1", ready=True)], "10.0.0.1", id="one"),
        pytest.param([endpoint("n", "10.0.0.1", ready=False)], "10.0.0.1", id="not ready, as under load"),
        pytest.param(
            [endpoint("n", "10.0.0.1", terminating=True), endpoint("n", "10.0.0.2", ready=False, terminating=False)],
            "10.0.0.2",
            id="the one that stays",
        ),
        pytest.param(
            [endpoint("n", "10.0.0.1", ready=False), endpoint("n", "10.0.0.2", ready=True)],
            "10.0.0.2",
            id="the ready one",
        ),
        pytest.param([endpoint("n", "10.0.0.2"), endpoint("n", "10.0.0.1")], "10.0.0.1", id="always the same"),
    ],
)
def test_one_place_a_node(endpoints: list[dict[str, Any]], address: str) -> None:
    assert places({"endpoints": endpoints}) == {"n": AgentPlace("a", address, PORT)}


def test_several_slices_and_their_ports() -> None:
    found = places(
        {"endpoints": [endpoint("n1", "10.0.0.1")], "ports": [{"port": 1234}]},
        {"endpoints": [endpoint("n2", "10.0.0.2", zone="")], "ports": None},
        {"endpoints": None},
    )
    assert found == {"n1": AgentPlace("a", "10.0.0.1", 1234), "n2": AgentPlace("", "10.0.0.2", PORT)}


def test_ipv4_before_ipv6() -> None:
    six = {"addressType": "IPv6", "endpoints": [endpoint("n1", "::1"), endpoint("n2", "::2")]}
    found = places(six, {"endpoints": [endpoint("n1", "10.0.0.1")]})
    assert {name: place.address for name, place in found.items()} == {"n1": "10.0.0.1", "n2": "::2"}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"endpoints": [{"addresses": ["10.0.0.1"]}]}, id="no node"),
        pytest.param({"endpoints": [{"nodeName": "n", "addresses": []}]}, id="no address"),
        pytest.param({"addressType": "FQDN", "endpoints": [endpoint("n", "example.com")]}, id="a name"),
        pytest.param({"endpoints": [endpoint("n" * 254, "10.0.0.1")]}, id="a node's name that none has"),
        pytest.param({"endpoints": [endpoint("n", "10.0.0.1", zone="z" * 64)]}, id="a zone that no label holds"),
    ],
)
def test_left_out(item: dict[str, Any]) -> None:
    assert places(item) == {}
