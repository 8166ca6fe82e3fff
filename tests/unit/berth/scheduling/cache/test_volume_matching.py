"""Which volumes the claims of a pod would get: sorted, matched smallest first, provisioned."""

from __future__ import annotations

import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.volume_matching import sort_claims, unbound_claims, volume_nodes, volume_plan
from berth.scheduling.cache.volumes import (
    StorageObject,
)
from berth.scheduling.plugins.volume_binding import (
    VolumeBinding,
)
from tests.support.builders import node, pod
from tests.support.filtering import cluster, passing
from tests.support.volumes import (
    NOW,
    claim,
    storage_class,
    store,
    using,
    volume,
)

STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")


def zones(*objects: StorageObject) -> ClusterState:
    """Nodes a and b in zones of their own name, c without zone, and these storage objects."""
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}), node("c")]
    return store(cluster(nodes), *objects)


def test_claims_are_sorted_by_what_has_to_happen() -> None:
    state = store(
        ClusterState(),
        storage_class(),
        storage_class(NOW),
        claim("bound", bound_to="v"),
        claim("waiting"),
        claim("prebound", volumeName="v"),
        claim("now", storageClassName=NOW),
    )
    found = sort_claims(pod("p", spec=using("bound", "waiting", "prebound", "now", "missing", "waiting2")), state)
    assert [item.metadata.name for item in found.bound] == ["bound"]
    assert [key for key, _ in found.delayed] == ["default/waiting"]
    assert [item.metadata.name for item in found.immediate] == ["prebound", "now"]


def test_nodes_of_a_volume() -> None:
    state = ClusterState()
    for name in "ab":
        state.update_node(node(name, labels={"zone": name}))
    assert volume_nodes(volume("v"), state).tolist() == [True, True]
    assert volume_nodes(volume("v", zone="b"), state).tolist() == [False, True]


def test_smallest_claim_takes_the_smallest_volume() -> None:
    state = zones(STATIC, volume("big", "10Gi"), volume("small", "1Gi"), claim("large", "5Gi"), claim("little", "1Gi"))
    plan = volume_plan(pod("new", spec=using("large", "little")), state, "c")
    assert plan.reserve == {"small": "default/little", "big": "default/large"}
    assert (plan.provision, plan.empty) == ([], False)


def test_what_cannot_be_matched_is_provisioned() -> None:
    state = zones(storage_class(), volume("v", zone="a"), claim("x"), claim("y"))
    new = pod("new", spec=using("x", "y"))
    plan = volume_plan(new, state, "a")
    assert (plan.reserve, plan.provision) == ({"v": "default/x"}, ["default/y"])
    assert volume_plan(new, state, "b").provision == ["default/x", "default/y"]


def test_plan_of_a_pod_that_can_be_bound_at_once_is_empty() -> None:
    state = zones(volume("v"), claim("data", bound_to="v"))
    new = pod("new", spec=using("data"))
    assert volume_plan(new, state, "a").empty
    assert volume_plan(pod("plain"), state, "a").empty
    assert unbound_claims(new, state) == []
    with pytest.raises(LookupError, match="node gone is not known"):
        volume_plan(new, state, "gone")


def test_assumed_writes_count_until_they_are_seen_or_forgotten() -> None:
    state = zones(STATIC, storage_class("dyn"), volume("v", zone="a"), claim("x"), claim("y"))
    dynamic = claim("d", storageClassName="dyn")
    store(state, dynamic)
    state.volumes.assume(reserved={"v": "default/x"}, selected={"default/d": "b"})
    assert passing(VolumeBinding(), pod("one", spec=using("x")), state) == {"a"}
    assert passing(VolumeBinding(), pod("two", spec=using("y")), state) == set()
    assert passing(VolumeBinding(), pod("three", spec=using("d")), state) == {"b"}
    assert unbound_claims(pod("three", spec=using("d")), state) == ["default/d"]
    store(state, claim("d", storageClassName="dyn", selected="c"))
    assert passing(VolumeBinding(), pod("three", spec=using("d")), state) == {"c"}
    state.volumes.forget(["default/x"])
    assert passing(VolumeBinding(), pod("two", spec=using("y")), state) == {"a"}
