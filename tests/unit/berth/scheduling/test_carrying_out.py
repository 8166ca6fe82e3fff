"""Pods of a plan that knows nothing of rules between them: who is judged, and what others took meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.configuration import Profile
from berth.scheduling.gang import batches, budget
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import JointPlan, finish
from tests.support import builders
from tests.support.placement import Clock, Lab, chain, group_object, lone, member, zoned

HOST = "kubernetes.io/hostname"
BERTH = Profile.model_validate({"gang": {"strategy": "berth"}})


def lab(**arguments: Any) -> Lab:
    nodes = [zoned(f"n{number}", f"z{number % 2 + 1}", cpu=2, labels={HOST: f"n{number}"}) for number in range(4)]
    return Lab(nodes, BERTH, **arguments)


def apart(workload: str) -> dict[str, Any]:
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io.workload": workload})
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_out_of_time_one_pod_with_rules_is_judged_and_every_attempt_gets_somewhere() -> None:
    stage = lab(clock=Clock(tick=100.0))
    group = stage.group(group_object("shop", *chain("a", "b")))
    waiting = [member(f"a{number}", "a", cpu="1", spec=apart("a")) for number in range(3)]
    while waiting:
        outcome = stage.place(group, *waiting, partial=True)
        assert len(outcome.decisions) == 1
        waiting.remove(outcome.decisions[0].pod)


@pytest.mark.parametrize("demand", [{}, {"minBandwidth": "1M"}], ids=["calls", "calls with bandwidth"])
@pytest.mark.parametrize("after", range(1, 30, 4))
def test_what_others_take_in_between_is_not_taken_twice(
    after: int, demand: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that the plan may have chosen is filled, and another one must not have its pods any more."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    stage = lab()
    group = stage.group(group_object("shop", *chain("a", "b", **demand)))
    pods = [member(f"{one}{number}", one, cpu="500m") for one in "ab" for number in range(3)]
    stage.see(*pods)
    planning = stage.planner.place_group(group, pods, stage.costs, partial=True)
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io": "shop"})
    loner = lone("loner", cpu="1", spec={"affinity": {"podAntiAffinity": apart_from(term)}})
    alone = ""
    for turn in range(1000):
        try:
            next(planning)
        except StopIteration as end:
            outcome = end.value
            break
        if turn == after:
            stage.place_alone(lone("large", cpu="2"))
            alone = "".join(decision.node for decision in stage.place_alone(loner).decisions)
    assert stage.over_committed() == []
    assert outcome.decisions
    assert not alone or alone not in {decision.node for decision in outcome.decisions}


@pytest.mark.parametrize("late", [False, True], ids=["in time", "too late"])
def test_out_of_time_no_template_is_judged_anew(late: bool) -> None:
    stage = lab()
    group = stage.group(group_object("shop", *chain("a", "b")))
    placed = stage.place(group, *(member(f"a{number}", "a", cpu=f"{number + 1}0m") for number in range(6))).decisions
    stage.planner.forget(placed)
    joint = JointPlan(group, stage.costs, Budget(stage.clock, 2.0), partial=True)
    stage.clock.advance(10.0 * late)
    held = finish(stage.planner._carrying_out.assume(joint, placed, near=False, since=-1))
    assert (len(held), len(joint.settled)) == ((6, 0) if late else (0, 6))


@pytest.mark.parametrize("partial", [False, True], ids=["all or nothing", "what fits"])
@pytest.mark.parametrize("most", [1, 400], ids=["in batches", "at once"])
@pytest.mark.parametrize("turn", range(1, 12))
def test_rules_of_pods_that_come_in_any_one_turn_hold(
    turn: int, most: int, partial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have no turn but this one: nodes may have been filtered before it, and pods are assumed after it."""
    monkeypatch.setattr(batches, "BATCH", most)
    stage = lab()
    group = stage.group(group_object("shop", *chain("a", "b", "c")))
    pods = [member(f"{workload}0", workload, cpu="100m") for workload in "abc"]
    stage.see(*pods)
    planning = stage.planner.place_group(group, pods, stage.costs, partial=partial)
    with monkeypatch.context() as short:
        short.setattr(budget, "TURN_SECONDS", 0.0)
        for _ in range(turn):
            next(planning)
    used = {stage.cache.node_of(pod) for pod in pods}
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io": "shop"})
    taken = {"n0", "n1", "n2"} - used
    stage.see(
        *(lone(f"on-{name}", on=name, spec={"affinity": {"podAntiAffinity": apart_from(term)}}) for name in taken)
    )
    outcome = finish(planning)
    assert not taken & {decision.node for decision in outcome.decisions}
    assert outcome.decisions or not partial


def apart_from(term: dict[str, Any]) -> dict[str, Any]:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
