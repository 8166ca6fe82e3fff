"""Masks by required affinity: what a pod must be near holds for it as well, and no plan is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.replicas_core.brute import TooLargeError, best
from bench.replicas_core.cases import cluster, uneven
from berth.scheduling.gang.budget import UNLIMITED, Budget
from berth.scheduling.planning import finish
from berth.scheduling.replicas.near import near_enough
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import PodSet, Problem, Workload
from berth.scheduling.replicas.rule import Affinity
from tests.support.chains import small
from tests.support.counts import HOST, ZONE, nodes, problem, seeds_of, with_rules
from tests.support.work import CALL, Work

SEEDS = 20
"""Generated problems that are solved by brute force."""


def near(one: int, other: int, domain: np.ndarray = HOST, **fields: Any) -> Affinity:
    return Affinity(domain=domain, subjects=[one], selects=[other], **fields)


def masks(asked: Problem) -> list[list[int]]:
    """Nodes that each pod set may use."""
    found = finish(near_enough(asked, UNLIMITED)).pod_sets
    return [list(range(8)) if one.mask is None else np.flatnonzero(one.mask).tolist() for one in found]


def only(*allowed: int) -> np.ndarray:
    return np.isin(np.arange(8), allowed)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([], [list(range(8)), list(range(8)), [1, 6]], id="no rule"),
        pytest.param([near(0, 1), near(1, 2)], [[1, 6]] * 3, id="a chain by host"),
        pytest.param([near(1, 2), near(0, 1)], [[1, 6]] * 3, id="in the other order"),
        pytest.param([near(0, 2, ZONE)], [[0, 1, 6, 7], list(range(8)), [1, 6]], id="by zone"),
        pytest.param([near(0, 2), near(0, 2, ZONE)], [[1, 6], list(range(8)), [1, 6]], id="two terms of one pod"),
        pytest.param([near(0, 1), near(1, 0)], [list(range(8))] * 2 + [[1, 6]], id="each other"),
        pytest.param([near(0, 2, weight=50)], [list(range(8))] * 2 + [[1, 6]], id="a preferred term"),
        pytest.param(
            [near(0, 2, placed=np.eye(8, dtype=np.int64)[3])], [[1, 3, 6], list(range(8)), [1, 6]], id="a placed pod"
        ),
        pytest.param(
            [near(0, 2, np.where(HOST == 6, -1, HOST))], [[1], list(range(8)), [1]], id="a node without the key"
        ),
        pytest.param(
            [Affinity(domain=HOST, subjects=[0, 2], selects=[2])], [[1, 6], list(range(8)), [1, 6]], id="the first"
        ),
    ],
)
def test_where_pods_can_be_near(rules: list[Affinity], expected: list[list[int]]) -> None:
    asked = problem(1, 1, 1, rules=rules)
    sets = [*asked.pod_sets[:2], replace(asked.pod_sets[2], mask=only(1, 6))]
    assert masks(replace(asked, pod_sets=sets)) == expected


def test_a_node_without_the_key_is_near_nobody_also_where_not_all_are_to_be_placed() -> None:
    asked = problem(1, 1, rules=[near(0, 1, np.where(HOST == 6, -1, HOST))])
    sets = [asked.pod_sets[0], replace(asked.pod_sets[1], mask=only(1, 6))]
    found = finish(near_enough(replace(asked, pod_sets=sets), UNLIMITED, whole=False)).pod_sets
    assert [np.flatnonzero(one.mask).tolist() for one in found if one.mask is not None] == [[1], [1, 6]]


def test_room_for_a_pod_counts_as_well() -> None:
    asked = problem(1, 1, rules=[near(0, 1)], on=nodes([9, 9, 9, 9, 9, 3, 9, 9]))
    large = replace(asked.pod_sets[1], request=np.array([5]))
    assert masks(replace(asked, pod_sets=[asked.pod_sets[0], large])) == [[0, 1, 2, 3, 4, 6, 7], list(range(8))]


def test_without_time_masks_stay() -> None:
    asked = problem(1, 1, rules=[near(0, 1)], mask=only(3))
    assert finish(near_enough(asked, Budget(lambda: 1.0, 0.0))) is asked


def chain(length: int, replicas: int) -> Problem:
    """Workloads that must each share a node with the next; the last one's nodes are 25 of 2500."""
    special = np.zeros(2500, dtype=np.bool_)
    special[np.random.default_rng(3).permutation(2500)[:25]] = True
    request = np.array([400, 64, 1])
    sets = [PodSet(workload=row, replicas=replicas, request=request) for row in range(length - 1)]
    return Problem(
        nodes=cluster(2500, 16),
        workloads=[Workload(name=str(row)) for row in range(length)],
        pod_sets=[*sets, PodSet(workload=length - 1, replicas=replicas, request=request, mask=special)],
        edges=[],
        rules=[near(row, row + 1, np.arange(2500)) for row in range(length - 1)],
    )


