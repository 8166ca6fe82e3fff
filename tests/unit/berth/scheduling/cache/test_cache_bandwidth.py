"""Bandwidth is charged as it was admitted, whatever becomes of the AppGroup."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from berth.kube.objects import CustomObject, Pod, Service
from berth.network.bandwidth_allocations import RECOUNTED_PODS
from berth.network.groups import GroupKey
from berth.scheduling.cache.cache import RECOUNT_RETRY_SECONDS, REROUTE_SECONDS, Cache
from tests.support import kinds
from tests.support.placement import Clock, chain, group_object, lone, member, zoned

SHOP = GroupKey("default", "shop")


@pytest.fixture
def cache() -> Cache:
    made = Cache(clock=Clock())
    made.update_node(zoned("n1"))
    made.update_node(zoned("n2"))
    return made


EDITS: dict[str, CustomObject | None] = {
    "raised": group_object("shop", *chain("a", "b", minBandwidth="1e30")),
    "lowered": group_object("shop", *chain("a", "b", minBandwidth="1")),
    "no-longer-stated": group_object("shop", *chain("a", "b")),
    "dependency-removed": group_object("shop", kinds.workload("a"), kinds.workload("b")),
    "workload-removed": group_object("shop", kinds.workload("a")),
    "turned-round": group_object("shop", *chain("b", "a", minBandwidth="90M")),
    "deleted": None,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
class TestAdmittedBandwidth:
    """What placed pods take of the nodes' bandwidth is what was admitted, whatever their AppGroup states later."""

    @staticmethod
    def edited(cache: Cache, edit: CustomObject | None) -> dict[str, int]:
        if edit is None:
            cache.delete_group(SHOP)
        else:
            cache.update_group(edit)
        return dict(cache.bandwidth().nodes)

    @pytest.fixture
    def placed(self, cache: Cache) -> Cache:
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        for name, node in (("a1", "n1"), ("b1", "n2")):
            cache.update_pod(member(name, name[0]))
            cache.assume(member(name, name[0]), node)
        return cache

    def test_while_it_is_assumed(self, placed: Cache, edit: CustomObject | None) -> None:
        assert self.edited(placed, edit) == {"n1": 10**7, "n2": 10**7}

    def test_once_it_is_bound(self, placed: Cache, edit: CustomObject | None) -> None:
        for text in ("", '{"b": 5}', '{"b": 999999999999}'):
            # What somebody writes into the annotation afterwards is not read.
            placed.update_pod(annotated(member("a1", "a", on="n1"), text))
            placed.update_pod(annotated(member("b1", "b", on="n2"), text))
            assert self.edited(placed, edit) == {"n1": 10**7, "n2": 10**7}

    def test_after_a_restart(self, cache: Cache, edit: CustomObject | None) -> None:
        cache.update_pod(annotated(member("a1", "a", on="n1"), '{"b": 10000000}'))
        cache.update_pod(annotated(member("b1", "b", on="n2"), "{}"))
        assert self.edited(cache, edit) == {"n1": 10**7, "n2": 10**7}

    def test_until_it_goes_away(self, placed: Cache, edit: CustomObject | None) -> None:
        self.edited(placed, edit)
        placed.delete_pod(member("a1", "a", on="n1"))
        assert dict(placed.bandwidth().nodes) == {}

    def test_a_pod_bound_by_another_scheduler_is_charged_what_is_stated_now(
        self, cache: Cache, edit: CustomObject | None
    ) -> None:
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        cache.update_pod(member("a1", "a", on="n1"))
        cache.update_pod(member("b1", "b", on="n2"))
        now = self.edited(cache, edit)
        bandwidth = sum(edge.bandwidth for edge in cache.groups[SHOP].edges) if edit is not None else 0
        assert now == ({"n1": bandwidth, "n2": bandwidth} if bandwidth else {})

    def test_forgotten_and_placed_anew_it_is_charged_what_is_stated_then(
        self, placed: Cache, edit: CustomObject | None
    ) -> None:
        self.edited(placed, edit)
        for name, node in (("a1", "n1"), ("b1", "n2")):
            placed.forget(member(name, name[0]))
            placed.assume(member(name, name[0]), node)
        bandwidth = sum(edge.bandwidth for edge in placed.groups[SHOP].edges) if edit is not None else 0
        assert dict(placed.bandwidth().nodes) == ({"n1": bandwidth, "n2": bandwidth} if bandwidth else {})


def annotated(pod: Pod, text: str) -> Pod:
    pod.metadata.annotations = {"berth.dev/admitted-bandwidth": text} if text else {}
    return pod


