"""Workloads that die with a node or a zone."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.replicas.problem import Prices
from berth.scheduling.replicas.terms.survival import survives
from tests.support.counts import books_of, problem


@pytest.mark.parametrize(
    ("homes", "price"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([0], 0, id="one replica"),
        pytest.param([0, 0], 7 + 3, id="two on a node"),
        pytest.param([0, 1], 3, id="two in a zone"),
        pytest.param([0, 2], 0, id="two in two zones"),
        pytest.param([0, 0, 0, 7], 0, id="one of four elsewhere"),
    ],
)
def test_the_price_of_a_workload_and_of_every_next_replica(homes: list[int], price: float) -> None:
    books = books_of(problem(5, prices=Prices(survive_node=7, survive_zone=3)))
    for node in homes:
        books.insert(0, node)
    assert books.survival.value(0) == price
    change = np.broadcast_to(books.survival.add(0), 8)
    for node in range(8):
        books.insert(0, node)
        assert books.survival.value(0) - price == change[node]
        books.remove(0, node)


def test_prices_of_zero_ask_for_nothing() -> None:
    books = books_of(problem(2, prices=Prices(survive_node=0, survive_zone=0)))
    books.insert(0, 0, 2)
    assert books.survival.value(0) == 0


def test_survives() -> None:
    assert survives(np.array([[0, 0], [1, 0], [2, 0], [1, 1]])).tolist() == [True, True, False, True]
