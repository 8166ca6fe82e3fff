"""Faults of real nodes: the API server away, an agent that is killed, one whose clock is wrong, a node that is gone.

The node is gone from its fixture on, and another test comes first: its peers take a window of 90 s to be sure.

Left out: faults of what agents report (tests/integration/test_networktopology_probereports.py).
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.localcluster import LocalCluster
from tests.support.berth_nodes import (
    FAR,
    NAMESPACE,
    NODES,
    REPORTS,
    agent_metric,
    agent_on,
    all_near,
    changed,
    get,
    place_application,
    restarts,
    roll_out,
    topology,
    zone_costs,
)
from tests.support.costs import condition
from tests.support.placing import Stage
from tests.support.real_nodes import bring_back, processes_on, take_away
from tests.support.stepped_clock import MODULE

pytestmark = pytest.mark.timeout(600)

ROUNDS = "berth_probe_rounds_total"
OUTAGE_ROUNDS = 6
"""Rounds of probes that the API server is away for: 30 s, longer than a Lease lasts."""
AGENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/berth-node"
AHEAD = 900
"""Seconds by which a clock is wrong."""
STAYING = {("local-a", "local-b"), ("local-b", "local-a")}
"""Pairs of zones that the node that goes is not in."""


@pytest.fixture(autouse=True)
def _measured(stage: Stage) -> None:
    """The costs of an idle network are known."""
    eventually(lambda: zone_costs(stage).keys() >= STAYING, what="costs of an idle network", timeout=240.0)


def report(cluster: LocalCluster, node: str) -> dict[str, Any]:
    """Status of the node's report."""
    found: dict[str, Any] = get(cluster, f"{REPORTS}/{node}")["status"]
    return found


def restarts_of_agents(cluster: LocalCluster) -> dict[str, int]:
    """Those of controllers that an outage ended may be told later."""
    return {name: count for name, count in restarts(cluster).items() if name.startswith("berth-node-")}


def stay_near(stage: Stage) -> bool:
    """Whether the zones whose nodes stay are near each other."""
    costs = zone_costs(stage)
    return max(costs.get(pair, FAR) for pair in STAYING) < FAR


def test_without_an_api_server_agents_go_on_and_afterwards_everything_does(stage: Stage) -> None:
    cluster = stage.cluster
    eventually(lambda: all_near(stage), what="costs of an idle network", timeout=240.0)
    before = restarts(cluster)
    cluster.kill_apiserver()
    begun = {node: agent_metric(cluster, node, ROUNDS) for node in NODES}
    eventually(
        lambda: min(agent_metric(cluster, node, ROUNDS) - begun[node] for node in NODES),
        accept=lambda rounds: rounds >= OUTAGE_ROUNDS,
        what="rounds without an API server",
        timeout=90.0,
    )
    cluster.start_component("kube-apiserver")
    assert len(zone_costs(stage)) == len(NODES) * (len(NODES) - 1)
    assert place_application(stage, "after-outage", timeout=90.0) in ("local-b", "local-c")
    roll_out(cluster)
    after = restarts(cluster)
    assert after.keys() == before.keys(), "no pod is lost"
    # A controller ends when it cannot keep its Lease, and begins again, once.
    again = {name: after[name] - count for name, count in before.items() if after[name] != count}
    assert not [name for name in again if name.startswith("berth-node-")]
    assert max(again.values(), default=0) <= 1, again
    assert len(zone_costs(stage)) == len(NODES) * (len(NODES) - 1), "all costs are known"
    eventually(lambda: all_near(stage), what="costs of an idle network", timeout=240.0)


def test_an_agent_that_is_killed_begins_again_and_moves_no_cost(stage: Stage) -> None:
    cluster = stage.cluster
    before, name = restarts_of_agents(cluster), agent_on(cluster, "node-2")
    killed = datetime.now(UTC)
    (pid,) = processes_on(cluster, "node-2", "run", "node")
    os.kill(pid, signal.SIGKILL)
    moved = []

    def reported() -> bool:
        if not all_near(stage):
            moved.append(zone_costs(stage))
        return datetime.fromisoformat(report(cluster, "node-2")["time"]) > killed

    eventually(reported, what="a new report", timeout=240.0)
    assert moved == []
    expected = {**before, name: before[name] + 1}
    eventually(lambda: restarts_of_agents(cluster), accept=expected.__eq__, what="one restart")


@pytest.fixture(scope="module")
def gone(stage: Stage) -> Iterator[str]:
    """A node that is switched off, and on again at the end."""
    take_away(stage.cluster, "node-3")
    yield "node-3"
    bring_back(stage.cluster)


