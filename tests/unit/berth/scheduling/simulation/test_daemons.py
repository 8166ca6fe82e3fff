"""Pods of DaemonSets look like those of kube-controller-manager."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.cache.state import ClusterState
from berth.scheduling.simulation.daemons import add_daemon_tolerations, pin_to_node
from tests.support import builders, plans
from tests.support.filtering import filtered

SSD = builders.required_affinity(("disk", "In", ["ssd"]))


@pytest.mark.parametrize(
    "affinity", [{}, {"affinity": SSD}], ids=["none", "its own is replaced, as it was judged before"]
)
def test_a_pinned_pod_fits_its_node_only(affinity: dict[str, Any]) -> None:
    state = ClusterState()
    for name in ("n1", "n2"):
        state.update_node(builders.node(name))
    pod = builders.pod("agent", spec=affinity)
    pin_to_node(pod, "n2")
    mask = filtered(pod, state).mask
    assert [bool(mask[state.node_index[name]]) for name in ("n1", "n2")] == [False, True]


def test_other_rules_of_the_pod_stay() -> None:
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [builders.pod_term("zone", {})]}}
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": {}}]}}
    pod = builders.pod("agent", spec={"affinity": {**anti, **preferred}})
    pin_to_node(pod, "n1")
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_anti_affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert [item.weight for item in pod.spec.affinity.node_affinity.preferred] == [3]


@pytest.mark.parametrize(
    ("taint", "host_network", "tolerated"),
    [
        ("node.kubernetes.io/unschedulable:NoSchedule", False, True),
        ("node.kubernetes.io/not-ready:NoExecute", False, True),
        ("node.kubernetes.io/memory-pressure:NoSchedule", False, True),
        ("node.kubernetes.io/network-unavailable:NoSchedule", False, False),
        ("node.kubernetes.io/network-unavailable:NoSchedule", True, True),
        ("team=x:NoSchedule", False, False),
    ],
)
def test_tolerations(taint: str, host_network: bool, tolerated: bool) -> None:
    state = ClusterState()
    state.update_node(builders.node("n", taints=[taint]))
    pod = builders.pod("agent", spec={"hostNetwork": host_network})
    add_daemon_tolerations(pod)
    assert filtered(pod, state).feasible == int(tolerated)


def test_a_cordoned_node_gets_its_pod() -> None:
    node = plans.node("n1")
    node["spec"]["unschedulable"] = True
    assert plans.where(plans.made(node, plans.workload("DaemonSet", "agent"))) == {"agent-n1": "n1"}


def test_a_selector_limits_the_nodes() -> None:
    labelled = plans.node("n2")
    labelled["metadata"]["labels"]["disk"] = "ssd"
    document = plans.made(
        plans.node("n1"), labelled, plans.workload("DaemonSet", "agent", nodeSelector={"disk": "ssd"})
    )
    assert plans.where(document) == {"agent-n2": "n2"}
    assert document["pods"][0]["workload"] == "DaemonSet/agent"
