"""Volume restrictions, volume limits and zone labels of volumes."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.plugins.node_volume_limits import REASON as REASON_LIMIT
from berth.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from berth.scheduling.plugins.volume_restrictions import REASON_DISK, REASON_ONE_POD, VolumeRestrictions
from berth.scheduling.plugins.volume_zone import REASON as REASON_ZONE
from berth.scheduling.plugins.volume_zone import VolumeZone
from tests.support.builders import node, pod
from tests.support.filtering import cluster, cycle_of, passing, rejected
from tests.support.volumes import attachment, claim, csi_node, storage_class, store, using, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


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
    state.remove_pod("pod-default-there")
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


def limited(limit: int | None) -> Any:
    """Node n with a limit and one volume in use, node free without CSINode; classes and claims to try."""
    state = cluster([node("n"), node("free")], [pod("there", on="n", spec=using("c1"))])
    claims = [claim(f"c{i}", bound_to=f"v{i}") for i in (1, 2, 3)]
    return store(
        state,
        csi_node("n", limit=limit),
        storage_class(),
        *claims,
        *(volume(f"v{i}") for i in (1, 2, 3)),
        claim("open"),
    )


@pytest.mark.parametrize(
    ("limit", "claims", "fits"),
    [
        pytest.param(2, ["c2"], True, id="up-to-the-limit"),
        pytest.param(2, ["c2", "c3"], False, id="beyond-the-limit"),
        pytest.param(1, ["c1"], True, id="volume-in-use-there-is-not-new"),
        pytest.param(1, ["c2"], False, id="full"),
        pytest.param(1, ["open"], False, id="claim-to-provision-counts"),
        pytest.param(None, ["c2", "c3"], True, id="driver-without-limit"),
    ],
)
def test_volume_limits(limit: int | None, claims: list[str], fits: bool) -> None:
    state = limited(limit)
    expected = {} if fits else {"n": [REASON_LIMIT]}
    assert rejected(NodeVolumeLimits(), pod("new", spec=using(*claims)), state) == expected


def test_attachments_without_pods_take_room_until_they_go() -> None:
    state, rule = limited(2), NodeVolumeLimits()
    store(state, attachment("v3", "n"), attachment("v1", "n"))
    assert passing(rule, pod("new", spec=using("c2")), state) == {"free"}
    state.volumes.remove_attachment("v3-n")
    assert passing(rule, pod("new", spec=using("c2")), state) == {"n", "free"}


def test_limits_follow_pods_and_claims() -> None:
    state, rule = limited(1), NodeVolumeLimits()
    new = pod("new", spec=using("c2"))
    assert passing(rule, new, state) == {"free"}
    state.remove_pod("pod-default-there")
    assert passing(rule, new, state) == {"n", "free"}
    state.assume(pod("other", spec=using("c3")), "n")
    assert passing(rule, new, state) == {"free"}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        pytest.param({}, {"east", "west", "plain", "old"}, id="volume-without-labels"),
        pytest.param({ZONE: "east"}, {"east", "plain"}, id="one-zone"),
        pytest.param({ZONE: "east__west"}, {"east", "west", "plain"}, id="several-zones"),
        pytest.param({ZONE: "east", REGION: "r2"}, {"plain"}, id="zone-and-region"),
        pytest.param({REGION: "r1"}, {"east", "west", "plain"}, id="region"),
        pytest.param({OLD_ZONE: "east"}, {"east", "plain", "old"}, id="label-of-old-matches-both-names"),
    ],
)
def test_zones_of_volumes(labels: dict[str, str], names: set[str]) -> None:
    nodes = [
        node("east", labels={ZONE: "east", REGION: "r1"}),
        node("west", labels={ZONE: "west", REGION: "r1"}),
        node("old", labels={OLD_ZONE: "east"}),
        node("plain"),
    ]
    state = store(cluster(nodes), claim("c", bound_to="v"), volume("v", labels=labels))
    new = pod("new", spec=using("c"))
    assert passing(VolumeZone(), new, state) == names
    assert set(map(tuple, rejected(VolumeZone(), new, state).values())) <= {(REASON_ZONE,)}


def test_volume_of_a_claim_that_does_not_exist_blocks_the_pod() -> None:
    state = store(cluster([node("n")]), claim("c", bound_to="v"))
    assert VolumeZone().pre_filter(cycle_of(pod("new", spec=using("c")), state)) == 'persistentvolume "v" not found'
