"""Counts per topology domain: sums, presence, and nodes without the label, which are in none."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.domains import domain_sums, domains_with, nodes_sharing, spread_counts
from berth.scheduling.cache.terms import compile_spread_constraint
from tests.support.builders import node, pod, spread
from tests.support.filtering import cluster

ALL = np.ones(4, dtype=np.bool_)
X = {"app": "x"}


@pytest.fixture
def state() -> ClusterState:
    """Two nodes in zone a, one in b, one in none; pods with app=x on the first three and on the last."""
    zones = ("a", "a", "b", None)
    nodes = [node(f"n{number}", labels={"zone": zone} if zone else {}) for number, zone in enumerate(zones)]
    nodes[1].spec.taints = node("t", taints=["k:NoSchedule"]).spec.taints
    return cluster(nodes, [pod(f"p{number}", on=f"n{number}", labels=X) for number in range(4)])


@pytest.mark.parametrize(
    ("nodes", "sums"),
    [([True] * 4, [2, 1, 0]), ([True, False, False, True], [1, 0, 0]), ([False] * 4, [0, 0, 0])],
)
def test_sums_leave_out_nodes_without_the_label(state: ClusterState, nodes: list[bool], sums: list[int]) -> None:
    assert domain_sums(state, "zone", np.ones(4, dtype=np.int64), np.array(nodes)).tolist() == sums


def test_presence_and_sharing(state: ClusterState) -> None:
    first = np.array([True, False, False, True])
    assert domains_with(state, "zone", first).tolist() == [True, False, False]
    assert nodes_sharing(state, "zone", first).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("policy", "labels", "counts"),
    [
        pytest.param("Ignore", X, [2, 1, 0], id="taints-ignored"),
        pytest.param("Honor", X, [1, 1, 0], id="taints-honoured"),
        pytest.param("Ignore", {}, [0, 0, 0], id="empty-selector-counts-nobody"),
    ],
)
def test_pods_that_a_constraint_counts(
    state: ClusterState, policy: str, labels: dict[str, str], counts: list[int]
) -> None:
    info = state.info(pod("p", labels=X, spec={"topologySpreadConstraints": [spread("zone", labels)]}))
    raw = info.pod.spec.topology_spread_constraints[0]
    raw.node_taints_policy = policy
    constraint = compile_spread_constraint(raw, labels=X, where=("c",))
    found, existing = spread_counts(constraint, info.template, state, ALL)
    assert found.tolist() == counts
    assert existing.tolist() == [True, True, False]
