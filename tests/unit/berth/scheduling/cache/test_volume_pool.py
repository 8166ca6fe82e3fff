"""Volumes for many claims at once: as the plain rule has it, claim by claim and node by node, in far fewer steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import PersistentVolume, PersistentVolumeClaim
from berth.scheduling.cache import ClusterState, volume_pool
from berth.scheduling.cache.selectors import compile_selector
from berth.scheduling.cache.volume_matching import DelayedClaims, VolumePlan, volume_nodes
from berth.scheduling.cache.volumes import claimed_by, storage_request
from berth.scheduling.plugins.volume_binding import MOST_DELAYED, MOST_SELECTING, VolumeBinding
from berth.scheduling.units import whole_units
from tests.support.builders import node, pod
from tests.support.calls import calls_in
from tests.support.filtering import cluster, filtered, passing
from tests.support.volumes import capacity, claim, storage_class, store, tracked_driver, using, volume

ZONES = "abc"
NAMES = [f"{zone}{number}" for zone in ZONES for number in range(2)]
STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")
SIZE = st.sampled_from(["1Gi", "2Gi", "3Gi"])
LABELS = st.sampled_from([{}, {"disk": "ssd"}, {"disk": "hdd"}])
SELECTORS = st.sampled_from(
    [
        {},
        {"selector": {"matchLabels": {"disk": "ssd"}}},
        {"selector": {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}},
        {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
        {"volumeMode": "Block"},
    ]
)
VOLUME = st.tuples(
    SIZE,
    st.sampled_from(["", *ZONES]),
    LABELS,
    st.sampled_from(["", "", "", "c0", "c1", "other"]),
    st.sampled_from([{}, {}, {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, {"volumeMode": "Block"}]),
)


def a_cluster() -> ClusterState:
    return cluster([node(name, labels={"zone": name[0]}) for name in NAMES])


def candidates(state: ClusterState, key: str, wanted: PersistentVolumeClaim) -> list[PersistentVolume]:
    """Volumes that a claim could take, best first, after kube-scheduler's volume binder."""
    selector = compile_selector(wanted.spec.selector) if wanted.spec.selector is not None else None
    fitting = [
        each
        for each in state.volumes.volumes.values()
        if each.spec.volume_mode == wanted.spec.volume_mode
        and each.spec.storage_class_name == wanted.spec.storage_class_name
        and whole_units(each.spec.capacity["storage"]) >= storage_request(wanted)
    ]
    for each in fitting:
        if claimed_by(each, wanted) or state.volumes.reserved_for(each.metadata.name) == key:
            return [each]
    return sorted(
        (
            each
            for each in fitting
            if each.spec.claim_ref is None
            and state.volumes.reserved_for(each.metadata.name) is None
            and (selector is None or selector.matches(each.metadata.labels))
            and set(wanted.spec.access_modes) <= set(each.spec.access_modes)
        ),
        key=lambda each: whole_units(each.spec.capacity["storage"]),
    )


def plain_rule(
    state: ClusterState, claims: list[tuple[str, PersistentVolumeClaim]], slot: int
) -> dict[str, str | None]:
    """Volume that each claim takes on a node, None where it finds none."""
    chosen: dict[str, str | None] = {}
    for key, wanted in sorted(claims, key=lambda item: storage_request(item[1])):
        free = (
            each.metadata.name
            for each in candidates(state, key, wanted)
            if volume_nodes(each, state)[slot] and each.metadata.name not in chosen.values()
        )
        chosen[key] = next(free, None)
    return chosen


@settings(max_examples=150)
@given(
    volumes=st.lists(VOLUME, max_size=8),
    wanted=st.lists(st.tuples(SIZE, SELECTORS), min_size=1, max_size=4),
    reserved=st.dictionaries(st.sampled_from(["v0", "v1"]), st.sampled_from(["default/c0", "default/other"])),
)
def test_claims_take_what_the_plain_rule_gives_them(
    volumes: list[tuple[str, str, dict[str, str], str, dict[str, Any]]],
    wanted: list[tuple[str, dict[str, Any]]],
    reserved: dict[str, str],
) -> None:
    state = store(a_cluster(), STATIC)
    for number, (size, zone, labels, owner, fields) in enumerate(volumes):
        store(state, volume(f"v{number}", size, zone=zone, labels=labels, for_claim=owner, **fields))
    claims = [
        (f"default/c{number}", claim(f"c{number}", size, **fields)) for number, (size, fields) in enumerate(wanted)
    ]
    state.volumes.assume(reserved=reserved, selected={})
    delayed = DelayedClaims(claims, state)
    unmatched, no_space = delayed.failures()
    assert not no_space.any(), "nothing is provisioned"
    for slot in range(state.size):
        expected = plain_rule(state, claims, slot)
        assert bool(unmatched[slot]) == (None in expected.values())
        plan = delayed.plan(slot)
        assert plan.reserve == {name: key for key, name in expected.items() if name is not None}
        assert plan.provision == [key for key, name in expected.items() if name is None]


