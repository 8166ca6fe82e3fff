"""Volumes that pods of one plan compete for; how plans go by them is in ../test_planner_volumes.py."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.volume_room import VolumeRoom, volume_room
from tests.support.placement import member, zoned
from tests.support.volumes import claim, storage_class, store, using, volume


def room_of(*claims_of_pods: tuple[str, ...]) -> VolumeRoom:
    """Two nodes, n1 with two local volumes and n2 with one; pods that count as alike."""
    state = ClusterState()
    for name in ("n1", "n2"):
        state.update_node(zoned(name, labels={"zone": name}))
    store(
        state,
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        storage_class("sized", provisioner="kubernetes.io/no-provisioner"),
        storage_class(),
        *(volume(name, zone=name[:2], storageClassName="local") for name in ("n1-a", "n1-b", "n2-a")),
        volume("reserved", zone="n2", storageClassName="local", for_claim="own"),
        volume("spare", zone="n2"),
        *(claim(name, storageClassName="local") for name in ("one", "two", "three", "own")),
        *(volume(f"{number}Gi", f"{number}Gi", zone="n2", storageClassName="sized") for number in range(1, 21)),
        *(claim(f"{number}Gi", f"{number}Gi", storageClassName="sized") for number in range(1, 21)),
        claim("provisioned"),
    )
    pods = [member(f"a-{number}", "a", spec=using(*claims)) for number, claims in enumerate(claims_of_pods)]
    nothing, everywhere = np.zeros(0, dtype=np.int64), np.ones(state.size, dtype=np.bool_)
    result = FilterResult(everywhere, state.size)
    candidates = [Candidate(state.info(pod), result, {}) for pod in pods]
    return volume_room([Alike("a", candidates[0].info.template, result, nothing, everywhere, {}, candidates)], state)


def test_nodes_have_the_volumes_that_they_reach_and_nobody_has() -> None:
    assert room_of(("one",), ("two",)).free.tolist() == [[2], [1]]


@pytest.mark.parametrize(
    ("claims", "taken"),
    [
        pytest.param([("one",), ("two",)], [[1]], id="one each"),
        pytest.param([("one", "two")], [[2]], id="two of one pod"),
        pytest.param([("one", "two"), ("three",)], [[1]], id="the fewest of pods that count as alike"),
        pytest.param([("one", "own")], [[1]], id="a claim that has its volume"),
        pytest.param([("one",), ("one", "two")], [[0]], id="a claim that they share"),
        pytest.param([("one", "provisioned")], [[1]], id="a claim for which one is provisioned"),
        pytest.param([("provisioned",)], [[]], id="nothing that they compete for"),
        pytest.param([()], [[]], id="no claims"),
    ],
)
def test_pods_take_a_volume_for_each_claim_of_their_own(claims: list[tuple[str, ...]], taken: list[list[int]]) -> None:
    assert room_of(*claims).requests.tolist() == taken


@pytest.mark.parametrize(
    ("claims", "free", "taken"),
    [
        pytest.param([("19Gi",), ("20Gi",)], [2, 1], [1, 0], id="the fewest that need as much"),
        pytest.param([("3Gi", "18Gi", "19Gi")], [18, 3, 2], [3, 2, 1], id="some of each size"),
        pytest.param(
            [tuple(f"{number}Gi" for number in range(1, 21))],
            [20, 7, 6, 5, 4, 3, 2, 1],
            [20, 7, 6, 5, 4, 3, 2, 1],
            id="of many sizes the smallest and the largest",
        ),
    ],
)
def test_there_must_be_enough_that_are_large_enough(
    claims: list[tuple[str, ...]], free: list[int], taken: list[int]
) -> None:
    room = room_of(*claims)
    assert room.free[1].tolist() == free
    assert room.requests.tolist() == [taken]
