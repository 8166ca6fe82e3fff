"""CSI volumes that nodes still attach for the pods of a plan; how plans go by them is in ../test_planner_volumes.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.attach_room import attach_room
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.volume_room import VolumeRoom
from tests.support.placement import member, zoned
from tests.support.volumes import attachment, claim, csi_node, storage_class, store, using, volume


def cluster() -> ClusterState:
    """Limits: three on n1, of which a pod uses one and one is attached; two on n2; none on n3 and n4."""
    state = ClusterState()
    for name in ("n1", "n2", "n3", "n4"):
        state.update_node(zoned(name))
    store(
        state,
        storage_class(),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        storage_class("other", provisioner="other.test"),
        *(csi_node(name, limit=limit) for name, limit in (("n1", 3), ("n2", 2), ("n3", None), ("gone", 0))),
        *(volume(f"v-{name}", for_claim=name) for name in ("used", "attached", "bound")),
        *(claim(name, bound_to=f"v-{name}") for name in ("used", "attached", "bound")),
        attachment("v-used", "n1"),
        attachment("v-attached", "n1"),
        *(claim(name) for name in ("one", "two", "three", "four", "five", "six")),
        claim("local", storageClassName="local"),
        claim("other", storageClassName="other"),
    )
    state.update_pod(member("there", "b", on="n1", spec=using("used")))
    return state


def room_of(*pod_sets: Sequence[tuple[str, ...]], barred: str = "") -> VolumeRoom:
    """Room for sets of pods that count as alike, by the claims of each; none of them may use the node `barred`."""
    state = cluster()
    mask = np.ones(state.size, dtype=np.bool_)
    mask[[state.node_index[name] for name in filter(None, [barred])]] = False
    result, nothing = FilterResult(mask, state.size), np.zeros(0, dtype=np.int64)
    found = []
    for row, pods in enumerate(pod_sets):
        made = [member(f"a{row}-{number}", "a", spec=using(*claims)) for number, claims in enumerate(pods)]
        candidates = [Candidate(state.info(pod), result, {}) for pod in made]
        found.append(Alike("a", candidates[0].info.template, result, nothing, mask, {}, candidates))
    return attach_room(found, state)


def test_nodes_attach_what_their_limits_leave_and_others_enough_for_all() -> None:
    room = room_of([("one",), ("two",)], [("three",)])
    assert room.free.tolist() == [[1], [2], [3], [3]]
    assert room.requests.tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("pods", "taken"),
    [
        pytest.param([("one",), ("two",), ("three",)], [1], id="one each"),
        pytest.param([("one", "two"), ("three", "four")], [2], id="two each"),
        pytest.param([("one", "two"), ("three",), ("four",)], [1], id="the fewest of pods that count as alike"),
        pytest.param([("bound", "one", "two")], [3], id="one that is bound and attached nowhere"),
        pytest.param([("attached", "one", "two")], [3], id="one that is attached without a pod"),
        pytest.param([("one", "two", "three", "used")], [3], id="one that a pod uses already"),
        pytest.param([("one", "three", "four"), ("one", "five", "six")], [2], id="one that several use"),
        pytest.param([("one", "two", "local", "other")], [2], id="those of drivers without limits"),
        pytest.param([("one", "two", "missing")], [2], id="a claim that is not there"),
    ],
)
def test_pods_take_the_volumes_that_are_attached_for_them_alone(pods: list[tuple[str, ...]], taken: list[int]) -> None:
    assert room_of(pods).requests.tolist() == [taken]


@pytest.mark.parametrize(
    ("pods", "barred"),
    [
        pytest.param([()], "", id="no claims"),
        pytest.param([("one",)], "", id="enough everywhere"),
        pytest.param([("one",), ("two",)], "n1", id="enough where they may go"),
        pytest.param([("local",), ("other",)], "", id="no limits"),
        pytest.param([("one",), ("one",), ("one",)], "", id="one that all of them use"),
    ],
)
def test_nothing_counts_where_they_do_not_compete(pods: list[tuple[str, ...]], barred: str) -> None:
    room = room_of(pods, barred=barred)
    assert room.free.shape == (4, 0)
    assert room.requests.shape == (1, 0)
