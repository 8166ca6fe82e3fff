"""Plans that are made in turns while others take the room that they count on."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from berth.kube.objects import Pod, Service
from berth.scheduling.configuration import GangSettings, Profile
from berth.scheduling.decision import Outcome
from tests.support.placement import Clock, Lab, chain, group_object, lone, member, where, zoned

TICK = 0.005
"""Seconds that pass at each look at the clock: plans take several turns."""
QUICK = 0.0005
"""The same where a plan takes less than a second"""
WORKLOADS = ("front", "cart", "store")


def service(app: str, **spec: Any) -> Service:
    body = {"metadata": {"name": app, "namespace": "default"}, "spec": {"selector": {"app": app}, **spec}}
    return msgspec.convert(body, Service)


def placed(meanwhile: Callable[[Lab, int], None]) -> tuple[Lab, Outcome, int]:
    """Plan three workloads of three pods, calls inside a node alone; `meanwhile` has others' turns, numbered from 1."""
    nodes = [zoned(f"n{number}", f"z{number % 2 + 1}", cpu=4) for number in range(6)]
    lab = Lab(nodes, clock=Clock(tick=TICK), profile=Profile(gang=GangSettings(planning_seconds=60)))
    group = lab.group(group_object("shop", *chain(*WORKLOADS), numMembers=9))
    for name in WORKLOADS:
        lab.cache.update_service(service(name, internalTrafficPolicy="Local"))
    pods = [member(f"{name}-{i}", name, cpu="500m", labels={"app": name}) for name in WORKLOADS for i in range(3)]
    lab.see(*pods)
    planning, turns = lab.planner.place_group(group, pods, lab.costs, partial=False), 0
    while True:
        try:
            next(planning)
        except StopIteration as end:
            return lab, end.value, turns
        turns += 1
        meanwhile(lab, turns)


def nobody(lab: Lab, turn: int) -> None:
    """Others do nothing."""


def unreached(outcome: Outcome) -> list[str]:
    """Pods that call a workload of which their node has no pod."""
    nodes = {(name.rpartition("-")[0], node) for name, node in where(outcome).items()}
    calls = dict(itertools.pairwise(WORKLOADS))
    return [f"{name} on {node}" for name, node in nodes if name in calls and (calls[name], node) not in nodes]


_, ALONE, TURNS = placed(nobody)


def test_there_are_turns_in_which_others_may_take_room() -> None:
    assert TURNS > 2
    assert not ALONE.cut_short
    assert not unreached(ALONE)


@pytest.mark.parametrize("turn", range(1, TURNS + 1))
@pytest.mark.parametrize("again", [0, TURNS], ids=["once", "twice"])
def test_a_plan_whose_room_was_taken_is_made_anew(turn: int, again: int) -> None:
    """Else its pods would go one by one to where there is room, away from those that they call."""
    nodes = list(where(ALONE).values())
    taken = {turn: [max(nodes, key=nodes.count)], turn + again: [f"n{number}" for number in range(4)]}

    def take(lab: Lab, now: int) -> None:
        for node in taken.get(now, ()):
            hostname = {"kubernetes.io/hostname": node}
            lab.place_alone(lone(f"{node}-{now}", cpu="3", spec={"nodeSelector": hostname}))

    lab, outcome, _ = placed(take)
    assert outcome.complete
    assert lab.over_committed() == []
    assert not unreached(outcome)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_of_groups_that_are_planned_by_turns_each_stays_together(count: int) -> None:
    """One after another takes the nodes that are the best for all, and the others their plans' room."""
    nodes = [zoned(f"n{number}", f"z{number % 2 + 1}", cpu=4) for number in range(2 * count)]
    lab = Lab(nodes, clock=Clock(tick=QUICK), profile=Profile(gang=GangSettings(planning_seconds=60)))
    plans = []
    for number in range(count):
        shop, app = f"shop-{number}", {name: {"app": f"{name}-{number}"} for name in WORKLOADS}
        group, pods = lab.group(group_object(shop, *chain(*WORKLOADS), numMembers=9)), list[Pod]()
        for name in WORKLOADS:
            lab.cache.update_service(service(app[name]["app"], internalTrafficPolicy="Local"))
            pods += (member(f"{name}-{number}{i}", name, group=shop, cpu="500m", labels=app[name]) for i in range(3))
        lab.see(*pods)
        plans.append(lab.planner.place_group(group, pods, lab.costs, partial=False))
    outcomes = []
    while plans:
        for plan in tuple(plans):
            try:
                next(plan)
            except StopIteration as end:
                outcomes.append(end.value)
                plans.remove(plan)
    assert [outcome.complete for outcome in outcomes] == [True] * count
    assert lab.over_committed() == []
    assert [unreached(outcome) for outcome in outcomes] == [[]] * count
