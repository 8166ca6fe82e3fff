"""The cache of the cluster: what every event means, what is assumed, confirmed and forgotten."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cachetools import TTLCache

from berth.kube.objects import OwnerReference, Pod, Service
from berth.network.groups import GroupKey
from berth.network.routing import Routing
from berth.scheduling.cache.cache import MAX_REJECTIONS, REJECTION_SECONDS, Cache
from tests.support import builders
from tests.support.placement import Clock, chain, group_object, lone, member, zoned
from tests.support.volumes import claim, storage_class, using, volume

SHOP = GroupKey("default", "shop")
CLAIM = "default/c"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> Cache:
    made = Cache(clock=clock)
    made.update_node(zoned("n1"))
    made.update_node(zoned("n2"))
    return made


def owned(pod: Pod, owner: str = "rs-1") -> Pod:
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True)]
    return pod


def places(cache: Cache, *keys: GroupKey) -> dict[str, str]:
    """Node of every member, empty for those that wait."""
    return {found.key: found.node for key in keys or (SHOP,) for found in cache.members.of(key)}


def cpu(cache: Cache) -> list[int]:
    used: list[int] = cache.state.used[:, 0].tolist()
    return used


class TestPods:
    @pytest.mark.parametrize(
        ("pod", "waits", "members"),
        [
            pytest.param(member("a1", "a"), True, {"default/a1": ""}, id="waiting"),
            pytest.param(lone("p"), True, {}, id="waiting-outside-groups"),
            pytest.param(member("a1", "a", deleting=True), False, {}, id="being-deleted"),
            pytest.param(member("a1", "a", spec={"schedulingGates": [{"name": "later"}]}), False, {}, id="gated"),
            pytest.param(member("a1", "a", on="n1"), False, {"default/a1": "n1"}, id="bound"),
            pytest.param(member("a1", "a", on="n1", deleting=True), False, {"default/a1": "n1"}, id="bound-and-ending"),
            pytest.param(member("a1", "a", on="n1", phase="Failed"), False, {}, id="finished"),
        ],
    )
    def test_first_seen(self, cache: Cache, pod: Pod, waits: bool, members: dict[str, str]) -> None:
        for _ in range(2):
            assert cache.update_pod(pod) is waits
            assert places(cache) == members
            assert cache.node_of(pod) == (pod.spec.node_name if members else "")

    def test_a_pod_whose_gate_opens_joins(self, cache: Cache) -> None:
        cache.update_pod(member("a1", "a", spec={"schedulingGates": [{"name": "later"}]}))
        assert cache.update_pod(member("a1", "a"))
        assert places(cache) == {"default/a1": ""}

    @pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
    def test_a_finished_pod_frees_room_and_leaves_its_group(self, cache: Cache, phase: str) -> None:
        cache.update_pod(member("a1", "a", on="n1", cpu="1"))
        assert not cache.update_pod(member("a1", "a", on="n1", cpu="1", phase=phase))
        assert (cpu(cache), places(cache)) == ([0, 0], {})

    def test_a_deleted_pod_frees_room_and_leaves_its_group(self, cache: Cache) -> None:
        cache.update_pod(member("a1", "a", on="n1", cpu="1"))
        for _ in range(2):
            cache.delete_pod(member("a1", "a", on="n1", cpu="1"))
            assert (cpu(cache), places(cache)) == ([0, 0], {})

    @pytest.mark.parametrize(
        ("pod", "members"),
        [
            pytest.param(member("a1", "a", cpu="1"), {"default/a1": ""}, id="waiting"),
            pytest.param(member("a1", "a", deleting=True), {}, id="being-deleted"),
        ],
    )
    def test_a_restored_etcd_may_know_nothing_of_a_binding(
        self, cache: Cache, pod: Pod, members: dict[str, str]
    ) -> None:
        cache.update_pod(member("a1", "a", on="n1", cpu="1"))
        assert cache.update_pod(pod) is bool(members)
        assert (cpu(cache), places(cache), cache.node_of(pod)) == ([0, 0], members, "")


class TestAssumed:
    POD = member("a1", "a", cpu="1", spec=using("c"))

    @pytest.fixture(autouse=True)
    def assumed(self, cache: Cache) -> None:
        cache.update_storage(storage_class())
        cache.update_storage(volume("v"))
        cache.update_storage(claim("c"))
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        cache.update_pod(member("b1", "b", on="n2"))
        cache.update_pod(self.POD)
        cache.assume(self.POD, "n1")

    def bandwidth(self, cache: Cache) -> dict[str, float]:
        cache.bandwidth_allocations.refresh(cache.groups)
        return dict(cache.bandwidth_allocations.nodes)

    def test_takes_room_volume_and_bandwidth_at_once(self, cache: Cache) -> None:
        assert cache.node_of(self.POD) == "n1"
        assert cpu(cache) == [1000, 0]
        assert cache.state.volumes.reserved_for("v") == CLAIM
        assert places(cache) == {"default/a1": "n1", "default/b1": "n2"}
        assert self.bandwidth(cache) == {"n1": 10e6, "n2": 10e6}

    def test_twice_is_an_error(self, cache: Cache) -> None:
        with pytest.raises(ValueError, match="already assumed on node n1"):
            cache.assume(self.POD, "n2")
        assert cpu(cache) == [1000, 0]

    def test_is_not_undone_by_an_event_that_is_older(self, cache: Cache) -> None:
        assert not cache.update_pod(self.POD)
        assert places(cache)["default/a1"] == "n1"
        assert cpu(cache) == [1000, 0]

    @pytest.mark.parametrize(("node", "used"), [("n1", [1000, 0]), ("n2", [0, 1000])])
    def test_confirmed_on_whichever_node_it_is(self, cache: Cache, node: str, used: list[int]) -> None:
        bound = member("a1", "a", cpu="1", spec=using("c"), on=node)
        assert not cache.update_pod(bound)
        assert (cpu(cache), places(cache)["default/a1"]) == (used, node)
        cache.forget(bound)
        assert (cpu(cache), places(cache)["default/a1"]) == (used, node)

    def test_forgotten_gives_all_of_it_back(self, cache: Cache) -> None:
        for _ in range(2):
            cache.forget(self.POD)
            assert cache.node_of(self.POD) == ""
            assert cpu(cache) == [0, 0]
            assert cache.state.volumes.reserved_for("v") is None
            assert places(cache)["default/a1"] == ""
            assert self.bandwidth(cache) == {}

    def test_deleted_keeps_nothing_but_its_volume_until_forgotten(self, cache: Cache) -> None:
        cache.delete_pod(self.POD)
        assert (cpu(cache), places(cache)) == ([0, 0], {"default/b1": "n2"})
        assert self.bandwidth(cache) == {}
        cache.forget(self.POD)
        assert cache.state.volumes.reserved_for("v") is None

    def test_a_claim_that_another_pod_counts_on_stays_assumed(self, cache: Cache) -> None:
        other = lone("other", spec=using("c"))
        cache.assume(other, "n1")
        cache.forget(self.POD)
        assert cache.state.volumes.reserved_for("v") == CLAIM
        cache.forget(other)
        assert cache.state.volumes.reserved_for("v") is None

    def test_without_claims_no_volume_is_touched(self, cache: Cache) -> None:
        before = cache.state.volumes.version
        cache.assume(lone("p"), "n1")
        cache.forget(lone("p"))
        assert cache.state.volumes.version == before


class TestRejections:
    def test_the_owners_pods_keep_away_from_the_node_for_a_while(self, cache: Cache, clock: Clock) -> None:
        assert cache.recently_rejected(owned(lone("next"))) == frozenset()
        cache.note_rejection(owned(lone("p", on="n1")))
        assert cache.recently_rejected(owned(lone("next"))) == {"n1"}
        assert cache.recently_rejected(owned(lone("foreign"), "rs-2")) == frozenset()
        assert cache.recently_rejected(owned(lone("next", namespace="another"))) == frozenset()
        assert cache.recently_rejected(lone("without owner")) == frozenset()
        clock.advance(REJECTION_SECONDS - 1)
        assert cache.recently_rejected(owned(lone("next"))) == {"n1"}
        clock.advance(1)
        assert cache.recently_rejected(owned(lone("next"))) == frozenset()

    def test_each_node_has_its_own_time(self, cache: Cache, clock: Clock) -> None:
        cache.note_rejection(owned(lone("p", on="n1")))
        clock.advance(REJECTION_SECONDS - 1)
        cache.note_rejection(owned(lone("q", on="n2")))
        assert cache.recently_rejected(owned(lone("next"))) == {"n1", "n2"}
        clock.advance(1)
        assert cache.recently_rejected(owned(lone("next"))) == {"n2"}

    def test_those_of_others_are_not_looked_through(self, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.note_rejection(owned(lone("p", on="n1"), "rs-2"))
        monkeypatch.setattr(TTLCache, "__iter__", None)
        assert cache.recently_rejected(owned(lone("next"))) == frozenset()

    def test_only_the_owner_counts_that_controls_the_pod(self, cache: Cache) -> None:
        """Anybody may write thousands of owners into a pod, which would take the room of what others were refused."""
        cache.note_rejection(owned(lone("p", on="n1")))
        many = owned(lone("q", on="n1"), "rs-many")
        many.metadata.owner_references += [
            OwnerReference(kind="Job", name="job", uid=f"job-{number}") for number in range(MAX_REJECTIONS)
        ]
        cache.note_rejection(many)
        assert cache.recently_rejected(owned(lone("next"))) == {"n1"}
        assert cache.recently_rejected(owned(lone("next"), "rs-many")) == {"n1"}
        other = lone("next")
        other.metadata.owner_references = [OwnerReference(kind="Job", name="job", uid="job-0")]
        assert cache.recently_rejected(other) == frozenset()

    def test_what_is_remembered_is_bounded(self, cache: Cache) -> None:
        for number in range(MAX_REJECTIONS + 1):
            cache.note_rejection(owned(lone("p", on="n1"), f"rs-{number}"))
        assert cache.recently_rejected(owned(lone("next"), "rs-0")) == frozenset()
        assert cache.recently_rejected(owned(lone("next"), f"rs-{MAX_REJECTIONS}")) == {"n1"}


def test_services_route_calls_to_the_pods_that_are_members(cache: Cache) -> None:
    document: dict[str, Any] = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    document["spec"]["trafficDistribution"] = "PreferSameZone"
    web, pod = msgspec.convert(document, Service), member("w1", "web", labels={"app": "web"})

    def routing() -> Routing:
        return cache.services.routing(SHOP, "web").routing

    cache.update_service(web)
    assert routing() is Routing.ALL
    for seen, expected in (
        (member("w1", "web", labels={"app": "web"}, spec={"schedulingGates": [{"name": "g"}]}), Routing.ALL),
        (pod, Routing.SAME_ZONE),
        (member("w1", "web", labels={"app": "web"}, on="n1"), Routing.SAME_ZONE),
        (member("w1", "web", labels={"app": "web"}, on="n1", phase="Failed"), Routing.ALL),
        (pod, Routing.SAME_ZONE),
    ):
        cache.update_pod(seen)
        assert routing() is expected
    cache.delete_service(web)
    assert routing() is Routing.ALL
    cache.update_service(web)
    cache.delete_pod(pod)
    assert routing() is Routing.ALL


def test_nodes_and_namespaces(cache: Cache) -> None:
    cache.update_namespace(builders.namespace("team", tier="gold"))
    assert cache.state.namespace_labels("team") == builders.namespace("team", tier="gold").metadata.labels
    cache.delete_namespace(builders.namespace("team"))
    assert cache.state.namespace_labels("team") is None
    cache.delete_node(zoned("n1"))
    assert list(cache.state.node_index) == ["n2"]


def test_storage_of_every_kind_goes_by_type_and_name(cache: Cache) -> None:
    cache.update_storage(volume("v"))
    cache.update_storage(claim("c"))
    assert (list(cache.state.volumes.volumes), list(cache.state.volumes.claims)) == (["v"], [CLAIM])
    cache.delete_storage(claim("c"))
    cache.delete_storage(volume("v"))
    assert (cache.state.volumes.volumes, cache.state.volumes.claims) == ({}, {})


class TestGroups:
    def test_compiled_and_deleted(self, cache: Cache) -> None:
        assert cache.update_group(group_object("shop", *chain("a", "b"))).index == {"a": 1, "b": 2}
        assert cache.update_group(group_object("shop", *chain("a", "b"), order=["b", "a"])).key == SHOP
        assert cache.groups[SHOP].index == {"b": 1, "a": 2}
        for _ in range(2):
            cache.delete_group(SHOP)
            assert cache.groups == {}

    def test_bandwidth_follows_groups_and_labels(self, cache: Cache) -> None:
        def used() -> dict[str, float]:
            cache.bandwidth_allocations.refresh(cache.groups)
            return dict(cache.bandwidth_allocations.nodes)

        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        cache.update_pod(member("a1", "a", on="n1"))
        cache.update_pod(member("b1", "b", on="n2"))
        assert used() == {"n1": 10e6, "n2": 10e6}
        cache.update_pod(member("b1", "x", on="n2"))
        assert used() == {}
        cache.update_pod(member("b1", "b", on="n2"))
        assert used() == {"n1": 10e6, "n2": 10e6}
        cache.update_pod(lone("b1", on="n2"))
        assert used() == {}
        cache.update_pod(member("b1", "b", on="n2"))
        cache.delete_pod(member("a1", "a", on="n1"))
        assert used() == {}

    def test_a_waiting_replica_takes_its_share(self, cache: Cache) -> None:
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        cache.update_pod(member("a1", "a", on="n1"))
        cache.update_pod(member("b1", "b", on="n2"))
        cache.update_pod(member("b2", "b"))
        cache.bandwidth_allocations.refresh(cache.groups)
        assert cache.bandwidth_allocations.nodes["n1"] == 5e6
