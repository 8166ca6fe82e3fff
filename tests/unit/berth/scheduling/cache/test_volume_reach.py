"""Which volumes reach which nodes, and what is taken of them: few steps for many nodes, little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.cache import ClusterState, volume_reach
from berth.scheduling.cache.volume_matching import Claim, DelayedClaims
from berth.scheduling.cache.volume_reach import Reach
from tests.support.builders import node
from tests.support.calls import calls_in
from tests.support.filtering import cluster
from tests.support.volumes import claim, storage_class, store, volume

STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
AFFINITIES = st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=5)


def local(nodes: int, each: int, provisioner: str = "kubernetes.io/no-provisioner") -> ClusterState:
    """Nodes with volumes of their own."""
    state = cluster([node(f"n{number}", labels={"zone": f"n{number}"}) for number in range(nodes)])
    store(state, storage_class(provisioner=provisioner))
    return store(state, *(volume(f"v{number}", zone=f"n{number % nodes}") for number in range(nodes * each)))


def claims_of_a_pod(count: int) -> list[Claim]:
    return [(f"default/c{number}", claim(f"c{number}")) for number in range(count)]


@settings(max_examples=60)
@given(AFFINITIES, st.data())
def test_nodes_reach_what_the_affinity_of_each_volume_admits(affinities: list[set[int]], data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.sampled_from(range(len(affinities))), max_size=8))
    admitted = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(numbers), max_size=len(numbers))), dtype=np.bool_
    )
    first = data.draw(st.integers(0, len(numbers)))
    slots = [np.array(sorted(each), dtype=np.intp) for each in affinities]
    reach = Reach(np.array(numbers, dtype=np.intp), slots, 5)
    there = [[index for index, number in enumerate(numbers) if slot in affinities[number]] for slot in range(5)]
    fitting = [[index for index in each if index >= first and admitted[index]] for each in there]
    everywhere = np.arange(5)
    assert reach.count(admitted, first).tolist() == [len(each) for each in fitting]
    assert reach.alike(everywhere).tolist() == [there.index(each) for each in there]
    linked = np.eye(5, dtype=np.bool_)
    for index in {index for each in fitting for index in each}:
        linked |= np.outer([index in each for each in fitting], [index in each for each in fitting])
    linked = np.linalg.matrix_power(linked.astype(np.int64), 5) > 0
    parts = [int(linked[slot].argmax()) if fitting[slot] else -1 for slot in range(5)]
    apart = reach.apart(admitted, first)
    assert apart is not None
    assert apart.tolist() == parts
    taking = reach.taking(everywhere)
    everything = np.ones(len(numbers), dtype=np.bool_)
    assert taking.take(admitted, first).tolist() == [each[0] if each else -1 for each in fitting]
    taking.leave(np.arange(5) == 4)
    left = [
        [index for index in each if index not in taken[:1]] for each, taken in zip(there[:4], fitting, strict=False)
    ]
    assert taking.take(everything, 0).tolist() == [*(each[0] if each else -1 for each in left), -1]


@pytest.mark.parametrize(
    ("most", "portions"),
    [
        pytest.param(100, [[0, 1, 2]], id="all-at-a-time"),
        pytest.param(5, [[0, 1], [2]], id="as-many-as-fit"),
        pytest.param(1, [[0], [1], [2]], id="one-at-least"),
    ],
)
def test_nodes_of_many_volumes_are_matched_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, most: int, portions: list[list[int]]
) -> None:
    monkeypatch.setattr(volume_reach, "MOST_PAIRS", most)
    state = local(3, 2)
    sizes = ["2Gi", "1Gi", "1Gi"]  # enough of them on the last node alone
    store(state, volume("v0", "3Gi", zone="n2"), volume("v3", "3Gi", zone="n2"))
    delayed = DelayedClaims([(f"default/c{n}", claim(f"c{n}", size)) for n, size in enumerate(sizes)], state)
    (shelf,) = delayed._pool.shelves.values()
    assert shelf.rack.reach.count(np.ones(6, dtype=np.bool_), 0)[:3].tolist() == [0, 2, 4]
    assert [
        each.tolist()
        for each in Reach(np.repeat(np.arange(3), 2), [np.array([n]) for n in range(3)], 3).portions(np.arange(3))
    ] == portions
    unmatched, _ = delayed.failures()
    assert unmatched[:3].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("each", "possible"),
    [
        pytest.param(2, False, id="too-few"),
        pytest.param(8, True, id="as-many-as-claims"),
        pytest.param(9, True, id="more"),
    ],
)
def test_volumes_of_each_node_are_matched_for_all_nodes_at_once(each: int, possible: bool) -> None:
    """Not node by node and claim by claim: what grows with the nodes is to read their volumes."""
    nodes, count = 100, 8
    state = local(nodes, each)
    claims = claims_of_a_pod(count)
    delayed = DelayedClaims(claims, state)
    unmatched, _ = delayed.failures()
    assert unmatched[:nodes].tolist() == [not possible] * nodes
    assert calls_in(delayed.failures) <= 10 * nodes + 100 * count


def test_where_everything_can_be_provisioned_nothing_is_matched() -> None:
    state = local(100, 2, "csi.test")
    delayed = DelayedClaims(claims_of_a_pod(8), state)
    assert not any(failed.any() for failed in delayed.failures())
    assert calls_in(delayed.failures) <= 500
    assert len(delayed.plan(0).provision) == 6


def test_what_is_kept_of_volumes_grows_with_those_that_nodes_reach() -> None:
    nodes = 2000
    state = local(nodes, 1)
    tracemalloc.start()
    try:
        delayed = DelayedClaims(claims_of_a_pod(2), state)
        assert delayed.failures()[0][:nodes].all()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < nodes * nodes, "a table of all volumes by all nodes"


@pytest.mark.parametrize(("nodes", "told"), [(50, True), (300, False)], ids=["short", "long"])
def test_parts_are_not_told_where_volumes_make_a_long_chain_of_nodes(nodes: int, told: bool) -> None:
    slots = [np.array([number, number + 1], dtype=np.intp) for number in range(nodes - 1)]
    reach = Reach(np.arange(nodes - 1), slots, nodes)
    found = reach.apart(np.ones(nodes - 1, dtype=np.bool_), 0)
    assert (None if found is None else found.tolist()) == ([0] * nodes if told else None)
