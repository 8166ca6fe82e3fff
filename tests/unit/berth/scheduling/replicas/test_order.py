"""Orders in which pods with required affinity can be bound."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.order import has_order
from berth.scheduling.replicas.problem import Nodes, PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Affinity

HOST, PAIR = np.arange(4), np.array([0, 0, 1, 1])


def near(subject: int, *selects: int, domain: np.ndarray = HOST, placed: list[int] | None = None) -> Affinity:
    counts = None if placed is None else np.array(placed)
    return Affinity(domain=domain, subjects=[subject], selects=selects, placed=counts)


@pytest.mark.parametrize(
    ("rules", "planned", "possible"),
    [
        pytest.param([], [(0, 0), (1, 3)], True, id="no rules"),
        pytest.param([near(0, 0)], [(0, 1), (0, 1)], True, id="together, one is first"),
        pytest.param([near(0, 0)], [(0, 1), (0, 2)], False, id="two domains, two first"),
        pytest.param([near(0, 0, domain=PAIR)], [(0, 0), (0, 1)], True, id="two nodes of one domain"),
        pytest.param([near(0, 1)], [(0, 1), (1, 1)], True, id="after another"),
        pytest.param([near(0, 1)], [(0, 1), (1, 2)], False, id="away from another"),
        pytest.param([near(0, 1), near(1, 0)], [(0, 1), (1, 1)], False, id="each waits for the other"),
        pytest.param([near(0, 1), near(1, 2)], [(0, 1), (1, 1), (2, 1)], True, id="chain"),
        pytest.param([near(0, 0, placed=[1, 0, 0, 0])], [(0, 1)], False, id="somebody was first elsewhere"),
        pytest.param([near(0, 0, placed=[0, 1, 0, 0])], [(0, 1)], True, id="somebody was first here"),
        pytest.param(
            [near(2, 2, 3), near(0, 0, 2)],
            [(0, 3), (2, 0), (2, 0), (2, 2), (3, 2)],
            True,
            id="first of its kind before those that it selects",
        ),
    ],
)
def test_has_order(rules: list[Affinity], planned: list[tuple[int, int]], possible: bool) -> None:
    zero = np.zeros(4, dtype=np.int64)
    nodes = Nodes(free=np.full((4, 1), 9), location=zero, location_cost=np.ones((1, 1)), zone=zero)
    sets = [PodSet(workload=0, replicas=5, request=np.array([1])) for _ in range(4)]
    problem = Problem(nodes=nodes, workloads=[Workload(name="w")], pod_sets=sets, rules=rules)
    books = Books(Model(problem, np.arange(4)))
    for row, column in planned:
        books.insert(row, column)
    assert has_order(books) is possible
