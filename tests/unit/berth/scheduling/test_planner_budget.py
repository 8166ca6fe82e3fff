"""A plan that takes too long: what is left out, what is kept, and that the rest is planned later."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from berth.scheduling.configuration import Profile
from berth.scheduling.gang import batches
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.strategies import DEFAULT
from berth.scheduling.planning import finish
from berth.scheduling.replica_plan import planner as replica_planner
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Problem
from berth.scheduling.replicas.result import Plan
from tests.support import builders
from tests.support.placement import Clock, Lab, chain, edges, group_object, lone, member, zoned

HOST = "kubernetes.io/hostname"


@pytest.fixture(autouse=True)
def _at_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have no turn in between: looking for one would take time here, where every look at the clock does."""
    monkeypatch.setattr(Budget, "pause", lambda *_: iter(()))


def lab(tick: float, cpu: int = 8, **arguments: Any) -> Lab:
    return Lab([zoned(f"n{n}", f"z{n % 4 + 1}", cpu=cpu) for n in range(6)], clock=Clock(tick=tick), **arguments)


def apart(workload: str) -> dict[str, Any]:
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io.workload": workload})
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize(
    ("tick", "cut_short"), [pytest.param(0.0, False, id="in-time"), pytest.param(0.1, True, id="over")]
)
def test_over_time_the_first_plan_counts(tick: float, cut_short: bool) -> None:
    stage = lab(tick, cpu=2)
    pods = [member(f"{one}{n}", one, cpu="1") for one in "abc" for n in range(3)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b", "c"))), *pods)
    assert outcome.complete
    assert outcome.cut_short is cut_short
    assert stage.over_committed() == []


def test_exhausted_a_group_that_is_all_or_nothing_gets_nothing() -> None:
    stage = lab(100.0)
    pods = [member(f"a{n}", "a", cpu="1", spec=apart("a")) for n in range(4)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b"))), *pods)
    assert outcome.cut_short
    assert outcome.decisions == ()
    assert len(outcome.failures) == len(pods)
    assert "ran out of time" in outcome.failures[0].message
    assert stage.cache.state.pod_count == 0


def test_exhausted_the_rest_waits_for_another_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 4)
    stage = lab(100.0)
    group = stage.group(group_object("shop", *chain("a", "b")))
    waiting = [member(f"{one}{n}", one, cpu="1") for one in "ab" for n in range(6)]
    turns = 0
    while waiting:
        outcome = stage.place(group, *waiting, partial=True)
        assert outcome.decisions
        done = {decision.pod.metadata.uid for decision in outcome.decisions}
        assert {failure.pod.metadata.uid for failure in outcome.failures}.isdisjoint(done)
        waiting = [pod for pod in waiting if pod.metadata.uid not in done]
        turns += 1
    assert 1 < turns <= len(group.selectors) * 3


def test_a_plan_in_counts_leaves_time_to_judge_its_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of which one pod is judged is made again for the next one."""

    def thorough(problem: Problem, *, partial: bool, budget: Budget) -> Generator[None, None, Plan]:
        answer = finish(plan(problem, partial=partial))
        while not budget.exhausted:
            pass  # the clock goes on with every look
        yield from ()
        return answer

    monkeypatch.setattr(replica_planner, "plan", thorough)
    stage = lab(0.02)
    pods = [member(f"{one}{n}", one, cpu="1", spec=apart(one)) for one in "abc" for n in range(5)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b", "c"))), *pods, partial=True)
    assert outcome.cut_short
    assert outcome.complete


def test_pods_without_a_group_progress_too() -> None:
    stage = lab(100.0)
    pods = [lone(f"p{n}", cpu="1") for n in range(3)]
    stage.see(*pods)
    outcome = finish(stage.planner.place_each(pods, stage.costs))
    assert [decision.pod.metadata.name for decision in outcome.decisions] == ["p0"]
    assert len(outcome.failures) == 2
    assert outcome.cut_short


NOWHERE = {"nodeSelector": {"disk": "none"}}


def test_pods_that_fit_nowhere_use_up_the_time_too() -> None:
    stage = lab(100.0)
    pods = [member(f"a{n}", "a", spec={"nodeSelector": {"disk": f"none-{n}"}}) for n in range(5)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b"))), *pods, partial=True)
    assert outcome.cut_short
    assert sum("ran out of time" in failure.message for failure in outcome.failures) == 4


def test_pods_without_a_group_that_fit_nowhere_use_up_the_time_too() -> None:
    stage = lab(100.0)
    pods = [lone(f"p{n}", spec=NOWHERE) for n in range(3)]
    stage.see(*pods)
    outcome = finish(stage.planner.place_each(pods, stage.costs))
    assert sum("ran out of time" in failure.message for failure in outcome.failures) == 2


def test_a_fault_gives_back_what_was_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = lab(0.0)
    pods = [lone(f"p{n}", cpu="1") for n in range(3)]
    stage.see(*pods)
    place_pod, calls = stage.planner.place_pod, iter(range(10))

    def odd_once(*arguments: Any) -> Any:
        if next(calls) == 1:
            raise RuntimeError("odd")
        return place_pod(*arguments)

    monkeypatch.setattr(stage.planner, "place_pod", odd_once)
    with pytest.raises(RuntimeError, match="odd"):
        finish(stage.planner.place_each(pods, stage.costs))
    assert stage.cache.state.pod_count == 0
    assert len(finish(stage.planner.place_each(pods, stage.costs)).decisions) == 3


def test_matrices_are_bounded_by_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 8)
    sizes: list[int] = []
    compile_edges = Instance._compile_edges

    def noting(instance: Instance, application: Any) -> None:
        compile_edges(instance, application)
        sizes.append(instance.size)

    monkeypatch.setattr(Instance, "_compile_edges", noting)
    stage = lab(0.0, cpu=16, profile=Profile.model_validate({"gang": {"strategy": DEFAULT}}))
    pods = [member(f"{one}{n}", one, cpu="1") for one in "ab" for n in range(20)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b"))), *pods)
    assert outcome.complete
    assert edges(outcome)[0] == 400
    assert len(sizes) == 5
    assert max(sizes) <= 8 + 6
    assert stage.over_committed() == []


def test_a_batch_that_does_not_fit_undoes_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 4)
    stage = lab(0.0, cpu=2)
    pods = [member(f"{one}{n}", one, cpu="1") for one in "ab" for n in range(8)]
    outcome = stage.place(stage.group(group_object("shop", *chain("a", "b"))), *pods)
    assert outcome.decisions == ()
    assert len(outcome.failures) == len(pods)
    assert stage.cache.state.pod_count == 0
    assert not np.any(stage.cache.state.used)
