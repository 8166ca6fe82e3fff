"""Soft rules of a problem in counts change as much as what the pods say one by one, by the evaluator of bench/replicas.

Left out: terms that some of their owners mean themselves by and others do not, which counts do not tell apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench.replicas.cluster import read_cluster
from bench.replicas.rules import soft_rules
from berth.kube.objects import Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.pod_templates import PodTemplateInfo
from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.replica_plan.places import Kinds, placed_replicas
from berth.scheduling.replica_plan.pod_sets import alike
from berth.scheduling.replica_plan.rules import RuleReader
from berth.scheduling.replica_plan.single import NO_AMOUNTS
from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import PodSet, Problem, Workload
from berth.scheduling.single import workload_of
from tests.support.placement import Lab, chain, group_object
from tests.support.replicas import GROUP, HOST, ZONE, Manifest, group, node, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NODES = [node("n0", "a1"), node("n1", "a1"), node("n2", "a2"), node("n3")]
NAMES = [item["metadata"]["name"] for item in NODES]
WORKLOADS = "abc"


@st.composite
def specs(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """What the pods of a workload state."""
    affinity: dict[str, Any] = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        stated = draw(
            st.lists(
                st.tuples(st.sampled_from((20, 100)), st.sampled_from((HOST, ZONE)), st.sampled_from(WORKLOADS)),
                max_size=2,
            )
        )
        if stated:
            affinity[kind] = {PREFERRED: [_term(*each) for each in stated]}
    spread = draw(st.lists(st.tuples(st.sampled_from((HOST, ZONE)), st.integers(1, 2)), max_size=2, unique=True))
    constraints = [_constraint(name, *each) for each in spread]
    return ({"affinity": affinity} if affinity else {}) | ({"topologySpreadConstraints": constraints} if spread else {})


def _term(weight: int, key: str, name: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": name}}}
    return {"weight": weight, "podAffinityTerm": term}


def _constraint(name: str, key: str, skew: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": name}}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Manifest], list[bool], list[Manifest]]:
    """Placed pods, which of them a rollout replaces, and pods that wait."""
    stated = {name: draw(specs(name)) for name in WORKLOADS}
    names = draw(st.lists(st.tuples(st.sampled_from(WORKLOADS), st.sampled_from(NAMES), st.booleans()), max_size=6))
    placed = [pod(name, on, number, **stated[name]) for number, (name, on, _) in enumerate(names)]
    waiting = draw(st.lists(st.sampled_from(WORKLOADS), min_size=1, max_size=3))
    gone = [leaves and name in waiting for name, _, leaves in names]
    return placed, gone, [pod(name, "", 10 + number, **stated[name]) for number, name in enumerate(waiting)]


def objective(pods: list[Manifest]) -> float:
    """What soft rules cost, at the price of the objective."""
    found = soft_rules(read_cluster([*NODES, group(*pairwise(WORKLOADS)), *pods]), GROUP)
    return 5 * (found.anti_affinity + found.affinity + found.skew)


def on(item: Manifest, name: str) -> Manifest:
    return {**item, "spec": {**item["spec"], "nodeName": name}}


def known(item: Manifest) -> Pod:
    metadata = {**item["metadata"], "uid": item["metadata"]["name"]}
    return msgspec.convert({**item, "metadata": metadata}, Pod)


@settings(max_examples=100, deadline=None)
@given(situations(), st.data())
def test_soft_rules_change_as_the_objective_does(
    situation: tuple[list[Manifest], list[bool], list[Manifest]], data: st.DataObject
) -> None:
    placed, leaving, waiting = situation
    lab = Lab([msgspec.convert(item, Node) for item in NODES])
    state, pods = lab.cache.state, [known(item) for item in waiting]
    lab.see(*map(known, placed), *pods)
    gone = [state._records[item["metadata"]["name"]] for item, leaves in zip(placed, leaving, strict=True) if leaves]
    everywhere = FilterResult(mask=state.alive.copy(), nodes=state.size)
    infrastructure = lab.planner.view.current(lab.costs, lab.cache.bandwidth())
    sets = finish(
        alike([Candidate(state.info(each), everywhere, {}) for each in pods], state, infrastructure, price=1.0)
    )
    shop = lab.group(group_object("shop", *chain(*WORKLOADS)))
    there = placed_replicas(shop, state, without=gone)
    rules = finish(RuleReader(sets, there, state, gone=gone).read())
    assume(_told_apart([*(each.template for each in map(state.info, pods)), *_templates(state, gone)]))
    names = dict.fromkeys([*there, *map(workload_of, pods)])
    number = {name: at for at, name in enumerate(names)}
    problem = Problem(
        nodes=Kinds.of(state, infrastructure.infrastructure, lab.planner.view.places).nodes,
        workloads=[Workload(name=name, placed=there.get(name, {})) for name in names],
        pod_sets=[
            PodSet(workload=number[each.workload], replicas=len(each.candidates), request=NO_AMOUNTS) for each in sets
        ],
        rules=rules,
    )
    row = {c.info.pod.metadata.name: at for at, each in enumerate(sets) for c in each.candidates}

    def cost(nodes: list[str]) -> tuple[float, float]:
        """By the rules, and by the pods."""
        books = Books(Model(problem, np.arange(state.size)))
        for item, name in zip(waiting, nodes, strict=True):
            books.insert(row[item["metadata"]["name"]], state.node_index[name])
        stay = [item for item, leaves in zip(placed, leaving, strict=True) if not leaves]
        return sum(term.value() for term in books.rules), objective([*stay, *map(on, waiting, nodes)])

    choice = st.lists(st.sampled_from(NAMES), min_size=len(waiting), max_size=len(waiting))
    one, other = (cost(data.draw(choice, label=label)) for label in ("one", "other"))
    assert one[0] - other[0] == pytest.approx(one[1] - other[1])


def _templates(state: ClusterState, gone: list[PodRecord]) -> list[PodTemplateInfo]:
    """Those of placed pods that stay."""
    there = [pod for name in NAMES for pod in state.pods_on(name)]
    return [pod.template for pod in there if pod not in gone]


def _told_apart(templates: list[PodTemplateInfo]) -> bool:
    """Whether of each term all owners mean themselves, or none."""
    own: dict[AffinityTerm, set[bool]] = {}
    for template in templates:
        for term in template.terms_of("preferred_affinity"):
            own.setdefault(term, set()).add(term.selector.matches(template.labels))
    return all(len(found) == 1 for found in own.values())
