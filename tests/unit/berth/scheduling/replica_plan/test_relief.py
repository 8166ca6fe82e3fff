"""Pods of a plan that are given up where others took of its budgets meanwhile: the fewest that will do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from berth.api.labels import LABEL_REGION, RESOURCE_BANDWIDTH
from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.network.link_budgets import PlacePair, taken
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.gang import budget
from berth.scheduling.planning import finish
from berth.scheduling.replica_plan.assume import Assuming
from berth.scheduling.replica_plan.relief import Relief
from berth.scheduling.replica_plan.shared_budgets import BudgetName, Left, SharedBudgets
from tests.support import builders
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, member, where, zoned

LINK = PlacePair(LABEL_REGION, "r1", "r2")
CALL = 80
REPLICAS = 4
REGIONS = {"a": "r1", "b": "r2", "c": "r1", "d": "r1"}
Change = Callable[[Lab], object]


def lab(link: int = 10**9, **extra: str) -> Lab:
    """A node in each of two regions with a link of so many bit/s between regions."""
    nodes = [zoned("n1", "z1", "r1", cpu=64), zoned("n3", "z3", "r2", cpu=64, extra=extra)]
    return Lab(nodes, Profile(), replace(ZONE_COSTS, budgets={LINK: link}))


def shop(stage: Lab, *workloads: str) -> Group:
    return stage.group(group_object("shop", *chain(*workloads, minBandwidth=str(CALL))))


def waiting(*workloads: str, **specs: dict[str, Any]) -> list[Pod]:
    """Replicas of workloads, each in its region."""
    return [
        member(f"{name}{number}", name, spec={"nodeSelector": {LABEL_REGION: REGIONS[name]}, **specs.get(name, {})})
        for name in workloads
        for number in range(REPLICAS)
    ]


def others_take(amount: int) -> Change:
    """Pods of another group take so many bit/s of the link, and of both nodes."""

    def change(stage: Lab) -> None:
        stage.group(group_object("other", *chain("a", "b", minBandwidth=str(amount))))
        stage.see(*(member(f"o{name}", name, group="other", on=node) for name, node in (("a", "n1"), ("b", "n3"))))

    return change


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Plans pods with a change that comes once all are assumed, when the time is over."""

    def plan(
        stage: Lab, group: Group, pods: list[Pod], change: Change, *, partial: bool = True, in_time: bool = False
    ) -> Outcome:
        assume = Assuming._assume
        changed: list[bool] = []

        def changing(self: Assuming, settled: Any) -> Any:
            held = yield from assume(self, settled)
            if not changed:
                changed.append(True)
                assert self._shared is not None
                self._shared.end_turn()
                change(stage)
                self._shared.begin_turn()
                monkeypatch.setattr(budget.Budget, "exhausted", not in_time)
            return held

        monkeypatch.setattr(Assuming, "_assume", changing)
        stage.see(*pods)
        outcome = finish(stage.planner.place_group(group, pods, stage.costs, partial=partial))
        assert changed
        return outcome

    return plan


def counts(outcome: Outcome) -> dict[str, int]:
    return dict(Counter(name[0] for name in where(outcome)))


@pytest.mark.parametrize("free", range(REPLICAS + 1))
def test_of_a_link_callers_give_back_what_others_have_taken(late: Callable[..., Outcome], free: int) -> None:
    stage = lab(REPLICAS * CALL)
    take = others_take((REPLICAS - free) * CALL or 1) if free < REPLICAS else lambda _: None
    outcome = late(stage, shop(stage, "a", "b"), waiting("a", "b"), take)
    assert Counter(counts(outcome)) == Counter(a=free, b=REPLICAS)
    assert taken(stage.cache.bandwidth().places).get(LINK, 0) <= REPLICAS * CALL


def test_pods_whose_calls_do_not_use_the_link_stay(late: Callable[..., Outcome]) -> None:
    """c and d call each other within their region; they come after all others."""
    stage = lab(REPLICAS * CALL)
    spec = [*chain("a", "b", minBandwidth=str(CALL)), *chain("c", "d", minBandwidth=str(CALL))]
    outcome = late(
        stage, stage.group(group_object("shop", *spec)), waiting("a", "b", "c", "d"), others_take(2 * CALL + 1)
    )
    assert counts(outcome) == {"a": 1, "b": REPLICAS, "c": REPLICAS, "d": REPLICAS}


