"""VolumeZone: labels on bound volumes."""

from __future__ import annotations

import pytest

from berth.scheduling.plugins.volume_zone import REASON as REASON_ZONE
from berth.scheduling.plugins.volume_zone import VolumeZone
from tests.support.builders import node, pod
from tests.support.filtering import cluster, cycle_of, passing, rejected
from tests.support.volumes import claim, store, using, volume

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


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
