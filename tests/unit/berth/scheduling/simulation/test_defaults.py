"""What the API server fills in when a pod is created, after its documentation and KEP-2837."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import ObjectMeta, PersistentVolumeClaim, Pod
from berth.kube.priorities import PriorityClass
from berth.scheduling.simulation.defaults import default_claim, default_pod


def defaulted(spec: dict[str, Any], **priorities: PriorityClass) -> Pod:
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert default_pod(pod, priorities) is None
    return pod


def container(**resources: dict[str, str]) -> dict[str, Any]:
    return {"name": "c", "resources": resources}


@pytest.mark.parametrize(
    ("resources", "requests"),
    [
        ({"limits": {"cpu": "2"}}, {"cpu": "2"}),
        ({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"requests": {"cpu": "1"}}, {"cpu": "1"}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}, {"cpu": "0"}),
    ],
    ids=["limit alone", "request for one of two", "no limit", "an explicit zero stays"],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_limit_is_a_request_unless_one_is_stated(
    field: str, resources: dict[str, Any], requests: dict[str, str]
) -> None:
    spec = defaulted({field: [container(**resources)]}).spec
    [found] = spec.containers or spec.init_containers
    assert found.resources.requests == requests


@pytest.mark.parametrize(
    ("pod_level", "in_container", "requests"),
    [
        ({"limits": {"cpu": "2"}}, {}, {"cpu": "2"}),
        ({"limits": {"cpu": "2"}}, {"requests": {"cpu": "1"}}, {}),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, {}, {"cpu": "1"}),
    ],
    ids=["limit alone", "a container requests it", "request stated"],
)
def test_pod_level_requests(pod_level: Any, in_container: Any, requests: dict[str, str]) -> None:
    pod = defaulted({"containers": [container(**in_container)], "resources": pod_level})
    assert pod.spec.resources is not None
    assert pod.spec.resources.requests == requests


@pytest.mark.parametrize(("host", "port"), [(True, 80), (False, 0)], ids=["host network", "pod network"])
def test_ports_of_the_host_network_are_host_ports(host: bool, port: int) -> None:
    pod = defaulted({"hostNetwork": host, "containers": [{"name": "c", "ports": [{"containerPort": 80}]}]})
    assert pod.spec.containers[0].ports[0].host_port == port


@pytest.mark.parametrize(
    ("stated", "added"),
    [
        ([], ["not-ready", "unreachable"]),
        ([{"operator": "Exists"}], []),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}], ["unreachable"]),
        ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}], None),
    ],
    ids=["none", "everything", "one of two", "another effect"],
)
def test_lost_nodes_are_tolerated_for_a_while(stated: list[dict[str, str]], added: list[str] | None) -> None:
    pod = defaulted({"tolerations": stated})
    new = pod.spec.tolerations[len(stated) :]
    expected = ["not-ready", "unreachable"] if added is None else added
    assert [item.key for item in new] == [f"node.kubernetes.io/{name}" for name in expected]
    assert {item.toleration_seconds for item in new} <= {300}


GOLD = PriorityClass(metadata=ObjectMeta(name="gold"), value=100)
BASE = PriorityClass(metadata=ObjectMeta(name="base"), value=5, global_default=True)


@pytest.mark.parametrize(
    ("name", "classes", "priority"),
    [
        ("gold", {"gold": GOLD, "base": BASE}, 100),
        ("", {"gold": GOLD, "base": BASE}, 5),
        ("", {"gold": GOLD}, 0),
        ("system-node-critical", {}, 2_000_001_000),
    ],
    ids=["named", "global default", "no default", "built in"],
)
def test_priority(name: str, classes: dict[str, PriorityClass], priority: int) -> None:
    assert defaulted({"priorityClassName": name}, **classes).spec.priority == priority


def test_an_unknown_priority_class_is_a_problem() -> None:
    pod = msgspec.convert({"spec": {"priorityClassName": "silver"}}, Pod)
    problem = default_pod(pod, {"gold": GOLD})
    assert problem is not None
    assert "there is no PriorityClass 'silver'" in problem
    assert "gold, system-cluster-critical" in problem


def test_the_scheduler_is_kubernetes_own_unless_stated() -> None:
    assert defaulted({}).spec.scheduler_name == "default-scheduler"
    assert defaulted({"schedulerName": "mine"}).spec.scheduler_name == "mine"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [({}, "fast"), ({"storageClassName": ""}, ""), ({"storageClassName": "slow"}, "slow"), ({"volumeName": "v"}, None)],
    ids=["none stated", "explicitly none", "stated", "bound by hand"],
)
def test_default_storage_class(spec: dict[str, Any], expected: str | None) -> None:
    claim = msgspec.convert({"spec": spec}, PersistentVolumeClaim)
    default_claim(claim, "fast")
    assert claim.spec.storage_class_name == expected
