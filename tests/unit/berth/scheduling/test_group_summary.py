"""What an AppGroup's placement is worth, by what the cache knows."""

from __future__ import annotations

import msgspec
import pytest

from berth.kube.objects import CustomObject, Service
from berth.network.groups import GroupKey
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.group_summary import GroupSummary, group_summary, placed_pods
from tests.support import plans
from tests.support.placement import Clock, chain, group_object, member, zoned

SHOP = GroupKey("default", "shop")


@pytest.fixture
def cache() -> Cache:
    made = Cache(clock=Clock())
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        made.update_node(zoned(name, zone=zone))
    made.update_group(group_object("shop", *chain("web", "db")))
    manifest = plans.topology({("a", "b"): 10})
    manifest["metadata"]["namespace"] = "default"
    made.update_topology(CustomObject.of(manifest))
    return made


def judged(cache: Cache) -> GroupSummary:
    profile = Profile()
    view = InfrastructureView(cache.state, profile)
    return group_summary(cache.groups[SHOP], cache, view, cache.costs_for("default", profile))


def test_bound_and_assumed_pods_count(cache: Cache) -> None:
    cache.update_pod(member("web1", "web", on="n1"))
    cache.update_pod(member("db1", "db", on="n1"))
    waiting = member("db2", "db")
    cache.update_pod(waiting)
    assert judged(cache).mean_edge_cost == 0
    cache.assume(waiting, "n3")
    found = judged(cache)
    assert (found.mean_edge_cost, found.cross_zone_share) == (5, 0.5)
    assert (found.survival.replicated, found.survival.survive_zone) == (1, 1)


def test_pods_that_are_being_deleted_or_on_unknown_nodes_do_not_count(cache: Cache) -> None:
    leaving = member("web1", "web", on="n1")
    leaving.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    for pod in (leaving, member("web2", "web", on="gone"), member("web3", "web", on="n2")):
        cache.update_pod(pod)
    assert placed_pods(SHOP, cache) == {"web": {"n2": 1}}


def test_calls_go_where_services_send_them(cache: Cache) -> None:
    for name, workload, node in (("web1", "web", "n1"), ("db1", "db", "n2"), ("db2", "db", "n3")):
        cache.update_pod(member(name, workload, on=node, labels={"app": workload}))
    assert judged(cache).mean_edge_cost == 5.5
    assert judged(cache).advice().mean_cost == 1
    spec = {"selector": {"app": "db"}, "trafficDistribution": "PreferSameZone"}
    meta = {"name": "db", "namespace": "default"}
    cache.update_service(msgspec.convert({"metadata": meta, "spec": spec}, Service))
    assert judged(cache).mean_edge_cost == 1
    assert judged(cache).advice().settings == ()
