"""Rules of one plan are bounded: pods of a tenant may state tens of thousands, each with a figure for every node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import Budget, finish
from berth.scheduling.gang.strategies import REPLICAS
from berth.scheduling.replica_plan import rules as subject
from berth.scheduling.replica_plan.pod_sets import Alike, alike
from berth.scheduling.replica_plan.rules import RuleReader, TooManyRulesError
from berth.scheduling.replica_plan.same_nodes import SameNodes
from tests.support import builders
from tests.support.placement import Clock, Lab, chain, group_object, member, zoned
from tests.support.work import Work

HOST = "kubernetes.io/hostname"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
A = {"app": "a"}
PLACES = 1
"""Arrays of the nodes' places by a topology key."""
SOFT = builders.spread(HOST, A, whenUnsatisfiable="ScheduleAnyway")


def lab() -> Lab:
    return Lab([zoned(name, "z1", labels={HOST: name}) for name in ("n0", "n1", "n2")])


def reader(small: Lab, *pods: Pod) -> RuleReader:
    small.see(*pods)
    state = small.cache.state
    everywhere = FilterResult(mask=state.alive.copy(), nodes=state.size)
    candidates = [Candidate(state.info(pod), everywhere, {}) for pod in pods]
    view = small.planner.view.current(small.costs, small.cache.bandwidth())
    sets: list[Alike] = finish(alike(candidates, state, view, price=1.0))
    return RuleReader(sets, {}, state)


def read(small: Lab, *pods: Pod) -> int:
    """Number of rules."""
    return len(finish(reader(small, *pods).read()))


def own(**spec: Any) -> list[Pod]:
    return [member(f"a{number}", "a", labels=A, spec=spec) for number in range(2)]


def preferred(kind: str) -> dict[str, Any]:
    return {"affinity": {kind: {PREFERRED: [{"weight": 5, "podAffinityTerm": builders.pod_term(HOST, A)}]}}}


def apart(key: str = HOST) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [builders.pod_term(key, A)]}}}


STATED = [
    pytest.param(own(**apart()), id="required anti-affinity"),
    pytest.param(own(**preferred("podAntiAffinity")), id="preferred anti-affinity"),
    pytest.param(own(affinity={"podAffinity": {REQUIRED: [builders.pod_term(HOST, A)]}}), id="required affinity"),
    pytest.param(own(**preferred("podAffinity")), id="preferred affinity"),
    pytest.param(own(topologySpreadConstraints=[builders.spread(HOST, A)]), id="hard spread"),
    pytest.param(own(topologySpreadConstraints=[SOFT]), id="soft spread"),
]
"""Pods of one template that states one rule."""


