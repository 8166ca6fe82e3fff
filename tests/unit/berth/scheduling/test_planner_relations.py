"""Joint plans whose pods have random rules about each other: every rule holds in the end, whatever was moved."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import builders
from tests.support.placement import Lab, chain, group_object, member, where, zoned

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REGIONS = {"z1": "r1", "z2": "r1", "z3": "r2"}
EDGES = {("a", "b"), ("b", "c")}
LIMIT = 5
"""Admits z1 with z2, and nothing across regions."""


class Rule(NamedTuple):
    """A pod of a workload, with at most one rule towards the pods of another."""

    workload: str
    kind: str
    key: str
    target: str
    milli: int

    def spec(self) -> dict[str, Any]:
        """The rule as fields of a pod spec."""
        labels = {"appgroup.diktyo.x-k8s.io.workload": self.target}
        if self.kind == "none":
            return {}
        if self.kind == "spread":
            return {"topologySpreadConstraints": [builders.spread(self.key, labels)]}
        term = builders.pod_term(self.key, labels)
        return {"affinity": {self.kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


RULE = st.builds(
    Rule,
    workload=st.sampled_from("abc"),
    kind=st.sampled_from(["none", "podAffinity", "podAntiAffinity", "spread"]),
    key=st.sampled_from([ZONE, HOST]),
    target=st.sampled_from("abc"),
    milli=st.sampled_from([200, 900]),
)
NODES = st.lists(st.tuples(st.sampled_from(sorted(REGIONS)), st.integers(1, 4)), min_size=1, max_size=5)


@settings(max_examples=150, deadline=None)
@given(
    nodes=NODES,
    rounds=st.lists(st.lists(RULE, min_size=1, max_size=5), min_size=1, max_size=3),
    partial=st.booleans(),
    limited=st.booleans(),
)
def test_rules_between_pods_hold(
    nodes: list[tuple[str, int]], rounds: list[list[Rule]], partial: bool, limited: bool
) -> None:
    zone = {f"n{number}": name for number, (name, _) in enumerate(nodes)}
    lab = Lab([zoned(f"n{number}", name, REGIONS[name], cpu=cores) for number, (name, cores) in enumerate(nodes)])
    shop = lab.group(group_object("shop", *chain("a", "b", "c", **({"maxNetworkCost": LIMIT} if limited else {}))))
    rules: dict[str, Rule] = {}
    placed: dict[str, str] = {}
    for wave in rounds:
        pods = []
        for rule in wave:
            name = f"p{len(rules)}"
            rules[name] = rule
            pods.append(member(name, rule.workload, cpu=f"{rule.milli}m", spec=rule.spec()))
        outcome = lab.place(shop, *pods, partial=partial)
        assert partial or not outcome.decisions or not outcome.failures
        placed |= where(outcome)
    assert lab.over_committed() == []
    assert len(placed) == lab.cache.state.pod_count

    def domain(name: str, key: str) -> str:
        return placed[name] if key == HOST else zone[placed[name]]

    for name in placed:
        rule = rules[name]
        together = [
            other
            for other in placed
            if other != name
            and rules[other].workload == rule.target
            and domain(other, rule.key) == domain(name, rule.key)
        ]
        if rule.kind == "podAntiAffinity":
            assert not together, f"{name} keeps apart from {together}"
        if rule.kind == "podAffinity":
            # The first pod of those that select themselves may stand alone, as in Kubernetes.
            assert together or rule.target == rule.workload, f"{name} is near nobody"
    for one in placed:
        for other in placed:
            if limited and (rules[one].workload, rules[other].workload) in EDGES:
                ends = zone[placed[one]], zone[placed[other]]
                assert REGIONS[ends[0]] == REGIONS[ends[1]], f"{one} -> {other} crosses regions"
