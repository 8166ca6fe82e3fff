"""SocketStatus on a real API server: its columns, who writes what, and what it refuses."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from agents.node.pinning.status_writer import REPEAT_SECONDS, StatusWriter
from berth.api.socketstatus import (
    API_VERSION,
    CONDITION_PAIRED,
    CONDITION_PINNED,
    KIND,
    PodReport,
    SocketReport,
    SocketStatusStatus,
)
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from hack.harness.cluster import REPOSITORY, Kubectl
from hack.localcluster import LocalCluster

POD = {"uid": "5f0c", "namespace": "shop", "name": "report-1"}
SOCKET: dict[str, Any] = {"socket": 0, "cpus": "0-3,8-11", "cpuCount": 8}


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """Name of a node whose SocketStatus says nothing yet."""
    name = f"node-{secrets.token_hex(4)}"
    kubectl.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}})
    yield name
    kubectl("delete", "sst", name)


def assign(kubectl: Kubectl, node: str, *assignments: dict[str, Any]) -> None:
    kubectl("patch", "sst", node, "--type=merge", "-p", json.dumps({"spec": {"assignments": assignments}}))


def report(kubectl: Kubectl, node: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", "sst", node, "--subresource=status", "--type=merge", "-p", patch)


def test_columns(kubectl: Kubectl, node: str) -> None:
    condition = {
        "type": CONDITION_PINNED,
        "status": "False",
        "reason": "SocketFull",
        "message": "",
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    paired = condition | {"type": CONDITION_PAIRED, "reason": "Waiting"}
    status = {"socketCount": 2, "pinned": "3/4", "violations": 1, "time": "2026-01-31T12:00:00Z"}
    report(kubectl, node, status | {"sockets": [SOCKET], "pods": [POD], "conditions": [condition, paired]})
    head, line = kubectl("get", "sst", node, "-o", "wide").splitlines()
    assert head.split() == ["NAME", "SOCKETS", "PINNED", "VIOLATIONS", "REASON", "PAIRING", "AGE"]
    assert line.split()[:6] == [node, "2", "3/4", "1", "SocketFull", "Waiting"]
    assert "REASON" not in kubectl("get", "socketstatuses", node)


def test_spec_and_status_are_written_apart(kubectl: Kubectl, node: str) -> None:
    report(kubectl, node, {"sockets": [SOCKET]})
    assign(kubectl, node, POD | {"socket": 0})
    found = kubectl.get("sst", node)
    assert found["spec"]["assignments"] == [POD | {"socket": 0}]
    assert found["status"]["sockets"] == [SOCKET]
    assert found["metadata"]["generation"] == 2, "the agent acts on a new generation, which its own writes are not"


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        pytest.param([POD], "socket: Required value", id="no socket"),
        pytest.param([POD | {"socket": -1}], "greater than or equal to 0", id="negative"),
        pytest.param([POD | {"socket": "west"}], "integer", id="no number"),
        pytest.param([POD | {"socket": 0, "interferenceClass": "E"}], "Unsupported value", id="no class"),
        pytest.param([POD | {"socket": 0}, POD | {"socket": 1}], "Duplicate value", id="two sockets for one pod"),
        pytest.param(
            [POD | {"socket": 0, "uid": str(n)} for n in range(513)], "must have at most 512 items", id="too many"
        ),
    ],
)
def test_assignments_that_are_refused(
    kubectl: Kubectl, node: str, assignments: list[dict[str, Any]], text: str
) -> None:
    with pytest.raises(Exception, match=text):
        assign(kubectl, node, *assignments)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        pytest.param({"sockets": [SOCKET | {"cpus": "all"}]}, "cpus", id="no CPUs"),
        pytest.param({"sockets": [SOCKET | {"smtSiblings": ["0-"]}]}, "smtSiblings", id="no siblings"),
        pytest.param({"sockets": [SOCKET, SOCKET]}, "Duplicate value", id="a socket twice"),
        pytest.param({"pods": [POD | {"effectiveCpus": "0;1"}]}, "effectiveCpus", id="no effective CPUs"),
        pytest.param({"violations": -1}, "violations", id="negative count"),
    ],
)
def test_reports_that_are_refused(kubectl: Kubectl, node: str, status: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        report(kubectl, node, status)


def before_caches() -> dict[str, Any]:
    """The definition of before caches were told."""
    crd: dict[str, Any] = yaml.safe_load((REPOSITORY / "crds" / "berth.dev_socketstatuses.yaml").read_text())
    (version,) = crd["spec"]["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    del status["sockets"]["items"]["properties"]["pinnedCaches"], status["pods"]["items"]["properties"]["cache"]
    return crd


async def test_an_agent_tells_a_definition_of_before_what_it_has_fields_for(
    fresh_cluster: Callable[..., LocalCluster],
) -> None:
    cluster = fresh_cluster(crds=False, kwok=False)
    kubectl = Kubectl(cluster, "default")
    cluster.kubectl("create", "-f", "-", input=json.dumps(before_caches()))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd/socketstatuses.berth.dev")
    kubectl.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "n"}})
    socket = SocketReport(socket=0, cpus=frozenset({0, 1, 2, 3}), cpu_count=4, pinned_caches=2)
    pod = PodReport(uid="5f0c", namespace="shop", name="report-1", cache=1)
    status = SocketStatusStatus(socket_count=1, sockets=(socket,), pods=(pod,))
    async with ApiClient(await load_connection(kubeconfig=str(cluster.kubeconfig)), retries=0) as client:
        writer = StatusWriter(client, "n")
        await writer.write(status, 0.0)
        found = kubectl.get("sst", "n")["status"]
        assert (found["sockets"][0]["cpus"], found["pods"]) == ("0-3", [POD])
        assert "pinnedCaches" not in found["sockets"][0]
        crd = str(REPOSITORY / "crds" / "berth.dev_socketstatuses.yaml")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", crd)

        async with asyncio.timeout(60):
            for attempt in itertools.count(1):
                await writer.write(status, attempt * REPEAT_SECONDS)
                found = kubectl.get("sst", "n")["status"]
                if (found["sockets"][0].get("pinnedCaches"), found["pods"][0].get("cache")) == (2, 1):
                    break
