"""InterPodAffinity beside many tenants: their rules, and their namespaces, cost the others nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.plugins import inter_pod_affinity
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from tests.support.builders import pod, pod_term
from tests.support.filtering import cluster, cycle_of, passing, scores, zoned

X = {"app": "x"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
RULES = {
    kind: {REQUIRED: [pod_term("zone", X)], PREFERRED: [{"weight": 5, "podAffinityTerm": pod_term("zone", X)}]}
    for kind in ("podAffinity", "podAntiAffinity")
}


@pytest.mark.parametrize("rules", [{}, {"podAntiAffinity": RULES["podAntiAffinity"]}], ids=["plain", "with rules"])
def test_rules_of_other_tenants_are_not_looked_at(monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any]) -> None:
    others = [
        pod("x", namespace=f"tenant-{number}", on="a0", labels=X, spec={"affinity": RULES}) for number in range(200)
    ]
    state = cluster(zoned("a0", "b0"), others)
    new = pod("new", labels=X, spec={"affinity": rules})
    looks, selects = 0, AffinityTerm.selects_namespace

    def counting(term: AffinityTerm, namespace: str, labels: Mapping[str, str] | None) -> bool:
        nonlocal looks
        looks += 1
        return selects(term, namespace, labels)

    monkeypatch.setattr(AffinityTerm, "selects_namespace", counting)
    InterPodAffinity().filter(cycle_of(new, state))
    scores(InterPodAffinity(), new, state)
    assert looks <= 10


def test_terms_of_placed_pods_are_added_up_by_topology_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of terms that mean a pod cost a look each, and one sum over the nodes for each key that nodes have."""

    def meaning(number: int, key: str) -> dict[str, Any]:
        expressions = [{"key": f"no-{number}", "operator": "DoesNotExist"}]
        term = {"topologyKey": key, "labelSelector": {"matchExpressions": expressions}, "namespaceSelector": {}}
        weighted = [{"weight": 5, "podAffinityTerm": term}]
        anti = {REQUIRED: [term] if number < 100 else [], PREFERRED: weighted}
        return {"affinity": {"podAntiAffinity": anti, "podAffinity": {PREFERRED: weighted}}}

    keys = ["zone", "kubernetes.io/hostname", "none-has-this"]
    others = [
        pod(f"x{number}", namespace="bad", on="a0" if number < 100 else "b0", spec=meaning(number, keys[number % 3]))
        for number in range(300)
    ]
    state = cluster(zoned("a0", "a1", "b0", "b1", "c0"), others)
    sums: list[str] = []
    for name in ("nodes_sharing", "domain_sums"):
        plain = getattr(inter_pod_affinity, name)

        def counted(*arguments: Any, plain: Any = plain, name: str = name) -> Any:
            sums.append(name)
            return plain(*arguments)

        monkeypatch.setattr(inter_pod_affinity, name, counted)
    assert passing(InterPodAffinity(), pod("new"), state) == {"b0", "b1", "c0"}
    InterPodAffinity().score(cycle_of(pod("new"), state), state.alive)
    assert (sums.count("nodes_sharing"), sums.count("domain_sums")) == (2, 2)
