"""Proofs about bindings on a real cluster, from the API server's side: counted, followed, and checked for room."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections import defaultdict
from types import TracebackType
from typing import Any, Self

import msgspec

from berth.kube.objects import Node, Pod
from berth.scheduling.requests import pod_requests
from berth.scheduling.units import resource_units
from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster


def over_committed(cluster: LocalCluster) -> list[str]:
    """Nodes and resources whose pods request more than is allocatable, counted from the API server's objects."""
    api = cluster.api()
    used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for item in api.request("GET", "/api/v1/pods")["items"]:
        pod = msgspec.convert(item, Pod)
        if pod.spec.node_name and not pod.finished:
            used[pod.spec.node_name]["pods"] += 1
            for resource, amount in pod_requests(pod).items():
                used[pod.spec.node_name][resource] += amount
    found = []
    for item in api.request("GET", "/api/v1/nodes")["items"]:
        node = msgspec.convert(item, Node)
        room = node.status.allocatable
        for resource, amount in used[node.metadata.name].items():
            if amount > resource_units(resource, room.get(resource, 0)):
                found.append(f"{node.metadata.name}: {amount} of {room.get(resource, 0)} {resource}")
    api.close()
    return found


def accepted_bindings(cluster: LocalCluster) -> int:
    """Bindings that the API server has accepted since it started, from its own metrics."""
    api = cluster.api()
    _, _, text = api.raw("GET", "/metrics")
    api.close()
    total = 0.0
    for line in text.decode().splitlines():
        if line.startswith("apiserver_request_total{") and 'subresource="binding"' in line and 'code="201"' in line:
            total += float(line.rpartition(" ")[2])
    return int(total)


class BindingHistory:
    """Follows all pods from now on and remembers each node that each pod was ever seen on."""

    def __init__(self, cluster: LocalCluster) -> None:
        """Begin; use it in a ``with`` block."""
        self.nodes: dict[str, list[str]] = {}
        """Nodes in order of appearance, by pod uid."""
        self.bound = threading.Semaphore(0)
        """Counts up with every pod that gets a node."""
        self._cluster = cluster
        self._stop = threading.Event()
        self._problem: Exception | None = None
        self._connection: http.client.HTTPSConnection | None = None
        self._version = cluster.api().request("GET", "/api/v1/pods?limit=1")["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)

    def __enter__(self) -> Self:
        """Follow."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Catch up and stop; a history with a hole is no proof, so its problem is raised."""
        if error is None:
            self._catch_up()
        self._stop.set()
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):  # it has just ended by itself
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(timeout=60)
        if error is None and self._problem is not None:
            raise self._problem

    def _catch_up(self) -> None:
        items = self._cluster.api().request("GET", "/api/v1/pods")["items"]
        newest = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)
        eventually(
            lambda: self._problem is not None or int(self._version) >= newest, what="history of all pods complete"
        )

    def moved(self) -> dict[str, list[str]]:
        """Pods that were on more than one node."""
        return {uid: nodes for uid, nodes in self.nodes.items() if len(nodes) > 1}

    def _follow(self) -> None:
        context = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        address = urllib.parse.urlsplit(self._cluster.server)
        while not self._stop.is_set():
            path = f"/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion={self._version}"
            connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=90, context=context)
            try:
                self._connection = connection
                connection.request("GET", path, headers={"Authorization": f"Bearer {self._cluster.token}"})
                for line in connection.getresponse():
                    self._take(json.loads(line))
            except (OSError, ValueError, http.client.HTTPException) as error:
                if not self._stop.is_set():
                    self._problem = error
                return
            finally:
                connection.close()

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "ERROR":
            raise ValueError(f"the history has a hole: {event['object']}")
        metadata = event["object"]["metadata"]
        self._version = metadata["resourceVersion"]
        node = event["object"].get("spec", {}).get("nodeName") if event["type"] != "BOOKMARK" else None
        if node:
            seen = self.nodes.setdefault(metadata["uid"], [])
            if node not in seen:
                seen.append(node)
                self.bound.release()
