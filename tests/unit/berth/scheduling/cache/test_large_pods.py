"""Of a pod with more entries than anybody needs, what its books need is kept, and how many there were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.meta import MOST_ENTRIES
from berth.kube.objects import Pod
from berth.scheduling.cache.large_pods import BOUNDED_PODS, BoundedPod, entries
from berth.scheduling.requests import pod_requests
from tests.support import builders
from tests.support.desk import Desk
from tests.support.filtering import filtered
from tests.support.placement import Lab, zoned

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUESTS = {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"}
MANY = MOST_ENTRIES + 1
NAMES = {f"k{n}": "1" for n in range(MANY)}
LIST = [f"v{n}" for n in range(MANY)]
FEW = 20
"""Entries that are left of a pod that has too many, and of one that has next to none."""


def document(*, metadata: Any = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    main = {"name": "main", "resources": {"requests": REQUESTS}}
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7", **(metadata or {})},
        "spec": {"schedulerName": "berth-scheduler", "nodeName": "n1", "priority": 5, "containers": [main], **spec},
        "status": {"phase": "Running", **(status or {})},
    }


def read(body: dict[str, Any], kind: type[Pod] = BoundedPod) -> Pod:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def expressions(**fields: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "k", "operator": "In", **fields}]}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(document(metadata={"labels": NAMES}), id="labels"),
        pytest.param(document(metadata={"annotations": NAMES}), id="annotations"),
        pytest.param(document(metadata={"ownerReferences": [{"uid": name} for name in LIST]}), id="owners"),
        pytest.param(document(nodeSelector=NAMES), id="node selector"),
        pytest.param(document(tolerations=[{"key": name} for name in LIST]), id="tolerations"),
        pytest.param(
            document(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [expressions(values=LIST)]}}}),
            id="values of node affinity",
        ),
        pytest.param(
            document(affinity={"podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": NAMES}}]}}),
            id="labels of a term",
        ),
        pytest.param(document(affinity={"podAffinity": {REQUIRED: [{"namespaces": LIST}]}}), id="namespaces"),
        pytest.param(document(topologySpreadConstraints=[{"matchLabelKeys": LIST}]), id="keys of a constraint"),
        pytest.param(document(volumes=[{"name": name} for name in LIST]), id="volumes"),
        pytest.param(document(schedulingGates=[{"name": name} for name in LIST]), id="gates"),
        pytest.param(
            document(initContainers=[{"name": "i", "ports": [{"hostPort": n} for n in range(1, MANY)]}]), id="ports"
        ),
        pytest.param(document(status={"conditions": [{"type": name} for name in LIST]}), id="conditions"),
    ],
)
def test_what_is_kept_of_a_large_pod(body: dict[str, Any]) -> None:
    whole, kept = read(body, Pod), read(body)
    assert entries(kept) < FEW
    assert kept.spec.omitted_entries == entries(whole) > MOST_ENTRIES
    assert (kept.key, kept.metadata.uid, kept.metadata.resource_version) == ("ns/p", "u", "7")
    assert (kept.spec.scheduler_name, kept.spec.node_name, kept.spec.priority) == ("berth-scheduler", "n1", 5)
    assert bool(kept.spec.scheduling_gates) is bool(whole.spec.scheduling_gates)
    assert pod_requests(kept) == pod_requests(whole) == {"cpu": 1500, "memory": 2**30, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("more", "kept"), [pytest.param(0, True, id="as many as are kept"), pytest.param(1, False, id="one more")]
)
def test_the_bound_is_of_all_entries_together(more: int, kept: bool) -> None:
    body = document(nodeSelector={f"k{n}": "1" for n in range(MOST_ENTRIES // 2)})
    rest = MOST_ENTRIES - entries(read(body, Pod)) + more
    body["metadata"]["labels"] = {f"k{n}": "1" for n in range(rest)}
    found, whole = read(body), read(body, Pod)
    assert (found.metadata == whole.metadata, found.spec == whole.spec, not found.spec.omitted_entries) == (kept,) * 3


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "a/x", "b/y"]), st.integers(0, 10**6).map(str))
container = st.fixed_dictionaries(
    {"resources": st.fixed_dictionaries({"requests": amounts})}, optional={"restartPolicy": st.just("Always")}
)


containers = st.lists(container, max_size=3)


@given(main=containers, first=containers, overhead=amounts, more=st.booleans())
def test_its_node_is_charged_what_it_requests(
    main: list[dict[str, Any]], first: list[dict[str, Any]], overhead: dict[str, str], more: bool
) -> None:
    body = document(containers=main, initContainers=first, overhead=overhead, nodeSelector=NAMES)
    if more:
        body["spec"]["resources"] = {"requests": {"cpu": "3", "memory": "1Mi"}}
    assert pod_requests(read(body)) == pod_requests(read(body, Pod))


def test_of_too_many_requests_those_of_all_nodes_are_kept() -> None:
    requests = {f"example.com/{name}": "1" for name in NAMES} | {"memory": "1Gi", "cpu": "1"}
    kept = read(document(containers=[{"resources": {"requests": requests}}]))
    found = pod_requests(kept)
    assert len(found) == MOST_ENTRIES
    assert (found["cpu"], found["memory"]) == (1000, 2**30)


def test_requests_that_cannot_be_read_are_left_out() -> None:
    requests = {"cpu": "much"}
    kept = read(document(nodeSelector=NAMES, containers=[{"resources": {"requests": requests}}]))
    assert (pod_requests(kept), kept.spec.omitted_entries > 0) == ({}, True)


def test_it_waits_and_is_told_so() -> None:
    lab = Lab([zoned("n1")])
    body = document(nodeSelector=NAMES, nodeName="")
    result = filtered(read(body), lab.cache.state)
    assert not result.feasible
    assert f"the pod has {entries(read(body, Pod))} labels, annotations, selectors" in result.message()


def test_a_controller_follows_it_so() -> None:
    desk = Desk()
    watch = desk.controller.watches["pods"]
    for number, node in enumerate(("", "n1")):
        body = document(nodeSelector=NAMES, nodeName=node, metadata={"labels": NAMES, "uid": node})
        body["metadata"] |= {"name": f"p{number}", "resourceVersion": str(number + 1)}
        watch._apply(msgspec.json.encode({"type": "ADDED", "object": body}))
    assert watch.resource is BOUNDED_PODS
    assert [entries(pod) < FEW for pod in watch.objects.values()] == [True, True]
    room = desk.cache.state.used[desk.cache.state.node_index["n1"]]
    assert room[0] == 1500
    plain = builders.pod("beside", spec={"schedulerName": "berth-scheduler"})
    assert filtered(plain, desk.cache.state).feasible == 2


READ = {
    "controller.kubernetes.io/pod-deletion-cost": "-1",
    "berth.dev/admitted-bandwidth": "{}",
    "berth.dev/socket": "1",
    "kubernetes.io/ingress-bandwidth": "1M",
    "kubernetes.io/egress-bandwidth": "1M",
}


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        pytest.param("n1", READ, id="placed"),
        pytest.param("", {**READ, "berth.dev/decision": "{}", "other": "text"}, id="waiting"),
    ],
)
def test_of_a_placed_pod_the_annotations_are_kept_that_are_read(node: str, kept: dict[str, str]) -> None:
    annotations = {**READ, "berth.dev/decision": "{}", "other": "text"}
    assert read(document(metadata={"annotations": annotations}, nodeName=node)).metadata.annotations == kept
