"""Strategy `replicas`: whole applications, placed as their rules, Services and failures ask for."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.replicas.boutique import Case, run
from berth.api.spread import SpreadLevel
from berth.kube.objects import Pod, Service
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from berth.scheduling.single import workload_of
from tests.support import builders, kinds
from tests.support.placement import Clock, Lab, chain, group_object, member, where, zoned

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"
PROFILE = Profile.model_validate({"gang": {"strategy": REPLICAS}})


def lab(*zones: str, cpu: str = "4", bandwidth: str = "", **arguments: Any) -> Lab:
    """A node for each zone named; z1 and z2 are in r1."""
    region = {"z1": "r1", "z2": "r1", "z3": "r2", "z4": "r2"}
    extra = {"network.aware.com/bandwidth": bandwidth} if bandwidth else {}
    nodes = [zoned(f"n{number}", zone, region[zone], cpu=cpu, extra=extra) for number, zone in enumerate(zones)]
    return Lab(nodes, **{"profile": PROFILE, **arguments})


def replicas(workload: str, count: int, *, first: int = 0, cpu: str = "500m", **spec: Any) -> list[Pod]:
    return [member(f"{workload}{number}", workload, cpu=cpu, spec=spec) for number in range(first, first + count)]


def service(workload: str, **spec: Any) -> Service:
    body = {"metadata": {"name": workload, "namespace": "default"}, "spec": {"selector": {WORKLOAD: workload}, **spec}}
    return msgspec.convert(body, Service)


def even(workload: str) -> dict[str, Any]:
    """Hard spread over zones."""
    return {"topologySpreadConstraints": [builders.spread(ZONE, {WORKLOAD: workload})]}


def strategies(outcome: Outcome) -> set[str]:
    return {decision.strategy for decision in outcome.decisions}


def used(outcome: Outcome, workload: str) -> list[int]:
    """How many pods of a workload each used node has."""
    nodes = Counter(node for name, node in where(outcome).items() if name.startswith(workload))
    return sorted(nodes.values())


class TestOnlineBoutique:
    """Goals of the design, judged by an evaluator that shares no code with the planner."""

    @pytest.mark.parametrize(
        ("case", "cost", "zones"),
        [
            pytest.param(Case(), 0.45, 0, id="all endpoints"),
            pytest.param(Case(prefer="PreferSameZone"), 0.0, 11, id="PreferSameZone"),
            pytest.param(Case(rule="required anti-affinity by host"), 0.67, 0, id="required anti-affinity"),
            pytest.param(
                Case(rule="preferred anti-affinity by host, weight 100"), 0.67, 0, id="preferred anti-affinity"
            ),
            pytest.param(Case(rule="hard spread over zones", prefer="PreferSameZone"), 0.0, 11, id="hard spread"),
            pytest.param(Case(limits=True), 0.45, 0, id="maxNetworkCost"),
            pytest.param(Case(spread="node"), 0.45, 0, id="node"),
            pytest.param(Case(spread="zone"), 2.23, 11, id="zone"),
            pytest.param(Case(spread="zone", prefer="PreferSameZone"), 0.0, 11, id="zone, PreferSameZone"),
        ],
    )
    def test_every_workload_survives_at_next_to_no_cost(self, case: Case, cost: float, zones: int) -> None:
        found = run(case, strategy=REPLICAS)
        assert (found.waiting, found.broken) == (0, [])
        assert found.evaluation.cost <= cost
        assert found.evaluation.survive_node == 11
        assert found.evaluation.survive_zone >= zones

    def test_nothing_must_be_survived(self) -> None:
        found = run(Case(spread="none"), strategy=REPLICAS)
        assert found.evaluation.cost == 0.0
        assert found.evaluation.survive_node == 0


class TestLater:
    def test_more_replicas_go_where_they_survive_and_are_near(self) -> None:
        small = lab("z3", "z1", "z1", "z1", "z4")
        shop = small.group(group_object("shop", *chain("a", "b")))
        small.see(*(member(f"{name}-old", name, on="n1", cpu="500m") for name in "ab"))
        outcome = small.place(shop, *replicas("a", 1), *replicas("b", 1))
        assert set(where(outcome).values()) < {"n2", "n3"}
        assert strategies(outcome) == {REPLICAS}

    @pytest.mark.parametrize("number", [1, 2])
    def test_one_more_replica_leaves_the_node_that_all_others_share(self, number: int) -> None:
        small = lab("z3", "z1", "z1", "z4")
        shop = small.group(group_object("shop", *chain("a", "b")))
        small.see(*(member(f"{name}-old{n}", name, on="n1", cpu="500m") for name in "ab" for n in range(number)))
        outcome = small.place(shop, *replicas("a", 1))
        assert where(outcome) == {"a0": "n2"}
        assert strategies(outcome) == {REPLICAS}

    @pytest.mark.parametrize("placed", [0, 1], ids=["together", "one more"])
    def test_what_must_be_survived_is_worth_any_load(self, placed: int) -> None:
        """Where its node is survived, half of the calls go to the one endpoint of a zone, of 1501."""
        nodes = [zoned(name, zone, pods=5000, cpu="4000") for name, zone in (("n0", "z1"), ("n1", "z2"))]
        small = Lab(nodes, PROFILE.model_copy(update={"spread": SpreadLevel.NODE}))
        shop = small.group(group_object("shop", *chain("a", "b")))
        small.cache.update_service(service("b", trafficDistribution="PreferSameZone"))
        small.see(*(member(f"b{number}", "b", on="n0") for number in range(1500)), member("b1500", "b", on="n1"))
        small.see(*(member(f"a{number}", "a", on="n0") for number in range(placed)))
        nodes_of_a = where(small.place(shop, *replicas("a", 2 - placed, first=placed))).values()
        assert {*nodes_of_a, *(["n0"] * placed)} == {"n0", "n1"}

    def test_a_rollout_counts_both_templates_as_one_workload(self) -> None:
        small = lab("z1", "z1", "z1", "z1")
        shop = small.group(group_object("shop", *chain("a", "b")))
        apart: dict[str, Any] = {"topologySpreadConstraints": [builders.spread(HOST, {WORKLOAD: "a"})]}
        old, new = replicas("a", 2, **apart), replicas("a", 2, first=2, cpu="600m", **apart)
        outcome = small.place(shop, *old, *new, *replicas("b", 2))
        assert outcome.complete
        assert used(outcome, "a") == [1, 1, 1, 1]

    def test_pods_that_are_being_deleted_are_called_no_more(self) -> None:
        small = lab("z1", "z1", "z3", "z3")
        shop = small.group(group_object("shop", *chain("a", "b")))
        small.see(*(member(f"b{n}-old", "b", on="n0", cpu="500m", deleting=True) for n in range(4)))
        small.see(member("b-new", "b", on="n2", cpu="500m"))
        assert set(where(small.place(shop, *replicas("a", 2))).values()) <= {"n2", "n3"}

    def test_pods_are_assumed_in_an_order_that_hard_spread_allows(self) -> None:
        small = lab("z1", "z2", "z3", "z1", "z2", "z3")
        shop = small.group(group_object("shop", *chain("a", "b")))
        even: dict[str, Any] = {"topologySpreadConstraints": [builders.spread(ZONE, {WORKLOAD: "a"})]}
        outcome = small.place(shop, *replicas("a", 6, **even), *replicas("b", 1))
        assert outcome.complete
        assert strategies(outcome) == {REPLICAS}

    def test_pods_wait_for_those_that_they_must_be_near(self) -> None:
        small = lab("z1", "z2", "z3")
        shop = small.group(group_object("shop", *chain("a", "b")))
        near: dict[str, Any] = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            builders.pod_term(HOST, {WORKLOAD: "b"})]}}}  # fmt: skip
        outcome = small.place(shop, *replicas("a", 2, **near), *replicas("b", 2))
        assert outcome.complete
        nodes = where(outcome)
        assert {nodes["a0"], nodes["a1"]} <= {nodes["b0"], nodes["b1"]}
        assert strategies(outcome) == {REPLICAS}


class TestLimitsAreThoseOfReachedEndpoints:
    """z1 and z3 are 20 apart, and a may be 1 from b: only slices keep that, where Services keep calls in the zone."""

    def shop(self, small: Lab, *selectors: str, **spec: Any) -> Group:
        small.cache.update_service(service("b", **spec))
        small.cache.update_service(service("a", **spec))
        return small.group(group_object("shop", *(kinds.workload(*ends, maxNetworkCost=1) for ends in selectors)))

    @pytest.mark.parametrize("edges", [("ab", "b"), ("ab", "ba")], ids=["chain", "both call each other"])
    def test_slices(self, edges: tuple[str, ...]) -> None:
        small = lab("z1", "z3")
        outcome = small.place(
            self.shop(small, *edges, trafficDistribution="PreferSameZone"),
            *replicas("a", 2, **even("a")),
            *replicas("b", 2, **even("b")),
        )
        assert outcome.complete
        assert strategies(outcome) == {REPLICAS}
        assert (used(outcome, "a"), used(outcome, "b")) == ([1, 1], [1, 1])

    def test_not_where_calls_go_to_all_endpoints(self) -> None:
        small = lab("z1", "z3")
        pods = *replicas("a", 2, **even("a")), *replicas("b", 2, **even("b"))
        assert not small.place(self.shop(small, "ab", "b"), *pods).decisions

    def test_a_caller_does_not_stay_where_the_endpoint_that_was_planned_beside_it_cannot_come(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small = lab("z1", "z3", "z3", cpu="1")
        small.cache.update_node(zoned("n0", "z1", "r1", cpu="4"))
        shop = self.shop(small, "ab", "b", trafficDistribution="PreferSameZone")
        assume = Cache.assume

        def node_goes(cache: Cache, pod: Pod, node: str) -> None:
            assume(cache, pod, node)
            if pod.metadata.name.startswith("a") and node != "n0":
                cache.delete_node(builders.node({"n1": "n2", "n2": "n1"}[node]))

        monkeypatch.setattr(Cache, "assume", node_goes)
        pods = *replicas("a", 2, cpu="900m", **even("a")), *replicas("b", 2, cpu="900m", **even("b"))
        outcome = small.place(shop, *pods, partial=True)
        assert small.cache.state.node_count == 2
        assert len(outcome.decisions) == 3
        assert [nodes for name, nodes in where(outcome).items() if name.startswith("a")] == ["n0"]

    @pytest.mark.parametrize("spec", [{"trafficDistribution": "PreferSameZone"}, {}], ids=["zone", "all"])
    def test_bandwidth_is_split_over_the_endpoints_that_are_reached(self, spec: dict[str, Any]) -> None:
        small = lab("z1", "z1", "z3", "z3", cpu="1", bandwidth="60M")
        small.cache.update_service(service("b", **spec))
        shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        pods = [pod for name in "ab" for pod in replicas(name, 2, cpu="900m", **even(name))]
        outcome = small.place(shop, *pods)
        assert outcome.complete
        assert strategies(outcome) == {REPLICAS}
        assert set(small.cache.bandwidth().nodes.values()) == {60_000_000}


class TestWhatDoesNotFit:
    def test_all_or_nothing(self) -> None:
        small = lab("z1", "z1", cpu="1")
        outcome = small.place(small.group(group_object("shop", *chain("a", "b"))), *replicas("a", 3), *replicas("b", 3))
        assert not outcome.decisions
        assert len(outcome.failures) == 6
        assert not small.cache.state.pod_count

    def test_partial_places_what_fits_and_says_why_the_rest_does_not(self) -> None:
        small = lab("z1", "z1", cpu="1")
        shop = small.group(group_object("shop", *chain("a", "b")))
        outcome = small.place(shop, *replicas("a", 3), *replicas("b", 3), partial=True)
        assert len(outcome.decisions) == 4
        assert {failure.message for failure in outcome.failures} == {"0/2 nodes are available: 2 Insufficient cpu."}

    def test_one_pod_that_fits_nowhere_is_told_why(self) -> None:
        small = lab("z1", "z1", cpu="1")
        apart: dict[str, Any] = {"topologySpreadConstraints": [builders.spread("rack", {WORKLOAD: "a"})]}
        outcome = small.place(small.group(group_object("shop", *chain("a", "b"))), *replicas("a", 1, **apart))
        (failure,) = outcome.failures
        assert "topology spread constraints" in failure.message

    def test_no_time_at_all(self) -> None:
        small = lab("z1", "z1", clock=Clock(tick=10.0))
        outcome = small.place(small.group(group_object("shop", *chain("a", "b"))), *replicas("a", 2), *replicas("b", 2))
        assert outcome.cut_short
        assert len(outcome.decisions) == small.cache.state.pod_count
        assert len(outcome.decisions) + len(outcome.failures) == 4


class TestDefaultInstead:
    def test_shared_links(self) -> None:
        links = Profile(gang=PROFILE.gang, links=[Link(name="up", capacity="1G", nodes=["n0"])])
        small = lab("z1", "z1", profile=links)
        shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="10M")))
        outcome = small.place(shop, *replicas("a", 2), *replicas("b", 2))
        assert (outcome.complete, strategies(outcome)) == (True, {DEFAULT})

    @pytest.mark.parametrize(("own", "strategy"), [("10M", REPLICAS), ("30M", DEFAULT)])
    def test_pods_that_request_bandwidth_where_little_is_left(self, own: str, strategy: str) -> None:
        """Two nodes of 100M, a replica of each workload on both: 15M for calls on each, beside what pods request."""
        small = lab("z1", "z1", cpu="1", bandwidth="100M")
        shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="15M")))
        requests = {"network_aware_com__bandwidth": own}
        pods = [member(f"{name}{n}", name, cpu="400m", **requests) for name in "ab" for n in range(2)]
        outcome = small.place(shop, *pods)
        assert (outcome.complete, strategies(outcome)) == (True, {strategy})

    def test_links_matter_only_to_edges_with_bandwidth(self) -> None:
        links = Profile(gang=PROFILE.gang, links=[Link(name="up", capacity="1G", nodes=["n0"])])
        small = lab("z1", "z1", profile=links)
        outcome = small.place(small.group(group_object("shop", *chain("a", "b"))), *replicas("a", 2), *replicas("b", 2))
        assert strategies(outcome) == {REPLICAS}

    @pytest.mark.parametrize("prefer", ["", "PreferSameZone"])
    def test_not_for_one_zone_name_in_two_regions(self, prefer: str) -> None:
        small = Lab([zoned("n0", "z1", "r1"), zoned("n1", "z1", "r2")], PROFILE)
        small.cache.update_service(service("b", **({"trafficDistribution": prefer} if prefer else {})))
        outcome = small.place(small.group(group_object("shop", *chain("a", "b"))), *replicas("a", 2), *replicas("b", 2))
        assert (outcome.complete, strategies(outcome)) == (True, {REPLICAS})


def test_terms_of_all_pods_add_up_to_what_the_plan_costs() -> None:
    small = lab("z1", "z1", "z2", "z3")
    shop = small.group(group_object("shop", *chain("a", "b", "c")))
    outcome = small.place(shop, *replicas("a", 2), *replicas("b", 2), *replicas("c", 2))
    total = Counter[str]()
    for decision in outcome.decisions:
        total.update(decision.terms)
        assert decision.value == pytest.approx(sum(decision.terms.values()))
    # Two nodes with one replica of each workload: half of the calls of two edges stay on the node, half cost 1.
    assert dict(total) == pytest.approx({"network": 1.0, "survival": 3.0})


class Shape(NamedTuple):
    """The replicas of one workload."""

    workload: str
    size: int
    rule: str
    key: str
    target: str
    cpu: str

    def pods(self, wave: int) -> list[Pod]:
        """Its pods."""
        labels = {WORKLOAD: self.target}
        spec: dict[str, Any] = {}
        if self.rule in ("DoNotSchedule", "ScheduleAnyway"):
            spec = {"topologySpreadConstraints": [builders.spread(self.key, labels, whenUnsatisfiable=self.rule)]}
        elif self.rule.startswith("preferred"):
            one = {"weight": 50, "podAffinityTerm": builders.pod_term(self.key, labels)}
            spec = {"affinity": {self.rule[9:]: {"preferredDuringSchedulingIgnoredDuringExecution": [one]}}}
        elif self.rule.startswith("pod"):
            one = builders.pod_term(self.key, labels)
            spec = {"affinity": {self.rule: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}}
        ports = [("" if self.key == HOST else "10.0.0.1", "TCP", 8080)] if self.rule == "port" else []
        names = [f"{self.workload}{wave}-{number}" for number in range(self.size)]
        return [member(name, self.workload, cpu=self.cpu, spec=spec, host_ports=ports) for name in names]


SHAPE = st.builds(
    Shape,
    workload=st.sampled_from("abc"),
    size=st.integers(1, 4),
    rule=st.sampled_from(
        [
            "",
            "port",
            "DoNotSchedule",
            "ScheduleAnyway",
            *(f"{prefix}{kind}" for prefix in ("", "preferred") for kind in ("podAffinity", "podAntiAffinity")),
        ]
    ),
    key=st.sampled_from([ZONE, HOST]),
    target=st.sampled_from("abc"),
    cpu=st.sampled_from(["200m", "900m"]),
)


@settings(max_examples=100, deadline=None)
@given(
    zones=st.lists(st.sampled_from(["z1", "z2", "z3"]), min_size=1, max_size=6),
    waves=st.lists(
        st.lists(SHAPE, min_size=1, max_size=3, unique_by=lambda shape: shape.workload), min_size=1, max_size=2
    ),
    prefer=st.sampled_from(["", "PreferSameZone", "PreferSameNode"]),
    partial=st.booleans(),
    limited=st.booleans(),
)
@example(  # no node is left for the second wave
    zones=["z1"],
    waves=[
        [Shape("a", 1, "podAntiAffinity", "topology.kubernetes.io/zone", "b", "200m")],
        [Shape("b", 1, "", "topology.kubernetes.io/zone", "a", "200m")],
    ],
    prefer="PreferSameZone",
    partial=False,
    limited=False,
)
def test_every_pod_passes_the_filters_in_the_order_of_the_plan(
    zones: list[str], waves: list[list[Shape]], prefer: str, partial: bool, limited: bool
) -> None:
    planned, replayed = lab(*zones, cpu="2"), lab(*zones, cpu="2")
    obj = group_object("shop", *chain("a", "b", "c", **({"maxNetworkCost": 5} if limited else {})))
    groups = [each.group(obj) for each in (planned, replayed)]
    for name in "abc":
        for each in (planned, replayed):
            each.cache.update_service(service(name, **({"trafficDistribution": prefer} if prefer else {})))
    taken: Counter[str] = Counter()
    for number, wave in enumerate(waves):
        pods = [pod for shape in wave for pod in shape.pods(number)]
        outcome = planned.place(groups[0], *pods, partial=partial)
        assert partial or not outcome.decisions or not outcome.failures
        assert len(outcome.decisions) + len(outcome.failures) == len(pods)
        replayed.see(*pods)
        coming: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for decision in outcome.decisions:
            coming[workload_of(decision.pod)][decision.node] += 1
        for decision in outcome.decisions:
            coming[workload_of(decision.pod)][decision.node] -= 1
            _, result = replayed.planner._judge(decision.pod, groups[1], replayed.costs, coming)
            assert result.mask[replayed.cache.state.node_index[decision.node]], (decision.pod.key, result.rejections)
            replayed.cache.assume(decision.pod, decision.node)
            if any(part.ports for part in decision.pod.spec.containers):
                taken[decision.node] += 1
    # Filters that say nothing would have let everything pass.
    assert set(taken.values()) <= {1}
