"""Requests too large for the tables: sums saturate, and are exact again once the pods are gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import Container, Pod, ResourceRequirements
from berth.scheduling.cache import ClusterState
from berth.scheduling.units import LIMIT
from tests.support.builders import node, pod

HUGE = "9223372036854775807"


def used(state: ClusterState, name: str) -> int:
    return int(state.used[state.node_index["n1"], state.resources[name]])


def odd(name: str, *memory: str) -> Pod:
    """A pod whose containers request so much."""
    containers = [
        Container(name=f"c{n}", resources=ResourceRequirements(requests={"memory": amount, "cpu": amount}))
        for n, amount in enumerate(memory)
    ]
    return pod(name, on="n1", containers=containers)


@given(st.lists(st.lists(st.sampled_from([HUGE, "1e30", "1Gi", "5E"]), min_size=1, max_size=4), min_size=1, max_size=6))
def test_books_saturate_and_come_back(pods: list[list[str]]) -> None:
    state = ClusterState()
    state.update_node(node("n1"))
    state.update_pod(pod("calm", on="n1", cpu="1", memory="1Gi"))
    for number, amounts in enumerate(pods):
        state.update_pod(odd(f"odd{number}", *amounts))
        assert 2**30 < used(state, "memory") <= LIMIT
        assert 1000 < used(state, "cpu") <= LIMIT
        assert (state.nodes.scoring_used >= 0).all()
    assert used(state, "pods") == len(pods) + 1
    for number, amounts in enumerate(pods):
        state.delete_pod(odd(f"odd{number}", *amounts).metadata.uid)
    assert (used(state, "cpu"), used(state, "memory"), used(state, "pods")) == (1000, 2**30, 1)
    assert state.nodes.scoring_used.tolist() == [[1000, 2**30]]


def test_a_sum_and_a_request_never_overflow() -> None:
    state = ClusterState()
    state.update_node(node("n1"))
    for number in range(3):
        state.update_pod(odd(f"odd{number}", HUGE, HUGE))
    template = state.info(odd("next", HUGE, HUGE)).template
    assert (state.used + state.request_vector(template) > 0)[0, :2].all()