@settings(max_examples=150)
@given(
    volumes=st.lists(st.tuples(SIZE, st.sampled_from(["", *ZONES]), st.sampled_from(["wait", "dyn"])), max_size=8),
    wanted=st.lists(st.tuples(SIZE, st.sampled_from(["wait", "dyn"])), min_size=1, max_size=5),
    provisioned=st.sets(st.sampled_from(ZONES), min_size=1),
    space=st.dictionaries(st.sampled_from(ZONES), st.sampled_from(["1Gi", "2Gi", "9Gi"])),
)
def test_a_node_is_ruled_out_where_a_claim_gets_neither_an_old_volume_nor_a_new_one(
    volumes: list[tuple[str, str, str]],
    wanted: list[tuple[str, str]],
    provisioned: set[str],
    space: dict[str, str],
) -> None:
    state = store(a_cluster(), STATIC, storage_class("dyn", zones=sorted(provisioned)), tracked_driver())
    store(state, *(capacity(zone, size, storageClassName="dyn") for zone, size in space.items()))
    for number, (size, zone, name) in enumerate(volumes):
        store(state, volume(f"v{number}", size, zone=zone, storageClassName=name))
    claims = [
        (f"default/c{number}", claim(f"c{number}", size, storageClassName=name))
        for number, (size, name) in enumerate(wanted)
    ]
    delayed = DelayedClaims(claims, state)
    unmatched, no_space = delayed.failures()
    for name, slot in state.node_index.items():
        missing = [each for key, each in claims if plain_rule(state, claims, slot)[key] is None]
        possible = [each.spec.storage_class_name == "dyn" and name[0] in provisioned for each in missing]
        enough = [whole_units(space.get(name[0], "0").replace("Gi", "")) << 30 >= storage_request(e) for e in missing]
        assert bool(unmatched[slot] or no_space[slot]) == (not all(possible) or not all(enough))
        assert not unmatched[slot] or not all(possible)
        assert not no_space[slot] or not all(enough)


