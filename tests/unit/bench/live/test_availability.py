"""What the applications of a run cost and survive, read from an API server that lists objects without their kind."""

from __future__ import annotations

from typing import Any

import pytest

from bench.live.availability import judged
from berth.kube.resources import Resource

ZONES = {"n1": "z1", "n2": "z1", "n3": "z2"}


class Lists:
    """The one request that is made, answered from objects by plural name."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        self._objects = objects

    async def list_all(self, resource: Resource[Any], *, namespace: str | None = None) -> list[dict[str, Any]]:
        found = self._objects.get(resource.plural, [])
        return [item for item in found if namespace in (None, item["metadata"].get("namespace"))]


def cluster(**placed: list[str]) -> Lists:
    """One application of the workloads a, which calls b, with their replicas on nodes; another run's pods beside it."""
    nodes = [
        {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}, "status": {}}
        for name, zone in ZONES.items()
    ]
    call = [{"workload": {"selector": "b"}}]
    workloads = [{"workload": {"selector": "a"}, "dependencies": call}, {"workload": {"selector": "b"}}]
    group = {"metadata": {"name": "shop", "namespace": "run"}, "spec": {"workloads": workloads}}
    pods = []
    for namespace in ("run", "other"):
        for workload, names in placed.items():
            for number, node in enumerate(names):
                labels = {"appgroup.diktyo.x-k8s.io": "shop", "appgroup.diktyo.x-k8s.io.workload": workload}
                metadata = {"name": f"{workload}-{number}", "namespace": namespace, "labels": labels}
                pods.append({"metadata": metadata, "spec": {"nodeName": node}})
    return Lists({"nodes": nodes, "appgroups": [group], "pods": pods})


@pytest.mark.parametrize(
    ("a", "b", "cost", "node", "zone"),
    [
        pytest.param(["n1", "n1"], ["n1", "n1"], 0.0, 0, 0, id="all on one node"),
        pytest.param(["n1", "n2"], ["n1", "n2"], 0.5, 2, 0, id="two nodes of a zone"),
        pytest.param(["n1", "n3"], ["n1", "n3"], 50.0, 2, 2, id="two zones, cost unknown"),
        pytest.param(["n1"], ["n1", "n2"], 0.5, 1, 0, id="one replica counts for nothing"),
    ],
)
async def test_cost_and_survival(a: list[str], b: list[str], cost: float, node: int, zone: int) -> None:
    found = await judged(cluster(a=a, b=b), "run")  # type: ignore[arg-type]
    assert found.pods == len(a) + len(b)
    assert (found.cost, found.survive_node, found.survive_zone) == (pytest.approx(cost), node, zone)
