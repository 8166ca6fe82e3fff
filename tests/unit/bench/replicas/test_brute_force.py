"""The optimum of small problems: by hand, against every placement there is, and by the evaluator's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations_with_replacement, product
from math import comb, inf
from typing import Any

import pytest

from bench.replicas.brute_force import optimum
from bench.replicas.cluster import Cluster, Pod, read_cluster
from bench.replicas.objective import DEFAULT_WEIGHTS, Weights, objective
from bench.replicas.problems import problem, waiting_pods
from bench.replicas.rules import violations
from tests.support.replicas import GROUP, HOST, ZONE, Manifest, group, node, placed, service, topology

FOUR = [*(node(f"{zone}{number}", zone) for zone in ("a1-", "a2-") for number in (1, 2)), topology({("a1-", "a2-"): 6})]
EDGE = group(("web", "db"))
ZONAL = service("db", trafficDistribution="PreferSameZone")


def with_nodes(cluster: Cluster, waiting: list[Pod], nodes: Mapping[str, str]) -> Cluster:
    return replace(cluster, pods=[*cluster.pods, *(replace(pod, node=nodes[pod.name]) for pod in waiting)])


def placements(cluster: Cluster, waiting: list[Pod]) -> Iterator[Cluster]:
    """Every placement; identical replicas are not permuted."""
    workloads: dict[str, list[Pod]] = {}
    for pod in waiting:
        workloads.setdefault(pod.workload, []).append(pod)
    ways = (combinations_with_replacement(cluster.nodes, len(pods)) for pods in workloads.values())
    for choice in product(*ways):
        nodes = {
            pod.name: found
            for pods, names in zip(workloads.values(), choice, strict=True)
            for pod, found in zip(pods, names, strict=True)
        }
        yield with_nodes(cluster, waiting, nodes)


def size(cluster: Cluster, waiting: list[Pod]) -> int:
    """How many placements there are."""
    counts = [sum(pod.workload == name for pod in waiting) for name in {pod.workload for pod in waiting}]
    total = 1
    for count in counts:
        total *= comb(len(cluster.nodes) + count - 1, count)
    return total


def solved(
    *manifests: Manifest, spec: Manifest | None = None, weights: Weights = DEFAULT_WEIGHTS, **replicas: int
) -> tuple[float, dict[str, list[str]]] | None:
    """The objective and the nodes of every workload, sorted."""
    cluster = read_cluster([*FOUR, EDGE, *manifests])
    waiting = waiting_pods(placed(spec, **{name: [""] * count for name, count in replicas.items()}))
    found = optimum(cluster, GROUP, waiting, weights)
    if found is None:
        return None
    nodes = {name: sorted(found.nodes[pod.name] for pod in waiting if pod.workload == name) for name in replicas}
    assert found.value == pytest.approx(objective(with_nodes(cluster, waiting, found.nodes), GROUP, weights))
    return round(found.value, 6), nodes


def anti_affinity(key: str) -> Manifest:
    """Required anti-affinity of every pod to those of its own workload."""
    term = {"topologyKey": key, "labelSelector": {}, "matchLabelKeys": ["app"]}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def hard_spread(key: str, **more: Any) -> Manifest:
    one = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, **more}
    return {"topologySpreadConstraints": [one]}


class TestByHand:
    def test_single_replicas_share_a_node(self) -> None:
        value, nodes = solved(web=1, db=1) or (inf, {})
        assert (value, nodes["web"]) == (0.0, nodes["db"])

    def test_replicas_survive_a_node_where_calls_reach_all(self) -> None:
        value, nodes = solved(web=2, db=2) or (inf, {})
        assert value == 0.5 + 2 * 1.0  # half of the pairs at cost 1, two workloads that die with their zone
        assert nodes["web"] == nodes["db"]
        assert [name[:2] for name in nodes["web"]] in (["a1", "a1"], ["a2", "a2"])

    def test_slices_survive_a_zone_where_calls_stay_in_theirs(self) -> None:
        value, nodes = solved(ZONAL, web=2, db=2) or (inf, {})
        assert value == pytest.approx(0.05 * 3.0)
        assert [[name[:2] for name in found] for found in nodes.values()] == [["a1", "a2"]] * 2

    def test_the_price_of_a_zone_decides(self) -> None:
        value, nodes = solved(weights=Weights(zone_failure=10.0), web=2, db=2) or (inf, {})
        assert value == 3.0
        assert [[name[:2] for name in found] for found in nodes.values()] == [["a1", "a2"]] * 2

    def test_anti_affinity_of_three_over_two_zones(self) -> None:
        value, nodes = solved(spec=anti_affinity(HOST), web=3, db=3) or (inf, {})
        assert nodes["web"] == nodes["db"]
        assert len(set(nodes["web"])) == 3
        assert value == round((2 * 1 + 4 * 6) / 9, 6)

    @pytest.mark.parametrize(
        ("spec", "replicas"),
        [
            pytest.param(anti_affinity(HOST), 5, id="anti-affinity-by-host"),
            pytest.param(anti_affinity(ZONE), 3, id="anti-affinity-by-zone"),
            pytest.param(hard_spread(ZONE, minDomains=3), 3, id="too-few-domains"),
            pytest.param(hard_spread("rack"), 1, id="no-such-label"),
            pytest.param({"nodeSelector": {"disk": "ssd"}}, 1, id="no-such-node"),
        ],
    )
    def test_what_cannot_be(self, spec: Manifest, replicas: int) -> None:
        assert solved(spec=spec, web=replicas) is None

    def test_no_room(self) -> None:
        assert solved(spec={"cpu": "2001m"}, web=4) is not None
        assert solved(spec={"cpu": "2001m"}, web=5) is None

    def test_a_limit_holds_for_the_endpoints_that_are_reached(self) -> None:
        limited = group(("web", "db"), limit=1)
        apart = hard_spread(ZONE)
        apart["topologySpreadConstraints"][0]["matchLabelKeys"] = ["app"]
        assert solved(limited, spec=apart, web=2, db=2) is None
        assert solved(limited, ZONAL, spec=apart, web=2, db=2) is not None

    def test_what_has_a_node_counts(self) -> None:
        before = placed(db=["a2-2"])
        value, nodes = solved(*before, web=1) or (inf, {})
        assert (value, nodes) == (0.0, {"web": ["a2-2"]})


def rule(kind: str, strength: str, key: str, **selector: Any) -> Manifest:
    """A pod (anti-)affinity term, of weight 60 where it is preferred."""
    term = {"topologyKey": key, "labelSelector": selector}
    preferred = {"weight": 60, "podAffinityTerm": term}
    named = {"required": term, "preferred": preferred}[strength]
    return {"affinity": {kind: {f"{strength}DuringSchedulingIgnoredDuringExecution": [named]}}}


def either(*apps: str) -> Manifest:
    return {"matchExpressions": [{"key": "app", "operator": "In", "values": list(apps)}]}


def guest(on: str) -> Manifest:
    """A pod outside the group that says it is of `web`."""
    (found,) = placed({"group": ""}, web=[on])
    return {**found, "metadata": {**found["metadata"], "name": "guest"}}


@pytest.mark.parametrize(
    ("before", "zones"),
    [
        pytest.param([node("bare"), guest("bare")], {"a1", "a2"}, id="one-outside-of-every-zone"),
        pytest.param([node("bare"), *placed(web=["bare"])], {"a1", "a2"}, id="an-own-replica-outside-of-every-zone"),
        pytest.param([*placed(web=["a1-1"]), guest("a2-1")], {"a1", "a2"}, id="in-both-zones"),
        pytest.param([guest("a2-1")], {"a2"}, id="in-one-zone"),
    ],
)
def test_who_is_near_is_asked_of_pods_that_come(before: list[Manifest], zones: set[str]) -> None:
    """Those that have a node came before, whoever is near them now; on a node without the key nobody sees them."""
    near = rule("podAffinity", "required", ZONE, matchLabels={"app": "web"})
    _, nodes = solved(*before, spec=near, web=2) or (inf, {"web": []})
    assert len(nodes["web"]) == 2
    assert {name[:2] for name in nodes["web"]} <= zones


@pytest.mark.parametrize(
    ("spec", "others"),
    [
        pytest.param(hard_spread(ZONE), [], id="hard-spread-of-all"),
        pytest.param(hard_spread(HOST, whenUnsatisfiable="ScheduleAnyway"), [], id="soft-spread-of-all"),
        pytest.param(rule("podAffinity", "preferred", HOST, **either("web", "db")), [], id="company-of-several"),
        pytest.param(rule("podAffinity", "required", ZONE, **either("web", "db")), [], id="near-several"),
        pytest.param(
            rule("podAffinity", "required", ZONE, matchLabels={"app": "guard"}), ["a2-2"], id="near-a-stranger"
        ),
        pytest.param(rule("podAffinity", "preferred", HOST, matchLabels={"app": "guard"}), ["a2-2"], id="company"),
        pytest.param(
            rule("podAntiAffinity", "required", ZONE, **either("web", "guard")), ["a1-2"], id="away-from-both"
        ),
        pytest.param(rule("podAntiAffinity", "preferred", ZONE, **either("web", "guard")), ["a1-2"], id="rather-away"),
    ],
)
@pytest.mark.parametrize(
    "services", [[], [ZONAL], [service("db", internalTrafficPolicy="Local")]], ids=["all", "zone", "local"]
)
def test_rules_that_mean_several(spec: Manifest, others: list[str], services: list[Manifest]) -> None:
    """Against every placement; the pods outside the group have the rule too."""
    guards = placed({**spec, "group": ""}, guard=others) if others else []
    if others and "required" in str(spec):
        guards = placed({"group": ""}, guard=others)
    cluster = read_cluster([*FOUR, EDGE, *services, *guards])
    waiting = waiting_pods(placed(spec, web=["", ""], db=["", ""]))
    allowed = (found for found in placements(cluster, waiting) if not violations(found, cluster.pods))
    best = min((objective(found, GROUP) for found in allowed), default=inf)
    found = optimum(cluster, GROUP, waiting)
    assert (found.value if found is not None else inf) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(30))
def test_no_placement_is_better(seed: int) -> None:
    """Against the evaluator alone, on generated problems with as many of their pods as leave few placements."""
    documents = problem(seed, grown=seed % 2 == 1, preferences=seed % 3 == 1)
    cluster, waiting = read_cluster(documents), waiting_pods(documents)
    while size(cluster, waiting) > 400:
        waiting.pop()
    allowed = (found for found in placements(cluster, waiting) if not violations(found, cluster.pods))
    best = min((objective(found, GROUP) for found in allowed), default=inf)
    found = optimum(cluster, GROUP, waiting)
    assert (found.value if found is not None else inf) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(60))
def test_the_evaluator_agrees(seed: int) -> None:
    documents = problem(seed, grown=seed % 2 == 1, preferences=seed % 3 == 1)
    cluster, waiting = read_cluster(documents), waiting_pods(documents)
    found = optimum(cluster, GROUP, waiting)
    if found is None:
        return
    there = with_nodes(cluster, waiting, found.nodes)
    assert violations(there, cluster.pods) == []
    assert objective(there, GROUP) == pytest.approx(found.value)
    assert optimum(cluster, GROUP, waiting) == found