def test_of_a_node_with_all_endpoints_callers_give_back_what_others_have_taken(late: Callable[..., Outcome]) -> None:
    """Without some of the endpoints callers would call the rest, and the node carry as much."""
    budget: dict[str, Any] = {RESOURCE_BANDWIDTH: str(REPLICAS * CALL)}
    stage = lab(**budget)
    outcome = late(stage, shop(stage, "a", "b"), waiting("a", "b"), others_take(2 * CALL))
    assert counts(outcome) == {"a": 2, "b": REPLICAS}
    assert stage.cache.bandwidth().nodes["n3"] == REPLICAS * CALL


def test_of_a_node_with_some_of_the_endpoints_these_are_given_up(late: Callable[..., Outcome]) -> None:
    """Two are on each of two nodes, of which one may carry too little for its two from now on."""
    stage = lab()
    before, after = (zoned("n3", "z3", "r2", cpu=2, extra={RESOURCE_BANDWIDTH: str(amount)}) for amount in (320, 120))
    stage.cache.update_node(before)
    stage.cache.update_node(zoned("n4", "z4", "r2", cpu=2))
    pods = waiting("a")
    for number in range(REPLICAS):
        pods.append(member(f"b{number}", "b", cpu="1", spec={"nodeSelector": {LABEL_REGION: "r2"}}))
    outcome = late(stage, shop(stage, "a", "b"), pods, lambda lab: lab.cache.update_node(after))
    assert counts(outcome) == {"a": REPLICAS, "b": REPLICAS - 1}
    assert Counter(where(outcome).values()) == {"n1": REPLICAS, "n3": 1, "n4": 2}


def test_with_a_smaller_budget_of_a_node_what_it_carries_stays(late: Callable[..., Outcome]) -> None:
    stage = lab()
    before, after = (
        zoned("n1", "z1", "r1", cpu=64, extra={RESOURCE_BANDWIDTH: str(calls * CALL)}) for calls in (REPLICAS, 3)
    )
    stage.cache.update_node(before)
    outcome = late(stage, shop(stage, "a", "b"), waiting("a", "b"), lambda lab: lab.cache.update_node(after))
    assert counts(outcome) == {"a": 3, "b": REPLICAS}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda lab: lab.cache.update_node(builders.node("n9")), id="a-node-joins"),
        pytest.param(
            lambda lab: lab.cache.update_node(zoned("n3", "z3", "r2", cpu=64, labels={"beat": "1"})), id="a-label"
        ),
        pytest.param(lambda lab: lab.cache.update_node(zoned("n3", "z3", "r2", cpu=65)), id="more-room"),
    ],
)
@pytest.mark.parametrize("partial", [True, False], ids=["what-fits", "all-or-nothing"])
def test_nothing_is_given_up_where_nodes_change(late: Callable[..., Outcome], change: Change, partial: bool) -> None:
    stage = lab(REPLICAS * CALL)
    assert late(stage, shop(stage, "a", "b"), waiting("a", "b"), change, partial=partial).complete


def test_all_or_nothing_is_nothing_then(late: Callable[..., Outcome]) -> None:
    stage = lab(REPLICAS * CALL)
    outcome = late(stage, shop(stage, "a", "b"), waiting("a", "b"), others_take(CALL), partial=False)
    assert outcome.decisions == ()
    assert all(not stage.cache.node_of(failure.pod) for failure in outcome.failures)


