"""Joint plans of pods that mind each other, beside brute force over all placements and all sockets."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Prices, Problem, ProblemError, Workload
from tests.support.sharing import harm_of, shared


def small(letters: str, nodes: int, *, network: float, per_node: int = 4) -> Problem:
    """A workload of one pod for each letter, in a chain of calls, on nodes of two sockets for two pods."""
    count = len(letters)
    return Problem(
        nodes=Nodes(
            free=np.full((nodes, 1), per_node),
            location=np.arange(nodes) % 2,
            location_cost=np.array([[1.0, 5.0], [5.0, 1.0]]),
            zone=np.arange(nodes) % 2,
        ),
        workloads=[Workload(name=f"w{number}") for number in range(count)],
        pod_sets=[PodSet(workload=number, replicas=1, request=np.array([1])) for number in range(count)],
        edges=[Edge(caller=number, callee=number + 1) for number in range(count - 1)] if network else [],
        prices=Prices(network=network),
    )


def least(problem: Problem, letters: str) -> float:
    """The least objective of all placements."""
    size, harm = problem.nodes.size, dict[str, float]()
    best = np.inf
    cost, location, room = problem.nodes.location_cost, problem.nodes.location, int(problem.nodes.free[0, 0])
    for way in itertools.product(range(size), repeat=len(letters)):
        if max(Counter(way).values()) > room:
            continue
        total = 0.0
        for edge in problem.edges:
            here, there = way[edge.caller], way[edge.callee]
            total += 0.0 if here == there else problem.prices.network * float(cost[location[here], location[there]])
        for node in range(size):
            on = "".join(sorted(letter for letter, at in zip(letters, way, strict=True) if at == node))
            if on not in harm:
                harm[on] = harm_of(on, room=2, sockets=2)
            total += harm[on]
        best = min(best, total)
    return best


@pytest.mark.parametrize("network", [pytest.param(0.0, id="sockets alone"), pytest.param(1.0, id="and calls")])
@pytest.mark.parametrize(
    ("letters", "nodes"),
    [
        ("AADD", 2),
        ("DDDD", 3),
        ("BCBCA", 3),
        ("AABBCCDD", 2),
        ("ADDBCA", 3),
        ("BBDDCCA", 3),
        ("DADADAD", 3),
        ("CBADDBC", 3),
        ("AADDC", 4),
        ("BCDBCD", 4),
    ],
)
def test_a_plan_is_as_good_as_the_best_of_all_placements(letters: str, nodes: int, network: float) -> None:
    problem = small(letters, nodes, network=network)
    found = finish(plan(shared(problem, letters)))
    assert found.complete
    assert found.objective == pytest.approx(least(problem, letters), abs=1e-4)


def test_pods_that_fill_all_nodes_change_places() -> None:
    letters = "DDAABBCC"
    problem = small(letters, 4, network=0.0, per_node=2)
    found = finish(plan(shared(problem, letters, sockets=1)))
    on = [
        "".join(letter for letter, counts in zip(letters, found.counts, strict=True) if counts.get(node))
        for node in range(4)
    ]
    assert sorted("".join(sorted(each)) for each in on) == ["AD", "AD", "BB", "CC"]


def test_nodes_that_differ_in_who_is_there_are_all_looked_at() -> None:
    letters = "DD"
    problem = small(letters, 40, network=0.0)
    there = dict.fromkeys(range(38), "CCC")
    found = finish(plan(shared(problem, letters, there=there)))
    assert {node for counts in found.counts for node in counts} <= {38, 39}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param({"kind": np.zeros(2, dtype=np.int64)}, "kind has shape", id="kinds of other nodes"),
        pytest.param({"number": {7: 0}}, "names pod set 7", id="a pod set that is not there"),
        pytest.param({"alone": np.array([[np.nan]])}, "NaN", id="no charge"),
    ],
)
def test_what_contradicts_itself_is_refused(change: dict[str, Any], match: str) -> None:
    problem = shared(small("DA", 3, network=0.0), "DA")
    assert problem.sharing is not None
    with pytest.raises(ProblemError, match=match):
        replace(problem, sharing=replace(problem.sharing, **change))


def test_exact_search_finds_a_plan_where_classes_are_and_nothing_else_fits() -> None:
    letters, sizes = "DADADADAD", (5, 6, 1, 7, 18, 22, 13, 12, 6)  # all that three nodes hold
    problem = small(letters, 3, network=0.0, per_node=30)
    problem = replace(
        problem,
        pod_sets=[replace(one, request=np.array([size])) for one, size in zip(problem.pod_sets, sizes, strict=True)],
    )
    found = finish(plan(shared(problem, letters)))
    assert found.complete
