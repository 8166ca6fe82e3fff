"""Pods that a claim brings to one node; how plans go by it is in ../test_planner_volumes.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.shared_claims import held_together
from tests.support.placement import member, zoned
from tests.support.volumes import claim, storage_class, store, using, volume


def together(*pod_sets: Sequence[tuple[str, ...]]) -> list[tuple[int, ...]]:
    """Pod sets that are held together, by the claims of each of their pods."""
    state = ClusterState()
    state.update_node(zoned("n"))
    store(
        state,
        *(storage_class(name) for name in ("wait", "stocked")),
        storage_class("now"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        *(claim(name) for name in ("one", "two", "reserved")),
        *(claim(name, storageClassName=name) for name in ("stocked", "local", "now")),
        claim("bound", bound_to="v"),
        claim("selected", selected="n"),
        volume("v", for_claim="bound"),
        volume("spare", storageClassName="stocked"),
        volume("kept", for_claim="reserved"),
    )
    mask, nothing = np.ones(state.size, dtype=np.bool_), np.zeros(0, dtype=np.int64)
    result, found = FilterResult(mask, state.size), []
    for row, pods in enumerate(pod_sets):
        made = [member(f"a{row}-{number}", "a", spec=using(*claims)) for number, claims in enumerate(pods)]
        candidates = [Candidate(state.info(pod), result, {}) for pod in made]
        found.append(Alike("a", candidates[0].info.template, result, nothing, mask, {}, candidates))
    return held_together(found, state)


@pytest.mark.parametrize(
    ("pod_sets", "expected"),
    [
        pytest.param([[("one",), ("one",)]], [(0,)], id="replicas of one claim"),
        pytest.param([[("one",)], [()], [("one", "two")]], [(0, 2)], id="pods of several sets"),
        pytest.param([[("one", "two"), ("one", "two")]], [(0,)], id="two claims of the same pods"),
        pytest.param([[("one",), ("two",)]], [], id="a claim each"),
        pytest.param([[("one",), ("one",), ("two",)]], [], id="some of those that count as alike"),
        pytest.param([[("one",), ("one",), ("two",)], [("one",)]], [(1,)], id="all of one set, some of another"),
    ],
)
def test_pods_of_a_claim_are_held_together(
    pod_sets: list[list[tuple[str, ...]]], expected: list[tuple[int, ...]]
) -> None:
    assert together(*pod_sets) == expected


@pytest.mark.parametrize("name", ["stocked", "reserved", "local", "now", "bound", "selected", "missing"])
def test_a_claim_whose_volume_is_not_provisioned_for_them_holds_nobody(name: str) -> None:
    assert together([(name,), (name,)]) == []
