"""NodeAffinity's score: preferred terms."""

from __future__ import annotations

from typing import Any

from berth.scheduling.plugins.node_affinity import NodeAffinity
from tests.support.builders import pod, requirement
from tests.support.filtering import cluster, scores, zoned


def preferred(*terms: tuple[int, str]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": weight, "preference": {"matchExpressions": [requirement("zone", "In", [zone])]}}
                    for weight, zone in terms
                ]
            }
        }
    }


def test_preferred_node_affinity_is_scaled_to_the_greatest_sum() -> None:
    state = cluster(zoned("a0", "b0", "c0"))
    new = pod("new", spec=preferred((30, "a"), (60, "b"), (30, "b")))
    assert scores(NodeAffinity(), new, state) == {"a0": 33, "b0": 100, "c0": 0}
    assert scores(NodeAffinity(), new, state, without=("b0",)) == {"a0": 100, "c0": 0}
    assert scores(NodeAffinity(), pod("plain"), state) == {"a0": 0, "b0": 0, "c0": 0}


def test_preferred_term_without_conditions_counts_nowhere() -> None:
    spec = {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": {}}]}
        }
    }
    assert scores(NodeAffinity(), pod("new", spec=spec), cluster(zoned("a0"))) == {"a0": 0}
