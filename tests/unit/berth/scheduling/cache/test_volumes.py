"""The volume table and the small questions about claims and volumes."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import ClaimReference
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.volumes import (
    StorageObject,
    claim_keys,
    claimed_by,
    disk_uses,
    fully_bound,
    storage_class_of,
    storage_request,
)
from tests.support.builders import pod
from tests.support.volumes import (
    attachment,
    capacity,
    claim,
    csi_node,
    storage_class,
    store,
    tracked_driver,
    volume,
)


@pytest.mark.parametrize(
    ("annotation", "field", "name"),
    [
        pytest.param(None, "fast", "fast", id="field"),
        pytest.param("slow", "fast", "slow", id="annotation-wins"),
        pytest.param("", "fast", "", id="empty-annotation-wins-too"),
        pytest.param(None, None, "", id="none"),
    ],
)
def test_class_of_a_claim(annotation: str | None, field: str | None, name: str) -> None:
    found = claim("c", storageClassName=field)
    if annotation is not None:
        found.metadata.annotations["volume.beta.kubernetes.io/storage-class"] = annotation
    assert storage_class_of(found) == name


@pytest.mark.parametrize(
    ("reference", "owned"),
    [
        pytest.param(None, False, id="free"),
        pytest.param(ClaimReference(namespace="default", name="c"), True, id="reserved-by-name"),
        pytest.param(ClaimReference(namespace="default", name="c", uid="claim-c"), True, id="bound"),
        pytest.param(ClaimReference(namespace="default", name="c", uid="older"), False, id="claim-of-that-name-before"),
        pytest.param(ClaimReference(namespace="other", name="c"), False, id="other-namespace"),
    ],
)
def test_owner_of_a_volume(reference: ClaimReference | None, owned: bool) -> None:
    found = volume("v")
    found.spec.claim_ref = reference
    assert claimed_by(found, claim("c")) is owned


def test_a_claim_is_bound_when_the_binding_is_complete() -> None:
    assert fully_bound(claim("c", bound_to="v"))
    assert not fully_bound(claim("c", volumeName="v"))
    assert not fully_bound(claim("c"))


def test_storage_request_is_in_bytes_and_zero_when_absent() -> None:
    assert storage_request(claim("c", "1Ki")) == 1024
    assert storage_request(claim("c", resources={})) == 0


def test_claims_and_disks_of_a_pod() -> None:
    volumes: list[dict[str, Any]] = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {}},
        {"name": "d", "rbd": {"monitors": ["m1", "m2"], "image": "i", "readOnly": True}},
        {"name": "plain"},
    ]
    found = pod("p", spec={"volumes": volumes})
    assert claim_keys(found) == ("default/data", "default/p-scratch")
    assert disk_uses(found) == ((("rbd", "m1", "rbd", "i"), True), (("rbd", "m2", "rbd", "i"), True))
    assert claim_keys(pod("plain")) == ()


def test_every_kind_can_be_deleted_again() -> None:
    items: list[StorageObject] = [
        volume("v"),
        claim("c"),
        storage_class(),
        csi_node("n"),
        tracked_driver(),
        capacity("a", "1Gi"),
        attachment("v", "n"),
    ]
    table = store(ClusterState(), *items).volumes
    assert [item.spec.attacher for item in table.attachments("n")] == ["csi.test"]
    before = table.version
    for item in items:
        table.delete(item)
    kinds = (table.volumes, table.claims, table.classes, table.csi_nodes, table.drivers, table.capacities)
    assert not any(kinds)
    assert list(table.attachments("n")) == []
    assert table.version >= before + 7


def test_attachment_that_moves_leaves_its_old_node() -> None:
    table = store(ClusterState(), attachment("v", "n")).volumes
    moved = attachment("v", "n")
    moved.spec.node_name = "m"
    table.update(moved)
    assert list(table.attachments("n")) == []
    assert len(list(table.attachments("m"))) == 1


def test_reservation_ends_when_the_volume_shows_its_claim() -> None:
    table = store(ClusterState(), volume("v"), claim("c")).volumes
    table.assume(reserved={"v": "default/c"}, selected={"default/c": "n"})
    assert (table.reserved_for("v"), table.selected_node(claim("c"))) == ("default/c", "n")
    table.update(volume("v", for_claim="c"))
    table.update(claim("c", bound_to="v"))
    assert (table.reserved_for("v"), table.selected_node(claim("c"))) == (None, None)


def test_deleting_a_claim_drops_what_was_assumed_for_it() -> None:
    table = store(ClusterState(), volume("v"), claim("c")).volumes
    table.assume(reserved={"v": "default/c"}, selected={"default/c": "n"})
    table.delete(claim("c"))
    assert (table.reserved_for("v"), table.selected_node(claim("c"))) == (None, None)
