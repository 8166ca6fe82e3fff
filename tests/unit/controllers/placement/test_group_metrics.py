"""What placements are worth, as metrics: set a moment after pods change, and gone with the group."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import msgspec
import pytest
from prometheus_client import REGISTRY

from berth.kube.objects import CustomObject, Pod, Service
from berth.network.groups import GroupKey
from berth.scheduling import group_summary
from berth.scheduling.group_summary import GroupSummary
from controllers.placement import group_metrics
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.metrics import (
    CROSS_ZONE_CALLS,
    MEAN_EDGE_COST,
    REPLICATED_WORKLOADS,
    SURVIVE_NODE,
    SURVIVE_ZONE,
)
from tests.support.desk import Desk
from tests.support.kube import running
from tests.support.placement import Clock, chain, group_object, member, zoned
from tests.support.topologies import Stated, raw_topology, weight_set

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
    looked: list[GroupKey] = []

    async def look(key: GroupKey) -> None:
        looked.append(key)

    monkeypatch.setattr(desk.controller.groups, "_look", look)
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
    monkeypatch.setattr("controllers.placement.group_metrics.asyncio.sleep", sleep)

    async def look(_: GroupKey) -> None:
        clock.advance(0.2)

    monkeypatch.setattr(two_groups.controller.groups, "_look", look)
    asyncio.run(two_groups.controller.groups.refresh())
    assert slept == pytest.approx([1.8, 1.8])


def test_a_group_that_cannot_be_measured_does_not_stop_the_others(
    two_groups: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = two_groups.controller.groups
    look, looked = groups._look, list[str]()

    async def odd(key: GroupKey) -> None:
        if key.name == "a":
            raise ZeroDivisionError
        await look(key)
        looked.append(key.name)

    monkeypatch.setattr(groups, "_look", odd)
    asyncio.run(groups.refresh())
    assert looked == ["shop"]


async def test_figures_are_worked_out_beside_the_event_loop(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of 10,000 edges takes a third of a second."""
    slices(desk)
    threads: list[int] = []
    judge = group_summary.summarize

    def noted(*arguments: Any) -> GroupSummary:
        threads.append(threading.get_ident())
        return judge(*arguments)

    monkeypatch.setattr(group_metrics, "summarize", noted)
    await desk.controller.groups.refresh()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_the_cache_is_read_in_slices_and_only_while_it_is_the_event_loops(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups, workloads = desk.controller.groups, [f"w{number}" for number in range(20)]
    desk.see("appgroups", group_object("shop", *chain(*workloads)))
    desk.pods(*(bound(f"{workload}-{n}", workload, f"n{n}") for workload in workloads for n in (1, 3)))
    monkeypatch.setattr(group_metrics, "SLICE", 0.0)
    turns, asked = 0, 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def idle() -> None:
        nonlocal asked
        asked += 1

    monkeypatch.setattr(groups, "_idle", idle)
    async with running(others()):
        placement = await groups._copy(GroupKey("default", "shop"))
    assert placement is not None
    assert set(placement.placed) == set(workloads)
    assert turns >= len(workloads)
    assert asked >= len(workloads)


def test_what_is_copied_is_changed_by_nobody(desk: Desk) -> None:
    slices(desk)
    copied = asyncio.run(desk.controller.groups._copy(GroupKey("default", "shop")))
    assert copied is not None
    before = {workload: dict(nodes) for workload, nodes in copied.placed.items()}, dict(copied.places)
    desk.lose("pods", bound("db2", "db", "n3"))
    desk.pods(bound("web3", "web", "n2"))
    desk.see("nodes", zoned("n3", zone="z9"))
    assert (copied.placed, copied.places) == before


@pytest.mark.parametrize("node", ["n1", "n3"])
def test_a_node_that_comes_back_has_its_pods_again(desk: Desk, node: str) -> None:
    """A kubelet registers anew, and what runs there has not changed."""
    slices(desk)
    before, zone = figures(desk), FAR.get(node, "z1")
    desk.lose("nodes", zoned(node, zone=zone))
    assert figures(desk) == [0, 0, 0, 0, 0]
    desk.see("nodes", zoned(node, zone=zone))
    assert figures(desk) == before


def test_a_node_that_is_farther_than_all_others_makes_calls_that_fail_dearer(desk: Desk) -> None:
    spec = {"selector": {"app": "db"}, "internalTrafficPolicy": "Local"}
    desk.see("services", msgspec.convert({"metadata": {"name": "db", "namespace": "default"}, "spec": spec}, Service))
    stated: Stated = {f"{a}>{b}": 3000 if "z9" in (a, b) else 5 for a, b in permutations(("z1", "z2", "z9"), 2)}
    weights = raw_topology(weight_set("UserDefined", zones=stated), namespace="default")
    desk.see("networktopologies", CustomObject.of(weights))
    desk.pods(bound("web1", "web", "n1"), bound("db1", "db", "n2"))
    assert figures(desk)[3] == 100
    desk.see("nodes", zoned("n9", zone="z9"))
    assert figures(desk)[3] == 3000


def test_a_pod_whose_binding_is_refused_counts_no_more(desk: Desk) -> None:
    """The watch has nothing to show: the pod waits as it did before."""
    desk.pods(member("web1", "web"), member("db1", "db"))
    assumed = desk.decide()
    assert figures(desk)[3] == 0
    for decision in assumed:
        desk.controller.binding.settle(decision, BindResult(BindOutcome.REFUSED, "403 Forbidden"))
    assert figures(desk) == [None] * 5
