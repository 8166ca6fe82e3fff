"""What ``kubectl berth explain`` says of replicas is what pods are worth as bound, and what their decisions paid.

Judged by ``bench.replicas``, which shares no code with the planner: pod by pod over what the API server shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from bench.replicas.cluster import Cluster, read_cluster
from bench.replicas.evaluator import edge_results, evaluate
from bench.replicas.objective import Weights, objective
from berth.api.labels import ANNOTATION_SPREAD
from berth.cli.main import kubectl_app
from hack.harness.cluster import DEMO_TOPOLOGY, Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support import plans
from tests.support.placing import configuration, profile

pytestmark = pytest.mark.timeout(900)

REPLICAS = 3
GROUP = "app"
WORKLOADS = ("front", "cart", "store")
FREE = Weights(node_failure=0.0, zone_failure=0.0)
"""A group that need not survive anything"""
Case = dict[str, Any]

CASES: dict[str, Case] = {
    "everywhere": {},
    "same-zone": {"service": {"trafficDistribution": "PreferSameZone"}},
    "same-node": {"service": {"trafficDistribution": "PreferSameNode"}},
    "local": {"service": {"internalTrafficPolicy": "Local"}},
    "headless": {"service": {"clusterIP": "None"}},
    "need-not": {"spread": "none", "weights": FREE},
    "node": {"spread": "node"},
    "zone": {"spread": "zone"},
    "zone-near": {"spread": "zone", "service": {"trafficDistribution": "PreferSameZone"}},
}


class Live:
    """A cluster with applications that differ in their Services and in what they must survive."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster

    def kubectl(self, case: str) -> Kubectl:
        return Kubectl(self.cluster, case)

    def deploy(self, case: str, *, service: Mapping[str, Any] | None = None, spread: str = "", **_: Any) -> None:
        edges = {"front": ["cart"], "cart": ["store"], "store": []}
        group = plans.appgroup(GROUP, edges, members=REPLICAS * len(WORKLOADS))
        if spread:
            group["metadata"]["annotations"] = {ANNOTATION_SPREAD: spread}
        services = [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **(service or {})},
            }
            for name in WORKLOADS
        ]
        own = {"replicas": REPLICAS}
        pods = [plans.workload("Deployment", name, group=GROUP, cpu="500m", spec=dict(own)) for name in WORKLOADS]
        self.kubectl(case).apply(group, *services, *pods)

    def placed(self, case: str) -> list[dict[str, Any]]:
        """Pods that stay, once as many as are wanted have a node and a decision."""
        found = self.kubectl(case).get("pods")["items"]
        return [
            pod
            for pod in found
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and decision(pod)
        ]

    def settled(self, case: str, count: int) -> list[dict[str, Any]]:
        def probe() -> list[dict[str, Any]]:
            return self.placed(case)

        return eventually(probe, accept=lambda pods: len(pods) == count, timeout=240, what=f"{count} pods in {case}")

    def explain(self, case: str, *arguments: str) -> dict[str, Any]:
        command = ["explain", *arguments, "-n", case, "--kubeconfig", str(self.cluster.kubeconfig), "-o", "json"]
        result = CliRunner().invoke(kubectl_app, command)
        assert result.exit_code == 0, result.output
        return dict(json.loads(result.stdout))

    def seen(self, case: str) -> Cluster:
        """What the evaluator reads, of one application."""
        kubectl = self.kubectl(case)
        nodes = kubectl.get("nodes")
        found = kubectl.get("services,appgroups,networktopologies")
        shared = Kubectl(self.cluster, "berth-system").get("networktopologies")
        pods = {"kind": "PodList", "items": self.placed(case)}
        return read_cluster([nodes, found, shared, pods])


def decision(pod: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads((pod["metadata"].get("annotations") or {}).get("berth.dev/decision", "{}")))


