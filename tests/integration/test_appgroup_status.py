"""The appgroup controller on a real API server: from an applied AppGroup and its pods to the status.

One controller process serves all tests, each in its own namespace. Left out: what happens when the
controller, the API server or a watch breaks (test_appgroup_recovery.py).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from berth.api.appgroup import SortingAlgorithm
from controllers.appgroup.handlers import POD_DELAY
from controllers.appgroup.reconciler import FIELD_MANAGER
from hack.harness.boutique import ORDERS_10, ORDERS_11, appgroup, boutique, names
from hack.harness.cluster import Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.appgroups import AppGroups, condition, order_of

PAIR = {"cart": ["checkout"], "checkout": ["cart"]}


@pytest.fixture(scope="module")
def controller(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The controller under test."""
    directory = tmp_path_factory.mktemp("controller")
    with ControllerProcess.start(["appgroup"], kubeconfig=cluster.kubeconfig, directory=directory) as process:
        yield process.wait_leader().wait_ready()


@pytest.fixture
def groups(cluster: LocalCluster, namespace: str, controller: ControllerProcess) -> AppGroups:
    """AppGroups of the test's namespace, with the controller running."""
    return AppGroups(cluster, namespace)


@pytest.mark.parametrize("size", [10, 11])
@pytest.mark.parametrize("algorithm", list(SortingAlgorithm))
def test_order_of_online_boutique(groups: AppGroups, algorithm: SortingAlgorithm, size: int) -> None:
    groups.apply(boutique(size=size, algorithm=algorithm))
    document = groups.wait_status(algorithm=algorithm.value)
    assert order_of(document) == (ORDERS_10 if size == 10 else ORDERS_11)[algorithm]
    assert condition(document, "Ordered")["status"] == "True"
    assert condition(document, "Placed")["reason"] == "NoPods"


def test_spec_change_orders_again(groups: AppGroups, kubectl: Kubectl) -> None:
    groups.apply(boutique())
    assert order_of(groups.wait_status()) == ORDERS_11["KahnSort"]
    groups.apply(boutique(algorithm="ReverseTarjan"))
    document = groups.wait_status(algorithm="ReverseTarjan")
    assert order_of(document) == ORDERS_11["ReverseTarjan"]
    assert document["status"]["observedGeneration"] == 2
    assert {item["observedGeneration"] for item in document["status"]["conditions"]} == {2}

    def told() -> list[str]:
        events = kubectl.get("events", "--field-selector=involvedObject.kind=AppGroup")["items"]
        return sorted(event["message"] for event in events if event["reason"] == "Ordered")

    assert eventually(told, accept=lambda messages: len(messages) == 2) == [
        "11 workloads ordered by KahnSort: p1,p10,p9,...(11)",
        "11 workloads ordered by ReverseTarjan: p11,p2,p3,...(11)",
    ]


def test_workload_added_and_removed(groups: AppGroups) -> None:
    groups.apply(boutique(size=10))
    groups.wait_status(orderSummary="p1,p10,p9,...(10)")
    groups.apply(boutique(size=11))
    assert order_of(groups.wait_status(orderSummary="p1,p10,p9,...(11)")) == ORDERS_11["KahnSort"]
    groups.apply(boutique(size=2))
    assert order_of(groups.wait_status(orderSummary="p1,p2")) == "p1 p2"


def test_cycle_is_condensed_and_reported(groups: AppGroups, kubectl: Kubectl) -> None:
    groups.apply(appgroup({"web": ["cart", "ads"], **PAIR}, ["web", "checkout", "cart", "ads"]))
    document = groups.wait_status()
    assert order_of(document) == "web ads checkout cart"
    ordered = condition(document, "Ordered")
    assert (ordered["status"], ordered["reason"]) == ("True", "CyclesCondensed")
    assert "checkout -> cart -> checkout" in ordered["message"]
    event = eventually(
        lambda: [e for e in kubectl.get("events")["items"] if e["reason"] == "CycleDetected"], what="event of the cycle"
    )[0]
    assert event["type"] == "Warning"
    assert "checkout -> cart -> checkout" in event["message"]
    groups.apply(appgroup({"web": ["cart", "ads"], "checkout": ["cart"]}, ["web", "checkout", "cart", "ads"]))
    mended = groups.wait_condition("Ordered", reason="Ordered")
    assert condition(mended, "Ordered")["lastTransitionTime"] == ordered["lastTransitionTime"]


