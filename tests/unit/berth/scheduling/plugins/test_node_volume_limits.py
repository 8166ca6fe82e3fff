"""NodeVolumeLimits: CSI volumes per node and driver."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.plugins.node_volume_limits import REASON as REASON_LIMIT
from berth.scheduling.plugins.node_volume_limits import NodeVolumeLimits
from tests.support.builders import node, pod
from tests.support.filtering import cluster, passing, rejected
from tests.support.volumes import attachment, claim, csi_node, storage_class, store, using, volume


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
    state.volumes.delete(attachment("v3", "n"))
    assert passing(rule, pod("new", spec=using("c2")), state) == {"n", "free"}


def test_limits_follow_pods_and_claims() -> None:
    state, rule = limited(1), NodeVolumeLimits()
    new = pod("new", spec=using("c2"))
    assert passing(rule, new, state) == {"free"}
    state.delete_pod("pod-default-there")
    assert passing(rule, new, state) == {"n", "free"}
    state.assume(pod("other", spec=using("c3")), "n")
    assert passing(rule, new, state) == {"free"}


@given(
    limit=st.integers(min_value=0, max_value=4),
    used=st.sets(st.integers(min_value=0, max_value=5)),
    attached=st.sets(st.integers(min_value=0, max_value=5)),
    wanted=st.sets(st.integers(min_value=0, max_value=5), min_size=1),
)
def test_a_node_takes_new_volumes_up_to_its_limit(
    limit: int, used: set[int], attached: set[int], wanted: set[int]
) -> None:
    everything = range(6)
    state = cluster([node("n")], [pod(f"p{number}", on="n", spec=using(f"c{number}")) for number in used])
    store(state, *(claim(f"c{number}", bound_to=f"v{number}") for number in everything), csi_node("n", limit=limit))
    store(
        state, *(volume(f"v{number}") for number in everything), *(attachment(f"v{number}", "n") for number in attached)
    )
    full = wanted - used and len(used | attached) + len(wanted - used) > limit
    expected = {"n": [REASON_LIMIT]} if full else {}
    new = pod("new", spec=using(*(f"c{number}" for number in sorted(wanted))))
    assert rejected(NodeVolumeLimits(), new, state) == expected