@pytest.mark.parametrize(
    ("free", "in_time", "near_them"),
    [
        pytest.param(0, True, 0, id="none-left"),
        pytest.param(2, True, REPLICAS, id="some-left"),
        pytest.param(2, False, 0, id="some-left-and-no-time"),
    ],
)
def test_a_pod_that_must_be_near_one_that_is_given_up_goes_as_well(
    late: Callable[..., Outcome], free: int, in_time: bool, near_them: int
) -> None:
    """d stands by callers. Which of them it was admitted by nobody knows: it is judged again, if there is time."""
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [builders.pod_term(LABEL_REGION, {})]}}
    term = near["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["labelSelector"] = {"matchExpressions": [{"key": "caller", "operator": "Exists"}]}
    stage = lab(REPLICAS * CALL)
    spec = [*chain("a", "b", minBandwidth=str(CALL)), *chain("d")]
    pods = waiting("a", "b", "d", d={"affinity": near})
    for pod in pods:
        if pod.metadata.name.startswith("a"):
            pod.metadata.labels["caller"] = "yes"
    take = others_take((REPLICAS - free) * CALL)
    outcome = late(stage, stage.group(group_object("shop", *spec)), pods, take, in_time=in_time)
    # Without time the first of those that are given up is judged, which is a caller.
    assert Counter(counts(outcome)) == Counter(a=free, b=REPLICAS, d=near_them)


def test_what_others_take_by_their_services_is_counted_in_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    stage = lab(REPLICAS * CALL)
    pods, group = waiting("a", "b"), shop(stage, "a", "b")
    stage.see(*pods)
    held: list[bool] = []
    assume = Cache.assume

    def looking(self: Cache, pod: Pod, node: str) -> None:
        held.append(self.recounts_held)
        assume(self, pod, node)

    monkeypatch.setattr(Cache, "assume", looking)
    between = [stage.cache.recounts_held for _ in stage.planner.place_group(group, pods, stage.costs, partial=True)]
    assert held == [True] * len(pods)
    assert between
    assert not any(between)
    assert not stage.cache.recounts_held


def test_a_plan_that_is_given_up_in_others_turn_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    stage = lab(REPLICAS * CALL)
    pods, group = waiting("a", "b"), shop(stage, "a", "b")
    stage.see(*pods)
    planning = stage.planner.place_group(group, pods, stage.costs, partial=True)
    while not any(map(stage.cache.node_of, pods)):
        next(planning)
    planning.close()
    assert not stage.cache.recounts_held
    assert not any(map(stage.cache.node_of, pods))


Here = set[str]
"""Names of pods that are assumed."""


def given_up(
    nodes: dict[str, str],
    budgets: dict[BudgetName, Callable[[Here], int]],
    *,
    links: bool = False,
    deleted: str = "",
    specs: dict[str, dict[str, Any]] | None = None,
) -> tuple[list[str], Here]:
    """Pods that are given up, and those that are assumed in the end.

    Args:
        nodes: pods of a, b, which a calls, and d, in the order of the plan, and where each is.
        budgets: what is left of each by who is assumed; the plan has taken all that is overdrawn.
        links: whether the cluster knows the link between its regions.
        deleted: a node that is deleted once the plan is made.
        specs: of pods by name.
    """
    stage = lab() if links else Lab([zoned("n1", "z1", "r1", cpu=64), zoned("n3", "z3", "r2", cpu=64)])
    stage.cache.update_node(zoned("n4", "z4", "r2", cpu=64))
    group = stage.group(group_object("shop", *chain("a", "b", minBandwidth=str(CALL)), *chain("d")))
    pods = [
        member(name, name[0], spec={"nodeSelector": {ZONE: PLACES[node]}, **(specs or {}).get(name, {})})
        for name, node in nodes.items()
    ]
    outcome = stage.place(group, *pods)
    assert where(outcome) == nodes
    cache, began = stage.cache, list[bool]()

    def left() -> Left:
        here = {pod.metadata.name for pod in pods if cache.node_of(pod)}
        amounts = [amount(here) if began else 10**6 for amount in budgets.values()]
        return Left(
            [name.node for name in budgets if name.node],
            [name.link for name in budgets if name.link],
            np.array(amounts, dtype=np.int64),
        )

    shared = SharedBudgets(left)
    began.append(True)
    if deleted:
        stage.cache.delete_node(zoned(deleted))
    by_name = {decision.pod.metadata.name: decision for decision in outcome.decisions}
    relief = Relief(
        cache,
        shared,
        lambda: stage.planner.view.current(stage.costs, cache.bandwidth()),
        group.key,
        [edge for edge in group.edges if edge.bandwidth],
    )
    gone = relief.give_up([by_name[name] for name in nodes])
    return [decision.pod.metadata.name for decision in gone], {pod.metadata.name for pod in pods if cache.node_of(pod)}


ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PLACES = {"n1": "z1", "n3": "z3", "n4": "z4"}
ONE, OTHER = BudgetName(node="n1"), BudgetName(node="n3")


def known_link() -> BudgetName:
    """The one between the regions."""
    stage = lab()
    known = stage.planner.view.current(stage.costs, stage.cache.bandwidth()).infrastructure.links
    assert known is not None
    return BudgetName(link=known.names[0])


def most(count: int, *names: str) -> Callable[[Here], int]:
    """A budget for so many of these pods."""
    return lambda here: count - len(here & {*names})


@pytest.mark.parametrize("free", range(10))
def test_as_few_as_will_do_are_given_up(free: int) -> None:
    names = [f"a{number}" for number in range(9)]
    found = given_up(dict.fromkeys(names, "n1") | {"b0": "n3"}, {ONE: most(free, *names)})
    assert found == (names[free:], {*names[:free], "b0"})


B = {"appgroup.diktyo.x-k8s.io.workload": "b"}


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"affinity": {"podAffinity": {REQUIRED: [builders.pod_term(ZONE, B)]}}}, id="affinity"),
        pytest.param({"topologySpreadConstraints": [builders.spread(ZONE, B, maxSkew=9)]}, id="spread"),
    ],
)
def test_pods_that_were_given_up_before_are_not_taken_back_for_another_budget(rule: dict[str, Any]) -> None:
    """More are given up than will do, and then some of them are taken back."""
    nodes = {"b0": "n1", "b1": "n1", "a1": "n3", "b2": "n3", "b3": "n3", "a0": "n3"}
    budgets = {
        ONE: most(1, "b0", "b1"),
        # a1 goes because it may have been admitted for the sake of b1, and only then is it exceeded.
        OTHER: lambda here: 9 if "a1" in here else -len(here & {"a0", "b2", "b3"}),
    }
    assert given_up(nodes, budgets, specs={"a1": rule}) == (["b1", "a1", "b2", "b3", "a0"], {"b0"})


