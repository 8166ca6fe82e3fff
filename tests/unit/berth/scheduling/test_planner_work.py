"""How the work of a plan grows with its pods: with their number, not with that of their pairs."""

from __future__ import annotations

import pytest

from bench.planning.__main__ import (
    COSTS,
    Affinity,
    Edges,
    keep_apart,
    layered,
    make_group,
    make_node,
    make_pod,
    no_rules,
)
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.planner import Planner
from berth.scheduling.planning import finish
from tests.support.work import Work

LINEAR = 1.25
"""Growth of the work by that of the pods, at the most; three calls for each pair of pods are beyond it."""


def work_of(strategy: str, nodes: int, edges: Edges, replicas: int, affinity: Affinity) -> float:
    """The work of placing a whole group, with as much time as it takes."""
    cache = Cache(clock=lambda: 0.0)
    for number in range(nodes):
        cache.update_node(make_node(number, 16))
    group = cache.update_group(make_group(edges, {}))
    pods = [make_pod(name, number, affinity(name)) for name in edges for number in range(replicas)]
    for pod in pods:
        cache.update_pod(pod)
    planner = Planner(cache, Profile.model_validate({"gang": {"strategy": strategy}}))
    work = Work()
    with work.counting():
        outcome = finish(planner.place_group(group, pods, COSTS, partial=False))
    assert len(outcome.decisions) == len(pods)
    return work.seconds


@pytest.mark.parametrize("strategy", ["replicas", "berth"])
@pytest.mark.parametrize(
    ("nodes", "edges", "replicas", "affinity"),
    [
        pytest.param(500, layered(2), 200, keep_apart, id="soft anti-affinity of two workloads"),
        pytest.param(100, layered(10), 160, no_rules, id="a group of many pods"),
    ],
)
def test_a_plan_looks_at_pods_and_not_at_their_pairs(
    strategy: str, nodes: int, edges: Edges, replicas: int, affinity: Affinity
) -> None:
    few, many = (work_of(strategy, nodes, edges, number, affinity) for number in (replicas // 4, replicas))
    assert many <= 4 * LINEAR * few
