"""The networktopology controller when things break: killed at any moment, restarted, the API server gone, rights or
the kind itself missing.

Left out: what is computed (test_networktopology_costs.py), and the Lease (tests of berth/kube).
"""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import Kubectl, eventually, install_crds
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.chosen_constants import BRISK, chosen_constants
from tests.support.costs import (
    EIGHT_NODES,
    REGION_COSTS,
    ZONE_COSTS,
    Costs,
    condition,
    create_nodes,
    names,
    settled,
    table,
    user_defined,
)
from tests.support.topologies import probe_report, probed_peer, weight_set

KILLS = 8
"""Rounds of the test that kills the controller; each ends at another moment."""
LONGEST_LIFE = 1.2
"""Seconds after which a controller that is to be killed has surely done its first writes."""

Start = Callable[..., ControllerProcess]


@pytest.fixture
def start(eight_nodes: LocalCluster, tmp_path: Path) -> Iterator[Start]:
    """Starts controllers, which end with the test."""
    started: list[ControllerProcess] = []

    def run(kubeconfig: Path | None = None) -> ControllerProcess:
        process = ControllerProcess.start(
            ["networktopology"],
            kubeconfig=kubeconfig or eight_nodes.kubeconfig,
            directory=tmp_path,
            arguments=["--no-leader-elect"],
            environment=chosen_constants(tmp_path / "constants", **BRISK),
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.stop(check=False)


def state(costs: Costs) -> tuple[Any, Any]:
    """Spec and status without what depends on the clock."""
    topology = costs.get()
    status = {key: value for key, value in topology["status"].items() if not key.endswith("Time")}
    status["conditions"] = [
        {key: value for key, value in item.items() if key != "lastTransitionTime"} for item in status["conditions"]
    ]
    return topology["spec"], status


def test_a_restart_writes_nothing(costs: Costs, start: Start) -> None:
    costs.publish(n1_n3=4, n3_n1=5)
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS), weight_set("Mine", zones={"a>b": 1}))
    first = start()
    costs.wait_names("UserDefined", "Mine", "Dijkstra", "NetperfCosts")
    assert first.stop() == 0
    before = costs.version()
    second = start().wait_ready()
    second.wait_until(
        lambda: second.metric("berth_networktopology_measurements", namespace=costs.kubectl.namespace),
        what="a complete pass",
    )
    assert second.stop() == 0
    assert costs.version() == before


def test_killed_at_any_moment_it_ends_in_the_same_state(costs: Costs, start: Start) -> None:
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    moments = random.Random(20260131)
    for number in range(KILLS):
        costs.publish(n1_n3=number + 1, n3_n1=2 * number + 1)
        process = start()
        process.wait_until(partial(getattr, process, "health_port"), what="start")
        # The delay is the moment under test, not a wait for anything.
        time.sleep(moments.uniform(0.0, LONGEST_LIFE))
        process.kill()
    survivor = start()
    costs.wait_zones("Dijkstra", {"Z1>Z2": KILLS, "Z2>Z1": 2 * KILLS - 1})
    survived = state(costs)
    survivor.stop()
    # The same inputs given to an object that never saw a crash.
    costs.kubectl("delete", "nt", "net")
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    start()
    costs.wait_zones("Dijkstra", {"Z1>Z2": KILLS, "Z2>Z1": 2 * KILLS - 1})
    spec, status = state(costs)
    assert survived[0] == spec
    assert survived[1] | without_generation(survived[1]) == status | without_generation(status)


def without_generation(status: dict[str, Any]) -> dict[str, Any]:
    """What differs between an old object and a new one in the same state."""
    conditions = [{**item, "observedGeneration": 0} for item in status["conditions"]]
    return {"observedGeneration": 0, "conditions": conditions}


def test_changes_while_nobody_watches_are_taken_in(costs: Costs, start: Start) -> None:
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    first = start()
    costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    first.kill()
    costs.kubectl("delete", "configmap", "netperf")
    start()
    assert table(costs.wait_names("UserDefined", "Dijkstra"), "Dijkstra") == ZONE_COSTS


def test_a_restarted_api_server_is_found_again(fresh_cluster: Callable[..., LocalCluster], tmp_path: Path) -> None:
    cluster = fresh_cluster(kwok=False)
    create_nodes(cluster)
    costs = Costs(Kubectl(cluster, "default"))
    costs.publish(n1_n3=4)
    costs.create()
    with ControllerProcess.start(["networktopology"], kubeconfig=cluster.kubeconfig, directory=tmp_path) as controller:
        costs.wait_zones("Dijkstra", {"Z1>Z2": 4})
        cluster.kill_apiserver()
        cluster.restart_apiserver()
        costs.publish(n1_n3=5)
        costs.wait_zones("Dijkstra", {"Z1>Z2": 5})
        costs.kubectl("patch", "nt", "net", "--type=merge", "-p", '{"spec": {"configmapName": "other"}}')
        costs.wait_names()
        create_nodes(cluster, {"n-9": ("us-west-1", "Z1")})
        costs.wait(lambda found: found["status"]["nodeCount"] == 9, what="nine nodes")
        assert controller.stop() == 0


def test_a_kind_that_comes_later_is_waited_for(fresh_cluster: Callable[..., LocalCluster], tmp_path: Path) -> None:
    cluster = fresh_cluster(kwok=False, crds=False)
    with ControllerProcess.start(
        ["networktopology"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=["--no-leader-elect"]
    ) as controller:
        status, problem = controller.wait_until(
            lambda: controller.get("/readyz"), accept=lambda answer: "cannot be listed" in answer[1], what="a problem"
        )
        assert status == 503
        assert "networktopologies.networktopology.diktyo.x-k8s.io cannot be listed" in problem
        assert "apply the manifests in crds/" in problem
        install_crds(cluster)
        controller.wait_ready()
        costs = Costs(Kubectl(cluster, "default"))
        costs.create(user_defined(zones={"a>b": 3}), configmap="")
        costs.wait_zones("Dijkstra", {"a>b": 3})


RIGHTS = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {
        "apiGroups": ["networktopology.diktyo.x-k8s.io"],
        "resources": ["networktopologies", "networktopologies/status"],
        "verbs": ["get", "list", "watch", "patch"],
    },
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]