@pytest.mark.parametrize("pods", STATED)
def test_each_kind_of_rule_counts(pods: list[Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    small = lab()
    found = read(small, *pods)
    assert found > 0
    takes(found + PLACES, small, pods, monkeypatch)


@pytest.mark.parametrize(
    ("pods", "places"),
    [
        pytest.param([member(f"a{n}", "a", host_ports=[("", "TCP", 80)]) for n in range(2)], 0, id="host port"),
        pytest.param([member(f"a{n}", "a") for n in range(6)], 2 * PLACES, id="default spreading"),
    ],
)
def test_rules_that_nobody_states_count(pods: list[Pod], places: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = lab()
    found = read(small, *pods)
    assert found > 0
    takes(found + places, small, pods, monkeypatch)


def takes(figures: int, small: Lab, pods: list[Pod], monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that so many arrays of a figure for each of the three nodes are enough, and one less are not."""
    monkeypatch.setattr(subject, "MOST_FIGURES", 3 * figures)
    read(small, *pods)
    monkeypatch.setattr(subject, "MOST_FIGURES", 3 * figures - 1)
    with pytest.raises(TooManyRulesError):
        read(small, *pods)


@pytest.mark.parametrize("pods", STATED)
def test_what_pods_state_is_counted_before_anything_is_compared(
    pods: list[Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subject, "MOST_FIGURES", 2)
    reading, begun = reader(lab(), *pods), list[SameNodes]()
    monkeypatch.setattr(SameNodes, "pause", lambda turns: begun.append(turns) or iter(()))
    with pytest.raises(TooManyRulesError):
        finish(reading.read())
    assert not begun


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [builders.pod_term(HOST, A), builders.pod_term(HOST)]}}},
            1,
            id="affinity",
        ),
        pytest.param({"topologySpreadConstraints": [builders.spread(HOST, labelSelector={})]}, 0, id="hard spread"),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    builders.spread(HOST, labelSelector={}, whenUnsatisfiable="ScheduleAnyway")
                ]
            },
            0,
            id="soft spread",
        ),
    ],
)
def test_what_is_no_rule_of_its_own_takes_none(
    spec: dict[str, Any], rules: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms of a pod that are met together are one, and an empty selector counts nobody."""
    monkeypatch.setattr(subject, "MOST_FIGURES", 3 * (rules + PLACES))
    assert read(lab(), *own(**spec)) == rules


@pytest.mark.parametrize(
    "spec", [apart(), preferred("podAntiAffinity"), preferred("podAffinity")], ids=["required", "apart", "near"]
)
def test_whom_a_term_selects_and_who_has_it_are_figures_each(
    spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = lab()
    small.see(member("b0", "b", labels=A, on="n0", spec=spec))
    takes(2 + PLACES, small, own(**spec), monkeypatch)


@pytest.mark.parametrize("when", ["DoNotSchedule", "ScheduleAnyway"])
def test_a_constraint_is_a_figure_for_each_choice_of_nodes_that_it_counts(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread = {"topologySpreadConstraints": [builders.spread(HOST, A, whenUnsatisfiable=when)]}
    pods = [member(f"a{n}", "a", labels=A, spec=spread | {"nodeSelector": {HOST: f"n{n}"}}) for n in range(2)]
    small = lab()
    assert read(small, *pods) == 2
    takes(2 + PLACES, small, pods, monkeypatch)


def test_rules_are_not_read_on_when_time_is_over() -> None:
    small, clock = lab(), Clock()
    turns = SameNodes(small.cache.state, Budget(clock, 1.0), at_a_stretch=True)
    reading = reader(small, member("a0", "a"))
    clock.advance(10.0)
    with pytest.raises(TooManyRulesError):
        finish(reading.read(turns))


def test_rules_of_placed_pods_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each set of waiting pods that they select."""
    small = lab()
    small.see(member("b0", "b", on="n0", spec=apart()))
    pods = [member("a0", "a", labels=A)]
    assert read(small, *pods) == 1
    takes(1 + PLACES, small, pods, monkeypatch)


def test_pods_without_rules_need_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MOST_FIGURES", 0)
    assert read(lab(), member("a0", "a")) == 0


SELF: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
    "anti-affinity": lambda own: {"affinity": {"podAntiAffinity": {REQUIRED: [builders.pod_term(HOST, own)]}}},
    "affinity": lambda own: {"affinity": {"podAffinity": {REQUIRED: [builders.pod_term(HOST, own)]}}},
    "spread": lambda own: {"topologySpreadConstraints": [builders.spread(HOST, own)]},
}


@pytest.mark.parametrize("rule", SELF.values(), ids=SELF)
def test_what_thousands_of_workloads_state_is_not_compared_with_all_of_them(
    rule: Callable[[dict[str, str]], dict[str, Any]],
) -> None:
    """Four times as many take no more than six times the work."""

    def work(workloads: int) -> float:
        counted = Work()
        pods = [
            member(f"w{n}", f"w{n}", labels={"app": f"w{n}"}, spec=rule({"app": f"w{n}"})) for n in range(workloads)
        ]
        with counted.counting():
            assert read(lab(), *pods) == workloads
        return counted.seconds

    assert work(240) < 6 * work(60)


@pytest.mark.parametrize("most", [0, 10**6], ids=["too many rules", "few"])
@pytest.mark.parametrize("replicas", [3, 4], ids=["enough nodes", "too few"])
def test_pods_with_too_many_rules_are_placed_by_the_filters(
    most: int, replicas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they state holds all the same."""
    monkeypatch.setattr(subject, "MOST_FIGURES", most)
    small = lab()
    shop = small.group(group_object("shop", *chain("a", "b")))
    pods = [member(f"a{number}", "a", labels=A, spec=apart()) for number in range(replicas)]
    outcome = small.place(shop, *pods, partial=True)
    nodes = [decision.node for decision in outcome.decisions]
    assert sorted(nodes) == ["n0", "n1", "n2"]
    assert [failure.pod.metadata.name for failure in outcome.failures] == ["a3"][: replicas - 3]
    assert all(decision.strategy == REPLICAS for decision in outcome.decisions) == (most > 0)
