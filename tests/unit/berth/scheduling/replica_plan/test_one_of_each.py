"""Which groups the gang engine plans although the profile plans in counts, and that nothing is lost by it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Node, Pod, Service
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from tests.support import builders, kinds
from tests.support.placement import Lab, chain, edges, group_object, lone, member, where, zoned

HOST = "kubernetes.io/hostname"
WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"


def profile(strategy: str = REPLICAS) -> Profile:
    return Profile.model_validate({"gang": {"strategy": strategy}})


def priced(node: Node, price: float) -> Node:
    node.metadata.annotations = {"berth.dev/price-cpu": str(price)}
    return node


def pair(**spec: Any) -> list[Pod]:
    return [member(name, name, cpu="1", spec=spec) for name in "ab"]


def planned_by(outcome: Outcome) -> set[str]:
    return {decision.strategy for decision in outcome.decisions}


def rule(kind: str) -> dict[str, Any]:
    """A rule towards other pods of the namespace."""
    term = builders.pod_term(HOST, {"app": "other"})
    if kind.startswith("preferred"):
        body = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
        return {"affinity": {kind.removeprefix("preferred "): body}}
    if kind.startswith("pod"):
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    return {"topologySpreadConstraints": [builders.spread(HOST, {"app": "other"}, whenUnsatisfiable=kind)]}


class TestWhoPlans:
    def test_one_replica_of_each_and_a_node_for_all(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
        assert (outcome.complete, planned_by(outcome)) == (True, {DEFAULT})

    @pytest.mark.parametrize(
        "kind",
        ["podAntiAffinity", "preferred podAffinity", "preferred podAntiAffinity", "DoNotSchedule", "ScheduleAnyway"],
    )
    def test_rules_between_pods_are_planned_in_counts(self, kind: str) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair(**rule(kind)))
        assert (outcome.complete, planned_by(outcome)) == (True, {REPLICAS})

    @pytest.mark.parametrize("kind", ["podAntiAffinity", "preferred podAntiAffinity"])
    def test_rules_of_placed_pods_too(self, kind: str) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io": "shop"})
        body: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if kind.startswith("preferred"):
            body = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
        lab.see(lone("loner", on="n1", spec={"affinity": {"podAntiAffinity": body}}))
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
        assert where(outcome) == {"a": "n2", "b": "n2"}
        assert planned_by(outcome) == {REPLICAS}

    def test_rules_of_placed_pods_about_labels_of_the_namespace_too(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        lab.cache.update_namespace(builders.namespace("default", team="shop"))
        about = {"namespaceSelector": {"matchLabels": {"team": "shop"}}}
        term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io": "shop"}, **about)
        body = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        lab.see(lone("loner", namespace="other", on="n1", spec={"affinity": body}))
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
        assert where(outcome) == {"a": "n2", "b": "n2"}
        assert planned_by(outcome) == {REPLICAS}

    @pytest.mark.parametrize(
        "more",
        [
            pytest.param([member("a2", "a", cpu="1")], id="a second replica"),
            pytest.param([member("a2", "a", cpu="1", host_ports=[80])], id="host port"),
            pytest.param([member("c", "c", cpu="3")], id="no node has room for all"),
        ],
    )
    def test_others_are_planned_in_counts(self, more: list[Pod]) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b", "c"))), *pair(), *more)
        assert (outcome.complete, planned_by(outcome)) == (True, {REPLICAS})

    def test_groups_with_placed_members_are_planned_in_counts(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        lab.see(member("old", "a", cpu="1", on="n1"))
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
        assert planned_by(outcome) == {REPLICAS}

    def test_preferences_are_weighed_in_counts(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2", labels={"disk": "ssd"})], profile())
        wish = {"key": "disk", "operator": "In", "values": ["ssd"]}
        wishes = [{"weight": 100, "preference": {"matchExpressions": [wish]}}]
        likes = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair(**likes))
        assert where(outcome) == {"a": "n2", "b": "n2"}
        assert planned_by(outcome) == {REPLICAS}

    def test_services_that_keep_calls_near_are_planned_in_counts(self) -> None:
        lab = Lab([zoned("n1"), zoned("n2")], profile())
        spec = {"selector": {WORKLOAD: "b"}, "trafficDistribution": "PreferSameZone"}
        lab.cache.update_service(
            msgspec.convert({"metadata": {"name": "b", "namespace": "default"}, "spec": spec}, Service)
        )
        outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
        assert planned_by(outcome) == {REPLICAS}

    def test_prices_without_weight_are_none(self) -> None:
        nodes = [priced(zoned(f"n{number}", cpu=1), number) for number in (1, 2)]
        for weight, strategy in ((1, DEFAULT), (0, REPLICAS)):
            settings = {"gang": {"strategy": REPLICAS}, "weights": {"price": weight}}
            lab = Lab(nodes, Profile.model_validate(settings))
            outcome = lab.place(lab.group(group_object("shop", *chain("a", "b"))), *pair())
            assert (outcome.complete, planned_by(outcome)) == (True, {strategy})


WORKLOADS = "abcdefg"
EDGES = st.sets(
    st.tuples(st.sampled_from(WORKLOADS), st.sampled_from(WORKLOADS)).filter(lambda ends: ends[0] < ends[1])
)
REQUESTS = st.lists(st.sampled_from(["250m", "500m", "1", "2"]), min_size=2, max_size=len(WORKLOADS))
ZONES = st.lists(st.sampled_from(["z1", "z2", "z3"]), min_size=1, max_size=6)


def place(nodes: list[Node], calls: set[tuple[str, str]], requests: list[str], strategy: str) -> Outcome:
    lab = Lab(nodes, profile(strategy))
    callees = {name: [callee for caller, callee in sorted(calls) if caller == name] for name in WORKLOADS}
    group = lab.group(group_object("shop", *(kinds.workload(name, *callees[name]) for name in WORKLOADS)))
    return lab.place(group, *(member(name, name, cpu=cpu) for name, cpu in zip(WORKLOADS, requests, strict=False)))


@settings(max_examples=80, deadline=None)
@given(zones=ZONES, large=st.integers(0, 5), calls=EDGES, requests=REQUESTS)
def test_where_one_node_does_calls_cost_nothing(
    zones: list[str], large: int, calls: set[tuple[str, str]], requests: list[str]
) -> None:
    nodes = [zoned(f"n{number}", zone, cpu=16 if number == large else 1) for number, zone in enumerate(zones)]
    outcome = place(nodes, calls, requests, REPLICAS)
    if large < len(zones):
        assert planned_by(outcome) == {DEFAULT}
        assert edges(outcome)[1] == 0
        assert len(set(where(outcome).values())) == 1 or not calls


@settings(max_examples=80, deadline=None)
@given(
    nodes=st.lists(st.tuples(st.integers(1, 8), st.integers(1, 50)), min_size=1, max_size=6),
    calls=EDGES,
    requests=REQUESTS,
)
def test_where_nodes_have_prices_the_plan_is_that_of_the_default_strategy(
    nodes: list[tuple[int, int]], calls: set[tuple[str, str]], requests: list[str]
) -> None:
    def cluster() -> list[Node]:
        return [priced(zoned(f"n{number}", cpu=cpu), price) for number, (cpu, price) in enumerate(nodes)]

    found, wanted = (place(cluster(), calls, requests, strategy) for strategy in (REPLICAS, DEFAULT))
    assert (where(found), planned_by(found)) == (where(wanted), planned_by(wanted))
