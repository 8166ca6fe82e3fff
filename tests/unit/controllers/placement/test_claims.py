"""Claims of a pod that is about to be bound: what is written, and how far they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import (
    ClaimReference,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from berth.scheduling.cache.volumes import BIND_COMPLETED, SELECTED_NODE
from controllers.placement.claims import (
    BOUND_BY_CONTROLLER,
    VolumeError,
    Written,
    reservation_patch,
    selection_patch,
    unfinished,
)
from tests.support.placement import Lab, lone, zoned

HOST = "kubernetes.io/hostname"


def volume(
    name: str, node: str, *, size: str = "10Gi", version: int = 7, ref: ClaimReference | None = None
) -> PersistentVolume:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    made = msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"pv-{name}", "resourceVersion": str(version)},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
            "status": {"phase": "Available"},
        },
        PersistentVolume,
    )
    made.spec.claim_ref = ref
    return made


def claim(
    name: str, *, cls: str = "local", version: int = 5, bound_to: str = "", selected: str = "", **annotations: str
) -> PersistentVolumeClaim:
    if bound_to:
        annotations[BIND_COMPLETED] = "yes"
    if selected:
        annotations[SELECTED_NODE] = selected
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"pvc-{name}",
                "resourceVersion": str(version),
                "annotations": annotations,
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": cls,
                "volumeName": bound_to,
                "resources": {"requests": {"storage": "5Gi"}},
            },
            "status": {"phase": "Bound" if bound_to else "Pending"},
        },
        PersistentVolumeClaim,
    )


def user(name: str, *claims: str, **arguments: Any) -> Pod:
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    return lone(name, spec={"volumes": volumes}, **arguments)


@pytest.fixture
def lab() -> Lab:
    made = Lab([zoned("n1"), zoned("n2"), zoned("n3")])
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("disk", "example.com/disk")):
        made.cache.update_storage(
            StorageClass(
                metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer"
            )
        )
    return made


def know(lab: Lab, *items: PersistentVolume | PersistentVolumeClaim) -> None:
    for item in items:
        lab.cache.update_storage(item)


def going(item: PersistentVolumeClaim) -> PersistentVolumeClaim:
    item.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    return item


FAR = volume("v1", "n2")
NEAR = volume("v1", "n1")


class TestUnfinished:
    @pytest.mark.parametrize(
        ("known", "written", "waits_for"),
        [
            pytest.param([claim("c", bound_to="v1"), NEAR], {}, "", id="bound"),
            pytest.param([claim("c")], {}, "claim default/c is not bound yet", id="not-yet"),
            pytest.param(
                [claim("c", bound_to="v1")], {}, "volume v1 of claim default/c is not known yet", id="no-volume"
            ),
            pytest.param([claim("c", selected="n1")], {}, "claim default/c is not bound yet", id="provisioning"),
            pytest.param(
                [claim("c", version=4)], {"default/c": 5}, "claim default/c is not bound yet", id="our-write-not-seen"
            ),
            pytest.param([claim("c", bound_to="v1", version=9), NEAR], {"default/c": 5}, "", id="bound-and-cleaned"),
        ],
    )
    def test_waits(self, lab: Lab, known: list[Any], written: dict[str, int], waits_for: str) -> None:
        know(lab, *known)
        assert unfinished(user("p", "c"), "n1", lab.cache.state, written=Written(claims=written)) == waits_for

    @pytest.mark.parametrize(
        ("known", "written", "problem"),
        [
            pytest.param([claim("c", bound_to="v1"), FAR], {}, "which node n1 cannot reach", id="out-of-reach"),
            pytest.param([], {}, "claim default/c was deleted", id="gone"),
            pytest.param([going(claim("c", bound_to="v1")), NEAR], {}, "was deleted", id="going"),
            pytest.param([claim("c", selected="n2")], {}, "provisioned for node n2", id="other-node"),
            pytest.param([claim("c", version=6)], {"default/c": 5}, "could not serve node n1", id="gave-up"),
        ],
    )
    def test_fails(self, lab: Lab, known: list[Any], written: dict[str, int], problem: str) -> None:
        know(lab, *known)
        with pytest.raises(VolumeError, match=problem):
            unfinished(user("p", "c"), "n1", lab.cache.state, written=Written(claims=written))

    def test_one_failure_outweighs_waiting(self, lab: Lab) -> None:
        know(lab, claim("a"), claim("b", selected="n3"))
        with pytest.raises(VolumeError, match="provisioned for node n3"):
            unfinished(user("p", "a", "b"), "n1", lab.cache.state, written=Written())

    @pytest.mark.parametrize("claims", [{"default/c": 5}, {}], ids=["ours", "another process's"])
    def test_an_annotation_that_was_shown_and_is_missing_in_an_older_version_was_lost(
        self, lab: Lab, claims: dict[str, int]
    ) -> None:
        """As after an etcd restore, from which the claim comes as it was before the write."""
        written = Written(claims=dict(claims))
        know(lab, claim("c", version=5, selected="n1"))
        written.note_shown(user("p", "c"), "n1", lab.cache.state)
        know(lab, claim("c", version=4))
        with pytest.raises(VolumeError, match="could not serve node n1"):
            unfinished(user("p", "c"), "n1", lab.cache.state, written=written)

    def test_a_deleted_node(self, lab: Lab) -> None:
        with pytest.raises(VolumeError, match="node gone was deleted"):
            unfinished(user("p", "c"), "gone", lab.cache.state, written=Written())


RESERVED = ClaimReference(namespace="default", name="c", uid="pvc-c")


class TestReservedVolumes:
    """The claim waits for a volume that we have reserved for it, in version 8."""

    WAITS = "claim default/c is not bound yet"

    def unfinished(self, lab: Lab, *, shown: bool = False) -> str:
        written = Written(volumes={"v1": 8}, reserved={"v1": "default/c"})
        if shown:
            know(lab, volume("v1", "n1", ref=RESERVED))
            written.note_shown(user("p", "c"), "n1", lab.cache.state)
            know(lab, volume("v1", "n1"))
        return unfinished(user("p", "c"), "n1", lab.cache.state, written=written)

    @pytest.mark.parametrize(
        ("seen", "problem"),
        [
            pytest.param(volume("v1", "n1"), "", id="our write is not seen"),
            pytest.param(volume("v1", "n1", version=9, ref=RESERVED), "", id="reserved"),
            pytest.param(None, "volume v1 for claim default/c was deleted", id="deleted"),
            pytest.param(
                volume("v1", "n1", version=9), "volume v1 is not reserved for claim default/c any more", id="taken back"
            ),
            pytest.param(
                volume("v1", "n1", version=9, ref=ClaimReference(namespace="other", name="d", uid="u")),
                "volume v1 is not reserved for claim default/c any more",
                id="another claim's",
            ),
        ],
    )
    def test_one_that_is_lost_is_not_waited_for(self, lab: Lab, seen: PersistentVolume | None, problem: str) -> None:
        know(lab, claim("c"), *([seen] if seen is not None else []))
        if not problem:
            assert self.unfinished(lab) == self.WAITS
            return
        with pytest.raises(VolumeError, match=problem):
            self.unfinished(lab)

    def test_a_bound_claim_needs_none(self, lab: Lab) -> None:
        know(lab, claim("c", bound_to="v2"), volume("v2", "n1"))
        assert self.unfinished(lab) == ""

    def test_one_that_was_shown_and_is_free_in_an_older_version_was_lost(self, lab: Lab) -> None:
        """As after an etcd restore."""
        know(lab, claim("c"))
        with pytest.raises(VolumeError, match="not reserved for claim default/c any more"):
            self.unfinished(lab, shown=True)


class TestPatches:
    def test_selection_is_conditional(self) -> None:
        assert selection_patch(claim("c"), "n1") == {
            "metadata": {"uid": "pvc-c", "resourceVersion": "5", "annotations": {SELECTED_NODE: "n1"}}
        }

    def test_reservation_of_a_free_volume(self) -> None:
        patch = reservation_patch(volume("v1", "n1"), claim("c"))
        assert patch == {
            "metadata": {"uid": "pv-v1", "resourceVersion": "7", "annotations": {BOUND_BY_CONTROLLER: "yes"}},
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": "default",
                    "name": "c",
                    "uid": "pvc-c",
                }
            },
        }

    def test_a_volume_reserved_by_hand_stays_reserved(self) -> None:
        patch = reservation_patch(volume("v1", "n1", ref=ClaimReference(namespace="default", name="c")), claim("c"))
        assert patch is not None
        assert "annotations" not in patch["metadata"]
        assert patch["spec"]["claimRef"]["uid"] == "pvc-c"

    def test_nothing_to_write_when_it_is_bound_already(self) -> None:
        ref = ClaimReference(namespace="default", name="c", uid="pvc-c")
        assert reservation_patch(volume("v1", "n1", ref=ref), claim("c")) is None