class TestRelabelled:
    """Other labels and another annotation of a pod on its node change nothing of what it was admitted with."""

    FORGED = '{"b": 999999999999}'

    @pytest.fixture(params=["assumed", "bound"])
    def placed(self, request: pytest.FixtureRequest, cache: Cache) -> Cache:
        """Pods of shop, a1 admitted with 10 Mbit/s to b; bank states much more now."""
        self.on = {"a1": "", "b1": ""}
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        for name, node in (("a1", "n1"), ("b1", "n2")):
            cache.update_pod(member(name, name[0]))
            cache.assume(member(name, name[0]), node)
            if request.param == "bound":
                self.on[name] = node
                cache.update_pod(member(name, name[0], on=node))
        for group in ("shop", "bank"):
            cache.update_group(group_object(group, *chain("a", "b", minBandwidth="1e30")))
        return cache

    def relabel(self, cache: Cache, **labels: str) -> dict[str, int]:
        for name in ("a1", "b1"):
            pod = member(name, name[0], on=self.on[name], **labels) if labels else lone(name, on=self.on[name])
            cache.update_pod(annotated(pod, self.FORGED))
        return dict(cache.bandwidth().nodes)

    def test_into_another_appgroup(self, placed: Cache) -> None:
        assert self.relabel(placed, group="bank") == {"n1": 10**7, "n2": 10**7}
        assert self.relabel(placed, group="shop") == {"n1": 10**7, "n2": 10**7}

    def test_out_of_any_appgroup_and_back(self, placed: Cache) -> None:
        assert self.relabel(placed) == {}
        assert self.relabel(placed, group="shop") == {"n1": 10**7, "n2": 10**7}

    def test_what_is_placed_anew_is_admitted_anew(self, placed: Cache) -> None:
        self.relabel(placed)
        for name in ("a1", "b1"):
            placed.forget(lone(name))
            placed.delete_pod(lone(name))
            placed.update_pod(annotated(member(name, name[0], on={"a": "n1", "b": "n2"}[name[0]]), '{"b": 5}'))
        assert dict(placed.bandwidth().nodes) == {"n1": 5, "n2": 5}

    def test_one_that_was_in_none_is_charged_what_is_stated_now(self, cache: Cache) -> None:
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        for name, node in (("a1", "n1"), ("b1", "n2")):
            cache.update_pod(lone(name, on=node))
            cache.update_pod(annotated(member(name, name[0], on=node), self.FORGED))
        assert dict(cache.bandwidth().nodes) == {"n1": 10**7, "n2": 10**7}

    def test_one_bound_elsewhere_than_it_was_assumed_is_read(self, cache: Cache) -> None:
        """Another leader has bound it: its annotation is of the Binding."""
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        cache.update_pod(member("b1", "b", on="n2"))
        cache.update_pod(member("a1", "a"))
        cache.assume(member("a1", "a"), "n2")
        cache.update_pod(annotated(member("a1", "a", on="n1"), '{"b": 5}'))
        assert dict(cache.bandwidth().nodes) == {"n1": 5, "n2": 5}


TO_ALL = {"n1": 24, "n2": 8, "n3": 16}
KEPT = {"n1": 24, "n2": 24}