def test_a_single_pod_goes_where_all_that_must_be_near_it_have_room() -> None:
    asked = problem(2, 1, rules=[near(0, 1)], on=nodes([2, 2, 2, 3, 2, 2, 2, 2]))
    assert masks(asked) == [[3], [3]]
    narrowed = finish(near_enough(asked, UNLIMITED, whole=False))
    # Where not all are to be placed, one is near it anywhere.
    assert [one.mask is None or bool(one.mask.all()) for one in narrowed.pod_sets] == [True, True]


@pytest.mark.parametrize(("length", "replicas"), [(5, 12), (7, 5)])
@pytest.mark.parametrize("equal", [True, False], ids=["equal nodes", "unequal nodes"])
def test_a_chain_that_ends_at_few_nodes_is_placed_there(length: int, replicas: int, equal: bool) -> None:
    asked = chain(length, replicas)
    if not equal:
        asked = uneven(asked)
        asked.nodes.free[:, 0] += 2000
    assert finish(plan(asked)).complete


def test_a_long_chain_is_followed_once() -> None:
    work = Work()
    with work.counting():
        finish(near_enough(chain(200, 1), UNLIMITED))
    assert work.seconds < 200 * 400 * CALL


@pytest.mark.parametrize("others", [False, True], ids=["themselves among them", "others"])
def test_rules_that_select_everybody_do_not_look_at_all_pairs(others: bool) -> None:
    """One node has room for nobody."""
    asked = problem(*[1] * 200, on=nodes([9, 9, 9, 9, 9, 0, 9, 9]))
    every = range(200)
    rules = [
        Affinity(domain=ZONE, subjects=[row], selects=[one for one in every if not others or one != row])
        for row in every
    ]
    asked, work = replace(asked, rules=rules), Work()
    with work.counting():
        finish(near_enough(asked, UNLIMITED))
    assert work.seconds < 200 * 300 * CALL


@pytest.mark.parametrize("whole", [True, False])
def test_the_best_placements_are_inside_the_masks(whole: bool) -> None:
    narrower = 0
    for asked in [*map(masked, seeds_of(Affinity, required=True)[:SEEDS]), *map(small, range(2 * SEEDS))]:
        try:
            _, state = best(asked)
        except TooLargeError:
            continue
        found = finish(near_enough(asked, UNLIMITED, whole=whole))
        narrower += found is not asked and state is not None
        for placed, one in zip(state or (), found.pod_sets, strict=False):
            assert one.mask is None or one.mask[list(placed)].all()
    assert narrower


def masked(seed: int) -> Problem:
    """A generated problem with required affinity whose pods may use some of the nodes."""
    asked = with_rules(seed, Affinity, required=True)
    rng = np.random.default_rng(seed)
    few = [replace(one, mask=rng.random(asked.nodes.size) < 0.6) for one in asked.pod_sets]
    return replace(asked, pod_sets=few)
