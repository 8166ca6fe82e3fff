"""Deployments shrink: a real ReplicaSet controller leaves the pods that were planned to be near each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.placing import STAGE_LABEL, Stage, chain, configuration

COST = "controller.kubernetes.io/pod-deletion-cost"
WORKLOADS = ("web", "db")


class Application:
    """A Deployment for each of two workloads that call each other."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.path = f"/apis/apps/v1/namespaces/{stage.name}/deployments"
        for name in WORKLOADS:
            labels = {
                "app": name,
                "appgroup.diktyo.x-k8s.io": "shop",
                "appgroup.diktyo.x-k8s.io.workload": name,
            }
            container = {"name": "main", "image": "registry.invalid/main:1", "resources": {"requests": {"cpu": "1"}}}
            pod = {
                "schedulerName": "berth-scheduler",
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": {STAGE_LABEL: stage.name},
                "containers": [container],
            }
            spec = {
                "replicas": 3,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            }
            stage.api.request("POST", self.path, {"metadata": {"name": name}, "spec": spec})

    def scale(self, replicas: int) -> None:
        for name in WORKLOADS:
            patch = {"spec": {"replicas": replicas}}
            self.stage.api.request("PATCH", f"{self.path}/{name}", patch, content_type="application/merge-patch+json")

    def wait_ready(self, replicas: int) -> dict[str, dict[str, tuple[str, int]]]:
        """Wait for so many ready pods of each, and no others; node and cost by name, by workload."""

        def ready() -> Counter[str]:
            return Counter(pod["metadata"]["labels"]["app"] + str(_is_ready(pod)) for pod in self.stage.pods().values())

        wanted = Counter({f"{name}True": replicas for name in WORKLOADS})
        eventually(ready, accept=lambda found: found == wanted, timeout=150, what=f"{replicas} ready pods of each")
        found: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in WORKLOADS}
        for name, pod in self.stage.pods().items():
            cost = int(pod["metadata"].get("annotations", {}).get(COST, "0"))
            found[pod["metadata"]["labels"]["app"]][name] = pod["spec"]["nodeName"], cost
        return found


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def grown_and_shrunk(cluster: LocalCluster, directory: Path, *arguments: str) -> list[dict[str, dict[str, Any]]]:
    """Three replicas of each, then six, then two: who is there then."""
    stage = Stage(cluster)
    stage.nodes("n1", "n2", zone="z1")
    stage.nodes("n3", "n4", zone="z2")
    stage.costs()
    with ControllerProcess.start(
        ["placement"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=["--no-leader-elect", *arguments]
    ) as controller:
        controller.wait_ready()
        stage.apply(chain(*WORKLOADS))
        application = Application(stage)
        steps = [application.wait_ready(3)]
        for replicas in (6, 2):
            application.scale(replicas)
            steps.append(application.wait_ready(replicas))
    stage.close()
    return steps


def test_those_stay_that_are_told_last(module_cluster: Callable[..., LocalCluster], tmp_path: Path) -> None:
    placed, grown, left = grown_and_shrunk(module_cluster(), tmp_path)
    for name in WORKLOADS:
        costs = {pod: cost for pod, (_, cost) in grown[name].items()}
        assert len(set(costs.values())) == 6
        assert set(left[name]) == set(sorted(costs, key=lambda pod: costs[pod])[-2:])
        assert set(left[name]) <= set(placed[name]), "what came later is gone"
        assert len({node for node, _ in left[name].values()}) == 2, "a node for each"
    assert {node for node, _ in left["web"].values()} == {node for node, _ in left["db"].values()}


def test_nothing_is_told_where_the_configuration_says_so(
    module_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    arguments = configuration(tmp_path, podDeletionCost=False)
    for step in grown_and_shrunk(module_cluster(), tmp_path, *arguments):
        assert {cost for pods in step.values() for _, cost in pods.values()} == {0}
