"""Hard topology spread constraints."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Node, Pod
from berth.scheduling.plugins.pod_topology_spread import REASON, REASON_LABEL, PodTopologySpread
from tests.support.builders import node, pod, required_affinity, spread
from tests.support.filtering import cluster, cycle_of, passing, rejected

X = {"app": "x"}


def zoned(*zones: str) -> list[Node]:
    """Nodes a0, a1, b0 ... one per letter given; "-" stands for a node without zone."""
    seen: dict[str, int] = {}
    nodes = []
    for zone in zones:
        number = seen[zone] = seen.get(zone, -1) + 1
        nodes.append(node(f"{zone}{number}", labels={} if zone == "-" else {"zone": zone}))
    return nodes


def there(**counts: int) -> list[Pod]:
    """Pods with app=x by node name."""
    return [pod(f"{name}-{n}", on=name, labels=X) for name, count in counts.items() for n in range(count)]


@pytest.mark.parametrize(
    ("zones", "pods", "fields", "names"),
    [
        pytest.param("ab", {}, {}, {"a0", "b0"}, id="empty-cluster"),
        pytest.param("ab", {"a0": 1}, {}, {"b0"}, id="skew-1"),
        pytest.param("ab", {"a0": 1}, {"maxSkew": 2}, {"a0", "b0"}, id="skew-2-allows-one-more"),
        pytest.param("ab", {"a0": 2}, {"maxSkew": 2}, {"b0"}, id="skew-2-not-two-more"),
        pytest.param("aab", {"a0": 1}, {}, {"b0"}, id="the-domain-counts-not-the-node"),
        pytest.param("abc", {"a0": 1, "b0": 1}, {}, {"c0"}, id="emptiest-of-three"),
        pytest.param("ab-", {"a0": 1}, {}, {"b0"}, id="node-without-key"),
        pytest.param("ab", {"a0": 1, "b0": 1}, {}, {"a0", "b0"}, id="level"),
        pytest.param("ab", {"a0": 1, "b0": 1}, {"minDomains": 3}, set(), id="fewer-domains-than-min"),
        pytest.param("ab", {"a0": 1, "b0": 1}, {"minDomains": 2}, {"a0", "b0"}, id="as-many-as-min"),
        pytest.param("ab", {"a0": 1}, {"minDomains": 3, "maxSkew": 2}, {"a0", "b0"}, id="min-counts-as-zero"),
    ],
)
def test_skew(zones: str, pods: dict[str, int], fields: dict[str, Any], names: set[str]) -> None:
    state = cluster(zoned(*zones), there(**pods))
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [spread("zone", X, **fields)]})
    assert passing(PodTopologySpread(), new, state) == names


def test_reasons_tell_missing_labels_from_skew() -> None:
    state = cluster(zoned("a", "b", "-"), there(a0=1))
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [spread("zone", X)]})
    assert rejected(PodTopologySpread(), new, state) == {"a0": [REASON], "-0": [REASON_LABEL]}


def test_pods_of_other_namespaces_deleted_ones_and_strangers_do_not_count() -> None:
    others = [
        pod("elsewhere", namespace="other", on="a0", labels=X),
        pod("deleted", on="a0", labels=X, deleting=True),
        pod("stranger", on="a0", labels={"app": "y"}),
    ]
    state = cluster(zoned("a", "b"), others)
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [spread("zone", X)]})
    assert passing(PodTopologySpread(), new, state) == {"a0", "b0"}


def test_pod_that_does_not_match_itself_adds_nothing() -> None:
    state = cluster(zoned("a", "b"), there(a0=1))
    new = pod("new", labels={"app": "y"}, spec={"topologySpreadConstraints": [spread("zone", X)]})
    assert passing(PodTopologySpread(), new, state) == {"a0", "b0"}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param({}, {"a0", "b0"}, id="honoured-by-default"),
        pytest.param({"nodeAffinityPolicy": "Honor"}, {"a0", "b0"}, id="honoured"),
        pytest.param({"nodeAffinityPolicy": "Ignore"}, set(), id="ignored"),
    ],
)
def test_node_affinity_policy(fields: dict[str, Any], names: set[str]) -> None:
    # Zone c is empty, but out of the pod's reach: only when it counts are a and b too full.
    state = cluster(zoned("a", "b", "c"), there(a0=1, b0=1))
    spec = {
        "topologySpreadConstraints": [spread("zone", X, **fields)],
        "affinity": required_affinity(("zone", "In", ["a", "b"])),
    }
    assert passing(PodTopologySpread(), pod("new", labels=X, spec=spec), state) - {"c0"} == names


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        pytest.param({}, set(), id="ignored-by-default"),
        pytest.param({"nodeTaintsPolicy": "Ignore"}, set(), id="ignored"),
        pytest.param({"nodeTaintsPolicy": "Honor"}, {"a0", "b0"}, id="honoured"),
    ],
)
def test_node_taints_policy(fields: dict[str, Any], names: set[str]) -> None:
    state = cluster(zoned("a", "b"), there(a0=1, b0=1))
    state.update_node(node("c0", labels={"zone": "c"}, taints=["k:NoSchedule"]))
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [spread("zone", X, **fields)]})
    assert passing(PodTopologySpread(), new, state) - {"c0"} == names


def test_match_label_keys_spread_each_version_on_its_own() -> None:
    old = pod("old", on="a0", labels={**X, "version": "1"})
    state = cluster(zoned("a", "b"), [old])
    constraint = spread("zone", X, matchLabelKeys=["version"])
    for version, names in (("1", {"b0"}), ("2", {"a0", "b0"})):
        new = pod("new", labels={**X, "version": version}, spec={"topologySpreadConstraints": [constraint]})
        assert passing(PodTopologySpread(), new, state) == names


def test_all_constraints_hold_and_nodes_lacking_any_key_are_not_counted() -> None:
    nodes = [
        node("a1", labels={"zone": "a", "rack": "1"}),
        node("b1", labels={"zone": "b", "rack": "1"}),
        node("b2", labels={"zone": "b", "rack": "2"}),
        node("c", labels={"zone": "c"}),  # no rack: its zone is no domain, or a and b would be too full
    ]
    state = cluster(nodes, there(a1=1, b1=1))
    constraints = [spread("zone", X), spread("rack", X)]
    new = pod("new", labels=X, spec={"topologySpreadConstraints": constraints})
    assert passing(PodTopologySpread(), new, state) == {"b2"}


def test_soft_constraints_reject_nothing() -> None:
    state = cluster(zoned("a", "b"), there(a0=3))
    constraint = spread("zone", X, whenUnsatisfiable="ScheduleAnyway")
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [constraint]})
    assert PodTopologySpread().filter(cycle_of(new, state)) == ()


def test_empty_selector_counts_no_pod_but_the_pod_itself() -> None:
    # kube-scheduler's reading; with the selector matching all pods, zone a would be too full.
    state = cluster(zoned("a", "b"), there(a0=3))
    new = pod("new", labels=X, spec={"topologySpreadConstraints": [spread("zone", {})]})
    assert passing(PodTopologySpread(), new, state) == {"a0", "b0"}
