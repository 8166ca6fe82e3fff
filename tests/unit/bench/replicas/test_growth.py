"""The life of an application: who comes, who goes, who stays where it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bench.replicas.boutique import GROUP, Case
from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.evaluator import evaluate
from bench.replicas.growth import STEPS, Application, by_berth_plan, grow

Nodes = dict[str, str]


def round_robin(documents: Sequence[Manifest]) -> Nodes:
    """Every waiting pod of a workload to the next node after those that the workload has."""
    nodes = [item["metadata"]["name"] for item in documents if item["kind"] == "Node"]
    pods = [item for item in documents if item["kind"] == "Pod"]
    taken = Counter(item["metadata"]["labels"]["app"] for item in pods if item["spec"].get("nodeName"))
    found: Nodes = {}
    for item in pods:
        if not item["spec"].get("nodeName"):
            app = item["metadata"]["labels"]["app"]
            found[item["metadata"]["name"]] = nodes[taken[app] % len(nodes)]
            taken[app] += 1
    return found


def nowhere(documents: Sequence[Manifest]) -> Nodes:
    return {}


class Watched:
    """A planner that checks that no pod was moved."""

    def __init__(self) -> None:
        self.seen: Nodes = {}
        self.calls = 0

    def __call__(self, documents: Sequence[Manifest]) -> Mapping[str, str]:
        self.calls += 1
        for item in documents:
            name = item["metadata"]["name"]
            if item["kind"] == "Pod" and item["spec"].get("nodeName"):
                assert self.seen.setdefault(name, item["spec"]["nodeName"]) == item["spec"]["nodeName"]
        return round_robin(documents)


def revisions(application: Application) -> dict[str, int]:
    return dict(Counter(pod["metadata"]["labels"]["pod-template-hash"] for pod in application.pods))


def on(application: Application, app: str) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in application.pods if pod["metadata"]["labels"]["app"] == app]


@pytest.fixture
def application() -> Application:
    return Application.of(Case(), round_robin)


def test_steps_end_with_as_many_pods_as_they_say() -> None:
    steps = grow(Case(), round_robin)
    assert [step.name for step in steps] == list(STEPS)
    assert [step.lived.pods for step in steps] == [step.fresh.pods for step in steps] == [33, 66, 22, 22]
    assert [(step.waiting, step.broken) for step in steps] == [(0, 0)] * 4


def test_no_pod_is_moved() -> None:
    planner = Watched()
    grow(Case(), planner)
    assert planner.calls == 2 + 2 + 4  # two additions, a rollout in two turns, four plans from scratch
    assert planner.seen


def test_pods_without_a_node_are_counted(application: Application) -> None:
    application.planner = nowhere
    application.add(2, revision="v1")
    assert (application.pods, application.waiting) == ([], 22)


def test_a_rollout_replaces_one_revision_by_the_other(application: Application) -> None:
    application.add(2, revision="v1")
    application.add(1, revision="v2")
    assert revisions(application) == {"v1": 22, "v2": 11}
    application.remove(1, revision="v1")
    assert revisions(application) == {"v1": 11, "v2": 11}


def test_after_a_rollout_by_berth_plan_every_workload_survives_a_node() -> None:
    """With the minBandwidth and the capacities of the examples."""
    application = Application.of(Case(), by_berth_plan)
    application.add(2, revision="v1")
    for _ in range(2):
        application.add(1, revision="v2")
        application.remove(1, revision="v1")
    found = evaluate(read_cluster([*application.base, *application.pods]), GROUP)
    assert (found.pods, found.survive_node) == (22, 11)
    assert found.cost <= 0.5


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        pytest.param(["a", "a", "b"], ["a", "b"], id="those-that-share-a-node-go-first"),
        pytest.param(["a", "b", "c"], ["a", "b"], id="then-the-youngest"),
        pytest.param(["a", "b", "b", "a"], ["a", "b", "b"], id="of-several-that-share-the-youngest"),
    ],
)
def test_a_replica_set_chooses_whom_to_delete(application: Application, nodes: list[str], left: list[str]) -> None:
    def planned(documents: Sequence[Manifest]) -> Nodes:
        names: dict[str, list[Any]] = {}
        for item in documents:
            if item["kind"] == "Pod":
                names.setdefault(item["metadata"]["labels"]["app"], []).append(item["metadata"]["name"])
        return {name: node for pods in names.values() for name, node in zip(pods, nodes, strict=True)}

    application.planner = planned
    application.add(len(nodes), revision="v1")
    application.remove(1, revision="v1")
    assert on(application, "frontend") == left