def test_pods_are_counted_and_listed(groups: AppGroups, simulated_nodes: list[str]) -> None:
    groups.apply(appgroup({"web": ["cart"]}, ["web", "cart"]))
    groups.create_pod("web-1", "web", node=simulated_nodes[0])
    groups.create_pod("cart-1", "cart")
    groups.wait_status(runningWorkloads=1, podsScheduledTotal=1)
    placed = condition(groups.wait_condition("Placed", reason="PodsWaiting"), "Placed")
    assert placed["status"] == "False"
    assert placed["message"] == "1 of 2 members on a node; 1 pod without a node: cart-1"

    groups.create_pod("cart-2", "cart", node=simulated_nodes[7])
    groups.delete_pod("cart-1")
    groups.wait_status(runningWorkloads=2, podsScheduledTotal=2)
    document = groups.wait_condition("Placed", status="True")
    pods = {pod["metadata"]["name"]: pod for pod in groups.pods()}
    assert [(item["pod"], item["hostname"]) for item in document["status"]["podsScheduled"]] == [
        ("web-1", simulated_nodes[0]),
        ("cart-2", simulated_nodes[7]),
    ]
    assert document["status"]["podsScheduled"][0]["replicaId"] == pods["web-1"]["metadata"]["uid"]
    assert document["status"]["podsScheduled"][1]["workload"]["selector"] == "cart"
    assert document["status"]["scheduleStartTime"] == pods["web-1"]["metadata"]["creationTimestamp"]

    groups.delete_pod("web-1")
    groups.wait_status(runningWorkloads=1, podsScheduledTotal=1)
    groups.wait_condition("Placed", reason="WorkloadsWithoutPods")


def test_pods_that_came_before_their_group(groups: AppGroups, simulated_nodes: list[str]) -> None:
    groups.create_pod("web-1", "web", node=simulated_nodes[1])
    groups.apply(appgroup({}, ["web"]))
    groups.wait_status(runningWorkloads=1, podsScheduledTotal=1)


def test_pods_of_an_equal_name_in_another_namespace_do_not_count(
    groups: AppGroups, cluster: LocalCluster, simulated_nodes: list[str]
) -> None:
    elsewhere = AppGroups(cluster, "default")
    elsewhere.create_pod(f"web-{groups.namespace}", "web", node=simulated_nodes[2])
    try:
        groups.apply(appgroup({}, ["web"]))
        groups.create_pod("web-1", "web", node=simulated_nodes[2])
        document = groups.wait_status(runningWorkloads=1)
        assert [item["pod"] for item in document["status"]["podsScheduled"]] == ["web-1"]
        assert groups.settled()
    finally:
        elsewhere.delete_pod(f"web-{groups.namespace}")


def test_a_burst_of_pods_is_few_writes(groups: AppGroups, simulated_nodes: list[str]) -> None:
    groups.apply(appgroup({}, ["web"]))
    before = groups.wait_status()["metadata"]["resourceVersion"]
    began = time.monotonic()
    for number in range(120):
        groups.create_pod(f"web-{number}", "web", node=simulated_nodes[number % len(simulated_nodes)])
    after = groups.wait_status(runningWorkloads=120, podsScheduledTotal=120)["metadata"]["resourceVersion"]
    windows = (time.monotonic() - began) / POD_DELAY
    # Every pod changes three times; a window opens with a change and ends in at most one write.
    assert 1 <= groups.writes_between(before, after) <= windows + 1


def test_the_status_is_ours_and_nothing_else(groups: AppGroups) -> None:
    groups.apply(boutique())
    document = groups.wait_status()
    managers = {item["manager"]: item for item in document["metadata"]["managedFields"]}
    assert set(managers) == {"test", FIELD_MANAGER}
    assert managers[FIELD_MANAGER]["subresource"] == "status"
    assert set(managers[FIELD_MANAGER]["fieldsV1"]) == {"f:status"}
    assert "annotations" not in document["metadata"]
    assert "finalizers" not in document["metadata"]


def test_a_settled_group_is_left_alone(groups: AppGroups, controller: ControllerProcess) -> None:
    groups.apply(boutique())
    version = groups.wait_status()["metadata"]["resourceVersion"]
    groups.apply({**boutique(), "metadata": {"name": "second"}})
    groups.wait_status("second")
    assert groups.get()["metadata"]["resourceVersion"] == version
    assert controller.metric("berth_appgroup_reconciles_total", outcome="failed") == 0


def test_deleted_and_created_anew(groups: AppGroups) -> None:
    groups.apply(boutique())
    groups.wait_status()
    groups.delete("boutique")
    groups.apply(boutique(algorithm="AlternateKahn"))
    assert order_of(groups.wait_status(algorithm="AlternateKahn")) == ORDERS_11["AlternateKahn"]


def test_what_kubectl_get_shows(groups: AppGroups, kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    groups.apply(boutique())
    groups.create_pod("p1-1", "p1", node=simulated_nodes[0])
    groups.wait_status(runningWorkloads=1)
    header, row = kubectl("get", "ag").splitlines()
    assert header.split() == ["NAME", "MEMBERS", "RUNNING", "ALGORITHM", "ORDER", "AGE"]
    assert row.split()[:5] == ["boutique", "11", "1", "KahnSort", "p1,p10,p9,...(11)"]


def test_a_large_group(groups: AppGroups) -> None:
    selectors = names(500)
    chain = {name: [successor] for name, successor in itertools.pairwise(selectors)}
    groups.apply(appgroup(chain, selectors, name="large"))
    assert order_of(groups.wait_status("large")) == " ".join(selectors)


def test_health_and_readiness(groups: AppGroups, controller: ControllerProcess) -> None:
    groups.apply(boutique())
    groups.wait_status()
    assert controller.get("/healthz") == (200, "ok\n")
    assert controller.get("/readyz") == (200, "ok\n")
    eventually(lambda: controller.metric("berth_appgroup_queue_depth") == 0, what="empty queue")
