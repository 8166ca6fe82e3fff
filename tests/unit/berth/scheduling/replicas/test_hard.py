"""Which finished plans keep every hard rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.replicas_core.small import small_problem
from berth.network.routing import Routing
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.hard import keeps_rules
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Problem, Workload

NODES = Nodes(
    free=np.full((3, 1), 9),
    location=np.arange(3),
    location_cost=np.where(np.eye(3, dtype=np.bool_), 1.0, 20.0),
    zone=np.arange(3),
)
"""Three nodes, 20 apart."""


@pytest.mark.parametrize(
    ("routing", "there", "to", "kept"),
    [
        pytest.param(Routing.ALL, {0: 1}, 0, True, id="within"),
        pytest.param(Routing.ALL, {0: 1}, 1, False, id="beyond"),
        pytest.param(Routing.ALL, {1: 1}, 0, True, id="broken-before"),
        pytest.param(Routing.ALL, {1: 1}, 1, False, id="broken-before-and-one-endpoint-more"),
        pytest.param(Routing.ALL, {1: 1}, 2, False, id="broken-before-and-another-place"),
        pytest.param(Routing.SAME_ZONE, {0: 1}, 1, True, id="its-zone-has-one"),
        pytest.param(Routing.SAME_ZONE, {1: 1}, 2, False, id="its-zone-has-none"),
        pytest.param(Routing.SAME_ZONE, {1: 1}, 0, True, id="its-zone-gets-one"),
        pytest.param(Routing.LOCAL, {1: 1}, 2, True, id="no-call-leaves-the-node"),
    ],
)
def test_a_placed_caller_reaches_no_more_endpoints_beyond_its_limit(
    routing: Routing, there: dict[int, int], to: int, kept: bool
) -> None:
    problem = Problem(
        nodes=NODES,
        workloads=[Workload(name="a", placed={0: 1}), Workload(name="b", routing=routing, placed=there)],
        pod_sets=[PodSet(workload=1, replicas=1, request=np.zeros(1, np.int64))],
        edges=[Edge(caller=0, callee=1, max_cost=5.0)],
    )
    books = Books(Model(problem, np.arange(3)))
    books.insert(0, to)
    assert keeps_rules(books) is kept


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100_000))
def test_after_one_more_pod_what_concerns_it_decides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = small_problem(seed)
    books = Books(Model(problem, np.arange(problem.nodes.size)))
    if not keeps_rules(books):
        return
    for row in rng.permutation(np.repeat(np.arange(len(problem.pod_sets)), 3)).tolist():
        able = np.flatnonzero(books.can(row))
        if len(able):
            column = int(rng.choice(able))
            books.insert(row, column)
            whole = keeps_rules(books)
            assert keeps_rules(books, row) is whole
            if not whole:
                books.remove(row, column)
