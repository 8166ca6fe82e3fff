"""Scores one by one, on values worked out by hand from kube-scheduler's formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from berth.kube.objects import Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.plugin import ScorePlugin
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from berth.scheduling.plugins.node_affinity import NodeAffinity
from berth.scheduling.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from berth.scheduling.plugins.taint_toleration import TaintToleration
from tests.support.builders import container, namespace, node, pod, pod_term, requirement, spread
from tests.support.filtering import cluster, cycle_of

X = {"app": "x"}


def scores(score: ScorePlugin, new: Pod, state: ClusterState, *, without: tuple[str, ...] = ()) -> dict[str, float]:
    """Normalised score per feasible node, all nodes being feasible but those in ``without``."""
    feasible = state.alive.copy()
    for name in without:
        feasible[state.node_index[name]] = False
    values = score.normalized(cycle_of(new, state), feasible)
    if values is None:
        return {state.node_name(int(slot)): 0.0 for slot in np.flatnonzero(feasible)}
    assert not values[~feasible].any()
    return {state.node_name(int(slot)): float(values[slot]) for slot in np.flatnonzero(feasible)}


def zoned(*names: str) -> list[Node]:
    """Nodes like a0, a1, b0, each in the zone of its first letter."""
    return [node(name, labels={"zone": name[0]}) for name in names]


@pytest.mark.parametrize(
    ("score", "cpu", "expected"),
    [
        # cpu: (4000 - 1000) / 4000 = 75, memory with its default of 200Mi: (2000 - 200) / 2000 = 90
        pytest.param(NodeResourcesFit(), "1", 82, id="least-mean-of-cpu-and-memory"),
        pytest.param(NodeResourcesFit(resources={"cpu": 3, "memory": 1}), "1", 78, id="least-weighted"),
        pytest.param(NodeResourcesFit(resources={"cpu": 1}), "8", 0, id="least-over-full"),
        pytest.param(NodeResourcesFit(resources={"cpu": 1}), None, 97, id="least-default-cpu-of-100m"),
        pytest.param(NodeResourcesFit(resources={"example.com/gpu": 1}), "1", 0, id="unknown-resource"),
    ],
)
def test_allocation(score: ScorePlugin, cpu: str | None, expected: int) -> None:
    state = cluster([node("n", cpu="4", memory="2000Mi")])
    requests: dict[str, Any] = {} if cpu is None else {"cpu": cpu}
    assert scores(score, pod("new", containers=[container(**requests)]), state) == {"n": expected}


def test_allocation_counts_pods_there_with_their_defaults() -> None:
    state = cluster([node("n", cpu="1", memory="2000Mi")], [pod("there", on="n")])
    # cpu: (1000 - 100 - 100) / 1000 = 80, memory: (2000 - 200 - 200) / 2000 = 80
    assert scores(NodeResourcesFit(), pod("new"), state) == {"n": 80}


def test_allocation_counts_requests_of_the_pod_as_a_whole() -> None:
    state = cluster([node("n", cpu="4", memory="2000Mi")])
    new = pod("new", containers=[container(cpu="1")], spec={"resources": {"requests": {"cpu": "2"}}})
    assert scores(NodeResourcesFit(resources={"cpu": 1}), new, state) == {"n": 50}


def test_extended_resources_take_part_where_requested_and_present() -> None:
    state = cluster([node("gpu", cpu="4", example_com__gpu="4"), node("bare", cpu="4")])
    score = NodeResourcesFit(resources={"cpu": 1, "example.com/gpu": 1})
    with_gpu = pod("new", cpu="2", example_com__gpu="1")
    assert scores(score, with_gpu, state) == {"gpu": 62, "bare": 50}  # (50 + 75) / 2, and cpu alone
    assert scores(score, pod("new", cpu="2"), state) == {"gpu": 50, "bare": 50}


@pytest.mark.parametrize(
    ("there", "new", "expected"),
    [
        # fractions after (0.5, 0.5), before (0, 0): both even, 50 + (50 + 100 - 100) / 2
        pytest.param({}, {"cpu": "2", "memory": "4Gi"}, 75, id="even-stays-even"),
        # after (0.5, 0): deviation 0.25, so 75; before 100: 50 + (50 + 75 - 100) / 2
        pytest.param({}, {"cpu": "2"}, 62, id="made-uneven"),
        # after (0.5, 0.5): 100; before (0.5, 0): 75: 50 + (50 + 100 - 75) / 2
        pytest.param({"cpu": "2"}, {"memory": "4Gi"}, 87, id="made-even"),
        # fractions are cut at 1: after (1, 0): 50
        pytest.param({}, {"cpu": "40"}, 50, id="over-full"),
    ],
)
def test_balance(there: dict[str, Any], new: dict[str, Any], expected: int) -> None:
    state = cluster([node("n", cpu="4", memory="8Gi")], [pod("there", on="n", containers=[container(**there)])])
    assert scores(NodeResourcesBalancedAllocation(), pod("new", containers=[container(**new)]), state) == {
        "n": expected
    }


def test_balance_over_three_resources_is_the_standard_deviation() -> None:
    state = cluster([node("n", cpu="4", memory="8Gi", ephemeral_storage="10Gi")])
    score = NodeResourcesBalancedAllocation(resources={"cpu": 1, "memory": 1, "ephemeral-storage": 1})
    new = pod("new", cpu="2", memory="4Gi")
    deviation = math.sqrt(((0.5 - 1 / 3) ** 2 * 2 + (1 / 3) ** 2) / 3)
    after = int((1 - deviation) * 100)
    assert scores(score, new, state) == {"n": 50 + (50 + after - 100) // 2}


def test_pods_without_requests_get_no_balance_score() -> None:
    state = cluster([node("n")])
    assert NodeResourcesBalancedAllocation().score(cycle_of(pod("new"), state), state.alive) is None
    assert scores(NodeResourcesBalancedAllocation(), pod("new"), state) == {"n": 0}


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], {"none": 100, "one": 50, "two": 0}, id="fewer-are-better"),
        pytest.param([{"key": "k", "operator": "Exists"}], {"none": 100, "one": 100, "two": 0}, id="tolerated"),
        pytest.param([{"operator": "Exists"}], {"none": 100, "one": 100, "two": 100}, id="all-tolerated"),
        pytest.param(
            [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
            {"none": 100, "one": 50, "two": 0},
            id="toleration-of-another-effect",
        ),
    ],
)
def test_soft_taints(tolerations: list[dict[str, Any]], expected: dict[str, float]) -> None:
    nodes = [
        node("none", taints=["k:NoSchedule"]),
        node("one", taints=["k:PreferNoSchedule"]),
        node("two", taints=["k:PreferNoSchedule", "j:PreferNoSchedule"]),
    ]
    assert scores(TaintToleration(), pod("new", spec={"tolerations": tolerations}), cluster(nodes)) == expected


def preferred(*terms: tuple[int, str]) -> dict[str, Any]:
    return {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": weight, "preference": {"matchExpressions": [requirement("zone", "In", [zone])]}}
                    for weight, zone in terms
                ]
            }
        }
    }


def test_preferred_node_affinity_is_scaled_to_the_greatest_sum() -> None:
    state = cluster(zoned("a0", "b0", "c0"))
    new = pod("new", spec=preferred((30, "a"), (60, "b"), (30, "b")))
    assert scores(NodeAffinity(), new, state) == {"a0": 33, "b0": 100, "c0": 0}
    assert scores(NodeAffinity(), new, state, without=("b0",)) == {"a0": 100, "c0": 0}
    assert scores(NodeAffinity(), pod("plain"), state) == {"a0": 0, "b0": 0, "c0": 0}


def test_preferred_term_without_conditions_counts_nowhere() -> None:
    spec = {
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "preference": {}}]}
        }
    }
    assert scores(NodeAffinity(), pod("new", spec=spec), cluster(zoned("a0"))) == {"a0": 0}


def soft(*keys: str, **fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [spread(key, X, whenUnsatisfiable="ScheduleAnyway", **fields) for key in keys]}


def there(**counts: int) -> list[Pod]:
    return [pod(f"{name}-{n}", on=name, labels=X) for name, count in counts.items() for n in range(count)]


def test_soft_spread_prefers_emptier_zones() -> None:
    state = cluster(zoned("a0", "a1", "b0"), there(a0=2, b0=1))
    # two zones: weight ln 4 = 1.386; raw a 2.77 -> 3, b 1.39 -> 1; 100 * (3 + 1 - raw) / 3
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone")), state) == {"a0": 33, "a1": 33, "b0": 100}


def test_max_skew_waters_the_difference_down() -> None:
    state = cluster(zoned("a0", "b0"), there(a0=2, b0=1))
    # raw a 2.77 + 4 -> 7, b 1.39 + 4 -> 5; 100 * (7 + 5 - raw) / 7
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone", maxSkew=5)), state) == {"a0": 71, "b0": 100}


def test_spread_over_hosts_counts_each_node() -> None:
    state = cluster(zoned("a0", "a1", "b0"), there(a0=2, a1=1))
    # three nodes: weight ln 5 = 1.609; raw 3, 2, 0; 100 * (3 + 0 - raw) / 3
    found = scores(PodTopologySpread(), pod("new", spec=soft("kubernetes.io/hostname")), state)
    assert found == {"a0": 0, "a1": 33, "b0": 100}


def test_nodes_without_a_key_score_zero_and_empty_domains_alike() -> None:
    state = cluster([*zoned("a0", "b0"), node("bare")])
    assert scores(PodTopologySpread(), pod("new", spec=soft("zone")), state) == {"a0": 100, "b0": 100, "bare": 0}
    only_bare = scores(PodTopologySpread(), pod("new", spec=soft("zone")), state, without=("a0", "b0"))
    assert only_bare == {"bare": 0}


def test_domains_among_feasible_nodes_set_the_weight_but_all_pods_count() -> None:
    state = cluster(zoned("a0", "a1", "b0", "c0"), there(a1=3, b0=1))
    # a1 and c0 are not feasible: two domains, ln 4; zone a still holds 3 pods: raw 4.16 -> 4, b 1
    found = scores(PodTopologySpread(), pod("new", spec=soft("zone")), state, without=("a1", "c0"))
    assert found == {"a0": 25, "b0": 100}


def weighted(kind: str, weight: int, term: dict[str, Any]) -> dict[str, Any]:
    items = [{"weight": weight, "podAffinityTerm": term}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": items}}}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("podAffinity", {"a0": 100, "a1": 100, "b0": 50, "c0": 0}, id="drawn-to"),
        pytest.param("podAntiAffinity", {"a0": 0, "a1": 0, "b0": 50, "c0": 100}, id="kept-from"),
    ],
)
def test_preferences_of_the_new_pod(kind: str, expected: dict[str, float]) -> None:
    state = cluster(zoned("a0", "a1", "b0", "c0"), there(a0=1, a1=1, b0=1))
    new = pod("new", spec=weighted(kind, 10, pod_term("zone", X)))
    assert scores(InterPodAffinity(), new, state) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(weighted("podAffinity", 10, pod_term("zone", X)), {"a0": 100, "b0": 0}, id="welcome"),
        pytest.param(weighted("podAntiAffinity", 10, pod_term("zone", X)), {"a0": 0, "b0": 100}, id="unwelcome"),
        pytest.param(
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term("zone", X)]}}},
            {"a0": 100, "b0": 0},
            id="required-by-the-other",
        ),
        pytest.param(weighted("podAffinity", 10, pod_term("zone", {"app": "y"})), {"a0": 0, "b0": 0}, id="not-meant"),
    ],
)
def test_preferences_of_pods_already_there(spec: dict[str, Any], expected: dict[str, float]) -> None:
    state = cluster(zoned("a0", "b0"), [pod("owner", on="a0", spec=spec)])
    assert scores(InterPodAffinity(), pod("new", labels=X), state) == expected


def test_both_directions_add_up_with_their_signs() -> None:
    owner = pod("owner", on="a0", labels=X, spec=weighted("podAntiAffinity", 40, pod_term("zone", X)))
    state = cluster(zoned("a0", "b0", "c0"), [owner, pod("x", on="b0", labels=X)])
    new = pod("new", labels=X, spec=weighted("podAffinity", 30, pod_term("zone", X)))
    # a: 30 - 40 = -10, b: 30, c: 0, stretched from -10..30 to 0..100
    assert scores(InterPodAffinity(), new, state) == {"a0": 0, "b0": 100, "c0": 25}


def test_preferences_reach_other_namespaces_by_selector() -> None:
    state = cluster(zoned("a0", "b0"), [pod("x", namespace="red", on="a0", labels=X)], [namespace("red", team="r")])
    term = pod_term("zone", X, namespaceSelector={"matchLabels": {"team": "r"}})
    assert scores(InterPodAffinity(), pod("new", spec=weighted("podAffinity", 1, term)), state)["a0"] == 100
