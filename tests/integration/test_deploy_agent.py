"""deploy/agent on a real API server: it is accepted, rolls out, and its Service tells agents where the others are.

Left out: the image; nothing runs in the pods of simulated nodes.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agents.node.probing.endpoints import agent_places
from agents.node.probing.responder import DEFAULT_PORT
from agents.node.probing.sampling import NodePlace, choose_peers
from berth.kube.endpoint_slices import EndpointSlice
from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, eventually
from hack.localcluster import LocalCluster

NAMESPACE = "berth-system"
SELECTOR = "labelSelector=kubernetes.io/service-name=berth-node"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices?{SELECTOR}"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def deployed(module_cluster: Any) -> LocalCluster:
    """A cluster of 24 simulated nodes in four zones with the DaemonSet."""
    cluster: LocalCluster = module_cluster(nodes=DEMO_TOPOLOGY, scheduler=True)
    cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "rbac"))
    cluster.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(REPOSITORY / "deploy" / "agent"))
    cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "agent"))
    return cluster


def test_it_rolls_out_to_every_node(deployed: LocalCluster) -> None:
    deployed.kubectl("-n", NAMESPACE, "rollout", "status", "daemonset/berth-node", "--timeout=120s")
    api = deployed.api()
    nodes = {item["metadata"]["name"] for item in api.request("GET", "/api/v1/nodes")["items"]}
    pods = api.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == nodes
    assert all(pod["spec"]["hostNetwork"] and pod["spec"]["serviceAccountName"] == "berth-node" for pod in pods)
    api.close()


def test_agents_find_each_other(deployed: LocalCluster) -> None:
    api = deployed.api()
    nodes = {item["metadata"]["name"]: item for item in api.request("GET", "/api/v1/nodes")["items"]}
    places = eventually(
        lambda: agent_places(msgspec.convert(api.request("GET", SLICES)["items"], list[EndpointSlice]), 0),
        accept=lambda found: found.keys() == nodes.keys(),
        what="EndpointSlices of all agents",
        timeout=120.0,
    )
    assert {name: place.zone for name, place in places.items()} == {
        name: node["metadata"]["labels"][ZONE] for name, node in nodes.items()
    }
    assert {place.port for place in places.values()} == {DEFAULT_PORT}
    peers = choose_peers(
        "node-0" if "node-0" in nodes else min(nodes), [NodePlace(n, p.zone) for n, p in places.items()]
    )
    assert len(peers) == 10
    api.close()


def test_pods_that_violate_the_restricted_standard_do_so_by_their_network_alone(deployed: LocalCluster) -> None:
    """What the API server says of a namespace that admits only restricted pods."""
    warning = deployed.kubectl(
        "label", "namespace", NAMESPACE, "--dry-run=server", "pod-security.kubernetes.io/enforce=restricted"
    ).stderr
    assert "host namespaces" in warning
    for forbidden in ("allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccompProfile"):
        assert forbidden not in warning