@pytest.mark.parametrize(
    ("nodes", "gone"),
    [
        pytest.param({"a0": "n1", "a1": "n1", "b0": "n3"}, "a1", id="the last one"),
        pytest.param({"a0": "n1", "a1": "n3", "b0": "n1"}, "a0", id="a caller on the node"),
        pytest.param({"b0": "n1", "b1": "n3", "a0": "n3", "a1": "n3"}, "b0", id="an endpoint with its like elsewhere"),
        pytest.param({"b0": "n1", "b1": "n3", "a0": "n1"}, "a0", id="a caller on the node as soon as that"),
        pytest.param({"a0": "n3", "a1": "n3", "b0": "n1", "b1": "n1"}, "a1", id="a caller before the last endpoints"),
    ],
)
def test_of_a_node_first_goes(nodes: dict[str, str], gone: str) -> None:
    found = given_up(nodes, {ONE: lambda here: len(nodes) - 1 - len(here)})
    assert found == ([gone], nodes.keys() - {gone})


def test_a_budget_that_is_exceeded_again_is_relieved_again() -> None:
    """Where endpoints are given up, callers call those elsewhere."""
    nodes = {"b0": "n1", "b1": "n1", "b2": "n3", "b3": "n3"}
    again = {ONE: lambda here: 1 - len(here & {"b0", "b1"}) - ("b3" not in here), OTHER: most(1, "b2", "b3")}
    assert given_up(nodes, again) == (["b0", "b1", "b3"], {"b2"})


def test_a_budget_that_nothing_relieves_keeps_no_other_from_it() -> None:
    nodes = {"a0": "n1", "a1": "n1", "b0": "n3"}
    nobodys = {BudgetName(link="gone"): lambda here: -1, known_link(): most(1, "a0", "a1")}
    assert given_up(nodes, nobodys, links=True) == (["a1"], {"a0", "b0"})


@pytest.mark.parametrize("links", [False, True], ids=["none", "others"])
def test_of_a_link_that_is_there_no_more_nobody_is_given_up(links: bool) -> None:
    found = given_up({"a0": "n1", "b0": "n3"}, {BudgetName(link="gone"): lambda here: -1}, links=links)
    assert found == ([], {"a0", "b0"})


def test_for_a_budget_of_a_node_nobody_goes_whose_node_is_no_more() -> None:
    found = given_up({"a0": "n1", "b0": "n3", "a1": "n3"}, {ONE: most(0, "a0")}, deleted="n3")
    assert found == (["a0"], {"a1", "b0"})


def test_for_a_budget_of_a_link_nobody_goes_whose_node_is_no_more() -> None:
    nodes = {"a0": "n1", "b0": "n3", "b1": "n4"}
    assert given_up(nodes, {known_link(): lambda here: -1}, links=True, deleted="n4") == (["a0", "b0"], {"b1"})


def test_where_nothing_helps_all_that_might_are_given_up() -> None:
    found = given_up({"a0": "n1", "b0": "n3", "d0": "n1", "b1": "n3"}, {ONE: lambda here: -1})
    assert found == (["a0", "b0", "b1"], {"d0"})
