"""The objective, term by term, on placements that can be worked out by hand."""

from __future__ import annotations

import pytest

from bench.replicas.cluster import read_cluster
from bench.replicas.objective import Weights, objective
from tests.support.replicas import GROUP, HOST, SMALL, ZONE, Manifest, boutique, group, node, placed, service

EDGE = group(("web", "db"))
ZONAL = service("db", trafficDistribution="PreferSameZone")
LOCAL = service("db", internalTrafficPolicy="Local")
NOTHING = Weights(
    failover=0, soft_affinity=0, skew=0, node_failure=0, zone_failure=0, load=0, node_preference=0, soft_taint=0
)
APART = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 50,
                    "podAffinityTerm": {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}},
                }
            ]
        }
    }
}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "topologyKey": ZONE,
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
}


WISHES = {
    "affinity": {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": weight,
                    "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
                }
                for weight, zone in ((40, "a1-"), (10, "a2-"))
            ]
        }
    }
}


@pytest.mark.parametrize(
    ("weights", "services", "spec", "web", "db", "value"),
    [
        pytest.param(NOTHING, [], {}, ["a1-1"], ["a1-1", "a2-1"], 2.5, id="cost"),
        pytest.param(Weights(), [], {}, ["a1-1"], ["a1-1", "a2-1"], 2.5, id="a-single-replica-need-not-survive"),
        pytest.param(Weights(load=0), [ZONAL], {}, ["a1-1"], ["a1-1", "a2-1"], 0.05 * 2.5, id="failover"),
        pytest.param(Weights(), [ZONAL], {}, ["a1-1"], ["a1-1", "a2-1"], 0.05 * 2.5 + 5 * 1, id="load"),
        pytest.param(
            Weights(), [LOCAL], {}, ["a1-1", "a2-1"], ["a1-1"], 0.95 * 50 + 0.05 * 2.5, id="half-of-the-calls-fail"
        ),
        pytest.param(Weights(), [LOCAL], {}, ["a2-1"], ["a1-1"], 95.25, id="all-calls-fail-and-nobody-is-loaded"),
        pytest.param(Weights(), [], {}, ["a1-1", "a1-1"], ["a1-1"], 6.0, id="node-and-zone-failure"),
        pytest.param(Weights(), [], {}, ["a1-1", "a1-2"], ["a1-1"], 1.5, id="zone-failure"),
        pytest.param(Weights(), [], APART, ["a1-1", "a1-1"], ["a1-1"], 6.0 + 5 * 0.5 * 2, id="soft-affinity"),
        pytest.param(Weights(), [], SPREAD, ["a1-1", "a1-1"], ["a1-1"], 6.0 + 5, id="skew"),
        pytest.param(Weights(), [], {}, ["a1-1"] * 5, [], 6.0 + 10, id="default-spread"),
        pytest.param(Weights(default_spread=()), [], {}, ["a1-1"] * 5, [], 6.0, id="without-default-spread"),
    ],
)
def test_terms(
    weights: Weights, services: list[Manifest], spec: Manifest, web: list[str], db: list[str], value: float
) -> None:
    cluster = read_cluster([*SMALL, EDGE, *services, *placed(spec, web=web), *placed(db=db)])
    assert objective(cluster, GROUP, weights) == pytest.approx(value)


TAINTED = node("a1-3", "a1-") | {
    "spec": {
        "taints": [
            {"key": "old", "effect": "PreferNoSchedule"},
            {"key": "slow", "effect": "PreferNoSchedule"},
            {"key": "reserved", "effect": "NoSchedule"},
        ]
    }
}


@pytest.mark.parametrize(
    ("web", "spec", "value"),
    [
        pytest.param("a1-1", WISHES, 5 * 0.1, id="second wish not met"),
        pytest.param("a2-1", WISHES, 5 * 0.4 + 5, id="first wish not met"),
        pytest.param("b1-1", WISHES, 5 * 0.5 + 80, id="no wish met"),
        pytest.param("a1-3", {}, 5 * 2 + 1, id="soft taints"),
        pytest.param("a1-3", {"tolerations": [{"key": "old", "operator": "Exists"}]}, 5 + 1, id="one is tolerated"),
        pytest.param("a1-3", {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}, 11, id="none is"),
    ],
)
def test_what_a_pod_pays_for_its_node(web: str, spec: Manifest, value: float) -> None:
    cluster = read_cluster([*SMALL, TAINTED, EDGE, *placed(spec, web=[web]), *placed(db=["a1-1"])])
    assert objective(cluster, GROUP) == pytest.approx(value)
    assert objective(cluster, GROUP, NOTHING) == pytest.approx({"a1-1": 0, "a2-1": 5, "b1-1": 80, "a1-3": 1}[web])


A, A2, B, U = "eu-west-a-01", "eu-west-a-02", "eu-west-b-01", "us-east-a-01"


@pytest.mark.parametrize(
    ("prefer", "best", "others"),
    [
        pytest.param("", [A, A, A2], [[A] * 3, [A, A, B], [A, B, U]], id="all-endpoints-survive-a-node"),
        pytest.param(
            "PreferSameZone", [A, A, B], [[A] * 3, [A, A, A2], [A, B, U], [A, A2, B]], id="slices-survive-a-zone"
        ),
    ],
)
def test_default_weights_ask_of_online_boutique_what_an_operator_would(
    prefer: str, best: list[str], others: list[list[str]]
) -> None:
    key = ("default", "online-boutique")
    chosen = objective(boutique(best, prefer=prefer), key)
    assert all(chosen < objective(boutique(nodes, prefer=prefer), key) for nodes in others)


def test_preferred_anti_affinity_of_full_weight_is_worth_a_node_each() -> None:
    key = ("default", "online-boutique")
    own = {"topologyKey": HOST, "labelSelector": {}, "matchLabelKeys": ["app"]}
    terms = [{"weight": 100, "podAffinityTerm": own}]
    spec = {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}
    apart = objective(boutique([A, A2, "eu-west-a-03"], spec=spec), key)
    assert apart < objective(boutique([A, A, A2], spec=spec), key)
    assert apart < objective(boutique([A, B, U], spec=spec), key)
