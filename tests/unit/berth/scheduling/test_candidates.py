"""Pods of one plan filtered together: each template once, time permitting, without the rules that the plan judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.candidates import CandidateFilter
from berth.scheduling.decision import Failure
from berth.scheduling.framework.framework import Framework
from berth.scheduling.gang.application import Candidate, as_of_now
from berth.scheduling.gang.budget import Budget
from berth.scheduling.planning import JointPlan
from tests.support import builders
from tests.support.placement import Clock, Lab, chain, group_object, member, zoned

HOST = "kubernetes.io/hostname"
NODES = [zoned(f"n{number}", cpu=4, labels={"disk": "ssd" if number else "hdd"}) for number in range(3)]


class Filtering:
    """The filter over a small cluster, with the calls of the plugins counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, tick: float = 0.0) -> None:
        self.lab = Lab(NODES, clock=Clock(tick=tick))
        self.group = self.lab.group(group_object("shop", *chain("a", "b")))
        self.skipped: list[frozenset[str]] = []
        filter_nodes = Framework.filter

        def counted(framework: Framework, *arguments: Any, skip: Any) -> Any:
            self.skipped.append(frozenset(skip))
            return filter_nodes(framework, *arguments, skip=skip)

        monkeypatch.setattr(Framework, "filter", counted)

    def run(self, *pods: Pod, in_counts: bool = False) -> tuple[list[Candidate], list[Failure], int]:
        """Candidates, failures, and how many turns others had."""
        self.lab.see(*pods)
        planner = self.lab.planner
        budget = Budget(self.lab.clock, 2.0)
        joint = JointPlan(self.group, self.lab.costs, budget, partial=True)
        filtering = CandidateFilter(self.lab.cache, planner._framework, planner._infrastructure)
        steps: Iterator[None] = filtering.candidates(joint, pods, in_counts=in_counts)
        given = 0
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return *end.value, given
            given += 1


def names(found: list[Candidate] | list[Failure]) -> list[str]:
    return [(each.info.pod if isinstance(each, Candidate) else each.pod).metadata.name for each in found]


def test_each_template_is_filtered_once_and_every_pod_has_its_own_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    filtering = Filtering(monkeypatch)
    pods = [member(f"{one}{number}", one, cpu="1") for one in "ab" for number in range(3)]
    found, failures, _ = filtering.run(*pods)
    assert (names(found), failures) == ([pod.metadata.name for pod in pods], [])
    assert len(filtering.skipped) == 2
    assert all(candidate.result.feasible == 3 for candidate in found)


def test_who_fits_nowhere_is_a_failure_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    found, failures, _ = Filtering(monkeypatch).run(
        member("fits", "a", cpu="1"),
        member("big", "b", cpu="99"),
        member("ssd", "a", spec={"nodeSelector": {"disk": "no"}}),
    )
    assert names(found) == ["fits"]
    assert names(failures) == ["big", "ssd"]
    assert "Insufficient cpu" in failures[0].message


@pytest.mark.parametrize("in_counts", [False, True])
def test_what_a_plan_judges_is_left_out(monkeypatch: pytest.MonkeyPatch, in_counts: bool) -> None:
    filtering = Filtering(monkeypatch)
    filtering.run(member("a", "a"), in_counts=in_counts)
    [skipped] = filtering.skipped
    assert filtering.lab.planner._framework.judged_jointly <= skipped
    assert ("InterPodAffinity" in skipped) is in_counts


def test_pods_that_must_be_near_one_of_this_plan_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is placed that it could be near to; whether the plan satisfies it is judged once its pods are assumed."""
    filtering = Filtering(monkeypatch)
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io.workload": "b"})
    near = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    found, failures, _ = filtering.run(member("a", "a", spec=near), member("b", "b"))
    assert (names(found), failures) == (["a", "b"], [])
    assert ["InterPodAffinity" in skipped for skipped in filtering.skipped] == [False, True, False]


def test_out_of_time_only_templates_that_were_looked_at_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    filtering = Filtering(monkeypatch, tick=100.0)
    found, failures, _ = filtering.run(
        member("a0", "a", cpu="1"), member("b0", "b", cpu="2"), member("a1", "a", cpu="1")
    )
    assert (names(found), names(failures)) == (["a0", "a1"], ["b0"])
    assert "ran out of time" in failures[0].message


def test_others_have_turns_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    filtering = Filtering(monkeypatch, tick=0.3)
    *_, given = filtering.run(member("a", "a", cpu="1"), member("b", "b", cpu="2"))
    assert given


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(lambda cache: None, ["n0", "n1", "n2"], id="nothing"),
        pytest.param(lambda cache: cache.update_node(zoned("n3", cpu=4)), ["n0", "n1", "n2"], id="a node comes"),
        pytest.param(lambda cache: cache.delete_node(zoned("n1")), ["n0", "n2"], id="a node goes"),
        pytest.param(lambda cache: cache.update_node(zoned("n1", "z2", cpu=4)), ["n0", "n2"], id="a node changes"),
    ],
)
def test_nodes_that_come_or_change_meanwhile_are_left_out(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Cache], object], left: list[str]
) -> None:
    """What they admit is not known; arrays are as long as the cluster has nodes now."""
    filtering = Filtering(monkeypatch)
    cache = filtering.lab.cache
    found, *_ = filtering.run(member("a0", "a", cpu="1"), member("a1", "a", cpu="1"))
    change(cache)
    now = as_of_now(found, cache.state)
    assert names(now) == ["a0", "a1"]
    for one in now:
        assert len(one.mask) == cache.state.size
        assert [cache.state.node_name(slot) for slot in one.mask.nonzero()[0].tolist()] == left
        assert all(len(cost) == cache.state.size for cost in one.costs.values())
