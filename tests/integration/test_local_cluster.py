"""The local cluster on which the other integration tests stand: started, used, crashed, removed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hack.localcluster import ClusterError, LocalCluster, NodeSpec, cli, processes
from tests.support.cluster import Kubectl, bound_pod, eventually


def phases(kubectl: Kubectl) -> list[str]:
    """Phases of the namespace's pods."""
    return [pod["status"]["phase"] for pod in kubectl.get("pods")["items"]]


def test_pods_bound_to_simulated_nodes_become_running(kubectl: Kubectl, simulated_nodes: list[str]) -> None:
    kubectl.apply(*(bound_pod(f"p{number}", node) for number, node in enumerate(simulated_nodes)))
    eventually(lambda: phases(kubectl), accept=lambda found: found == ["Running"] * 24, what="24 pods Running")
    pods = kubectl.get("pods")["items"]
    assert len({pod["status"]["podIP"] for pod in pods}) == 24
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in pods)