@pytest.fixture(scope="module")
def live(module_cluster: Callable[..., LocalCluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """All applications placed."""
    cluster = module_cluster()
    cluster.create_nodes(DEMO_TOPOLOGY)
    api = cluster.api()
    for name in (*CASES, "berth-system"):
        cluster.kubectl("create", "namespace", name)
        eventually(partial(api.healthy, f"/api/v1/namespaces/{name}/serviceaccounts/default"), what="service account")
    api.close()
    zones = {("eu-west-a", "eu-west-b"): 5, ("us-east-a", "us-east-b"): 5}
    Kubectl(cluster, "berth-system").apply(plans.topology(zones, {("eu-west", "us-east"): 80}))
    directory = tmp_path_factory.mktemp("controllers")
    # A plan whose time is over on a busy machine is carried out as far as it goes, and others may be in between; and
    # where pods come slowly, those that are there are not planned without the others.
    controller = ControllerProcess.start(
        ["appgroup", "networktopology", "placement"],
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect", *configuration(directory, profile(planningSeconds=60, waitSeconds=600))],
    ).wait_ready()
    made = Live(cluster)
    try:
        for name, case in CASES.items():
            made.deploy(name, **case)
        for name in CASES:
            made.settled(name, REPLICAS * len(WORKLOADS))
        yield made
    finally:
        controller.stop(check=False)


def check_figures(live: Live, case: str) -> dict[str, Any]:
    """Compare what is said of an application with its pods as bound."""
    said, cluster = live.explain(case, "appgroup", GROUP), live.seen(case)
    worth = evaluate(cluster, (case, GROUP))
    assert said["meanEdgeCost"] == pytest.approx(worth.cost, abs=1e-5)
    assert said["crossZoneShare"] == pytest.approx(worth.cross_zone, abs=1e-5)
    assert said.get("failedShare", 0.0) == pytest.approx(worth.unreachable, abs=1e-5)
    survival = said["survival"]
    assert (survival["workloads"], survival["surviveNode"], survival["surviveZone"]) == (
        worth.replicated, worth.survive_node, worth.survive_zone
    )  # fmt: skip
    members = cluster.members((case, GROUP))
    results = edge_results(cluster, cluster.groups[case, GROUP], members)
    costs = {(row["from"], row["to"]): row["cost"] for row in said["dependencies"]}
    assert costs == {(each.edge.caller, each.edge.callee): pytest.approx(each.cost, abs=1e-5) for each in results}
    for edge in said.get("serviceSettings", {}).get("edges", ()):
        assert edge["costThen"] == pytest.approx(with_setting(cluster, case, edge), abs=1e-5)
    return said


def with_setting(cluster: Cluster, case: str, edge: Mapping[str, Any]) -> float:
    """What the calls of an edge cost if the Service of the called workload had the setting that is advised."""
    services: list[Mapping[str, Any]] = []
    for service in cluster.services:
        spec = dict(service["spec"])
        if service["metadata"]["name"] == edge["to"]:
            spec |= {"trafficDistribution": edge["trafficDistribution"], "internalTrafficPolicy": "Cluster"}
        services.append({**service, "spec": spec})
    other = replace(cluster, services=services)
    found = edge_results(other, other.groups[case, GROUP], other.members((case, GROUP)))
    (cost,) = (each.cost for each in found if (each.edge.caller, each.edge.callee) == (edge["from"], edge["to"]))
    return cost


@pytest.mark.parametrize("case", CASES)
def test_an_application_is_worth_what_is_said(live: Live, case: str) -> None:
    said = check_figures(live, case)
    survival = said["survival"]
    assert said["prices"]["spread"] == CASES[case].get("spread", "soft")
    if case != "need-not":
        assert survival["surviveNode"] == len(WORKLOADS)
    if case.startswith("zone"):
        assert survival["surviveZone"] == len(WORKLOADS)


@pytest.mark.parametrize("case", CASES)
def test_the_shares_of_all_decisions_are_the_objective(live: Live, case: str) -> None:
    pods = live.placed(case)
    decisions = [decision(pod) for pod in pods]
    assert {each["plannedWith"] for each in decisions} == {len(pods)}
    paid = sum(each["cost"] - each["terms"].get("scores", 0.0) for each in decisions)
    worth = objective(live.seen(case), (case, GROUP), CASES[case].get("weights", Weights()))
    assert paid == pytest.approx(worth, abs=1e-3)
    document = live.explain(case, "pod", pods[0]["metadata"]["name"])
    told = document["decision"]
    assert {name: told[name] for name in ("node", "cost", "terms", "runnerUps")} == {
        name: decisions[0][name] for name in ("node", "cost", "terms", "runnerUps")
    }
    assert document["node"] == pods[0]["spec"]["nodeName"]


@pytest.mark.parametrize("case", ["everywhere", "same-zone"])
def test_a_pod_that_is_placed_alone_pays_what_it_adds(live: Live, case: str) -> None:
    kubectl = live.kubectl(case)
    known = {pod["metadata"]["name"] for pod in live.placed(case)}
    kubectl("scale", "deployment/cart", f"--replicas={REPLICAS + 1}")
    pods = live.settled(case, REPLICAS * len(WORKLOADS) + 1)
    (added,) = (pod for pod in pods if pod["metadata"]["name"] not in known)
    after = live.seen(case)
    before = replace(after, pods=[pod for pod in after.pods if pod.name in known])
    terms = decision(added)["terms"]
    paid = sum(amount for name, amount in terms.items() if name != "scores")
    grown = objective(after, (case, GROUP)) - objective(before, (case, GROUP))
    assert paid == pytest.approx(grown, abs=1e-3)
    check_figures(live, case)


@pytest.mark.parametrize("case", ["headless", "zone-near"])
def test_a_rollout_ends_where_it_is_said_to(live: Live, case: str) -> None:
    """Each surge pod is placed as if those that it replaces were gone."""
    kubectl = live.kubectl(case)
    known = {pod["metadata"]["name"] for pod in live.placed(case)}
    for name in WORKLOADS:
        kubectl("rollout", "restart", f"deployment/{name}")
    for name in WORKLOADS:
        kubectl("rollout", "status", f"deployment/{name}", "--timeout=240s")
    pods = live.settled(case, REPLICAS * len(WORKLOADS))
    assert not known & {pod["metadata"]["name"] for pod in pods}
    said = check_figures(live, case)
    assert said["survival"]["surviveNode"] == len(WORKLOADS)
    if case == "zone-near":
        assert said["survival"]["surviveZone"] == len(WORKLOADS)
