"""Filters that look at one node at a time: resources, taints, selectors, ports, names, features."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import Pod
from berth.scheduling.framework.reasons import PORTS_TAKEN as REASON_PORTS
from berth.scheduling.plugins.node_affinity import REASON as REASON_SELECTOR
from berth.scheduling.plugins.node_affinity import NodeAffinity
from berth.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from berth.scheduling.plugins.node_name import NodeName
from berth.scheduling.plugins.node_ports import NodePorts
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.plugins.node_unschedulable import NodeUnschedulable
from berth.scheduling.plugins.taint_toleration import REASON as REASON_TAINT
from berth.scheduling.plugins.taint_toleration import TaintToleration
from tests.support.builders import container, node, pod, required_affinity
from tests.support.filtering import cluster, cycle_of, passing, rejected


@pytest.mark.parametrize(
    ("requests", "reasons"),
    [
        pytest.param({"cpu": "1"}, [], id="exactly-what-is-left"),
        pytest.param({"cpu": "1001m"}, ["Insufficient cpu"], id="a-milli-too-much"),
        pytest.param({"memory": "1Gi"}, [], id="memory-left"),
        pytest.param({"memory": "1025Mi"}, ["Insufficient memory"], id="memory-short"),
        pytest.param({"cpu": "2", "memory": "2Gi"}, ["Insufficient cpu", "Insufficient memory"], id="both-short"),
        pytest.param({}, [], id="nothing-requested"),
        pytest.param({"example_com__gpu": "1"}, ["Insufficient example.com/gpu"], id="resource-the-node-lacks"),
        pytest.param({"example_com__gpu": "0"}, [], id="zero-of-a-resource-the-node-lacks"),
        pytest.param({"ephemeral_storage": "1"}, ["Insufficient ephemeral-storage"], id="no-local-storage"),
    ],
)
def test_resources(requests: dict[str, Any], reasons: list[str]) -> None:
    state = cluster([node("n", cpu="2", memory="2Gi")], [pod("there", on="n", cpu="1", memory="1Gi")])
    assert rejected(NodeResourcesFit(), pod("new", **requests), state) == ({"n": reasons} if reasons else {})


def test_pod_slots_run_out() -> None:
    state = cluster([node("n", pods=1)], [pod("there", on="n")])
    assert rejected(NodeResourcesFit(), pod("new"), state) == {"n": ["Too many pods"]}


def test_over_committed_node_takes_pods_that_do_not_request_what_is_short() -> None:
    state = cluster([node("n", cpu="1")], [pod("there", on="n", cpu="4")])
    assert rejected(NodeResourcesFit(), pod("new", memory="1Gi"), state) == {}
    assert rejected(NodeResourcesFit(), pod("new", cpu="1m"), state) == {"n": ["Insufficient cpu"]}


def test_init_containers_and_sidecars_count() -> None:
    state = cluster([node("small", cpu="2"), node("big", cpu="3")])
    new = pod("new", containers=[container(cpu="1")])
    new.spec.init_containers = [container("s", sidecar=True, cpu="1"), container("i", cpu="1500m")]
    assert rejected(NodeResourcesFit(), new, state) == {"small": ["Insufficient cpu"]}


def test_devices_in_use_are_gone() -> None:
    state = cluster([node("n", example_com__gpu="2")], [pod("there", on="n", example_com__gpu="1")])
    assert passing(NodeResourcesFit(), pod("one", example_com__gpu="1"), state) == {"n"}
    assert passing(NodeResourcesFit(), pod("two", example_com__gpu="2"), state) == set()


@pytest.mark.parametrize(
    ("tolerations", "names"),
    [
        pytest.param([], {"clean", "soft"}, id="none"),
        pytest.param([{"key": "k", "operator": "Exists"}], {"clean", "soft", "hard"}, id="exists"),
        pytest.param([{"key": "k", "value": "v"}], {"clean", "soft", "hard"}, id="equal"),
        pytest.param([{"key": "k", "value": "w"}], {"clean", "soft"}, id="other-value"),
        pytest.param(
            [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], {"clean", "soft", "hard"}, id="effect"
        ),
        pytest.param([{"operator": "Exists"}], {"clean", "soft", "hard", "evicting", "both"}, id="everything"),
        pytest.param(
            [{"key": "k", "operator": "Exists"}, {"key": "j", "operator": "Exists"}],
            {"clean", "soft", "hard", "evicting", "both"},
            id="each-taint-by-its-own-toleration",
        ),
    ],
)
def test_taints(tolerations: list[dict[str, Any]], names: set[str]) -> None:
    state = cluster(
        [
            node("clean"),
            node("soft", taints=["k=v:PreferNoSchedule"]),
            node("hard", taints=["k=v:NoSchedule"]),
            node("evicting", taints=["j=v:NoExecute"]),
            node("both", taints=["k=v:NoSchedule", "j=v:NoExecute"]),
        ]
    )
    new = pod("new", spec={"tolerations": tolerations})
    assert passing(TaintToleration(), new, state) == names
    assert set(map(tuple, rejected(TaintToleration(), new, state).values())) <= {(REASON_TAINT,)}


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        pytest.param(None, False, id="none"),
        pytest.param({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True, id="any-effect"),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True, id="effect"
        ),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"},
            False,
            id="other-effect",
        ),
        pytest.param({"operator": "Exists"}, True, id="everything"),
    ],
)
def test_cordoned_nodes(toleration: dict[str, Any] | None, admitted: bool) -> None:
    state = cluster([node("open"), node("cordoned", unschedulable=True)])
    new = pod("new", spec={"tolerations": [toleration] if toleration else []})
    expected = {} if admitted else {"cordoned": ["node(s) were unschedulable"]}
    assert rejected(NodeUnschedulable(), new, state) == expected


def test_selectors() -> None:
    state = cluster([node("a", labels={"disk": "ssd", "zone": "1"}), node("b", labels={"disk": "ssd"}), node("c")])
    spec = {"nodeSelector": {"disk": "ssd"}, "affinity": required_affinity(("zone", "Exists", []))}
    new = pod("new", spec=spec)
    assert rejected(NodeAffinity(), new, state) == {"b": [REASON_SELECTOR], "c": [REASON_SELECTOR]}
    assert NodeAffinity().filter(cycle_of(pod("plain"), state)) == ()


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


def test_named_node() -> None:
    state = cluster([node("a"), node("b")])
    assert passing(NodeName(), pod("new", on="b"), state) == {"b"}
    assert passing(NodeName(), pod("new", on="gone"), state) == set()
    assert passing(NodeName(), pod("new"), state) == {"a", "b"}


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "RestartAllContainersOnContainerExits",
            id="restart-all-containers",
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport", id="user-namespace-on-host"
        ),
    ],
)
def test_declared_features(spec: dict[str, Any], feature: str) -> None:
    able, unable = node("able"), node("unable")
    able.status.declared_features = ["Another", feature]
    state = cluster([able, unable])
    assert passing(NodeDeclaredFeatures(), msgspec.convert({"spec": spec}, Pod), state) == {"able"}
    assert passing(NodeDeclaredFeatures(), pod("plain"), state) == {"able", "unable"}
