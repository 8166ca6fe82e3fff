"""When a try of the settling benchmark counts as good."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from bench.settling.__main__ import MEMBERS, examples, problem
from berth.kube.objects import Pod
from tests.support import builders

GOOD = {"topology": "try/net", "weights": ["Dijkstra", "UserDefined"]}


def placed(network: Mapping[str, object], count: int = MEMBERS) -> list[Pod]:
    pods = [builders.pod(f"p{number}", on="n1") for number in range(count)]
    for pod in pods:
        decision = {"v": 2, "node": "n1", "strategy": "berth", "cost": 1, "network": network}
        pod.metadata.annotations["berth.dev/decision"] = json.dumps(decision)
    return pods


@pytest.mark.parametrize(
    ("pods", "said"),
    [
        (placed(GOOD), ""),
        (placed(GOOD, 10), "10 of 11 pods bound"),
        (placed({**GOOD, "topology": "other/net"}), "p0 was placed with"),
        (placed({**GOOD, "weights": ["UserDefined"]}), "p0 was placed with"),
        (placed({"missing": "no NetworkTopology"}), "p0 was placed with"),
        ([*placed(GOOD, 10), builders.pod("waits")], "10 of 11 pods bound"),
    ],
    ids=["good", "a pod is missing", "another network", "stated weights alone", "no network", "a pod waits"],
)
def test_a_try_is_good_when_every_pod_used_its_network(pods: list[Pod], said: str) -> None:
    assert problem(pods, "try/net").startswith(said)
    assert bool(problem(pods, "try/net")) is bool(said)


@pytest.mark.parametrize(("network", "objects"), [(True, 13), (False, 12)])
def test_the_objects_are_those_of_the_examples(network: bool, objects: int) -> None:
    kinds = [item["kind"] for item in examples(network=network)]
    assert len(kinds) == objects
    assert kinds.count("Deployment") == MEMBERS
    assert ("NetworkTopology" in kinds) is network
