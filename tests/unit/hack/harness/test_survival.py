"""What is left of an application when a node or a zone fails."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from hack.harness.survival import Survival, survival
from tests.support import builders, plans

NODES = [
    builders.node(name, labels={"topology.kubernetes.io/zone": zone})
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))
]


def pods(**nodes: str) -> list[Pod]:
    """Replicas by workload, each on a node; ``-`` waits."""
    return [
        builders.pod(f"{workload}-{n}", on=node.strip("-"), labels=plans.labels("shop", workload))
        for workload, where in nodes.items()
        for n, node in enumerate(where.split())
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, Survival(0, 0, 0)),
        ({"front": "a1", "back": "a1"}, Survival(2, 0, 0)),
        ({"front": "a1", "back": "a2"}, Survival(2, 1, 0)),
        ({"front": "a1 a2", "back": "a1 a2"}, Survival(2, 2, 0)),
        ({"front": "a1 b1", "back": "a2 b1"}, Survival(2, 2, 2)),
        ({"front": "a1 b1", "back": "b1 b1"}, Survival(2, 1, 1)),
        ({"front": "a1 -", "back": "a2 b1"}, Survival(2, 1, 1)),
        ({"front": "-"}, Survival(0, 0, 0)),
    ],
    ids=["nothing", "one node", "two nodes", "replicas on two nodes of a zone", "replicas in two zones",
         "one workload is not spread", "a waiting replica is none", "nothing has a node"],
)  # fmt: skip
def test_the_worst_loss_counts(where: dict[str, str], expected: Survival) -> None:
    assert survival(pods(**where), NODES) == expected


def test_pods_of_no_application_and_ended_ones_do_not_count() -> None:
    others = [
        builders.pod("x", on="a1"),
        builders.pod("y", on="a1", labels=plans.labels("shop", "y"), phase="Succeeded"),
    ]
    assert survival([*others, *pods(front="a1 b1")], NODES) == Survival(1, 1, 1)