@pytest.mark.parametrize(
    ("sizes", "nodes"),
    [
        pytest.param(["1Gi"], set(NAMES), id="all-have-room"),
        pytest.param(["5Gi"], {"b0", "b1", "c0", "c1"}, id="some-have"),
        pytest.param(["1Gi", "20Gi"], {"c0", "c1"}, id="the-largest-decides"),
        pytest.param(["5Gi", "100Gi", "1Gi"], set[str](), id="one-fits-nowhere"),
    ],
)
def test_each_claim_needs_a_node_with_the_space_for_it(sizes: list[str], nodes: set[str]) -> None:
    space = [capacity(zone, size) for zone, size in (("a", "2Gi"), ("b", "10Gi"), ("c", "50Gi"))]
    claims = [claim(f"c{number}", size) for number, size in enumerate(sizes)]
    state = store(a_cluster(), storage_class(), tracked_driver(), *space, *claims)
    assert passing(VolumeBinding(), pod("new", spec=using(*(f"c{n}" for n in range(len(sizes))))), state) == nodes


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What of volumes is read: each node affinity, each size."""
    found: list[str] = []
    for name in ("volume_selector_nodes", "size_of"):
        monkeypatch.setattr(volume_pool, name, _counted(getattr(volume_pool, name), name, found))
    return found


def _counted(read: Callable[..., Any], name: str, found: list[str]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        found.append(name)
        return read(*arguments)

    return counted


def with_claims(claims: int, volumes: int) -> ClusterState:
    state = store(a_cluster(), STATIC, *(volume(f"v{n}", zone=ZONES[n % 3]) for n in range(volumes)))
    return store(state, *(claim(f"c{n}") for n in range(claims)))


def seen_by(state: ClusterState) -> tuple[list[bool], list[VolumePlan]]:
    """Nodes without a volume for some claim, and what the claims would take on each of the others."""
    delayed = DelayedClaims(list(state.volumes.claims.items()), state)
    unmatched, _ = delayed.failures()
    return unmatched.tolist(), [delayed.plan(slot) for slot in np.flatnonzero(~unmatched).tolist()]


@pytest.mark.parametrize(("claims", "volumes"), [(100, 300), (20, 600)])
def test_volumes_are_looked_at_once_for_all_claims_and_pods(claims: int, volumes: int, looks: list[str]) -> None:
    state = with_claims(claims, volumes)
    unmatched, _ = seen_by(state)
    assert not any(unmatched[: len(NAMES)])
    assert len(looks) <= 2 * volumes + len(ZONES)
    looks.clear()
    state.volumes.assume(reserved={"v0": "default/other"}, selected={})
    seen_by(state)
    assert looks == []


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda state: store(state, volume("v9", zone="a"), volume("v0", zone="b")), id="a volume comes"),
        pytest.param(lambda state: store(state, volume("v0", zone="b")), id="a volume moves"),
        pytest.param(lambda state: store(state, volume("v0", zone="a", for_claim="other")), id="a volume is taken"),
        pytest.param(lambda state: store(state, volume("v3", zone="a", for_claim="c0")), id="a volume is a claim's"),
        pytest.param(lambda state: state.volumes.delete(volume("v0", zone="a")), id="a volume goes"),
        pytest.param(lambda state: state.volumes.assume(reserved={"v0": "default/other"}, selected={}), id="assumed"),
        pytest.param(lambda state: state.volumes.assume(reserved={"v3": "default/c0"}, selected={}), id="for a claim"),
        pytest.param(lambda state: state.update_node(node("a2", labels={"zone": "a"})), id="a node comes"),
        pytest.param(lambda state: state.update_node(node("a0", labels={"zone": "b"})), id="a node moves"),
        pytest.param(lambda state: state.delete_node("a0"), id="a node goes"),
    ],
)
def test_what_is_kept_of_volumes_follows_every_change(change: Callable[[ClusterState], object]) -> None:
    known, anew = with_claims(2, 6), with_claims(2, 6)
    before = seen_by(known)
    change(known)
    change(anew)
    assert seen_by(known) == seen_by(anew)
    assert seen_by(known) != before


@pytest.mark.parametrize("most", [0, 1000], ids=["too many pairs", "few"])
def test_only_what_takes_little_memory_is_kept(most: int, looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume_pool, "MOST_PAIRS", most)
    state = with_claims(2, 6)
    first = seen_by(state)
    looks.clear()
    assert seen_by(state) == first
    assert bool(looks) is (most == 0)


def test_labels_of_volumes_are_looked_at_once_for_all_selectors() -> None:
    claims, expressions, volumes = 20, 30, 200
    labels = {f"k{number}": "v" for number in range(expressions)}
    state = store(a_cluster(), STATIC, *(volume(f"v{n}", zone=ZONES[n % 3], labels=labels) for n in range(volumes)))
    wanted = [
        (
            f"default/c{one}",
            claim(
                f"c{one}",
                selector={
                    "matchExpressions": [
                        {"key": f"k{number}", "operator": "NotIn", "values": [f"w{one}"]}
                        for number in range(expressions)
                    ]
                },
            ),
        )
        for one in range(claims)
    ]
    unmatched, _ = DelayedClaims(wanted, state).failures()
    assert not unmatched[: len(NAMES)].any()
    most = 20 * claims * expressions + 10 * volumes * expressions
    assert calls_in(lambda: DelayedClaims(wanted, state)) <= most


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": {f"k{n}": "v" for n in range(MOST_SELECTING)}}, id="labels"),
        pytest.param({"matchExpressions": [{"key": "k", "operator": "Exists"}] * MOST_SELECTING}, id="expressions"),
        pytest.param(
            {
                "matchExpressions": [
                    {"key": "k", "operator": "NotIn", "values": [str(n) for n in range(MOST_SELECTING - 1)]}
                ]
            },
            id="values",
        ),
    ],
)
def test_a_pod_whose_claims_select_by_more_than_is_matched_waits_and_says_so(selector: dict[str, Any]) -> None:
    long, short = claim("long", selector=selector), claim("short", selector={"matchLabels": {"disk": "ssd"}})
    state = store(a_cluster(), storage_class(), long, short)
    result = filtered(pod("new", spec=using("long", "short")), state)
    assert not result.feasible
    assert (
        f"persistentvolumeclaims that wait for the pod have {MOST_SELECTING + 1} labels, expressions and values in "
        f'spec.selector, more than {MOST_SELECTING} together; use fewer: "long" has {MOST_SELECTING}'
    ) in result.message()
    assert filtered(pod("other", spec=using("long")), state).feasible == len(NAMES)


def test_a_pod_of_more_claims_than_are_matched_waits_and_says_so() -> None:
    names = [f"c{n}" for n in range(MOST_DELAYED + 1)]
    state = store(a_cluster(), storage_class(), *(claim(name) for name in names))
    result = filtered(pod("new", spec=using(*names)), state)
    assert not result.feasible
    assert f"pod has {MOST_DELAYED + 1} persistentvolumeclaims that wait for it" in result.message()
    assert filtered(pod("fewer", spec=using(*names[1:])), state).feasible == len(NAMES)
