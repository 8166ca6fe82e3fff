"""PodTopologySpread's score: soft constraints, on values worked out by hand from kube-scheduler's formula."""

from __future__ import annotations

from typing import Any

from berth.kube.objects import Pod
from berth.scheduling.plugins.pod_topology_spread import PodTopologySpread
from tests.support.builders import node, pod, spread
from tests.support.filtering import cluster, scores, zoned

X = {"app": "x"}


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
