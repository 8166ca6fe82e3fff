"""InterPodAffinity beside many tenants: their rules, and their namespaces, cost the others nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from berth.scheduling.cache.terms import AffinityTerm
from berth.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from tests.support.builders import pod, pod_term
from tests.support.filtering import cluster, cycle_of, scores, zoned

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
