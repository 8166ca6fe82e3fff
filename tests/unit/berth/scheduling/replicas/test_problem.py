"""Problems that contradict themselves are refused, and the message says where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from berth.scheduling.replicas.problem import Edge, ProblemError
from berth.scheduling.replicas.rule import AntiAffinity, Spread
from tests.support.counts import COST, HOST, nodes, problem

NAN = float("nan")


def costs(value: float) -> np.ndarray:
    cost = COST.copy()
    cost[0, 1] = value
    return cost


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: problem(1, on=nodes(location=np.arange(8))), "location names 7", id="location"),
        pytest.param(lambda: problem(1, on=nodes(zone=np.arange(3))), r"Nodes.zone has shape \(3,\)", id="zone"),
        pytest.param(
            lambda: problem(1, on=nodes(service_zone=np.arange(3))), "service_zone has shape", id="zone names"
        ),
        pytest.param(lambda: problem(1, on=nodes(location_cost=costs(NAN))), "location_cost holds", id="cost NaN"),
        pytest.param(lambda: problem(1, on=nodes(location_cost=costs(-1))), "location_cost holds", id="cost negative"),
        pytest.param(lambda: problem(1, on=nodes(location_cost=costs(np.inf))), "location_cost holds", id="infinite"),
        pytest.param(lambda: problem(1, cost=np.full(8, NAN)), "PodSet 0.cost holds NaN", id="charge NaN"),
        pytest.param(lambda: problem(1, cost=np.full(8, np.inf)), "PodSet 0.cost holds NaN", id="charge infinite"),
        pytest.param(lambda: problem(1, cost=np.zeros(3)), r"PodSet 0.cost has shape", id="charge shape"),
        pytest.param(lambda: problem(1, mask=np.ones(3, dtype=np.bool_)), "PodSet 0.mask has shape", id="mask"),
        pytest.param(lambda: problem(-1), "negative number of replicas", id="replicas"),
        pytest.param(lambda: problem(1, request=np.array([-1])), "replicas or request", id="request"),
        pytest.param(lambda: problem(1, request=np.array([1, 1])), "PodSet 0.request has shape", id="resources"),
        pytest.param(lambda: problem(1, workload=3), "PodSet 0.workload is 3", id="workload"),
        pytest.param(lambda: problem(1, 1, edges=[(0, 2)]), "there are 2 workloads", id="edge"),
        pytest.param(lambda: problem(1, 1, edges=[(1, 1)]), "does not call itself", id="loop"),
        pytest.param(
            lambda: problem(1, 1, edges=[Edge(caller=0, callee=1, max_cost=NAN)]), "max_cost or bandwidth", id="limit"
        ),
        pytest.param(
            lambda: problem(1, 1, edges=[Edge(caller=0, callee=1, bandwidth=np.inf)]), "max_cost or", id="bandwidth"
        ),
        pytest.param(
            lambda: problem(1, rules=[Spread(domain=np.arange(3), subjects=[0], selects=[0], max_skew=1)]),
            "Spread.domain has shape",
            id="domain",
        ),
        pytest.param(
            lambda: problem(1, rules=[AntiAffinity(domain=HOST, subjects=[0], selects=[1])]),
            "AntiAffinity names pod set 1",
            id="rule",
        ),
    ],
)
def test_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        make()


def test_pods_are_those_to_be_placed() -> None:
    assert problem(1, 3, placed={0: {2: 5}}).pods == 4


def test_a_limit_may_be_anything_from_zero_to_infinity() -> None:
    asked = problem(1, 1, edges=[Edge(caller=0, callee=1, max_cost=0.0)])
    assert replace(asked, edges=[Edge(caller=0, callee=1)]).edges[0].max_cost == np.inf
