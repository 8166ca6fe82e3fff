"""Node agents on a real API server: four on one machine, in three zones.

Left out: latency between real nodes; one machine says whether the figures arrive, not what they are worth.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.addresses import own_address
from tests.support.chosen_constants import chosen_constants
from tests.support.workers import worker_number

ZONES = {"pa-1": "a", "pa-2": "a", "pb-1": "b", "pc-1": "c"}
# Other files have agents as well, in other processes of pytest; below what the kernel gives to who asks for any.
PORTS = {node: port for port, node in enumerate(ZONES, 9500 + 10 * worker_number())}
REPORTS = "/apis/berth.dev/v1alpha1/probereports"


def start(
    cluster: LocalCluster, node: str, namespace: str, directory: Path, environment: dict[str, str] | None = None
) -> ControllerProcess:
    """Start an agent at a pace for tests, or with the variables of another."""
    # Without --no-leader-elect: agents need no Lease, all of them work.
    options = {"name": node, "namespace": namespace, "address": own_address(), "port": PORTS[node], "interval": 0.5}
    options["bandwidth"] = "10G"
    arguments = [f"--node-{name}={value}" for name, value in options.items()]
    brisk = environment or chosen_constants(
        directory / "constants", **{"agents.node.probing.publication.WRITE_SECONDS": 2.0}
    )
    return ControllerProcess.start(
        ["node"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=arguments, environment=brisk
    )


@pytest.fixture(scope="module")
def plane(module_cluster: Any) -> LocalCluster:
    """A cluster with a node and EndpointSlice entries for each agent."""
    cluster: LocalCluster = module_cluster()
    api = cluster.api()
    for node, zone in ZONES.items():
        labels = {"topology.kubernetes.io/zone": zone}
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": node, "labels": labels}})
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "probing"}})
    for node, zone in ZONES.items():
        endpoint = {"addresses": [own_address()], "nodeName": node, "zone": zone, "conditions": {"ready": True}}
        item = {
            "metadata": {"name": node, "labels": {"kubernetes.io/service-name": "berth-node"}},
            "addressType": "IPv4",
            "endpoints": [endpoint],
            "ports": [{"name": "probe", "port": PORTS[node]}],
        }
        api.request("POST", "/apis/discovery.k8s.io/v1/namespaces/probing/endpointslices", item)
    api.close()
    return cluster


@pytest.fixture(scope="module")
def agents(plane: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ControllerProcess]]:
    directory = tmp_path_factory.mktemp("agents")
    running = {node: start(plane, node, "probing", directory) for node in ZONES}
    yield running
    for process in running.values():
        process.stop(check=False)


def report(cluster: LocalCluster, node: str) -> dict[str, Any]:
    api = cluster.api()
    try:
        found: dict[str, Any] = next(
            (item for item in api.request("GET", REPORTS)["items"] if item["metadata"]["name"] == node), {}
        )
        return found
    finally:
        api.close()


def prober_of(agent: ControllerProcess) -> psutil.Process | None:
    children = psutil.Process(agent.pid).children(recursive=True)
    return next((child for child in children if "agents.node.probing.prober" in " ".join(child.cmdline())), None)


@pytest.mark.parametrize("node", ZONES)
def test_every_node_reports_its_peers(plane: LocalCluster, agents: dict[str, ControllerProcess], node: str) -> None:
    # An agent that was there before the others has reported without them.
    others = {name: zone for name, zone in ZONES.items() if name != node}
    found = eventually(
        lambda: report(plane, node),
        accept=lambda item: (
            {peer["node"]: peer.get("method") for peer in item.get("status", {}).get("peers", [])}
            == dict.fromkeys(others, "TCP")
        ),
        what=f"report of {node}",
        timeout=240.0,
    )
    peers = {peer["node"]: peer for peer in found["status"]["peers"]}
    assert {name: peer["zone"] for name, peer in peers.items()} == others
    for peer in peers.values():
        assert 0 < peer["p50Microseconds"] <= peer["p90Microseconds"] <= peer["p99Microseconds"] < 1_000_000
        assert peer["lossPerMille"] < 1000
    assert found["status"]["zone"] == ZONES[node]
    assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == [node]


def test_every_node_advertises_and_reports_its_bandwidth(
    plane: LocalCluster, agents: dict[str, ControllerProcess]
) -> None:
    api = plane.api()
    for node in ZONES:
        found = eventually(
            lambda node=node: api.request("GET", f"/api/v1/nodes/{node}").get("status", {}),  # type: ignore[misc]
            accept=lambda status: "network.aware.com/bandwidth" in status.get("allocatable", {}),
            what=f"bandwidth of {node}",
        )
        assert found["capacity"]["network.aware.com/bandwidth"] == "10G"
    api.close()
    found = eventually(
        lambda: report(plane, "pa-1").get("status", {}).get("bandwidth", {}),
        accept=lambda link: bool(link.get("samples")),
        what="use of the link",
        timeout=120.0,
    )
    assert found["capacityBitsPerSecond"] == 10**10
    assert found["meanBitsPerSecond"] >= 0


def test_kubectl_shows_the_nearest_and_the_farthest_zone(
    plane: LocalCluster, agents: dict[str, ControllerProcess]
) -> None:
    eventually(lambda: report(plane, "pa-1").get("status", {}).get("peers"), what="report of pa-1", timeout=120.0)
    head, line = plane.kubectl("get", "probereports", "pa-1").stdout.splitlines()
    assert head.split() == ["NAME", "ZONE", "PEERS", "P90-NEAREST", "P90-FARTHEST", "LOSS", "AGE"]
    name, zone, count, _, nearest, _, farthest, *_ = line.split()
    assert (name, zone, count) == ("pa-1", "a", "3")
    assert {nearest, farthest} == {"b", "c"}


def test_metrics_have_the_names_of_the_proposal(agents: dict[str, ControllerProcess]) -> None:
    agent = agents["pb-1"]
    labels = {"origin": "pb-1", "destination": "pc-1"}
    for name in ("p50", "p90", "p99"):
        metric = f"netperf_{name}_latency_microseconds"
        eventually(lambda metric=metric: agent.metric(metric, **labels) > 0, what=metric, timeout=60.0)  # type: ignore[misc]
    assert agent.metric("berth_probe_loss_ratio", **labels) < 1
    assert agent.metric("berth_probe_age_seconds", **labels) < 60


def test_a_prober_that_is_killed_is_replaced(agents: dict[str, ControllerProcess]) -> None:
    agent = agents["pc-1"]
    prober = eventually(lambda: prober_of(agent), what="prober")
    assert prober is not None
    prober.kill()
    eventually(lambda: agent.metric("berth_prober_restarts_total") == 1, what="restart", timeout=60.0)
    rounds = agent.metric("berth_probe_rounds_total")
    eventually(lambda: agent.metric("berth_probe_rounds_total") > rounds, what="another round", timeout=60.0)
    successor = prober_of(agent)
    assert successor is not None
    assert successor.pid != prober.pid
    assert agent.running


def test_a_killed_agent_leaves_no_prober_behind(agents: dict[str, ControllerProcess]) -> None:
    agent = agents["pa-2"]
    prober = eventually(lambda: prober_of(agent), what="prober")
    assert prober is not None
    os.kill(agent.pid, signal.SIGKILL)
    agent.process.wait()
    eventually(lambda: not prober.is_running() or prober.status() == psutil.STATUS_ZOMBIE, what="end of the prober")

    def refused() -> bool:
        with socket.socket() as nobody_listens:
            return nobody_listens.connect_ex((own_address(), PORTS["pa-2"])) == errno.ECONNREFUSED

    # The last of its threads takes the port along, some time after the first has gone.
    eventually(refused, what="closed port")


def test_measuring_goes_on_while_the_api_server_is_away(
    plane: LocalCluster, agents: dict[str, ControllerProcess]
) -> None:
    agent = agents["pb-1"]
    plane.stop_component("kube-apiserver", grace=0)
    try:
        rounds = agent.metric("berth_probe_rounds_total")
        eventually(lambda: agent.metric("berth_probe_rounds_total") > rounds + 2, what="rounds", timeout=60.0)
    finally:
        plane.start_component("kube-apiserver")
    plane.kubectl("-n", "probing", "delete", "endpointslice", "pa-2")
    eventually(
        lambda: {peer["node"] for peer in report(plane, "pb-1")["status"]["peers"]},
        accept=lambda peers: peers == {"pa-1", "pc-1"},
        what="report without the agent that is gone",
        timeout=120.0,
    )
    assert agent.running
