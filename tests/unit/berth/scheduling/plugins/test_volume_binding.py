"""Claims: bound, waiting for their consumer, to be provisioned, or not to be had."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import OwnerReference
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.plugins.volume_binding import (
    REASON_AFFINITY,
    REASON_GONE,
    REASON_NO_SPACE,
    REASON_NO_VOLUME,
    UNBOUND_IMMEDIATE,
    VolumeBinding,
)
from tests.support.builders import node, pod
from tests.support.filtering import cluster, cycle_of, passing, rejected
from tests.support.volumes import NOW, capacity, claim, storage_class, store, tracked_driver, using, volume

STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")


def zones(*objects: StorageObject) -> ClusterState:
    """Nodes a and b in zones of their own name, c without zone, and these storage objects."""
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"}), node("c")]
    return store(cluster(nodes), *objects)


@pytest.mark.parametrize(
    ("objects", "names"),
    [
        pytest.param([volume("v"), claim("data", bound_to="v")], "abc", id="bound-anywhere"),
        pytest.param([volume("v", zone="a"), claim("data", bound_to="v")], "a", id="bound-in-a-zone"),
        pytest.param([storage_class(), claim("data")], "abc", id="provisioned-anywhere"),
        pytest.param([storage_class(zones=["b"]), claim("data")], "b", id="provisioned-in-a-zone"),
        pytest.param([storage_class(zones=[]), claim("data")], "", id="class-for-no-topology"),
        pytest.param([STATIC, claim("data")], "", id="no-provisioner-no-volume"),
        pytest.param([STATIC, volume("v", zone="b"), claim("data")], "b", id="matched"),
        pytest.param([STATIC, volume("v", "1Gi"), claim("data", "2Gi")], "", id="too-small"),
        pytest.param([STATIC, volume("v", storageClassName="other"), claim("data")], "", id="other-class"),
        pytest.param([STATIC, volume("v", volumeMode="Block"), claim("data")], "", id="other-mode"),
        pytest.param([STATIC, volume("v", accessModes=["ReadOnlyMany"]), claim("data")], "", id="other-access"),
        pytest.param([STATIC, volume("v", for_claim="other"), claim("data")], "", id="reserved-for-another"),
        pytest.param([STATIC, volume("v", for_claim="data", zone="a"), claim("data")], "a", id="reserved-for-it"),
        pytest.param(
            [STATIC, volume("free"), volume("mine", for_claim="data", zone="a"), claim("data")],
            "a",
            id="its-own-reserved-one-only",
        ),
        pytest.param(
            [STATIC, volume("v", labels={"k": "1"}), claim("data", selector={"matchLabels": {"k": "1"}})],
            "abc",
            id="selector",
        ),
        pytest.param(
            [STATIC, volume("v"), claim("data", selector={"matchLabels": {"k": "1"}})], "", id="selector-differs"
        ),
        pytest.param(
            [STATIC, volume("v", volumeAttributesClassName="gold"), claim("data")], "", id="other-attributes-class"
        ),
        pytest.param([storage_class(), claim("data", selected="b")], "b", id="selected-already"),
        pytest.param([storage_class(), claim("data", selected="gone")], "", id="selected-node-is-gone"),
    ],
)
def test_where_a_claim_can_be_served(objects: list[StorageObject], names: str) -> None:
    assert passing(VolumeBinding(), pod("new", spec=using("data")), zones(*objects)) == set(names)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param([claim("data")], UNBOUND_IMMEDIATE, id="class-missing-means-immediate"),
        pytest.param([storage_class(NOW), claim("data", storageClassName=NOW)], UNBOUND_IMMEDIATE, id="immediate"),
        pytest.param([claim("data", storageClassName=None)], UNBOUND_IMMEDIATE, id="no-class"),
        pytest.param([storage_class(), claim("data", volumeName="v")], UNBOUND_IMMEDIATE, id="binding-not-complete"),
    ],
)
def test_pods_that_have_to_wait(objects: list[StorageObject], message: str) -> None:
    state = zones(*objects)
    info = state.info(pod("new", spec=using("data")))
    assert VolumeBinding().pre_filter(CycleState(info, state)) == message
    assert passing(VolumeBinding(), info.pod, state) == set()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            {"phase": "Lost"}, 'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"', id="lost"
        ),
        pytest.param({"deletion": "now"}, 'persistentvolumeclaim "data" is being deleted', id="deleted"),
    ],
)
def test_claims_in_trouble(change: dict[str, str], message: str) -> None:
    broken = claim("data", bound_to="v")
    broken.status.phase = change.get("phase", "Bound")
    broken.metadata.deletion_timestamp = change.get("deletion")
    state = zones(volume("v"), broken)
    assert VolumeBinding().pre_filter(cycle_of(pod("new", spec=using("data")), state)) == message


def test_bound_to_a_volume_that_is_gone() -> None:
    state = zones(claim("data", bound_to="v"))
    assert rejected(VolumeBinding(), pod("new", spec=using("data")), state) == {n: [REASON_GONE] for n in "abc"}


def test_reasons() -> None:
    state = zones(volume("v", zone="a", for_claim="here"), claim("here", bound_to="v"), STATIC, claim("open"))
    found = rejected(VolumeBinding(), pod("new", spec=using("here", "open")), state)
    assert found == {
        "a": [REASON_NO_VOLUME],
        "b": [REASON_AFFINITY, REASON_NO_VOLUME],
        "c": [REASON_AFFINITY, REASON_NO_VOLUME],
    }


@pytest.mark.parametrize(
    ("size", "fields", "names"),
    [
        pytest.param("1Gi", {}, "ab", id="fits-both"),
        pytest.param("5Gi", {}, "b", id="fits-one"),
        pytest.param("50Gi", {}, "", id="fits-none"),
        pytest.param("5Gi", {"maximumVolumeSize": "2Gi"}, "", id="maximum-size-counts-first"),
    ],
)
def test_tracked_capacity(size: str, fields: dict[str, Any], names: str) -> None:
    state = zones(
        storage_class(), tracked_driver(), capacity("a", "2Gi"), capacity("b", "10Gi", **fields), claim("data", size)
    )
    new = pod("new", spec=using("data"))
    assert passing(VolumeBinding(), new, state) == set(names)
    assert set(map(tuple, rejected(VolumeBinding(), new, state).values())) <= {(REASON_NO_SPACE,)}


def test_two_claims_do_not_share_a_volume() -> None:
    state = zones(
        STATIC, volume("v1", zone="a"), volume("v2", zone="a"), volume("v3", zone="b"), claim("x"), claim("y")
    )
    assert passing(VolumeBinding(), pod("new", spec=using("x", "y")), state) == {"a"}


def test_ephemeral_volumes_need_a_claim_of_their_own_pod() -> None:
    spec = {"volumes": [{"name": "scratch", "ephemeral": {}}]}
    state = zones(storage_class())
    new = pod("new", spec=spec)
    info = state.info(new)
    waiting = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"'
    assert VolumeBinding().pre_filter(CycleState(info, state)) == waiting
    foreign = claim("new-scratch")
    store(state, foreign)
    assert "pod is not owner" in (VolumeBinding().pre_filter(CycleState(info, state)) or "")
    foreign.metadata.owner_references = [OwnerReference(kind="Pod", uid=new.metadata.uid, controller=True)]
    assert VolumeBinding().pre_filter(CycleState(info, state)) is None
    assert passing(VolumeBinding(), new, state) == set("abc")
