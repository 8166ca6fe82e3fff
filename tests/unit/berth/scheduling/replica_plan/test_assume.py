"""Plans in counts that are carried out while others have turns, or the time is over."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from berth.kube.objects import Pod, Service
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework
from berth.scheduling.gang import budget
from berth.scheduling.gang.strategies import REPLICAS
from berth.scheduling.planning import JointPlan, finish
from berth.scheduling.single import workload_of
from tests.support import builders
from tests.support.placement import Clock, Lab, chain, group_object, lone, member, where, zoned

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILE = Profile.model_validate({"gang": {"strategy": REPLICAS}})
COUNT = 6


def lab(**arguments: Any) -> Lab:
    return Lab([zoned(f"n{number}", cpu=8) for number in range(3)], **{"profile": PROFILE, **arguments})


def shop(stage: Lab, **demand: Any) -> Group:
    return stage.group(group_object("shop", *chain("a", "b", **demand)))


def members(**spec: Any) -> list[Pod]:
    """Replicas of two workloads."""
    return [member(f"{name}{number}", name, cpu="500m", spec=spec) for name in "ab" for number in range(COUNT)]


def apart(workload: str) -> dict[str, Any]:
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io.workload": workload})
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[CycleState]:
    """Pods that all filters were run for, in order."""
    looks: list[CycleState] = []
    run = Framework.filter

    def counting(framework: Framework, cycle: CycleState, **arguments: Any) -> FilterResult:
        if not arguments.get("skip"):
            looks.append(cycle)
        return run(framework, cycle, **arguments)

    monkeypatch.setattr(Framework, "filter", counting)
    return looks


@pytest.mark.parametrize("demand", [{}, {"maxNetworkCost": 5}], ids=["no limit", "a limit"])
def test_pods_are_decided_about_in_the_order_of_the_plan(demand: dict[str, Any]) -> None:
    """Who is decided about first stays longest: one on each node, before any shares one."""
    stage = lab()
    outcome = stage.place(shop(stage, **demand), *members())
    for name in "ab":
        nodes = [each.node for each in outcome.decisions if workload_of(each.pod) == name]
        assert nodes == [*dict.fromkeys(nodes)] * 3


FRONT = {"tier": "front"}
SPREAD = {"topologySpreadConstraints": [builders.spread(ZONE, FRONT, nodeAffinityPolicy="Ignore")]}


def test_a_pod_whose_rule_needs_another_one_is_decided_about_after_it() -> None:
    """Bound before it, it would break its rule for as long as the other is not bound, or for good if that never is."""
    stage = Lab([zoned("n1", "z1"), zoned("n2", "z2")], profile=PROFILE)
    stage.see(builders.pod("old", labels=FRONT, on="n1"))
    here, there = ({"nodeSelector": {ZONE: zone}} for zone in ("z1", "z2"))
    first = member("a0", "a", labels=FRONT, spec={**here, **SPREAD})
    second = member("b0", "b", labels=FRONT, spec=there)
    outcome = stage.place(shop(stage), first, second)
    assert [(each.pod.metadata.name, each.node) for each in outcome.decisions] == [("b0", "n2"), ("a0", "n1")]


class TestAfterAPause:
    """Others had one turn before the pods are assumed."""

    @pytest.fixture
    def _one_pause(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pause = budget.Budget.pause

        def once(self: budget.Budget, turn: float = 1.0) -> Any:
            with monkeypatch.context() as short:
                short.setattr(budget, "TURN_SECONDS", 0.0 if not self.pauses else 1e9)
                yield from pause(self, turn)

        monkeypatch.setattr(budget.Budget, "pause", once)

    @pytest.mark.usefixtures("_one_pause")
    @pytest.mark.parametrize(
        ("demand", "looks"), [({}, 2), ({"maxNetworkCost": 5}, 4)], ids=["alike pods", "alike pods on one node"]
    )
    def test_alike_pods_are_judged_once(self, judged: list[CycleState], demand: dict[str, Any], looks: int) -> None:
        stage = lab()
        outcome = stage.place(shop(stage, **demand), *members())
        assert outcome.complete
        assert len(Counter(where(outcome).values())) == 2
        assert len(judged) == looks

    @pytest.mark.usefixtures("_one_pause")
    def test_alike_pods_are_judged_together(self, judged: list[CycleState], monkeypatch: pytest.MonkeyPatch) -> None:
        stage = lab()
        pods = members()
        stage.see(*pods)
        planning = stage.planner.place_group(shop(stage), pods, stage.costs, partial=False)
        next(planning)
        looked_at: list[str] = []

        def now_and_then(self: budget.Budget, _turn: float = 1.0) -> Any:
            looked_at.append("pod")
            self.pauses += len(looked_at) % 4 == 0
            return iter(())

        monkeypatch.setattr(budget.Budget, "pause", now_and_then)
        assert finish(planning).complete
        assert self._changes([cycle.pod.pod.metadata.name[0] for cycle in judged]) == 1

    @staticmethod
    def _changes(workloads: list[str]) -> int:
        return sum(one != other for one, other in pairwise(workloads))

    @pytest.mark.usefixtures("_one_pause")
    def test_pods_with_rules_about_others_are_judged_each(self, judged: list[CycleState]) -> None:
        stage = Lab([zoned(f"n{number}", cpu=8) for number in range(COUNT)], PROFILE)
        pods = [pod for pod in members(**apart("a")) if pod.metadata.name.startswith("a")]
        assert stage.place(shop(stage), *pods).complete
        assert len(judged) == COUNT

    @pytest.mark.usefixtures("_one_pause")
    @pytest.mark.parametrize("change", ["tainted", "occupied", "deleted"])
    def test_what_changed_meanwhile_counts(self, change: str) -> None:
        stage = lab()
        pods = members()
        stage.see(*pods)
        planning = stage.planner.place_group(shop(stage), pods, stage.costs, partial=True)
        next(planning)
        for name in ("n0", "n1"):
            if change == "tainted":
                stage.cache.update_node(zoned(name, cpu=8, taints=["gone:NoSchedule"]))
            elif change == "occupied":
                stage.see(lone(f"other-{name}", on=name, cpu="7900m"))
            else:
                stage.cache.delete_node(stage.cache.state.node(stage.cache.state.node_index[name]))
        outcome = finish(planning)
        assert set(where(outcome).values()) == {"n2"}
        assert stage.over_committed() == []


def with_turns(stage: Lab, turns: int, change: Any) -> Outcome:
    """Plan with something that happens after so many turns."""
    pods = [
        member(f"{name}{number}", name, cpu="500m", spec={"nodeSelector": {"size": name}})
        for name in "ab"
        for number in range(2)
    ]
    stage.see(*pods)
    planning = stage.planner.place_group(shop(stage), pods, stage.costs, partial=True)
    try:
        for _ in range(turns):
            next(planning)
        change(stage.cache)
        return finish(planning)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


@pytest.mark.parametrize("partial", [False, True], ids=["all or nothing", "what fits"])
def test_a_group_is_placed_where_a_node_changes_at_every_turn(partial: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    stage = lab(clock=Clock(tick=0.001))
    group, waiting = shop(stage), members()
    stage.see(*waiting)
    planning, turns = stage.planner.place_group(group, waiting, stage.costs, partial=partial), 0
    while True:
        try:
            next(planning)
        except StopIteration as end:
            outcome = end.value
            break
        turns += 1
        stage.cache.update_node(zoned("n9", cpu=8, labels={"turn": str(turns)}))
    assert len(outcome.decisions) == len(waiting)
    assert {decision.strategy for decision in outcome.decisions} == {REPLICAS}


@pytest.mark.parametrize("turns", range(1, 12))
class TestNodesBetweenTurns:
    @pytest.fixture(autouse=True)
    def _short_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)

    def cluster(self) -> Lab:
        nodes = [builders.node(f"n{number}", cpu=4, labels={"size": "ab"[number % 2]}) for number in range(4)]
        return Lab(nodes, PROFILE)

    def test_a_node_joins(self, turns: int) -> None:
        outcome = with_turns(self.cluster(), turns, lambda cache: cache.update_node(builders.node("n9", cpu=4)))
        assert outcome.complete

    def test_a_node_with_other_resources_joins(self, turns: int) -> None:
        node = builders.node("n9", cpu=4, extra={"example.com/gpu": "1"})
        outcome = with_turns(self.cluster(), turns, lambda cache: cache.update_node(node))
        assert outcome.complete

    def test_a_node_goes_and_comes_back_after_others(self, turns: int) -> None:
        def change(cache: Cache) -> None:
            for name in ("n0", "n1"):
                cache.delete_node(builders.node(name))
            for number in (9, 8, 7, 0, 1):
                cache.update_node(builders.node(f"n{number}", cpu=4, labels={"size": "ab"[number % 2]}))

        outcome = with_turns(self.cluster(), turns, change)
        assert outcome.complete
        assert all("ab"[int(node[1]) % 2] == name[0] for name, node in where(outcome).items())


class TestOutOfTime:
    @pytest.fixture(autouse=True)
    def _at_a_stretch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(budget.Budget, "pause", lambda *_: iter(()))

    def test_every_plan_gets_somewhere(self) -> None:
        """A pod whose filters took all the time is placed nevertheless."""
        stage = lab(clock=Clock(tick=100.0))
        group, waiting, turns = shop(stage), members(), 0
        while waiting:
            outcome = stage.place(group, *waiting, partial=True)
            assert outcome.decisions
            done = {decision.pod.metadata.uid for decision in outcome.decisions}
            waiting = [pod for pod in waiting if pod.metadata.uid not in done]
            turns += 1
        assert 1 < turns <= 2 * COUNT

    def test_one_pod_with_rules_is_judged(self, judged: list[CycleState]) -> None:
        stage = lab(clock=Clock(tick=100.0))
        outcome = stage.place(shop(stage), *members(**apart("a")), partial=True)
        assert len(outcome.decisions) == 1
        assert len(judged) == 1


@pytest.mark.parametrize("late", [False, True], ids=["in time", "too late"])
def test_out_of_time_callers_that_may_be_beyond_a_limit_are_given_up_unjudged(
    late: bool, judged: list[CycleState]
) -> None:
    stage = lab()
    group = shop(stage, maxNetworkCost=5)
    spec = {"selector": {"appgroup.diktyo.x-k8s.io.workload": "b"}, "trafficDistribution": "PreferSameZone"}
    service = {"metadata": {"name": "b", "namespace": "default"}, "spec": spec}
    stage.cache.update_service(msgspec.convert(service, Service))
    joint = JointPlan(group, stage.costs, budget.Budget(stage.clock, 2.0), partial=True)
    joint.settled.extend(stage.place(group, *members()).decisions)
    judged.clear()
    stage.clock.advance(10.0 * late)
    assert stage.planner._in_counts is not None
    given_up = finish(stage.planner._in_counts._give_up(joint, 0))
    assert {workload_of(decision.pod) for decision in given_up} == ({"a"} if late else set())
    assert (len(given_up), len(joint.settled), len(judged)) == ((COUNT, COUNT, 0) if late else (0, 2 * COUNT, COUNT))
    assert all(not stage.cache.node_of(decision.pod) for decision in given_up)
