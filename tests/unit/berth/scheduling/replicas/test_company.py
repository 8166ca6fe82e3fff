"""Room for pods with those that they bring along, and for all pods of chains that end at a single one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from berth.scheduling.replicas.company import Company
from berth.scheduling.replicas.problem import Ints, Problem
from berth.scheduling.replicas.rule import Affinity
from tests.support.counts import HOST, ZONE, nodes, problem

ROOM = [0, 1, 2, 3, 4, 5, 6, 7]
"""Free room of the eight nodes: two in each zone, so 1, 5, 9 and 13 in these"""
EVERYWHERE = np.ones(8, dtype=np.bool_)


def near(one: int, *others: int, domain: Ints = HOST, placed: int | None = None) -> Affinity:
    there = None if placed is None else np.eye(8, dtype=np.int64)[placed]
    return Affinity(domain=domain, subjects=[one], selects=list(others), placed=there)


def asked(*replicas: int, rules: list[Affinity]) -> Problem:
    return problem(*replicas, rules=rules, on=nodes(ROOM))


def company(found: Problem) -> Company:
    return Company(found, [rule for rule in found.rules if isinstance(rule, Affinity)])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([near(0, 1)], [2, 3, 4, 5, 6, 7], id="one more"),
        pytest.param([near(0, 1), near(1, 2), near(2, 3)], [4, 5, 6, 7], id="a chain, however many replicas"),
        pytest.param([near(2, 3), near(1, 2), near(0, 1)], [4, 5, 6, 7], id="in another order"),
        pytest.param([near(0, 1), near(1, 2, domain=ZONE)], [2, 3, 4, 5, 6, 7], id="others may be on another node"),
        pytest.param([near(0, 1), near(1, 2), near(2, 0)], [3, 4, 5, 6, 7], id="a circle is gone round once"),
        pytest.param([near(0, 0, 1)], list(range(8)), id="of one that comes alone nothing is said"),
        pytest.param([near(0, 1, placed=1)], [1, 2, 3, 4, 5, 6, 7], id="the other one is there"),
        pytest.param(
            [near(0, 1), near(1, 2), near(2, 3, placed=3)], [3, 4, 5, 6, 7], id="the end of the chain is there"
        ),
        pytest.param([near(0, 4, 1), near(1, 2)], [2, 3, 4, 5, 6, 7], id="the least of two that would do"),
        pytest.param([near(0, 1), near(1, 2, 3, 4, 5, 6)], [2, 3, 4, 5, 6, 7], id="one of many is not counted"),
    ],
)
def test_where_a_pod_fits_with_its_company(rules: list[Affinity], expected: list[int]) -> None:
    fits = company(asked(*[3] * 7, rules=rules)).fits(0, HOST)
    assert np.flatnonzero(fits).tolist() == expected


def test_room_of_a_zone_is_that_of_its_nodes() -> None:
    found = asked(1, 1, 1, 1, 1, 1, rules=[near(n, n + 1, domain=ZONE) for n in range(5)])
    assert company(found).fits(0, ZONE).tolist() == [False] * 4 + [True] * 4


def test_those_with_nothing_to_place_do_not_come() -> None:
    found = asked(1, 0, 1, rules=[near(0, 1, 2), near(2, 1)])
    assert np.flatnonzero(company(found).fits(0, HOST)).tolist() == [2, 3, 4, 5, 6, 7]


def test_nobody_needs_what_nobody_requests() -> None:
    found = asked(1, 1, rules=[near(0, 1)])
    free = np.column_stack([found.nodes.free, np.full(8, -1)])
    sets = [replace(one, request=np.array([1, 0])) for one in found.pod_sets]
    found = replace(found, nodes=replace(found.nodes, free=free), pod_sets=sets)
    assert np.flatnonzero(company(found).fits(0, HOST)).tolist() == [2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    ("replicas", "rules", "rows"),
    [
        pytest.param([3, 1], [near(0, 1)], [[1, 0]], id="near a single pod"),
        pytest.param([3, 2], [near(0, 1)], [], id="near one of two"),
        pytest.param([3, 2, 1], [near(0, 1), near(1, 2)], [[2, 1, 0]], id="a chain"),
        pytest.param([3, 2, 1], [near(0, 2), near(1, 2)], [[2, 0, 1]], id="two near one"),
        pytest.param([3, 1, 2], [near(0, 1), near(1, 2)], [[1, 0]], id="the single one in the middle"),
        pytest.param([3, 1], [near(0, 1, placed=2)], [], id="or near one that is placed"),
        pytest.param([3, 1, 1], [near(0, 1, 2)], [], id="near one or another"),
        pytest.param([3, 1, 0], [near(0, 1, 2)], [[1, 0]], id="the other has nothing to place"),
        pytest.param([3, 1], [near(0, 0, 1)], [], id="selected itself"),
        pytest.param([0, 1], [near(0, 1)], [], id="nobody is to be placed near it"),
        pytest.param([3, 2, 1], [near(0, 1, domain=ZONE), near(1, 2)], [[2, 1]], id="of each domain by itself"),
    ],
)
def test_who_is_tied_to_a_single_pod(replicas: list[int], rules: list[Affinity], rows: list[list[int]]) -> None:
    assert [tied.rows for tied in company(asked(*replicas, rules=rules)).tied()] == rows


@pytest.mark.parametrize(
    ("replicas", "rules", "expected"),
    [
        pytest.param([3, 1], [near(0, 1)], [4, 5, 6, 7], id="all of them"),
        pytest.param([3, 2, 1], [near(0, 1), near(1, 2)], [6, 7], id="all of a chain"),
        pytest.param([3, 1, 2], [near(0, 1), near(1, 2)], [5, 6, 7], id="and one that the single one is near"),
        pytest.param([3, 1, 2], [near(0, 1), near(1, 2, placed=4)], [4, 5, 6, 7], id="who is there already"),
        pytest.param([9, 1], [near(0, 1, domain=ZONE)], [6, 7], id="of a zone"),
        pytest.param(
            [3, 1], [near(0, 1, domain=np.where(HOST == 7, -1, HOST))], [4, 5, 6], id="not on a node without the key"
        ),
    ],
)
def test_where_all_that_are_tied_fit(replicas: list[int], rules: list[Affinity], expected: list[int]) -> None:
    found = company(asked(*replicas, rules=rules))
    (tied,) = found.tied()
    assert np.flatnonzero(found.holds(tied, [EVERYWHERE] * len(replicas))).tolist() == expected


def test_who_is_tied_must_be_able_to_be_in_the_same_domain() -> None:
    found = company(asked(2, 1, rules=[near(0, 1, domain=ZONE)]))
    (tied,) = found.tied()
    able = [np.isin(HOST, [2, 7]), np.isin(HOST, [1, 3, 6])]
    assert np.flatnonzero(found.holds(tied, able)).tolist() == [2, 3, 6, 7]
