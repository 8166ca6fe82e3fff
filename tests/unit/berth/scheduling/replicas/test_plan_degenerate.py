"""Problems at the edge: nothing to place, nowhere to place it, no costs or absurd ones, and rules of nobody."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.replicas_core.cases import boutique, cluster, mesh, uneven
from bench.replicas_core.judge import Judge
from berth.network.routing import Routing
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Nodes, Prices, Problem
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from tests.support.counts import COST, HOST, ZONE, nodes, problem, state_of

NOWHERE = np.full(8, -1)
EDGES = [(0, 1), (1, 2), (0, 2)]
ONE_NODE = Nodes(
    free=np.array([[9]]), location=np.zeros(1, int), location_cost=np.ones((1, 1)), zone=np.zeros(1, dtype=np.int64)
)
FREE = np.zeros((4, 4))
ABSURD = np.where(COST > 5, 1e9, 0.0)


@pytest.mark.parametrize("routing", list(Routing), ids=lambda routing: routing.value)
@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(problem(), id="no workloads"),
        pytest.param(problem(0, 0, 0, edges=EDGES), id="zero replicas"),
        pytest.param(problem(0, 2, 0, edges=EDGES), id="callers and callees without replicas"),
        pytest.param(problem(1, 1, 1, edges=EDGES, on=ONE_NODE), id="one node"),
        pytest.param(problem(3, 3, 3, edges=EDGES, on=ONE_NODE), id="replicas on one node"),
        pytest.param(problem(3, 3, 3, edges=EDGES, request=np.array([0])), id="zero requests"),
        pytest.param(problem(3, 3, 3, edges=EDGES, on=nodes(location_cost=FREE)), id="no costs"),
        pytest.param(problem(3, 3, 3, edges=EDGES, on=nodes(location_cost=ABSURD)), id="costs of 0 and 1e9"),
        pytest.param(problem(3, 3, 3, edges=EDGES, on=nodes(range(3, 11))), id="unequal nodes"),
        pytest.param(problem(3, 3, 3, edges=EDGES, on=nodes(service_zone=np.full(4, -1))), id="no zones"),
        pytest.param(problem(3, 3, 3, edges=EDGES, prices=Prices(network=0, load=0, failover=0)), id="no prices"),
        pytest.param(problem(3, 3, edges=[(0, 1), (0, 1), (1, 0)]), id="double edges and cycles"),
        pytest.param(problem(3, 3, rules=[AntiAffinity(domain=HOST, subjects=[], selects=[])]), id="a rule of nobody"),
        pytest.param(
            problem(3, 3, rules=[AntiAffinity(domain=NOWHERE, subjects=[0], selects=[0, 1])]),
            id="anti-affinity",
        ),
        pytest.param(
            problem(3, 3, rules=[Affinity(domain=HOST, subjects=[0], selects=[], weight=100)]), id="nobody preferred"
        ),
        pytest.param(
            problem(3, rules=[Spread(domain=NOWHERE, subjects=[0], selects=[0], max_skew=1, hard=False)]),
            id="soft spread nowhere",
        ),
        pytest.param(
            problem(3, 3, rules=[Spread(domain=ZONE, subjects=[0], selects=[], max_skew=1)]), id="a spread of nobody"
        ),
    ],
)
def test_everything_is_placed(asked: Problem, routing: Routing) -> None:
    asked = replace(asked, workloads=[replace(workload, routing=routing) for workload in asked.workloads])
    answer = finish(plan(asked))
    assert answer.complete
    judge = Judge(asked)
    assert judge.broken(state_of(answer)) == []
    assert answer.objective == pytest.approx(judge.objective(state_of(answer)))


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(boutique(nodes=cluster(0, 1)), id="no nodes"),
        pytest.param(problem(3, 3, edges=[(0, 1)], on=nodes(0)), id="no room"),
        pytest.param(problem(3, 3, edges=[(0, 1)], on=nodes(-5)), id="over-committed"),
        pytest.param(problem(3, mask=np.zeros(8, dtype=np.bool_)), id="masked out"),
        pytest.param(problem(3, rules=[Affinity(domain=HOST, subjects=[0], selects=[])]), id="near nobody"),
        pytest.param(problem(3, rules=[Affinity(domain=NOWHERE, subjects=[0], selects=[0])]), id="affinity nowhere"),
        pytest.param(
            problem(3, rules=[Spread(domain=NOWHERE, subjects=[0], selects=[0], max_skew=1)]), id="spread nowhere"
        ),
    ],
)
@pytest.mark.parametrize("partial", [False, True], ids=["whole", "partial"])
def test_nothing_is_placed(asked: Problem, partial: bool) -> None:
    answer = finish(plan(asked, partial=partial))
    assert answer.missing == tuple(pod_set.replicas for pod_set in asked.pod_sets)
    assert not any(answer.counts)


@pytest.mark.parametrize("pods", [3, 7, 8, 16])
def test_amounts_whose_sum_is_beyond_int64_are_counted(pods: int) -> None:
    """Nodes have room for one pod each: what eight ask for together would be 0, and no node too small."""
    answer = finish(plan(problem(pods, on=nodes(2**61), request=np.array([2**61])), partial=True))
    assert set(answer.counts[0].values()) == {1}
    assert answer.missing == (max(0, pods - 8),)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(mesh(3000, 2, nodes=cluster(2000, 8)), id="more workloads than columns hold"),
        pytest.param(uneven(mesh(1000, 5, nodes=cluster(2000, 8), rule="default")), id="unequal nodes"),
    ],
)
def test_what_is_too_large_for_its_time_is_placed_in_part(asked: Problem) -> None:
    looks = [0]

    def clock() -> float:
        looks[0] += 1
        return looks[0] * 1e-4

    answer = finish(plan(asked, partial=True, budget=Budget(clock, 0.05)))
    assert answer.cut_short
    assert 0 < sum(answer.missing) < asked.pods
    assert looks[0] < 10_000
    used = np.zeros_like(asked.nodes.free)
    for pod_set, counts in zip(asked.pod_sets, answer.counts, strict=True):
        for node, count in counts.items():
            used[node] += count * pod_set.request
    assert (used <= asked.nodes.free).all()
