"""The scheduler that says what a machine allows: it binds what has room, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.schedperf.bound import Bound
from hack.harness.cluster import Kubectl, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.errors import ClusterError


def _pod(name: str, *, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.invalid/main:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"schedulerName": Bound.scheduler_name, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _nodes(kubectl: Kubectl) -> dict[str, str]:
    return {item["metadata"]["name"]: item["spec"].get("nodeName", "") for item in kubectl.get("pods")["items"]}


@pytest.mark.parametrize("events", [False, True], ids=["bindings alone", "with Events"])
def test_pods_with_room_are_bound(
    cluster: LocalCluster, simulated_nodes: list[str], kubectl: Kubectl, tmp_path: Path, *, events: bool
) -> None:
    kubectl.apply(_pod("before"), _pod("large", cpu="100"), _pod("gated", schedulingGates=[{"name": "berth.dev/test"}]))
    bound = Bound(cluster, tmp_path, events=events)
    bound.start()
    try:
        kubectl.apply(_pod("after"))
        nodes = eventually(lambda: _nodes(kubectl), accept=lambda found: bool(found["before"] and found["after"]))
        # Which nodes they are is in the program's own test: how many were known when a pod came is chance here.
        assert {nodes["before"], nodes["after"]} <= set(simulated_nodes)
        assert not nodes["large"]
        assert not nodes["gated"]
        if events:
            eventually(lambda: _told(kubectl), accept=lambda told: told == {"before", "after"})
    finally:
        bound.stop()
    if not events:
        assert not _told(kubectl)


def _told(kubectl: Kubectl) -> set[str]:
    items = kubectl.get("events.events.k8s.io")["items"]
    return {item["regarding"]["name"] for item in items if item["reason"] == "Scheduled"}


def test_a_start_that_fails_says_why(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalCluster, "token", "nobody")
    with pytest.raises(ClusterError, match=r"did not begin: .*401 Unauthorized"):
        Bound(cluster, tmp_path, events=False).start()
