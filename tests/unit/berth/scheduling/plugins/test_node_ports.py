"""NodePorts: host ports in use."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.framework.reasons import PORTS_TAKEN as REASON_PORTS
from berth.scheduling.plugins.node_ports import NodePorts
from tests.support.builders import container, node, pod
from tests.support.filtering import cluster, passing, rejected


@pytest.mark.parametrize(
    ("used", "wanted", "free"),
    [
        pytest.param([80], [81], True, id="other-port"),
        pytest.param([80], [80], False, id="same-port"),
        pytest.param([("", "UDP", 80)], [80], True, id="other-protocol"),
        pytest.param([("10.0.0.1", "TCP", 80)], [("10.0.0.2", "TCP", 80)], True, id="other-address"),
        pytest.param([("10.0.0.1", "TCP", 80)], [("10.0.0.1", "TCP", 80)], False, id="same-address"),
        pytest.param([("10.0.0.1", "TCP", 80)], [80], False, id="wanting-any-address"),
        pytest.param([80], [("10.0.0.1", "TCP", 80)], False, id="any-address-is-taken"),
        pytest.param([("0.0.0.0", "TCP", 80)], [("10.0.0.1", "TCP", 80)], False, id="any-address-spelt-out"),
        pytest.param([80], [443, 80], False, id="one-of-two"),
    ],
)
def test_host_ports(used: list[Any], wanted: list[Any], free: bool) -> None:
    state = cluster([node("n"), node("other")], [pod("there", on="n", host_ports=used)])
    assert rejected(NodePorts(), pod("new", host_ports=wanted), state) == ({} if free else {"n": [REASON_PORTS]})


def test_ports_of_sidecars_and_of_host_network_pods() -> None:
    there = pod("there", on="n")
    there.spec.init_containers = [container("s", sidecar=True, host_ports=[80]), container("i", host_ports=[81])]
    state = cluster([node("n")], [there])
    assert passing(NodePorts(), pod("new", host_ports=[80]), state) == set()
    assert passing(NodePorts(), pod("new", host_ports=[81]), state) == {"n"}, "an init container is gone by then"
    host = pod("host", spec={"hostNetwork": True}, containers=[container(host_ports=[80])])
    host.spec.containers[0].ports[0].host_port = 0
    assert passing(NodePorts(), host, state) == set(), "the API server would fill in the container's port"
