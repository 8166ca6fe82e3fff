"""What placements are worth, as metrics: set a moment after pods change, and gone with the group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from prometheus_client import REGISTRY

from berth.kube.objects import Pod, Service
from berth.network.groups import GroupKey
from controllers.placement import group_metrics
from controllers.placement.metrics import (
    CROSS_ZONE_CALLS,
    MEAN_EDGE_COST,
    REPLICATED_WORKLOADS,
    SURVIVE_NODE,
    SURVIVE_ZONE,
)
from tests.support.desk import Desk
from tests.support.placement import Clock, chain, group_object, member, zoned

NAMES = (
    "replicated_workloads",
    "workloads_surviving_node",
    "workloads_surviving_zone",
    "mean_edge_cost",
    "cross_zone_calls_ratio",
)
FAR = {"n3": "z2", "n4": "z2"}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    for gauge in (REPLICATED_WORKLOADS, SURVIVE_NODE, SURVIVE_ZONE, MEAN_EDGE_COST, CROSS_ZONE_CALLS):
        gauge.clear()


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """Two zones of two nodes, and an AppGroup that is a chain of two."""
    for name, zone in FAR.items():
        desk.see("nodes", zoned(name, zone=zone))
    desk.see("appgroups", group_object("shop", *chain("web", "db")))
    return desk


def figures(desk: Desk, *, appgroup: str = "shop") -> list[float | None]:
    asyncio.run(desk.controller.groups.refresh())
    labels = {"namespace": "default", "appgroup": appgroup}
    return [REGISTRY.get_sample_value(f"berth_placement_appgroup_{name}", labels) for name in NAMES]


def bound(name: str, workload: str, node: str) -> Pod:
    pod = member(name, workload, on=node, labels={"app": workload})
    pod.spec.scheduler_name = "berth-scheduler"
    return pod


def slices(desk: Desk) -> None:
    desk.pods(
        bound("web1", "web", "n1"), bound("web2", "web", "n3"), bound("db1", "db", "n1"), bound("db2", "db", "n3")
    )


def test_pods_as_they_are_bound(desk: Desk) -> None:
    slices(desk)
    assert figures(desk) == [2, 2, 2, 50, 0.5]  # without network costs the other zone is at 100


def test_pods_that_are_decided_on_count(desk: Desk) -> None:
    desk.pods(member("web1", "web"), member("db1", "db"))
    assert len(desk.decide()) == 2
    assert figures(desk)[3] == 0


def test_they_follow_pods_that_go_and_services_that_change(desk: Desk) -> None:
    slices(desk)
    figures(desk)
    spec = {"selector": {"app": "db"}, "trafficDistribution": "PreferSameZone"}
    desk.see("services", msgspec.convert({"metadata": {"name": "db", "namespace": "default"}, "spec": spec}, Service))
    assert figures(desk) == [2, 2, 2, 0, 0]
    desk.lose("pods", bound("db2", "db", "n3"))
    assert figures(desk) == [1, 1, 1, 50, 0.5]


def test_a_node_that_turns_out_to_be_in_the_zone_is_no_second_zone(desk: Desk) -> None:
    slices(desk)
    figures(desk)
    desk.see("nodes", zoned("n3", zone="z1"))
    assert figures(desk) == [2, 2, 0, 0.5, 0]


@pytest.mark.parametrize("what", ["group", "pods", "edges"])
def test_what_is_gone_leaves_no_series(desk: Desk, what: str) -> None:
    slices(desk)
    assert None not in figures(desk)
    if what == "group":
        desk.lose("appgroups", group_object("shop", *chain("web", "db")))
    elif what == "pods":
        for name, workload, node in (
            ("web1", "web", "n1"),
            ("web2", "web", "n3"),
            ("db1", "db", "n1"),
            ("db2", "db", "n3"),
        ):
            desk.lose("pods", bound(name, workload, node))
    else:
        desk.see("appgroups", group_object("shop", *chain("web"), *chain("db")))
    left = figures(desk)
    assert left == ([2, 2, 2, None, None] if what == "edges" else [None] * 5)


def test_a_group_that_comes_back_is_measured_again(desk: Desk) -> None:
    slices(desk)
    desk.lose("appgroups", group_object("shop", *chain("web", "db")))
    figures(desk)
    desk.see("appgroups", group_object("shop", *chain("web", "db")))
    assert None not in figures(desk)


def test_groups_of_other_schedulers_have_none(desk: Desk) -> None:
    pod = bound("web1", "web", "n1")
    pod.spec.scheduler_name = "default-scheduler"
    desk.pods(pod)
    assert figures(desk) == [None] * 5


def test_what_has_not_changed_is_not_looked_at_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    slices(desk)
    figures(desk)
    looked: list[object] = []
    monkeypatch.setattr(desk.controller.groups, "_look", looked.append)
    running = bound("web1", "web", "n1")
    running.status.phase = "Running"
    desk.pods(running)
    figures(desk)
    assert looked == []
    desk.lose("pods", running)
    figures(desk)
    assert len(looked) == 1


@pytest.fixture
def two_groups(desk: Desk) -> Desk:
    desk.see("appgroups", group_object("a", *chain("web", "db")))
    for group in ("a", "shop"):
        desk.pods(member(f"{group}-web", "web", group=group, on="n1"))
    return desk


def test_looks_leave_most_of_the_time_to_others(two_groups: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, slept = Clock(), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(group_metrics, "perf_counter", clock, raising=False)
    monkeypatch.setattr(group_metrics.asyncio, "sleep", sleep)
    monkeypatch.setattr(two_groups.controller.groups, "_look", lambda _: clock.advance(0.2))
    asyncio.run(two_groups.controller.groups.refresh())
    assert slept == pytest.approx([1.8, 1.8])


def test_a_group_that_cannot_be_measured_does_not_stop_the_others(
    two_groups: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = two_groups.controller.groups
    look, looked = groups._look, list[str]()

    def odd(key: GroupKey) -> None:
        if key.name == "a":
            raise ZeroDivisionError
        look(key)
        looked.append(key.name)

    monkeypatch.setattr(groups, "_look", odd)
    asyncio.run(groups.refresh())
    assert looked == ["shop"]
