"""What the differential tests share: our answer to a situation, and the situation on a real API server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import get_args

import msgspec
import numpy as np

from berth.kube.objects import Namespace, Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.framework.framework import Framework
from hack.localcluster.rest import Api
from tests.support.filtering import cycle_of, framework
from tests.support.situations import Manifest, Situation

WORKERS = 12
"""Requests in flight while situations are created."""
_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSIStorageCapacity": "/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities",
    "VolumeAttachment": "/apis/storage.k8s.io/v1/volumeattachments",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
}


@dataclass
class Answer:
    """Where a pod may go."""

    feasible: set[str]
    """Names of the nodes that the filters admit."""
    best: set[str]
    """Names of the feasible nodes with the greatest score."""
    message: str
    """The filters' message."""
    reasons: list[str] = field(default_factory=list)
    """Reasons for rejections, or the one reason that goes for the pod as a whole."""


def build_state(situation: Situation) -> ClusterState:
    """The state that the situation's objects add up to."""
    cache = Cache(clock=lambda: 0.0)
    types = {kind.__name__: kind for kind in get_args(StorageObject)}
    for item in situation.nodes:
        cache.update_node(msgspec.convert(item, Node))
    for item in situation.namespaces:
        cache.update_namespace(msgspec.convert(item, Namespace))
    for item in situation.storage:
        cache.update_storage(msgspec.convert(item, types[item["kind"]]))
    for item in situation.pods:
        pod = msgspec.convert(item, Pod)
        pod.metadata.uid = pod.metadata.uid or pod.key
        cache.update_pod(pod)
    return cache.state


def our_answer(situation: Situation, plugins: Framework | None = None) -> Answer:
    """What our filters (or those of ``plugins``) and scores say."""
    state = build_state(situation)
    pod = msgspec.convert(situation.pod, Pod)
    cycle = cycle_of(pod, state)
    result = (plugins or framework()).filter(cycle)
    totals = framework().score(cycle, result.mask).total
    feasible = np.flatnonzero(result.mask)
    best = [slot for slot in feasible if totals[slot] == totals[feasible].max()]
    return Answer(
        feasible={state.node_name(int(slot)) for slot in feasible},
        best={state.node_name(int(slot)) for slot in best},
        message=result.message(),
        reasons=[result.blocker] if result.blocker is not None else [item.reason for item in result.rejections],
    )


class Stage:
    """Creates situations on an API server."""

    def __init__(self, connect: Callable[[], Api]) -> None:
        """``connect`` opens a connection; each thread has its own."""
        self._connect = connect
        self._local = threading.local()

    def api(self) -> Api:
        """This thread's connection."""
        if not hasattr(self._local, "api"):
            self._local.api = self._connect()
        api: Api = self._local.api
        return api

    def create_all(self, situations: Iterable[Situation]) -> list[Situation]:
        """Create all objects; returns the situations with the objects as the server keeps them."""
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(self.create, situations))

    def create(self, situation: Situation) -> Situation:
        """Create one situation, the pod to place last."""
        return Situation(
            namespaces=[self.put(item) for item in situation.namespaces],
            nodes=[self.put(item) for item in situation.nodes],
            storage=[self.put(item) for item in situation.storage],
            pods=[self.put(item) for item in situation.pods],
            pod=self.put(situation.pod),
            topics=situation.topics,
        )

    def put(self, item: Manifest) -> Manifest:
        """Create an object, give it its status, delete it gracefully if it is to be seen like that."""
        metadata = {k: v for k, v in item["metadata"].items() if k != "deletionTimestamp"}
        collection = _COLLECTIONS[item["kind"]].format(namespace=metadata.get("namespace"))
        path = f"{collection}/{metadata['name']}"
        made: Manifest = self.api().request("POST", collection, {**item, "metadata": metadata})
        if item.get("status") and item["kind"] != "Node":
            patch = {"status": item["status"]}
            content = "application/merge-patch+json"
            made = self.api().request("PATCH", f"{path}/status", patch, content_type=content)
        if "deletionTimestamp" in item["metadata"]:
            made = self.api().request("DELETE", path)
        return made
