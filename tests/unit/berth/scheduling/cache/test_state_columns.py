"""Columns are of what nodes have: pods can neither add any nor keep any."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.nodes import FIXED_RESOURCES, LABEL_COLUMNS, UNUSED_RESOURCES
from tests.support.builders import node, pod

GPU = "example.com/gpu"


@pytest.fixture
def state() -> ClusterState:
    state = ClusterState()
    state.update_node(node("n1", labels={"disk": "ssd"}))
    return state


def used(state: ClusterState, name: str) -> int:
    return int(state.used[state.node_index["n1"], state.resources[name]])


class TestResources:
    def test_names_that_only_pods_have_add_none(self, state: ClusterState) -> None:
        requests: dict[str, Any] = {f"example.com/r{n}": 1 for n in range(1500)}
        state.update_pod(pod("odd", on="n1", **requests))
        assert tuple(state.resources) == FIXED_RESOURCES

    def test_what_a_node_gets_later_is_charged_with_the_pods_that_are_there(self, state: ClusterState) -> None:
        requests: dict[str, Any] = {GPU: 2}
        state.update_pod(pod("p", on="n1", cpu="1", **requests))
        state.update_node(node("n1", extra={GPU: 8}))
        assert used(state, GPU) == 2
        assert used(state, "cpu") == 1000
        assert used(state, "pods") == 1
        state.delete_pod(pod("p").metadata.uid)
        assert used(state, GPU) == used(state, "cpu") == used(state, "pods") == 0

    def test_a_few_that_no_node_has_any_more_are_kept(self, state: ClusterState) -> None:
        state.update_node(node("n2", extra={GPU: 8}))
        state.delete_node("n2")
        assert GPU in state.resources

    @pytest.mark.parametrize("deleted", [True, False])
    def test_many_are_freed(self, state: ClusterState, deleted: bool) -> None:
        many = {f"example.com/r{n}": 1 for n in range(UNUSED_RESOURCES + 1)}
        requests: dict[str, Any] = {GPU: 2, "example.com/r0": 1}
        state.update_pod(pod("p", on="n1", cpu="1", **requests))
        state.update_node(node("n2", extra=many))
        state.update_node(node("n1", extra={GPU: 8}))
        version = state.static_version
        if deleted:
            state.delete_node("n2")
        else:
            state.update_node(node("n2"))
        assert tuple(state.resources) == (*FIXED_RESOURCES, GPU)
        assert state.static_version > version
        assert (used(state, GPU), used(state, "cpu")) == (2, 1000)
        assert state.allocatable[state.node_index["n1"], state.resources[GPU]] == 8

    @given(st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 40), max_size=30)), max_size=8))
    def test_books_are_those_of_the_pods(self, changes: list[tuple[int, set[int]]]) -> None:
        state = ClusterState()
        for number in range(3):
            requests: dict[str, Any] = {f"example.com/r{n}": n + 1 for n in range(number, 41, 3)}
            state.update_pod(pod(f"p{number}", on=f"n{number}", cpu="1", **requests))
        for number, names in changes:
            state.update_node(node(f"n{number}", extra={f"example.com/r{n}": 100 for n in names}))
        for name, slot in state.node_index.items():
            for resource, column in state.resources.items():
                number = int(resource.removeprefix("example.com/r")) if "/" in resource else -1
                here = number % 3 == int(name[1:])
                expected = {"cpu": 1000, "pods": 1}.get(resource, number + 1 if number >= 0 and here else 0)
                assert state.used[slot, column] == expected
        for number in range(3):
            state.delete_pod(pod(f"p{number}").metadata.uid)
        assert not state.used.any()
        assert not state.nodes.scoring_used.any()

    def test_bandwidth_that_a_node_states_later_is_taken_by_annotations_too(self) -> None:
        state = ClusterState(count_annotations=True)
        state.update_node(node("n1"))
        annotated = pod("p", on="n1")
        annotated.metadata.annotations = {"kubernetes.io/egress-bandwidth": "10M"}
        state.update_pod(annotated)
        state.update_node(node("n1", extra={RESOURCE_BANDWIDTH: "1G"}))
        assert used(state, RESOURCE_BANDWIDTH) == 10_000_000


class TestLabels:
    def test_keys_that_no_node_has_add_none(self, state: ClusterState) -> None:
        wanted = {f"key-{n}": "x" for n in range(5000)}
        assert not state.selection.labels(wanted).any()
        for key in wanted:
            assert state.domains(key).tolist() == [-1]
        assert len(state.nodes._columns) == 0

    def test_a_key_that_a_node_gets_later_is_found(self, state: ClusterState) -> None:
        assert not state.selection.labels({"zone": "a"}).any()
        state.update_node(node("n1", labels={"zone": "a"}))
        assert state.selection.labels({"zone": "a"}).tolist() == [True]

    def test_a_key_that_no_node_has_any_more_is_freed(self, state: ClusterState) -> None:
        assert state.selection.labels({"disk": "ssd"}).any()
        state.update_node(node("n1"))
        assert not state.selection.labels({"disk": "ssd"}).any()
        assert len(state.nodes._columns) == 0

    def test_more_keys_than_are_kept_are_built_anew(self, state: ClusterState) -> None:
        labels = {f"key-{n}": "x" for n in range(LABEL_COLUMNS + 10)}
        state.update_node(node("n1", labels=labels))
        for _ in range(2):
            assert state.selection.labels(labels).tolist() == [True]
        assert len(state.nodes._columns) == LABEL_COLUMNS
