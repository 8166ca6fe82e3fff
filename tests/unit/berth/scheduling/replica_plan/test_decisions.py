"""Plans in counts, pod by pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from berth.network.groups import Group, GroupKey
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.replica_plan.decisions import POD_INDEX, read
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.question import Question
from berth.scheduling.replicas.problem import Edge, Nodes, PodSet, Problem, Rule, Workload
from berth.scheduling.replicas.result import Plan, Terms
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.runner_ups import RunnerUp
from tests.support.placement import Lab, member, zoned

NAMES = ("n0", "n1", "n2")
GROUP = Group(key=GroupKey("default", "shop"))
LAB = Lab([zoned(name) for name in NAMES])
EVERYWHERE = FilterResult(mask=np.ones(3, dtype=np.bool_), nodes=3)


def candidate(name: str, workload: str) -> Candidate:
    return Candidate(LAB.cache.state.info(member(name, workload)), EVERYWHERE, {})


def question(sizes: dict[str, int], *, rules: tuple[Rule, ...] = (), placed: str = "", **more: Any) -> Question:
    """Pod sets of these sizes, each a workload of its own that calls the next one; `placed` has a pod already."""
    pods = {name: [candidate(f"{name}{n}", name) for n in range(size)] for name, size in sizes.items()}
    request, mask = np.zeros(1, dtype=np.int64), EVERYWHERE.mask
    names = [*sizes, *([placed] if placed else [])]
    return Question(
        Problem(
            nodes=Nodes(
                free=np.ones((3, 1), dtype=np.int64),
                location=np.zeros(3, dtype=np.int64),
                location_cost=np.ones((1, 1)),
                zone=np.zeros(3, dtype=np.int64),
            ),
            workloads=[Workload(name=name) for name in names],
            pod_sets=[PodSet(workload=n, replicas=size, request=request) for n, size in enumerate(sizes.values())],
            edges=[Edge(caller=n, callee=n + 1) for n in range(len(names) - 1)],
            rules=rules,
        ),
        [Alike(name, some[0].info.template, EVERYWHERE, request, mask, more, some) for name, some in pods.items()],
        judged=False,
        carried=False,
    )


def plan(asked: Question, *counts: dict[int, int], **terms: list[float]) -> Plan:
    sets, workloads = len(asked.problem.pod_sets), len(asked.problem.workloads)
    sizes = {
        "network": len(asked.problem.edges),
        "survival": workloads,
        "load": workloads,
        "rules": len(asked.problem.rules),
        "charges": sets,
        "interference": sets,
    }
    missing = tuple(
        pods.replicas - sum(count.values()) for pods, count in zip(asked.problem.pod_sets, counts, strict=True)
    )
    return Plan(
        counts=counts,
        missing=missing,
        blocked=missing,
        terms=Terms(**{name: np.array(terms.get(name, [0.0] * size)) for name, size in sizes.items()}),
        survives_node=(True,) * workloads,
        survives_zone=(True,) * workloads,
        cut_short=False,
    )


def test_every_pod_gets_one_of_the_planned_nodes_and_the_rest_none() -> None:
    asked = question({"a": 3, "b": 2})
    found = finish(read(asked, plan(asked, {0: 1, 2: 1}, {1: 2}), GROUP, NAMES))
    assert {(each.pod.metadata.name, each.node) for each in found.decisions} == {
        ("a0", "n2"),
        ("a1", "n0"),
        ("b0", "n1"),
        ("b1", "n1"),
    }
    assert [candidate.info.pod.metadata.name for candidate in found.rest] == ["a2"]
    assert {(each.planned_with, each.strategy, each.feasible, each.nodes) for each in found.decisions} == {
        (4, "replicas", 3, 3)
    }


@pytest.mark.parametrize(
    ("placed", "order"),
    [
        pytest.param(None, ["n0", "n1", "n0", "n1", "n0"], id="in turns"),
        pytest.param([2, 0, 0], ["n1", "n1", "n0", "n0", "n0"], id="emptier domains first"),
    ],
)
def test_domains_of_a_hard_spread_fill_evenly(placed: list[int] | None, order: list[str]) -> None:
    there = None if placed is None else np.array(placed, dtype=np.int64)
    rule = Spread(domain=np.arange(3), subjects=[0], selects=[0], max_skew=1, placed=there)
    asked = question({"a": 5}, rules=(rule,))
    assert [each.node for each in finish(read(asked, plan(asked, {0: 3, 1: 2}), GROUP, NAMES)).decisions] == order


def test_pods_of_all_sets_take_turns() -> None:
    asked = question({"a": 2, "b": 2})
    found = finish(read(asked, plan(asked, {0: 2}, {1: 2}), GROUP, NAMES))
    assert [each.pod.metadata.name for each in found.decisions] == ["a1", "b1", "a0", "b0"]


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        pytest.param([None] * 3, ["a2 n2", "a1 n0", "a0 n1"], id="ReplicaSet: lower UIDs go first"),
        pytest.param(["0", "1", "10"], ["a0 n2", "a1 n0", "a2 n1"], id="StatefulSet: higher indices go first"),
        pytest.param(["x", "", None], ["a2 n2", "a1 n0", "a0 n1"], id="no index"),
    ],
)
def test_who_stays_longest_gets_the_first_node(indices: list[str | None], expected: list[str]) -> None:
    asked = question({"a": 3})
    for candidate, index in zip(asked.pod_sets[0].candidates, indices, strict=True):
        candidate.info.pod.metadata.labels |= {POD_INDEX: index} if index is not None else {}
    found = finish(read(asked, plan(asked, {2: 1, 0: 1, 1: 1}), GROUP, NAMES))
    assert [f"{each.pod.metadata.name} {each.node}" for each in found.decisions] == expected


@pytest.mark.parametrize("index", ["0", None], ids=["StatefulSet", "ReplicaSet"])
def test_those_that_stay_longest_are_on_as_many_nodes_as_there_are(index: str | None) -> None:
    """A workload that shrinks to two keeps two nodes, whatever is there besides."""
    asked = question({"a": 5})
    pods = [candidate.info.pod for candidate in asked.pod_sets[0].candidates]
    for number, pod in enumerate(pods):
        pod.metadata.labels |= {POD_INDEX: str(number)} if index is not None else {}
    found = finish(read(asked, plan(asked, {2: 3, 0: 2}), GROUP, NAMES))
    node = {each.pod.metadata.name: each.node for each in found.decisions}
    lasting = pods if index is not None else pods[::-1]
    assert [node[pod.metadata.name] for pod in lasting] == ["n2", "n0", "n2", "n0", "n2"]


@pytest.mark.parametrize(
    ("selects", "counts", "order"),
    [
        pytest.param([0, 1], ({0: 1, 2: 1}, {0: 1}), ["a n2", "b n0", "a n0"], id="first of its kind comes first"),
        pytest.param([1], ({0: 2}, {0: 1}), ["b n0", "a n0", "a n0"], id="those it must be near come first"),
        pytest.param([0], ({1: 2}, {0: 1}), ["a n1", "a n1", "b n0"], id="near each other"),
        pytest.param([1], ({0: 1, 2: 1}, {0: 1}), ["a n0", "b n0", "a n2"], id="no order: in turns"),
    ],
)
def test_pods_follow_those_that_they_must_be_near(
    selects: list[int], counts: tuple[dict[int, int], ...], order: list[str]
) -> None:
    near = Affinity(domain=np.arange(3), subjects=[0], selects=selects)
    asked = question({"a": 2, "b": 1}, rules=(near,))
    found = finish(read(asked, plan(asked, *counts), GROUP, NAMES)).decisions
    assert [f"{each.pod.metadata.name[0]} {each.node}" for each in found] == order


@pytest.mark.parametrize(
    "selects",
    [
        pytest.param([1], id="near another workload"),
        pytest.param([0, 1], id="near each other"),
    ],
)
def test_where_pods_must_be_near_others_nodes_that_last_still_come_first(selects: list[int]) -> None:
    """Whoever is bound first stays longest, and what is left of each workload is to be in the same places."""
    near = Affinity(domain=np.arange(3), subjects=[0], selects=selects)
    asked = question({"a": 3, "b": 3, "c": 3}, rules=(near,))
    found = finish(read(asked, plan(asked, *[{2: 1, 0: 1, 1: 1}] * 3), GROUP, NAMES)).decisions
    order = {name: [each.node for each in found if each.pod.metadata.name.startswith(name)] for name in "abc"}
    assert order == {name: ["n2", "n0", "n1"] for name in "abc"}


def test_an_order_that_a_plan_was_found_with_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berth.scheduling.replicas.order.FEW", 0)  # as if there were many pods
    near = [
        Affinity(domain=np.array([0, 1, 1]), subjects=[0], selects=[0, 1]),
        Affinity(domain=np.array([0, 0, 1]), subjects=[0], selects=[0]),
    ]
    asked = question({"a": 2, "b": 1}, rules=tuple(near))
    found = finish(read(asked, plan(asked, {1: 1, 0: 1}, {1: 1}), GROUP, NAMES)).decisions
    assert [f"{each.pod.metadata.name[0]} {each.node}" for each in found] == ["a n0", "b n1", "a n1"]


APART = AntiAffinity(domain=np.arange(3), subjects=[0], selects=[0, 1], weight=100)
FROM_PLACED = AntiAffinity(domain=np.arange(3), subjects=[], selects=[1], weight=100)


@pytest.mark.parametrize(
    ("terms", "rules", "a", "b"),
    [
        pytest.param({"network": [8.0]}, (), {"network": 2.0}, {"network": 1.0}, id="both ends of an edge pay half"),
        pytest.param({"survival": [5.0, 0.0]}, (), {"survival": 2.5}, {}, id="survival"),
        pytest.param({"load": [0.0, 4.0]}, (), {}, {"load": 1.0}, id="load is the callee's"),
        pytest.param({"rules": [3.0]}, (APART,), {"rules": 1.5}, {}, id="a rule is paid by those who have it"),
        pytest.param({"rules": [4.0]}, (FROM_PLACED,), {}, {"rules": 1.0}, id="or else by those it selects"),
    ],
)
def test_terms_are_shared_among_pods(
    terms: dict[str, list[float]], rules: tuple[Rule, ...], a: dict[str, float], b: dict[str, float]
) -> None:
    asked = question({"a": 2, "b": 4}, rules=rules)
    found = finish(read(asked, plan(asked, {0: 2}, {1: 4}, **terms), GROUP, NAMES))
    for each in found.decisions:
        assert each.terms == {"network": 0.0} | (a if each.pod.metadata.name.startswith("a") else b)
        assert each.value == sum(each.terms.values())


def test_an_edge_to_placed_pods_is_paid_in_full() -> None:
    asked = question({"a": 2}, placed="b")
    assert [each.terms for each in finish(read(asked, plan(asked, {0: 2}, network=[8.0]), GROUP, NAMES)).decisions] == [
        {"network": 4.0},
        {"network": 4.0},
    ]


def test_a_pod_pays_what_plugins_charge_for_its_node() -> None:
    asked = question({"a": 2}, price=np.array([1.0, 7.0, 0.0]))
    found = finish(read(asked, plan(asked, {0: 1, 1: 1}), GROUP, NAMES))
    assert {each.node: each.terms["price"] for each in found.decisions} == {"n0": 1.0, "n1": 7.0}


def test_runner_ups_are_the_share_of_the_pod_and_what_would_change() -> None:
    asked = question({"a": 2, "b": 1}, NodeAffinity=np.array([0.0, 3.0, 1.0]))
    answer = replace(
        plan(asked, {0: 2}, {2: 1}, network=[4.0]),
        runner_ups={(0, 0): (RunnerUp(2, {"network": -1.0, "survival": 0.0}), RunnerUp(1, {"network": 2.0}))},
    )
    first, second, other = sorted(
        finish(read(asked, answer, GROUP, NAMES)).decisions, key=lambda one: one.pod.metadata.name
    )
    assert first.runner_ups == second.runner_ups
    assert [(one.node, one.value) for one in first.runner_ups] == [("n2", 1.0), ("n1", 6.0)]
    assert first.runner_ups[0].terms == {"NodeAffinity": 1.0}
    assert first.runner_ups[1].terms == {"network": 3.0, "NodeAffinity": 3.0}
    assert (first.value, first.terms["network"]) == (1.0, 1.0)
    assert other.runner_ups == ()