class TestRouting:
    """Two callers in z1, each with 12 bit/s; an endpoint in z1 and two in z2."""

    @pytest.fixture
    def shop(self, cache: Cache) -> Cache:
        cache.update_node(zoned("n3", "z2"))
        cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="12")))
        for name, node in (("a1", "n1"), ("a2", "n1"), ("b1", "n2"), ("b2", "n3"), ("b3", "n3")):
            cache.update_pod(member(name, name[0], on=node, labels={"app": name[0]}))
        assert dict(cache.bandwidth().nodes) == TO_ALL
        return cache

    @staticmethod
    def service(app: str = "b", **spec: Any) -> Service:
        body = {"selector": {"app": app}, "trafficDistribution": "PreferSameZone", **spec}
        return msgspec.convert({"metadata": {"name": "b", "namespace": "default"}, "spec": body}, Service)

    def test_services_come_change_and_go(self, shop: Cache) -> None:
        shop.update_service(self.service())
        assert dict(shop.bandwidth().nodes) == KEPT
        assert dict(shop.bandwidth().pairs) == {("n1", "n2"): 24}
        shop.update_service(self.service(internalTrafficPolicy="Local"))
        assert dict(shop.bandwidth().nodes) == {}
        shop.update_service(self.service("other"))
        assert dict(shop.bandwidth().nodes) == TO_ALL
        shop.update_service(self.service())
        shop.delete_service(self.service())
        assert dict(shop.bandwidth().nodes) == TO_ALL

    def test_nodes_move_come_and_go(self, shop: Cache) -> None:
        shop.update_service(self.service())
        assert dict(shop.bandwidth().nodes) == KEPT
        shop.update_node(zoned("n3", "z1"))
        assert dict(shop.bandwidth().nodes) == TO_ALL
        shop.delete_node(zoned("n3", "z1"))
        assert dict(shop.bandwidth().nodes) == KEPT
        shop.update_node(zoned("n2", "z2"))
        assert dict(shop.bandwidth().nodes) == {"n1": 8, "n2": 8}, "calls to all, one of three is on a known node"

    def crowd(self, shop: Cache) -> None:
        """As many pods as are counted anew at a time, twice."""
        for number in range(RECOUNTED_PODS):
            name = f"g{number}"
            shop.update_group(group_object(name, *chain("a", "b", minBandwidth="12")))
            for workload, node in (("a", "n1"), ("b", "n2")):
                labels = {"app": workload}
                shop.update_pod(member(f"{name}{workload}", workload, group=name, on=node, labels=labels))

    def test_of_thousands_of_groups_some_at_a_time(self, shop: Cache) -> None:
        self.crowd(shop)
        before = shop.bandwidth().nodes["n2"]
        shop.update_service(self.service(internalTrafficPolicy="Local"))
        left = [shop.bandwidth().nodes["n2"] for _ in range(3)]
        assert isinstance(shop.clock, Clock)
        shop.clock.advance(REROUTE_SECONDS)
        shop.recounts_held = True
        assert shop.bandwidth().nodes["n2"] == left[0]
        shop.recounts_held = False
        left.append(shop.bandwidth().nodes["n2"])
        shop.clock.advance(REROUTE_SECONDS)
        left.append(shop.bandwidth().nodes["n2"])
        assert before > left[0] == left[1] == left[2] > left[3] > left[4] == 0

    def test_it_says_when_more_of_them_are_due(self, shop: Cache) -> None:
        clock = shop.clock
        assert isinstance(clock, Clock)
        self.crowd(shop)
        shop.bandwidth()
        assert shop.recount_at() is None
        shop.update_service(self.service(internalTrafficPolicy="Local"))
        rounds = 0
        while (due := shop.recount_at()) is not None:
            assert due <= clock() + REROUTE_SECONDS
            clock.now = max(clock.now, due)
            shop.recount()
            rounds += 1
        assert rounds == 3, "2 * RECOUNTED_PODS pods, and those of the shop"
        assert shop.bandwidth().nodes["n2"] == 0

    @pytest.mark.parametrize("zone", ["z1", "z9"])
    def test_a_node_in_another_zone_makes_it_due(self, shop: Cache, zone: str) -> None:
        shop.update_service(self.service())
        shop.bandwidth()
        assert shop.recount_at() is None
        shop.update_node(zoned("n3", zone))
        assert (due := shop.recount_at()) is not None
        assert due <= shop.clock()
        shop.recount()
        assert shop.recount_at() is None

    def test_after_an_error_it_is_due_some_seconds_later(self, shop: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
        shop.update_service(self.service())
        with monkeypatch.context() as broken:
            broken.setattr(shop.bandwidth_allocations, "refresh", Mock(side_effect=LookupError("odd")))
            with pytest.raises(LookupError, match="odd"):
                shop.recount()
        assert shop.recount_at() == shop.clock() + RECOUNT_RETRY_SECONDS
        assert isinstance(shop.clock, Clock)
        shop.clock.advance(RECOUNT_RETRY_SECONDS)
        shop.recount()
        assert shop.recount_at() is None

    def test_labels_of_pods_change(self, shop: Cache) -> None:
        shop.update_service(self.service("web"))
        assert dict(shop.bandwidth().nodes) == TO_ALL
        shop.update_pod(member("b1", "b", on="n2", labels={"app": "web"}))
        assert dict(shop.bandwidth().nodes) == KEPT

    def test_endpoints_that_are_being_deleted_are_called_no_more(self, shop: Cache) -> None:
        shop.update_service(self.service())
        shop.update_pod(member("b1", "b", on="n2", labels={"app": "b"}, deleting=True))
        assert dict(shop.bandwidth().nodes) == {"n1": 16, "n3": 16}


@pytest.mark.parametrize("left", [False, True], ids=["in-its-group", "out-of-it-for-now"])
def test_a_pod_that_was_set_aside_is_charged_with_what_it_was_admitted_with(cache: Cache, left: bool) -> None:
    """Its label is taken away before it is judged again, and given back after that."""
    cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="12")))
    caller = member("a1", "a")
    cache.update_pod(member("b1", "b", on="n2"))
    cache.update_pod(caller)
    cache.assume(caller, "n1")
    cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="99")))
    if left:
        cache.update_pod(lone("a1"))
    with cache.set_aside(caller):
        assert cache.bandwidth().nodes == {}
    cache.update_pod(caller)
    assert cache.bandwidth().nodes == {"n1": 12, "n2": 12}
    assert cache.node_of(caller) == "n1"
