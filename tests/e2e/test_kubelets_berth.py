"""Berth on real nodes: deploy/ applied with the project's image, which the kubelets run.

Left out: the cluster itself (test_kubelets.py), and what breaks (test_kubelets_faults.py).
"""

from __future__ import annotations

import json
import time

import pytest

from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets import berth_image
from tests.support.berth_nodes import (
    CONTROLLERS,
    DELAY_MILLISECONDS,
    NAMESPACE,
    NODES,
    REPORTS,
    agent_on,
    all_near,
    far_zones,
    get,
    place_application,
    pods,
    roll_out,
)
from tests.support.placing import Stage
from tests.support.real_nodes import delayed

pytestmark = pytest.mark.timeout(900)


def test_every_pod_runs_from_our_image_without_having_ended(deployed: LocalCluster) -> None:
    running = pods(deployed)
    assert len(running) == 2 * len(CONTROLLERS) + len(NODES)
    for pod in running:
        (status,) = pod["status"]["containerStatuses"]
        assert (pod["status"]["phase"], status["ready"], status["restartCount"]) == ("Running", True, 0)
        assert status["image"] == berth_image.TAG
    agents = [pod for pod in running if pod["metadata"]["name"].startswith("berth-node-")]
    assert {pod["spec"]["nodeName"] for pod in agents} == set(NODES)


def test_replicas_of_a_controller_are_on_different_nodes(deployed: LocalCluster) -> None:
    for name in CONTROLLERS:
        places = [
            pod["spec"]["nodeName"] for pod in pods(deployed) if pod["metadata"]["name"].startswith(f"berth-{name}-")
        ]
        assert len(set(places)) == 2, name


def test_one_replica_of_each_controller_leads(deployed: LocalCluster) -> None:
    def holders() -> dict[str, str]:
        leases = get(deployed, f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")
        return {lease["metadata"]["name"]: lease["spec"].get("holderIdentity", "") for lease in leases}

    names = {f"berth-{name}" for name in CONTROLLERS}
    found = eventually(holders, accept=lambda seen: all(seen.get(name) for name in names), what="leaders")
    running = [pod["metadata"]["name"] for pod in pods(deployed)]
    for name in names:
        assert sum(found[name].startswith(pod) for pod in running) == 1


def test_every_agent_reports_all_other_nodes_as_its_own_account(deployed: LocalCluster) -> None:
    def measured() -> dict[str, set[str]]:
        return {
            report["metadata"]["name"]: {
                peer["node"] for peer in report.get("status", {}).get("peers", []) if "p90Microseconds" in peer
            }
            for report in get(deployed, REPORTS)
        }

    wanted = {name: set(NODES) - {name} for name in NODES}
    eventually(measured, accept=lambda found: found == wanted, what="reports of all agents", timeout=240.0)
    zones = {report["metadata"]["name"]: report["status"]["zone"] for report in get(deployed, REPORTS)}
    assert zones == NODES


def test_an_agents_pod_probes_by_hand(deployed: LocalCluster) -> None:
    others = [
        address["address"]
        for node in get(deployed, "/api/v1/nodes")
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP" and node["metadata"]["name"] != "node-1"
    ]
    command = ["berth-agent", "probe", *others, "--rounds", "2", "-o", "json", "--quiet"]
    answer = deployed.kubectl("-n", NAMESPACE, "exec", agent_on(deployed, "node-1"), "--", *command).stdout
    assert {host["address"]: host["method"] for host in json.loads(answer)["hosts"]} == dict.fromkeys(others, "TCP")


def test_logs_are_served_and_no_request_was_forbidden(deployed: LocalCluster) -> None:
    for pod in pods(deployed):
        log = deployed.kubectl("-n", NAMESPACE, "logs", pod["metadata"]["name"]).stdout
        lines = [json.loads(line) for line in log.splitlines()]
        assert lines
        assert [line for line in lines if line.get("status") == 403] == []
        assert [line for line in lines if line["level"] in ("error", "critical")] == []


def test_services_have_the_pods_of_their_part(deployed: LocalCluster) -> None:
    slices = get(deployed, f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
    counts: dict[str, int] = {}
    for item in slices:
        service = item["metadata"]["labels"]["kubernetes.io/service-name"]
        counts[service] = counts.get(service, 0) + len(item["endpoints"] or [])
    assert counts == {**{f"berth-{name}": 2 for name in CONTROLLERS}, "berth-node": 3}


def test_it_can_be_applied_again_and_the_strict_policies_over_it(deployed: LocalCluster) -> None:
    before = {pod["metadata"]["uid"] for pod in pods(deployed)}
    deployed.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "policies" / "deny"))
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/appgroups.berth.dev"
    assert get(deployed, path)["spec"]["validationActions"] == ["Deny"]
    deployed.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy"))
    assert get(deployed, path)["spec"]["validationActions"] == ["Warn"]
    roll_out(deployed)
    assert {pod["metadata"]["uid"] for pod in pods(deployed)} == before


def test_controllers_are_admitted_where_pods_must_be_restricted(deployed: LocalCluster) -> None:
    """But for the agents, which are in the host's network."""
    label = "pod-security.kubernetes.io/enforce=restricted"
    warning = deployed.kubectl("label", "namespace", NAMESPACE, "--dry-run=server", label).stderr
    assert "berth-node" in warning
    for name in CONTROLLERS:
        assert f"berth-{name}" not in warning


# What is measured, and what it does to placement


def test_a_delay_shows_in_the_costs_and_moves_the_next_application(stage: Stage) -> None:
    """It shows within a minute where the machine has nothing else to do."""
    eventually(lambda: all_near(stage), what="costs of an idle network", timeout=240.0)
    first = place_application(stage, "first")
    (node,) = (name for name, zone in NODES.items() if zone == first)
    (other,) = set(NODES.values()) - {"local-a", first}
    with delayed(stage.cluster, node, DELAY_MILLISECONDS):
        begun = time.monotonic()
        eventually(lambda: far_zones(stage) == {first}, what=f"{first} being far", timeout=150.0)
        print(f"the delay shows after {time.monotonic() - begun:.0f} s")
        assert place_application(stage, "second") == other
    begun = time.monotonic()
    # The 90th percentile of a window of 90 s forgets the delay when nine tenths of the window are over.
    eventually(lambda: all_near(stage), what="costs as they were", timeout=240.0)
    print(f"its end shows after {time.monotonic() - begun:.0f} s")
