"""A rolling update is planned to its end: pods that come later are in the plan of those that come first."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_WORKLOAD, LABEL_ZONE
from berth.scheduling.decision import Outcome
from berth.scheduling.replica_plan import question
from berth.scheduling.replica_plan.rollout import TEMPLATE_HASH
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, where, zoned
from tests.unit.berth.scheduling.replica_plan.test_rollout import HOST, NEW, OLD, replica


def homes(outcome: Outcome) -> list[str]:
    assert outcome.complete
    return sorted(where(outcome).values())


def narrow(**more: Any) -> Lab:
    """Where the application is there is room for one more pod of each of its two workloads, and not for two."""
    lab = Lab([zoned("near", "z1", cpu="3"), zoned("far-1", "z3", "r2", **more), zoned("far-2", "z3", "r2", **more)])
    lab.see(*(replica(f"{name}{n}", OLD, on="near") for name in "ab" for n in range(2)))
    return lab


def test_the_first_pods_go_where_the_last_ones_find_room_too() -> None:
    lab = narrow()
    shop = lab.group(group_object("shop", *chain("a", "b")))
    first = lab.place(shop, replica("a2", NEW), replica("b2", NEW))
    assert {*homes(first)} < {"far-1", "far-2"}
    for name in "ab":
        lab.cache.delete_pod(replica(f"{name}0", OLD, on="near"))
    second = lab.place(shop, replica("a3", NEW), replica("b3", NEW))
    assert {*homes(first), *homes(second)} == {"far-1", "far-2"}


def test_where_the_last_ones_find_no_room_yet_the_first_are_planned_without_them() -> None:
    lab = narrow(cpu="100m")
    shop = lab.group(group_object("shop", *chain("a", "b")))
    assert homes(lab.place(shop, replica("a2", NEW), replica("b2", NEW))) == ["near", "near"]


def test_of_many_pods_the_first_are_planned_without_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "MOST_AHEAD", 3)
    lab = narrow()
    shop = lab.group(group_object("shop", *chain("a", "b")))
    assert homes(lab.place(shop, replica("a2", NEW), replica("b2", NEW))) == ["near", "near"]


def near(key: str, workload: str, **labels: str) -> dict[str, Any]:
    """Spec of a pod that has to be near one of a workload."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {LABEL_WORKLOAD: workload, **labels}}}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_the_first_pods_do_not_depend_on_the_last_ones() -> None:
    """With those that come later each of the first is near one that it needs, which is not yet there."""
    nodes = {"z1-0": "1", "z1-1": "2", "z1-2": "2", "z3-1": "2"}
    lab = Lab([zoned(name, name[:2], "r1" if name[:2] == "z1" else "r2", cpu=cpu) for name, cpu in nodes.items()])
    old = {"a0": "z1-0", "a1": "z3-1", "b2": "z1-1", "c0": "z1-1", "c2": "z1-1"}
    lab.see(*(replica(name, OLD, on=node) for name, node in old.items()))
    shop = lab.group(group_object("shop", *chain("a", "b", "c")))
    new = {
        "a": near(LABEL_ZONE, "c", **{TEMPLATE_HASH: NEW}),
        "b": near(HOST, "c", **{TEMPLATE_HASH: NEW}),
        "c": near(HOST, "a"),
    }
    outcome = lab.place(shop, *(replica(f"{name}9", NEW, spec=spec) for name, spec in new.items()))
    assert len({*homes(outcome)}) == 1


def test_what_came_before_and_is_not_ready_yet_replaces_as_well() -> None:
    """Both pairs of a surge of two: with one more of each to come, the second would be spread over two zones."""
    lab = Lab([zoned(f"{zone}-{n}", zone, cpu="4") for zone in ("z1", "z2") for n in range(2)])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*(replica(f"{name}{n}", OLD, on=f"z1-{n}") for name in "ab" for n in range(2)))
    found = [home for n in (2, 3) for home in homes(lab.place(shop, replica(f"a{n}", NEW), replica(f"b{n}", NEW)))]
    assert len({home[:2] for home in found}) == 1


def test_decisions_count_the_pods_that_are_there() -> None:
    lab = narrow()
    shop = lab.group(group_object("shop", *chain("a", "b")))
    decisions = lab.place(shop, replica("a2", NEW), replica("b2", NEW)).decisions
    assert [decision.planned_with for decision in decisions] == [2, 2]


@pytest.mark.parametrize("partial", [False, True], ids=["all or nothing", "what fits"])
def test_pods_that_wait_get_the_nodes_and_not_those_that_come_later(*, partial: bool) -> None:
    """There is room for the three that wait, and for one that comes later: their part of two each would be another."""
    lab = Lab([zoned("n0", cpu="2"), zoned("n1", cpu="1"), zoned("n2", cpu="1")])
    lab.see(*(replica(f"a{n}", OLD, on="n0") for n in range(4)))
    shop = lab.group(group_object("shop", *chain("a", "b")))
    outcome = lab.place(shop, *(replica(f"a{n}", NEW) for n in (4, 5, 6)), replica("b1", NEW), partial=partial)
    assert set(homes(outcome)) == {"n1", "n2"}


@pytest.mark.parametrize("number", [1, 2], ids=["one by one", "together"])
def test_a_hard_spread_holds_once_what_is_replaced_is_gone(number: int) -> None:
    """While old pods are counted, both new ones may be in the zone of those that they call: that is cheaper."""
    lab = Lab([zoned(f"{zone}-{n}", zone) for zone in ("z1", "z2", "z3") for n in range(2)])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    spec = {"topologySpreadConstraints": [builders.spread(LABEL_ZONE, {LABEL_WORKLOAD: "a"})]}
    lab.see(replica("b0", OLD, on="z2-0"), replica("b1", OLD, on="z2-1"))
    lab.see(*(replica(f"a{n}", OLD, on=f"{zone}-0", spec=spec) for n, zone in enumerate(("z1", "z3"))))
    new = [replica(f"a{n}", NEW, spec=spec) for n in (2, 3)]
    found = [home for first in range(0, 2, number) for home in homes(lab.place(shop, *new[first : first + number]))]
    assert sorted(home[:2] for home in found) == ["z1", "z2"]


def test_a_hard_spread_holds_once_what_is_replaced_is_gone_whatever_calls_would_save() -> None:
    """With the old pods z4 may have two of the three: each is 20 nearer there to what it calls."""
    zones = {"z1": "r1", "z2": "r1", "z3": "r1", "z4": "r2"}
    lab = Lab([zoned(f"{zone}-{n}", zone, region) for zone, region in zones.items() for n in range(2)])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    spec = {"topologySpreadConstraints": [builders.spread(LABEL_ZONE, {LABEL_WORKLOAD: "a"})]}
    lab.see(replica("b0", OLD, on="z4-0"), replica("b1", OLD, on="z4-1"))
    lab.see(*(replica(f"a{n}", OLD, on=f"z{n}-0", spec=spec) for n in (1, 2, 3)))
    found = homes(lab.place(shop, *(replica(f"a{n}", NEW, spec=spec) for n in (4, 5, 6))))
    assert len({home[:2] for home in found}) == 3
