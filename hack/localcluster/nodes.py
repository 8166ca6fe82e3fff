"""Simulated nodes: their Node objects, and creating thousands of them in seconds."""

from __future__ import annotations

import datetime
import http
import ipaddress
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hack.localcluster.components import SIMULATED_NODE
from hack.localcluster.rest import Api, ApiError
from hack.localcluster.tools import kubernetes_version
from hack.localcluster.topology import NodeSpec

WORKERS = 32
"""Requests in flight while nodes are created."""

KUBELET_VERSION = f"{kubernetes_version()}-simulated"
"""What simulated nodes say that they run: a version that tools can parse."""

_FIRST_ADDRESS = ipaddress.ip_address("172.16.0.1")


def manifest(spec: NodeSpec, *, address: str, now: datetime.datetime) -> dict[str, Any]:
    """Node object of *spec*, complete with a Ready status: the API server keeps the status of a created node.

    Args:
        spec: the node.
        address: its InternalIP.
        now: time stamp of its conditions.
    """
    stamp = now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    annotation, value = SIMULATED_NODE
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": {
                # The beta labels too, as a kubelet does: kube-controller-manager patches every node that lacks them.
                **{f"{prefix}kubernetes.io/arch": "amd64" for prefix in ("", "beta.")},
                **{f"{prefix}kubernetes.io/os": "linux" for prefix in ("", "beta.")},
                **spec.labels,
                "kubernetes.io/hostname": spec.name,
                "topology.kubernetes.io/region": spec.region,
                "topology.kubernetes.io/zone": spec.zone,
            },
            "annotations": {**spec.annotations, annotation: value},
        },
        "spec": {"taints": [dict(taint) for taint in spec.taints]},
        "status": {
            "phase": "Running",
            "capacity": dict(spec.capacity),
            "allocatable": dict(spec.allocatable),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": spec.name}],
            "conditions": [_condition("Ready", "True", "KubeletReady", stamp)]
            + [
                _condition(f"{kind}Pressure", "False", f"KubeletHasNo{kind}Pressure", stamp)
                for kind in ("Memory", "Disk", "PID")
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": KUBELET_VERSION,
                "containerRuntimeVersion": "simulated://1.0.0",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "osImage": "",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }


def _condition(kind: str, status: str, reason: str, stamp: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "simulated node",
        "lastHeartbeatTime": stamp,
        "lastTransitionTime": stamp,
    }


def manifests(
    specs: Iterable[NodeSpec], *, offset: int = 0, now: datetime.datetime | None = None
) -> list[dict[str, Any]]:
    """Node objects of *specs* with consecutive addresses, starting *offset* addresses after the first."""
    moment = now or datetime.datetime.now(datetime.UTC)
    return [
        manifest(spec, address=str(_FIRST_ADDRESS + offset + number), now=moment) for number, spec in enumerate(specs)
    ]


def create(
    connect: Callable[[], Api], objects: Sequence[dict[str, Any]], *, workers: int = WORKERS
) -> tuple[list[str], list[str]]:
    """Create the Node *objects*; return the names created and those that existed already and were left alone.

    Args:
        connect: makes a connection; called once per worker.
        objects: Node objects.
        workers: requests in flight.

    Raises:
        ApiError: the API server refuses a node.
        OSError: the API server cannot be reached.
    """

    def one(api: Api, item: dict[str, Any]) -> bool:
        try:
            api.request("POST", "/api/v1/nodes", item)
        except ApiError as error:
            if error.status != http.HTTPStatus.CONFLICT:
                raise
            return False
        return True

    return _in_parallel(connect, objects, one, workers=workers)


def delete(
    connect: Callable[[], Api], objects: Sequence[dict[str, Any]], *, workers: int = WORKERS
) -> tuple[list[str], list[str]]:
    """Delete the Node *objects* by name; return the names deleted and those that were not there."""

    def one(api: Api, item: dict[str, Any]) -> bool:
        try:
            api.request("DELETE", f"/api/v1/nodes/{item['metadata']['name']}")
        except ApiError as error:
            if error.status != http.HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    return _in_parallel(connect, objects, one, workers=workers)


def _in_parallel(
    connect: Callable[[], Api],
    objects: Sequence[dict[str, Any]],
    action: Callable[[Api, dict[str, Any]], bool],
    *,
    workers: int,
) -> tuple[list[str], list[str]]:
    local = threading.local()

    def run(item: dict[str, Any]) -> tuple[str, bool]:
        if not hasattr(local, "api"):
            local.api = connect()
        return item["metadata"]["name"], action(local.api, item)

    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(objects)))) as pool:
        results = list(pool.map(run, objects))
    return [name for name, done in results if done], [name for name, done in results if not done]
