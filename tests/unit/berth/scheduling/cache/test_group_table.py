"""Many selectors looked up in all pods of a cluster: the same counts as one group after another, and soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.planning.__main__ import COSTS, HOST, make_node, make_pod
from berth.kube.objects import Namespace, ObjectMeta, TopologySpreadConstraint
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.domains import matching_pods
from berth.scheduling.configuration import Profile
from berth.scheduling.gang.budget import finish
from berth.scheduling.planner import Planner
from berth.scheduling.plugins.inter_pod_affinity import count_selected
from tests.support.work import Work

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
LABELS = st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"), max_size=2)
EXPRESSION = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from("klm"),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from("123"), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": st.sampled_from("klm"), "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTOR = st.fixed_dictionaries({"matchExpressions": st.lists(EXPRESSION, max_size=2)})
TERM = st.fixed_dictionaries(
    {"topologyKey": st.just(HOST)},
    optional={
        "labelSelector": SELECTOR,
        "namespaceSelector": SELECTOR,
        "namespaces": st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True),
    },
)


def placed(cache: Cache, number: int, namespace: str, labels: dict[str, str], *, leaving: bool = False) -> None:
    pod = make_pod(f"p{number}", number, {})
    pod.metadata.namespace, pod.metadata.labels = namespace, labels
    pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z" if leaving else None
    pod.spec.node_name = f"node-{number % 6}"
    cache.update_pod(pod)


def cluster(clock: Any = lambda: 0.0) -> Cache:
    cache = Cache(clock=clock)
    for number in range(6):
        cache.update_node(make_node(number, 64))
    return cache


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "default"]), LABELS, st.booleans()), max_size=8),
    st.dictionaries(st.sampled_from(["a", "b"]), LABELS),
    st.lists(TERM, min_size=1, max_size=3),
)
def test_counts_are_the_same(
    pods: list[tuple[str, dict[str, str], bool]], namespaces: dict[str, dict[str, str]], stated: list[dict[str, Any]]
) -> None:
    cache = cluster()
    for name, labels in namespaces.items():
        cache.update_namespace(Namespace(metadata=ObjectMeta(name=name, labels=labels)))
    for number, (namespace, labels, leaving) in enumerate(pods):
        placed(cache, number, namespace, labels, leaving=leaving)
    asking = make_pod("w0", 0, {"podAffinity": {REQUIRED: stated}})
    state, template = cache.state, cache.state.info(asking).template
    constraint = {"topologyKey": HOST, "labelSelector": stated[0].get("labelSelector", {})}
    asking.spec.topology_spread_constraints = [_constraint(constraint)]
    spread = cache.state.info(asking).template.hard_spread[0]
    terms = template.terms_of("affinity")
    assert state.pods.table() is None
    one_by_one = count_selected(terms, state), matching_pods(spread, template, state)
    state.pods._looked_at = 10**9
    assert pods == [] or state.pods.table() is not None
    at_once = count_selected(terms, state), matching_pods(spread, template, state)
    assert np.array_equal(one_by_one, at_once)


def _constraint(body: dict[str, Any]) -> TopologySpreadConstraint:
    return msgspec.convert(body, TopologySpreadConstraint)


def test_a_table_is_good_until_pods_or_namespaces_change() -> None:
    cache = cluster()
    placed(cache, 0, "a", {"k": "1"})
    selector = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["1"]}]}
    term = {"topologyKey": HOST, "labelSelector": {}, "namespaceSelector": selector}
    terms = cache.state.info(make_pod("w0", 0, {"podAffinity": {REQUIRED: [term]}})).template.terms_of("affinity")
    found: list[list[int]] = []
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: cache.update_namespace(Namespace(metadata=ObjectMeta(name="a", labels={"k": "1"}))),
        lambda: placed(cache, 1, "a", {}),
        lambda: cache.delete_namespace(Namespace(metadata=ObjectMeta(name="a"))),
    ]
    for change in changes:
        change()
        cache.state.pods._looked_at = 100
        found.append(count_selected(terms, cache.state).tolist()[:2])
    assert found == [[0, 0], [1, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity", "topologySpreadConstraints"])
@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
def test_a_pod_with_many_rules_that_mean_everybody_is_placed_soon(kind: str, hard: bool) -> None:
    work = Work()
    cache = cluster(work)
    for number in range(500):
        placed(cache, number, "default", {"name": f"p{number}"})
    selectors = [{"matchExpressions": [{"key": "k", "operator": "NotIn", "values": [f"{n}"]}]} for n in range(250)]
    rules: list[dict[str, Any]] = [{"topologyKey": HOST, "labelSelector": each} for each in selectors]
    if kind == "topologySpreadConstraints":
        when = "DoNotSchedule" if hard else "ScheduleAnyway"
        pod = make_pod("w0", 0, {})
        pod.spec.topology_spread_constraints = [
            _constraint({**rule, "maxSkew": 500, "whenUnsatisfiable": when}) for rule in rules
        ]
    elif hard:
        pod = make_pod("w0", 0, {kind: {REQUIRED: rules}})
    else:
        pod = make_pod("w0", 0, {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": rule} for rule in rules]}})
    planner = Planner(cache, Profile())
    with work.counting():
        outcome = finish(planner.place_each([pod], COSTS))
    assert bool(outcome.decisions) is not (hard and kind == "podAntiAffinity")
    assert work.seconds < 0.1


def test_many_rules_that_mean_few_are_looked_up_one_by_one() -> None:
    """A table of all pods is made anew whenever one comes: it took ten times as long."""
    cache = cluster()
    for number in range(1000):
        placed(cache, number, "default", {"name": f"p{number}", "app": f"w{number % 100}"})
    few = {"key": "app", "operator": "In", "values": ["w1"]}
    selectors = [[few, {"key": "k", "operator": "NotIn", "values": [f"{number}"]}] for number in range(12)]
    terms = [{"topologyKey": HOST, "labelSelector": {"matchExpressions": each}} for each in selectors]
    template = cache.state.info(make_pod("w0", 0, {"podAffinity": {REQUIRED: terms}})).template
    work = Work()
    with work.counting():
        found = count_selected(template.terms_of("affinity"), cache.state)
    assert found.sum() == 10
    assert work.seconds < 0.001
