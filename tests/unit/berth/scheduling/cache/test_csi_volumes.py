"""CSI volumes of nodes; what limits make of them is in ../plugins/test_node_volume_limits.py."""

from __future__ import annotations

import pytest

from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.csi_volumes import attached_to, csi_volumes, near_limit, used_on
from tests.support.builders import node, pod
from tests.support.filtering import cluster
from tests.support.volumes import attachment, claim, csi_node, storage_class, store, using, volume


@pytest.fixture
def state() -> ClusterState:
    """A node with a pod that uses v1, and to which v1 and v2 are attached."""
    made = cluster([node("n"), node("empty")], [pod("there", on="n", spec=using("c1"))])
    return store(
        made,
        storage_class(),
        *(volume(f"v{number}") for number in (1, 2)),
        *(claim(f"c{number}", bound_to=f"v{number}") for number in (1, 2)),
        claim("open"),
        *(attachment(f"v{number}", "n") for number in (1, 2)),
        csi_node("n", limit=3),
        csi_node("empty", limit=3),
        csi_node("gone", limit=0),
    )


def test_a_claim_without_volume_counts_as_one(state: ClusterState) -> None:
    found = csi_volumes(["default/c1", "default/open", "default/missing"], state)
    assert list(found.values()) == ["csi.test", "csi.test"]
    assert "csi.test/v1" in found


def test_what_is_used_and_attached_counts_once(state: ClusterState) -> None:
    slot = state.node_index["n"]
    assert used_on("n", slot, state) == {"csi.test/v1": "csi.test"}
    assert attached_to("n", slot, state) == {"csi.test/v1": "csi.test", "csi.test/v2": "csi.test"}


def test_what_is_remembered_follows_pods(state: ClusterState) -> None:
    slot = state.node_index["n"]
    used_on("n", slot, state)
    state.update_pod(pod("more", on="n", spec=using("c2")))
    assert used_on("n", slot, state).keys() == {"csi.test/v1", "csi.test/v2"}


@pytest.mark.parametrize(("new", "names"), [(1, {"n"}), (3, {"n"}), (4, {"n", "empty"})])
def test_nodes_near_their_limit(state: ClusterState, new: int, names: set[str]) -> None:
    """One claim and two attachments are three volumes at the most."""
    assert {name for name, *_ in near_limit({"csi.test": new}, state)} == names
    assert not list(near_limit({"other.test": new}, state))
