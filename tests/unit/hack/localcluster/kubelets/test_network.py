"""The network of real nodes: which one is chosen, and which commands make it. That they work: integration tests."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import network
from hack.localcluster.kubelets.names import PREFIX, nodes

HOME = Path("/clusters/one")


def network_of(gateway: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(f"{gateway}/{PREFIX}", strict=False)


@given(st.lists(st.tuples(st.ip_addresses(v=4, network="10.248.0.0/13"), st.integers(16, 32)), max_size=20))
def test_a_network_is_chosen_that_nobody_uses(used: list[tuple[ipaddress.IPv4Address, int]]) -> None:
    taken = [f"{address}/{length}" for address, length in used]
    chosen = network_of(network.choose_gateway(HOME, taken))
    assert chosen.subnet_of(network.POOL)
    assert not any(chosen.overlaps(ipaddress.IPv4Network(item, strict=False)) for item in taken)


def test_instances_begin_to_look_at_different_networks() -> None:
    assert len({network.choose_gateway(Path(f"/clusters/{number}"), []) for number in range(5)}) > 1


def test_no_network_is_free() -> None:
    with pytest.raises(ClusterError, match=r"every network in 10\.248\.0\.0/13 is in use: stop other clusters"):
        network.choose_gateway(HOME, ["10.0.0.0/8"])


def test_used_networks_are_those_with_a_route(monkeypatch: pytest.MonkeyPatch) -> None:
    routes = '[{"dst": "default", "gateway": "192.0.2.1"}, {"dst": "192.0.2.0/24"}, {"dst": "127.0.0.1"}]'
    monkeypatch.setattr(network, "_run", lambda _command: routes)
    assert network.used_networks() == ["192.0.2.0/24", "127.0.0.1"]


def test_a_node_gets_its_address_the_services_and_the_way_to_the_pods_of_others() -> None:
    first, second, third = nodes(HOME, 3)
    lines = [" ".join(command) for command in network.node_commands(first, "10.250.7.1", [second, third])]
    inside = f"ip -netns {first.namespace}"
    assert lines[0] == f"ip netns add {first.namespace}"
    assert f"{inside} address add 10.250.7.12/24 dev eth0" in lines
    assert f"{inside} address add 10.96.0.1/32 dev lo" in lines
    assert [line for line in lines if " route add " in line] == [
        f"{inside} route add default via 10.250.7.1",
        f"{inside} route add 10.244.2.0/24 via 10.250.7.13",
        f"{inside} route add 10.244.3.0/24 via 10.250.7.14",
    ]


def test_settings_are_those_of_the_nodes_namespace_alone() -> None:
    (node,) = nodes(HOME, 1)
    [command] = [item for item in network.node_commands(node, "10.250.7.1", []) if "sysctl" in item]
    assert command[:3] == ["nsenter", f"--net=/run/netns/{node.namespace}", "sysctl"]
    assert "net.ipv4.ping_group_range=0 2147483647" in command


def test_a_command_that_fails_is_named_with_its_output() -> None:
    with pytest.raises(ClusterError, match=r"^ip netns delete berth-none: Cannot remove"):
        network._run(["ip", "netns", "delete", "berth-none"])
