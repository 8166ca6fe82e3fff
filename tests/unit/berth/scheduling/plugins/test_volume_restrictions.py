"""VolumeRestrictions: disks and claims for one pod."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.plugins.volume_restrictions import REASON_DISK, REASON_ONE_POD, VolumeRestrictions
from tests.support.builders import node, pod
from tests.support.filtering import cluster, rejected
from tests.support.volumes import claim, store, using, volume


def disks(*volumes: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [{"name": f"v{number}", **volume} for number, volume in enumerate(volumes)]}


def gce(*, read_only: bool = False) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": "d", "readOnly": read_only}}


def iscsi(*, read_only: bool = False, iqn: str = "d") -> dict[str, Any]:
    return {"iscsi": {"iqn": iqn, "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i") -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "pool": "p", "image": image}}


@pytest.mark.parametrize(
    ("there", "new", "free"),
    [
        pytest.param(gce(), gce(), False, id="gce-both-write"),
        pytest.param(gce(read_only=True), gce(), False, id="gce-one-writes"),
        pytest.param(gce(read_only=True), gce(read_only=True), True, id="gce-both-read"),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "d"}}, {"awsElasticBlockStore": {"volumeID": "d"}}, False, id="aws"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "d"}},
            {"awsElasticBlockStore": {"volumeID": "e"}},
            True,
            id="aws-other",
        ),
        pytest.param(iscsi(), iscsi(read_only=True), False, id="iscsi-one-writes"),
        pytest.param(iscsi(read_only=True), iscsi(read_only=True), True, id="iscsi-both-read"),
        pytest.param(iscsi(), iscsi(iqn="e"), True, id="iscsi-other"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), False, id="rbd-shares-a-monitor"),
        pytest.param(rbd("m1"), rbd("m2"), True, id="rbd-other-monitors"),
        pytest.param(rbd("m1"), rbd("m1", image="j"), True, id="rbd-other-image"),
        pytest.param(gce(), iscsi(), True, id="different-kinds"),
    ],
)
def test_in_tree_disks(there: dict[str, Any], new: dict[str, Any], free: bool) -> None:
    state = cluster([node("n"), node("other")], [pod("there", on="n", spec=disks(there))])
    expected = {} if free else {"n": [REASON_DISK]}
    assert rejected(VolumeRestrictions(), pod("new", spec=disks(new)), state) == expected
    state.delete_pod("pod-default-there")
    assert rejected(VolumeRestrictions(), pod("new", spec=disks(new)), state) == {}


@pytest.mark.parametrize(("mode", "free"), [("ReadWriteOncePod", False), ("ReadWriteOnce", True)])
def test_claims_for_one_pod(mode: str, free: bool) -> None:
    state = cluster([node("n"), node("other")], [pod("there", on="n", spec=using("c"))])
    store(state, claim("c", bound_to="v", accessModes=[mode]), volume("v"))
    expected = {} if free else {"n": [REASON_ONE_POD], "other": [REASON_ONE_POD]}
    assert rejected(VolumeRestrictions(), pod("new", spec=using("c")), state) == expected


def test_missing_claim_blocks_the_pod() -> None:
    state = cluster([node("n")])
    info = state.info(pod("new", spec=using("c")))
    assert VolumeRestrictions().pre_filter(CycleState(info, state)) == 'persistentvolumeclaim "c" not found'
