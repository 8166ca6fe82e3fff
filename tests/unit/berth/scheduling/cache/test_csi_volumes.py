"""CSI volumes of nodes; what limits make of them is in ../plugins/test_node_volume_limits.py."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.csi_volumes import UNLIMITED, AttachedVolumes, csi_volumes
from berth.scheduling.cache.volumes import Touched, VolumeTable
from tests.support.builders import node, pod
from tests.support.filtering import cluster
from tests.support.volumes import attachment, claim, csi_node, storage_class, store, using, volume

DRIVERS = ("csi.test", "other.test")
NODE, NUMBER, DRIVER = st.sampled_from("abc"), st.integers(0, 3), st.sampled_from(DRIVERS)


def left(state: ClusterState) -> dict[str, dict[str, int]]:
    """What each node still attaches of each driver, where that is limited."""
    found: dict[str, dict[str, int]] = {}
    for driver in DRIVERS:
        amounts = state.attached.left(driver)
        for name, slot in state.node_index.items():
            if amounts is not None and amounts[slot] < UNLIMITED // 2:
                found.setdefault(name, {})[driver] = int(amounts[slot])
    return found


def counted(state: ClusterState) -> dict[str, dict[str, int]]:
    """The same, from the objects."""
    found: dict[str, dict[str, int]] = {}
    for name, slot in state.node_index.items():
        attached = dict(csi_volumes(state.pods.claims_on(slot), state.volumes))
        for each in state.volumes.attachments(name):
            there = state.volumes.volumes.get(each.spec.source.persistent_volume_name or "")
            if there is not None and there.spec.csi is not None:
                attached[f"{each.spec.attacher}/{there.spec.csi.volume_handle}"] = each.spec.attacher
        csi = state.volumes.csi_nodes.get(name)
        for driver in csi.spec.drivers if csi is not None else ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                number = Counter(attached.values())[driver.name]
                found.setdefault(name, {})[driver.name] = driver.allocatable.count - number
    return found


def made(what: str, number: int, name: str, driver: str) -> Any:
    """A storage object of a kind; numbers and names say which, and what it is like."""
    if what == "claim":
        return claim(f"c{number}", bound_to=f"v{number}" if name == "a" else "")
    if what == "volume":
        reserved: dict[str, Any] = {"for_claim": f"c{number}"} if name != "c" else {}
        return volume(f"v{number}", driver=driver, csi={"driver": driver, "volumeHandle": f"h{name}"}, **reserved)
    if what == "attachment":
        return attachment(f"v{number}", name, driver=driver)
    if what == "class":
        return storage_class(provisioner=driver)
    return csi_node(name, driver=driver, limit=number or None)


OBJECT = st.builds(made, st.sampled_from(["claim", "volume", "attachment", "class", "limit"]), NUMBER, NODE, DRIVER)
STEP = st.one_of(
    st.tuples(st.sampled_from(["update", "update", "delete"]), OBJECT),
    st.tuples(st.just("node"), NODE),
    st.tuples(st.just("drop"), NODE),
    st.tuples(st.just("place"), st.tuples(NUMBER, NODE)),
    st.tuples(st.just("end"), NUMBER),
    st.tuples(st.just("look"), st.none()),
)


@settings(max_examples=300)
@pytest.mark.parametrize("most", [1, 4096])
@given(st.lists(STEP, min_size=5, max_size=40))
def test_what_is_kept_is_what_is_counted(most: int, steps: list[tuple[str, Any]]) -> None:
    state = cluster([node(name) for name in "ab"])
    store(state, storage_class(), *(claim(f"c{number}", bound_to=f"v{number}") for number in range(4)))
    store(state, *(csi_node(name, limit=2) for name in "abc"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("berth.scheduling.cache.volumes.MOST_TOUCHED", most)
        for what, arguments in steps:
            if what == "update":
                state.volumes.update(arguments)
            elif what == "delete":
                state.volumes.delete(arguments)
            elif what == "node":
                state.update_node(node(arguments))
            elif what == "drop":
                state.delete_node(arguments)
            elif what == "place":
                number, name = arguments
                state.update_pod(pod(f"p{number}", on=name, spec=using(f"c{number}", f"c{(number + 1) % 4}")))
            elif what == "end":
                state.delete_pod(f"pod-default-p{arguments}")
            else:
                assert left(state) == counted(state)
        assert left(state) == counted(state)
        for slot in state.node_index.values():
            assert state.attached.used(slot) == csi_volumes(state.pods.claims_on(slot), state.volumes)


def test_a_claim_without_volume_counts_as_one() -> None:
    state = store(ClusterState(), storage_class(), claim("bound", bound_to="v"), volume("v"), claim("open"))
    found = csi_volumes(["default/bound", "default/open", "default/missing"], state.volumes)
    assert list(found.values()) == ["csi.test", "csi.test"]
    assert "csi.test/v" in found


def test_what_is_used_and_attached_counts_once() -> None:
    state = cluster([node("n")], [pod("there", on="n", spec=using("c"))])
    store(state, claim("c", bound_to="v"), volume("v"), volume("w"), csi_node("n", limit=5))
    store(state, attachment("v", "n"), attachment("w", "n"))
    assert left(state) == {"n": {"csi.test": 3}}


def test_nodes_of_which_nothing_has_changed_are_not_counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage objects change with every pod that comes, and claims are assumed."""
    names = [f"n{number}" for number in range(20)]
    state = cluster([node(name) for name in names], [pod(f"on-{name}", on=name, spec=using(name)) for name in names])
    store(state, storage_class(), *(claim(name, bound_to=f"v-{name}") for name in names))
    store(state, *(volume(f"v-{name}", for_claim=name) for name in names), *(csi_node(name, limit=2) for name in names))
    looked_at: list[int] = []
    count = AttachedVolumes._count

    def noted(self: AttachedVolumes, slot: int) -> None:
        looked_at.append(slot)
        count(self, slot)

    monkeypatch.setattr(AttachedVolumes, "_count", noted)
    state.attached.left("csi.test")
    assert len(looked_at) == len(names)
    looked_at.clear()
    store(state, claim("new"), claim("n3", bound_to="v-n3"), volume("v-n3", for_claim="n3", labels={"a": "b"}))
    state.volumes.assume(reserved={"spare": "default/other"}, selected={"default/new": "n5"})
    state.assume(pod("new", spec=using("new")), "n5")
    assert left(state)["n5"] == {"csi.test": 0}
    assert sorted(looked_at) == sorted(state.node_index[name] for name in ("n3", "n5"))


def test_changes_that_nobody_asks_about_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berth.scheduling.cache.volumes.MOST_TOUCHED", 10)
    table, touched = VolumeTable(), Touched()
    for number in range(11):
        assert not touched.everything
        touched.note(None, claim(f"c{number}"), {})
        table.update(claim(f"c{number}"))
    assert touched.everything
    assert table.touched.everything
    assert not touched.claims
