"""Bounds on claims by node that a failed plan has shown; how plans go by them is in ../test_planner_volumes.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.decision import Decision
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.volume_cuts import VolumeCut, cut_of, cut_room
from tests.support.placement import member, zoned
from tests.support.volumes import claim, storage_class, store, using

LOCAL = {"storageClassName": "local"}


@pytest.fixture
def state() -> ClusterState:
    made = ClusterState()
    for name in ("n1", "n2", "n3"):
        made.update_node(zoned(name))
    classes = storage_class(), storage_class("local", provisioner="kubernetes.io/no-provisioner")
    return store(made, *classes, claim("other"), *(claim(name, **LOCAL) for name in ("one", "two", "three", "four")))


def settled(node: str, *claims: str) -> Decision:
    pod = member("-".join(claims), "a", spec=using(*claims))
    return Decision(pod, node, "replicas", 0.0, {}, (), 0, 0, ())


def pod_set(state: ClusterState, *pods: Sequence[str]) -> Alike:
    mask = np.ones(state.size, dtype=np.bool_)
    result, nothing = FilterResult(mask, state.size), np.zeros(0, dtype=np.int64)
    infos = [state.info(member(f"p{number}", "a", spec=using(*claims))) for number, claims in enumerate(pods)]
    return Alike("a", infos[0].template, result, nothing, mask, {}, [Candidate(info, result, {}) for info in infos])


class TestCut:
    def test_nodes_take_no_more_than_was_taken_of_the_classes_of_the_pod(self, state: ClusterState) -> None:
        plan = [settled("n1", "one", "two"), settled("n1", "other"), settled("n2", "three"), settled("n3", "other")]
        found = cut_of(member("p", "a", spec=using("four")), ["n1", "n3"], plan, state)
        assert found == VolumeCut(frozenset({"local"}), {"n1": 2, "n3": 0})

    def test_a_pod_of_several_claims_shows_that_one_too_many_was_asked(self, state: ClusterState) -> None:
        """What is left may serve one of them: where nothing is taken, another pod with one claim may go."""
        found = cut_of(
            member("p", "a", spec=using("one", "two", "other")), ["n1", "n3"], [settled("n1", "three", "four")], state
        )
        assert found == VolumeCut(frozenset({"local", "wait"}), {"n1": 4, "n3": 2})

    @pytest.mark.parametrize(
        ("claims", "nodes"),
        [
            pytest.param([], ["n1"], id="no claims"),
            pytest.param(["missing"], ["n1"], id="a claim that is not there"),
            pytest.param(["one"], [], id="no node"),
        ],
    )
    def test_nothing_is_bounded(self, state: ClusterState, claims: list[str], nodes: list[str]) -> None:
        assert cut_of(member("p", "a", spec=using(*claims)), nodes, [settled("n1", "two")], state) is None


class TestRoom:
    def test_bounded_nodes_have_as_much_as_the_bound_and_others_enough_for_all(self, state: ClusterState) -> None:
        sets = [pod_set(state, ["one", "two"], ["three", "four", "other"]), pod_set(state, ["other"])]
        room = cut_room([VolumeCut(frozenset({"local"}), {"n2": 1, "gone": 0})], sets, state)
        assert room.free.tolist() == [[4], [1], [4]]
        assert room.requests.tolist() == [[2], [0]]

    def test_pods_take_the_fewest_of_those_that_count_as_alike(self, state: ClusterState) -> None:
        room = cut_room(
            [VolumeCut(frozenset({"local"}), {"n2": 1})], [pod_set(state, ["one", "two"], ["three"])], state
        )
        assert room.requests.tolist() == [[1]]

    def test_without_bounds_there_are_no_columns(self, state: ClusterState) -> None:
        room = cut_room([], [pod_set(state, ["one"])], state)
        assert (room.free.shape, room.requests.shape) == ((3, 0), (1, 0))
