"""Controllers and a scheduler on a clock of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest

from bench.replicas.boutique import Case
from bench.replicas.cluster import Manifest
from bench.replicas.waves import Cluster


class Planned:
    """A planner that puts every pod on one node, and keeps of which revision how many came together."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.waves: list[Counter[str]] = []
        self.left = refuses
        """times that it finds no node"""

    def __call__(self, documents: Sequence[Manifest]) -> Mapping[str, str]:
        pods = [each for each in documents if each["kind"] == "Pod" and not each["spec"].get("nodeName")]
        self.waves.append(Counter(pod["metadata"]["labels"]["pod-template-hash"] for pod in pods))
        self.left -= 1
        return {} if self.left >= 0 else {pod["metadata"]["name"]: "eu-west-a-000" for pod in pods}


def cluster(planner: Planned, *limits: tuple[int, int]) -> Cluster:
    return Cluster(Case(), limits or ((1, 0),), (0.2, 0.3), Random(0), planner)


def begin(stage: Cluster, revision: str) -> None:
    for deployment in stage.deployments:
        deployment.begin(revision)
    stage.sync()


def test_an_application_is_placed_at_once() -> None:
    planner = Planned()
    stage = cluster(planner)
    assert not stage.settled
    stage.place()
    assert planner.waves == [Counter(v1=33)]
    assert stage.settled


@pytest.mark.parametrize("limits", [((1, 0),), ((0, 1),), ((3, 0), (1, 1))], ids=str)
def test_a_rollout_comes_to_its_end_and_no_pod_is_planned_twice(limits: tuple[tuple[int, int], ...]) -> None:
    planner = Planned()
    stage = cluster(planner, *limits)
    stage.place()
    begin(stage, "v2")
    stage.run()
    assert stage.settled
    assert sum(planner.waves, Counter()) == Counter(v1=33, v2=33)
    assert {pod.revision for deployment in stage.deployments for pod in deployment.pods} == {"v2"}


def test_writes_of_a_controller_are_let_through_at_a_rate() -> None:
    """33 pods and as many statuses as ReplicaSets: 30 of them at once, and then 20 a second."""
    stage = cluster(Planned(), (3, 0))
    stage.place()
    begin(stage, "v2")
    begun = stage.now
    stage.run()
    created = [pod.created - begun for deployment in stage.deployments for pod in deployment.pods]
    assert 0.0 < min(created) < 0.1
    assert 0.7 <= max(created) < 2.0


def test_pods_without_a_node_are_planned_again() -> None:
    planner = Planned(refuses=2)
    stage = cluster(planner)
    stage.place()
    assert planner.waves == [Counter(v1=33)] * 3
    assert stage.settled


def test_pods_that_are_killed_come_again() -> None:
    planner = Planned()
    stage = cluster(planner)
    stage.place()
    stage.kill(0.5)
    left = sum(len(deployment.pods) for deployment in stage.deployments)
    assert 0 < left < 33
    stage.run()
    assert stage.settled
    assert sum(planner.waves, Counter()) == Counter(v1=66 - left)