@pytest.fixture
def limited(eight_nodes: LocalCluster, costs: Costs, tmp_path: Path) -> Path:
    """Kubeconfig of an account with the rights of the controller but for ConfigMaps."""
    name = f"limited-{secrets.token_hex(3)}"
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": costs.kubectl.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "limited"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": RIGHTS,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "subjects": [subject],
            "roleRef": role,
        },
    ]
    costs.kubectl.apply(*objects)
    return eight_nodes.service_account_kubeconfig(costs.kubectl.namespace, "limited", path=tmp_path / "limited")


def test_a_configmap_that_may_not_be_read_changes_nothing_and_is_said(
    costs: Costs, start: Start, limited: Path
) -> None:
    costs.publish(n1_n3=4)
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    first = start()
    before = costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    first.stop()
    start(limited)
    source = costs.wait_reason("SourceAvailable", "ConfigMapUnreadable")
    assert source["status"] == "False"
    assert "allow this account to list and watch configmaps" in source["message"]
    after = costs.get()
    assert after["spec"] == before["spec"]
    assert after["status"]["dataTime"] == before["status"]["dataTime"]
    assert condition(after, "WeightsComputed") == condition(before, "WeightsComputed")


@pytest.fixture
def report(eight_nodes: LocalCluster) -> Iterator[Callable[[float], None]]:
    """Has all nodes report 0.85 ms to each other, measured so many seconds ago; no reports are left."""

    def write(age: float) -> None:
        moment = datetime.now(UTC) - timedelta(seconds=age)
        items = [
            probe_report(node, *[probed_peer(peer, 850, time=moment) for peer in EIGHT_NODES if peer != node])
            for node in EIGHT_NODES
        ]
        document = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        for arguments in ((), ("--subresource=status",)):
            eight_nodes.kubectl("apply", "--server-side", "--force-conflicts", *arguments, "-f", "-", input=document)

    yield write
    eight_nodes.kubectl("delete", "probereports", "--all")


def test_measured_costs_stay_when_agents_could_not_report_for_long(
    costs: Costs, start: Start, report: Callable[[float], None]
) -> None:
    """As after an outage of the API server, in which the controller ended as well."""
    measured = {"Z1>Z2": 9, "Z2>Z1": 9, "Z3>Z4": 9, "Z4>Z3": 9}
    report(0)
    costs.create(user_defined(REGION_COSTS, ZONE_COSTS))
    first = start()
    before = costs.wait_zones("Dijkstra", measured)
    first.kill()
    report(3600)
    start()
    costs.wait_reason("SourceAvailable", "ProbeReportsUnreadable")
    assert costs.get()["spec"] == before["spec"]
    report(0)
    costs.wait_reason("SourceAvailable", "ProbeReportsRead")
    assert table(costs.get(), "Dijkstra") == measured


def test_many_objects_each_with_a_configmap_of_its_own(costs: Costs, start: Start) -> None:
    # Every ConfigMap is watched over a connection of its own: more of them than a client usually has.
    count = 70
    objects: list[dict[str, Any]] = []
    for number in range(count):
        topology = costs.manifest(configmap=f"netperf-{number}")
        topology["metadata"]["name"] = f"net-{number}"
        key = "netperf.p90.latency.milliseconds.origin.n-1.destination.n-3"
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"netperf-{number}"}}
        objects += [topology, {**data, "data": {key: f"{(number + 1) / 10:g}"}}]
    costs.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    process = start()

    def computed() -> dict[str, Any]:
        found = costs.kubectl.get("nt")["items"]
        return {item["metadata"]["name"]: table(item, "Dijkstra") for item in found if settled(item) and names(item)}

    wanted = {f"net-{number}": {"Z1>Z2": number + 1} for number in range(count)}
    eventually(computed, accept=lambda found: found == wanted, timeout=150, what="weights of every object")
    costs.kubectl("delete", "nt", "--all")
    process.stop()


def test_another_path_algorithm_takes_over(
    costs: Costs, eight_nodes: LocalCluster, start: Start, tmp_path: Path
) -> None:
    costs.publish(n1_n5=10, n5_n3=6)
    costs.create(user_defined(REGION_COSTS))
    first = start()
    before = costs.wait_names("UserDefined", "Dijkstra", "NetperfCosts")
    first.stop()
    arguments = ["--no-leader-elect", "--path-algorithm", "BellmanFord"]
    with ControllerProcess.start(
        ["networktopology"], kubeconfig=eight_nodes.kubeconfig, directory=tmp_path, arguments=arguments
    ):
        after = costs.wait(
            lambda found: sorted(names(found)) == ["BellmanFord", "NetperfCosts", "UserDefined"], what="takeover"
        )
        assert table(after, "BellmanFord") == table(before, "Dijkstra") == {"Z1>Z2": 16}


def test_an_unknown_path_algorithm_is_refused(eight_nodes: LocalCluster, tmp_path: Path) -> None:
    process = ControllerProcess.start(
        ["networktopology"],
        kubeconfig=eight_nodes.kubeconfig,
        directory=tmp_path,
        arguments=["--path-algorithm", "Magic"],
    )
    assert process.process.wait(timeout=120) == 2
    assert "--path-algorithm 'Magic': input should be 'Dijkstra' or 'BellmanFord'" in process.log.read_text()