@contextmanager
def clock_ahead(cluster: LocalCluster, node: str, seconds: float) -> Iterator[None]:
    """Inside the block the clock of the node's agent is so many seconds ahead; its pod is another, before and after."""
    files = [f"--from-literal=sitecustomize.py={MODULE}", f"--from-literal=clock={seconds} 0"]
    cluster.kubectl("-n", NAMESPACE, "create", "configmap", "clock", *files)
    template = "/spec/template/spec"
    environment = {"PYTHONPATH": "/clock", "CLOCK_FILE": "/clock/clock"}
    operations: list[dict[str, Any]] = [
        {"op": "replace", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}},
        {"op": "add", "path": f"{template}/volumes", "value": [{"name": "clock", "configMap": {"name": "clock"}}]},
        {
            "op": "add",
            "path": f"{template}/containers/0/volumeMounts",
            "value": [{"name": "clock", "mountPath": "/clock"}],
        },
        *(
            {"op": "add", "path": f"{template}/containers/0/env/-", "value": {"name": name, "value": value}}
            for name, value in environment.items()
        ),
    ]

    def replace_pod() -> None:
        # Whichever there is: at the end the DaemonSet's controller may be about to replace it as well.
        chosen = ["-lapp.kubernetes.io/component=node", f"--field-selector=spec.nodeName={node}"]
        cluster.kubectl("-n", NAMESPACE, "delete", "pods", *chosen, timeout=120)

    try:
        with changed(cluster, AGENTS, *operations):
            replace_pod()
            yield
    finally:
        replace_pod()
        cluster.kubectl("-n", NAMESPACE, "delete", "configmap", "clock")


@pytest.mark.usefixtures("gone")
def test_an_agent_whose_clock_is_wrong_is_named_and_moves_no_cost(stage: Stage) -> None:
    """That of the one node that still measures with node-1. Another pod, its first report, and words are paced."""
    unknown = []

    def source_available() -> dict[str, Any]:
        costs = zone_costs(stage)
        if not costs.keys() >= STAYING:
            unknown.append(costs)
        return condition(topology(stage), "SourceAvailable")

    with clock_ahead(stage.cluster, "node-2", AHEAD):
        source = eventually(
            source_available,
            accept=lambda found: "node-2 probed more than a minute from now" in found["message"],
            what="measurements of the future",
            timeout=240.0,
        )
        assert (source["status"], source["reason"]) == ("True", "SomeMeasurementsUnusable")
        assert unknown == []
        # Those of a window of 90 s, in which the machine may have been too busy to measure anything else.
        eventually(lambda: stay_near(stage), what="costs that node-1 measures", timeout=240.0)


def test_a_node_that_is_gone_has_no_costs_and_no_pods_and_the_others_have(stage: Stage, gone: str) -> None:
    cluster = stage.cluster
    others = NODES.keys() - {gone}

    def answered() -> set[str]:
        return {
            node
            for node in others
            for peer in report(cluster, node)["peers"]
            if peer["node"] == gone and "p90Microseconds" in peer
        }

    eventually(answered, accept=lambda left: not left, what=f"reports without answers of {gone}", timeout=150.0)
    assert zone_costs(stage).keys() >= STAYING
    eventually(lambda: stay_near(stage), what="costs of those that stay", timeout=240.0)
    eventually(
        lambda: {taint["key"] for taint in get(cluster, f"/api/v1/nodes/{gone}")["spec"].get("taints", [])},
        accept=lambda taints: "node.kubernetes.io/unreachable" in taints,
        what=f"{gone} known as unreachable",
        timeout=150.0,
    )
    assert [place_application(stage, f"without-{number}") for number in range(2)] == ["local-b", "local-b"]
    grow_old(cluster, gone)
    eventually(lambda: set(zone_costs(stage)), accept=STAYING.__eq__, what="costs of two zones", timeout=90.0)
    eventually(lambda: stay_near(stage), what="costs of those that stay", timeout=240.0)
    complete = eventually(
        lambda: condition(topology(stage), "Complete"),
        accept=lambda found: found["reason"] == "MissingCosts",
        what="what is missing",
    )
    assert "local-a and local-c" in complete["message"]


def grow_old(cluster: LocalCluster, node: str) -> None:
    """Have a quarter of an hour pass for the report of a node that writes none any more."""
    then = (datetime.now(UTC) - timedelta(minutes=16)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = report(cluster, node)
    peers = [{**peer, "lastProbeTime": then} for peer in status["peers"]]
    body = json.dumps({"status": {"time": then, "peers": peers}})
    cluster.kubectl("patch", "probereport", node, "--subresource=status", "--type=merge", "-p", body)
