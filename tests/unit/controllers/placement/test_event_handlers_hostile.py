"""Whatever an object holds that a watch shows: it counts or is left out, and pods beside it are placed all the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import inspect

from berth.api.labels import (
    ANNOTATION_ADMITTED_BANDWIDTH,
    ANNOTATION_DECISION,
    ANNOTATION_SPREAD,
    LABEL_APPGROUP,
    LABEL_REGION,
    LABEL_WORKLOAD,
    LABEL_ZONE,
    SCHEDULER_NAME,
)
from berth.kube import resources
from berth.kube.decoding import ObjectDecoder
from berth.kube.resources import Resource
from controllers.placement.event_handlers import STORAGE
from tests.support import kinds
from tests.support.desk import Desk, handler_failures
from tests.support.documents import HOSTILE, Path, full, paths, replaced
from tests.support.placement import chain, group_object, lone, member

HEADER = {"uid": "it", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _pod(**spec: Any) -> dict[str, Any]:
    """A member of the AppGroup ``shop`` with an entry in every list and map, so that it counts wherever pods do."""
    body = full(inspect.type_info(resources.PODS.type))
    body["metadata"] |= HEADER | {
        "name": "it",
        "namespace": "default",
        "labels": {LABEL_APPGROUP: "shop", LABEL_WORKLOAD: "a", "app": "it"},
        "annotations": {ANNOTATION_ADMITTED_BANDWIDTH: '{"b":7}', ANNOTATION_DECISION: "{}"},
        "deletionTimestamp": None,
    }
    body["status"]["phase"] = "Pending"
    body["spec"]["affinity"]["nodeAffinity"][REQUIRED] = None
    unsupported: dict[str, Any] = {"schedulingGroup": None, "resourceClaims": [], "schedulingGates": []}
    body["spec"] |= {"schedulerName": SCHEDULER_NAME, "nodeName": "", "nodeSelector": {}, **unsupported, **spec}
    return dict(body)


def _group() -> dict[str, Any]:
    demand = {"minBandwidth": "10M", "maxNetworkCost": 50}
    body = kinds.app_group(kinds.workload("a", "b", **demand), kinds.workload("b"), name="shop")
    body["metadata"] |= HEADER | {"namespace": "default", "annotations": {ANNOTATION_SPREAD: "node"}}
    order = [{"workload": kinds.ref(selector), "index": index} for index, selector in enumerate("ab", start=1)]
    return {**body, "status": {"topologyOrder": order, "conditions": [{"type": "Ordered", "status": "True"}]}}


def _topology() -> dict[str, Any]:
    link = {"networkCost": 5, "bandwidthCapacity": "1G", "bandwidthAllocated": "1M"}
    body = kinds.network_topology(kinds.weight_set(z1={"z2": link}), kinds.weight_set("Dijkstra", z1={"z2": 5}))
    body["metadata"] |= HEADER | {"namespace": "default"}
    return {**body, "status": {"nodeCount": 1, "conditions": [{"type": "Complete", "status": "True"}]}}


def _other(resource: Resource[Any], **spec: Any) -> dict[str, Any]:
    """An object of another kind, with an entry in every list and map."""
    body = full(inspect.type_info(resource.type))
    body["metadata"] |= HEADER | {"name": "1", "namespace": "default" if resource.namespaced else ""}
    body["metadata"]["deletionTimestamp"] = None
    if resource is resources.NODES:
        body["metadata"]["labels"] = {LABEL_ZONE: "z1", LABEL_REGION: "r1"}
        body["status"]["allocatable"] = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    if spec:
        body["spec"] |= spec
    return dict(body)


OTHERS: tuple[Resource[Any], ...] = (resources.NODES, resources.NAMESPACES, *STORAGE)
SHOWN: list[tuple[Resource[Any], dict[str, Any]]] = [
    (resources.PODS, _pod()),
    (resources.PODS, _pod(volumes=[])),
    (resources.PODS, _pod(volumes=[], affinity=None, topologySpreadConstraints=[])),
    (resources.PODS, _pod(nodeName="n1")),
    (resources.APP_GROUPS, _group()),
    (resources.NETWORK_TOPOLOGIES, _topology()),
    (resources.SERVICES, _other(resources.SERVICES, selector={"app": "it"}, trafficDistribution="PreferClose")),
    *((resource, _other(resource)) for resource in OTHERS),
]
# The API server takes only quantities as amounts; a node with another one is left out.
PATHS: list[list[Path]] = [
    [
        path
        for path in paths(body)
        if path and path[1:] not in ((), ("name",), ("namespace",)) and path[:2] != ("status", "allocatable")
    ]
    for _, body in SHOWN
]


@settings(max_examples=500, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(which=st.integers(0, len(SHOWN) - 1), data=st.data())
def test_an_object_that_makes_no_sense_stops_nobody(which: int, data: st.DataObject) -> None:
    """It comes, its own pods are tried, others are placed, and it goes."""
    resource, body = SHOWN[which]
    odd = replaced(body, data.draw(st.sampled_from(PATHS[which])), data.draw(st.sampled_from(HOSTILE)))
    try:
        item = ObjectDecoder(resource.type).decode(json.dumps(odd).encode())
    except ValueError:
        return  # the reflector leaves it out and counts it
    before, desk = handler_failures(), Desk()
    desk.see("appgroups", group_object("shop", *chain("a", "b", maxNetworkCost=50), order=("a", "b")))
    desk.see("appgroups", group_object("good", *chain("a", "b"), order=("a", "b")))
    desk.pods(member("shop-b", "b", on="n1"))
    desk.see(resource.plural, item)
    desk.decide()
    desk.pods(lone("other"), member("good-a", "a", group="good"), member("good-b", "b", group="good"))
    assert {"other", "good-a", "good-b"} <= {assumed.decision.pod.metadata.name for assumed in desk.decide()}
    desk.lose(resource.plural, item)
    desk.decide()
    assert handler_failures() == before
