"""Whatever the cluster and the groups: no node over-committed, no rule broken, all or nothing, books in order.

The checks are written anew here, from the pods and nodes alone; they share no code with the planner.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.network.edges import pod_edges
from berth.scheduling.configuration import Profile
from tests.support import builders, kinds
from tests.support.pairs import group_bandwidth
from tests.support.placement import ZONE_COSTS, Lab, group_object, member, zoned

ZONES = {"z1": "r1", "z2": "r1", "z3": "r2", "z4": "r2"}
HOST = "kubernetes.io/hostname"
WORKLOADS = ("a", "b", "c", "d")


@dataclass
class Case:
    """One generated cluster with groups that come one after another."""

    nodes: list[tuple[str, int, int]]
    """zone, cores, bandwidth in Mbit/s (0: not advertised)"""
    threshold: float
    edges: list[tuple[str, str]]
    bandwidth: int
    limit: int | None
    groups: list[list[tuple[str, int, bool]]]
    """workload, milli-cores, keeps apart from its own workload"""
    partial: bool
    strategy: str


CASES = st.builds(
    Case,
    nodes=st.lists(
        st.tuples(st.sampled_from(sorted(ZONES)), st.integers(1, 6), st.sampled_from([0, 50, 200])),
        min_size=1,
        max_size=6,
    ),
    threshold=st.sampled_from([1.0, 1.0, 0.75]),
    edges=st.lists(st.sampled_from([("a", "b"), ("b", "c"), ("a", "c"), ("d", "a"), ("c", "d")]), unique=True),
    bandwidth=st.sampled_from([0, 20, 60]),
    limit=st.sampled_from([None, 0, 5, 20]),
    groups=st.lists(
        st.lists(
            st.tuples(st.sampled_from(WORKLOADS), st.sampled_from([100, 500, 1000, 2500]), st.booleans()),
            min_size=1,
            max_size=6,
        ),
        min_size=1,
        max_size=4,
    ),
    partial=st.booleans(),
    strategy=st.sampled_from(["berth", "phare"]),
)


def apart(group: str, workload: str) -> dict[str, Any]:
    labels = {"appgroup.diktyo.x-k8s.io": group, "appgroup.diktyo.x-k8s.io.workload": workload}
    term = builders.pod_term(HOST, labels)
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def workloads(case: Case) -> list[dict[str, Any]]:
    demand: dict[str, Any] = {}
    if case.bandwidth:
        demand["minBandwidth"] = f"{case.bandwidth}M"
    if case.limit is not None:
        demand["maxNetworkCost"] = case.limit
    return [kinds.workload(one, *(b for a, b in case.edges if a == one), **demand) for one in WORKLOADS]


@settings(max_examples=120, deadline=None)
@given(CASES)
def test_invariants(case: Case) -> None:
    nodes = []
    for number, (zone, cores, mbits) in enumerate(case.nodes):
        extra = {"network_aware_com__bandwidth": f"{mbits}M"} if mbits else {}
        nodes.append(zoned(f"n{number}", zone, ZONES[zone], cpu=cores, **extra))
    profile = Profile.model_validate({"usageThreshold": case.threshold, "gang": {"strategy": case.strategy}})
    lab = Lab(nodes, profile)
    pods: dict[str, tuple[Pod, int, bool]] = {}
    where: dict[str, str] = {}
    for number, members in enumerate(case.groups):
        name = f"g{number}"
        group = lab.group(group_object(name, *workloads(case), numMembers=len(WORKLOADS)))
        waiting = []
        for index, (workload, milli, alone) in enumerate(members):
            spec = apart(name, workload) if alone else {}
            pod = member(f"{name}-{workload}{index}", workload, group=name, cpu=f"{milli}m", spec=spec)
            pods[pod.metadata.uid] = (pod, milli, alone)
            waiting.append(pod)
        outcome = lab.place(group, *waiting, partial=case.partial)
        decided = {decision.pod.metadata.uid for decision in outcome.decisions}
        failed = {failure.pod.metadata.uid for failure in outcome.failures}
        assert decided | failed == {pod.metadata.uid for pod in waiting}
        assert not decided & failed
        assert case.partial or not decided or not failed, "neither all nor nothing"
        where |= {decision.pod.metadata.uid: decision.node for decision in outcome.decisions}
    state = lab.cache.state
    for uid in pods:
        record = state.record(uid)
        assert (record.node_name if record is not None else None) == where.get(uid)
        assert (uid in {m.uid for key in lab.cache.groups for m in lab.cache.members.placed(key)}) == (uid in where)
    _check_rooms(case, pods, where)
    _check_rules(lab, case, pods, where)


def _check_rooms(case: Case, pods: dict[str, tuple[Pod, int, bool]], where: dict[str, str]) -> None:
    used: defaultdict[str, int] = defaultdict(int)
    for uid, node in where.items():
        used[node] += pods[uid][1]
    for number, (_, cores, _) in enumerate(case.nodes):
        assert used[f"n{number}"] <= cores * 1000 * case.threshold + 1e-6


def _check_rules(lab: Lab, case: Case, pods: dict[str, tuple[Pod, int, bool]], where: dict[str, str]) -> None:
    zone_of = {f"n{number}": zone for number, (zone, _, _) in enumerate(case.nodes)}
    places: defaultdict[tuple[str, ...], list[bool]] = defaultdict(list)
    for uid, node in where.items():
        pod, _, alone = pods[uid]
        labels = pod.metadata.labels
        places[labels["appgroup.diktyo.x-k8s.io"], labels["appgroup.diktyo.x-k8s.io.workload"], node].append(alone)
    for (_, workload, node), together in places.items():
        assert len(together) == 1 or not any(together), f"{workload} keeps apart, yet two share {node}"
    taken: defaultdict[str, float] = defaultdict(float)
    for key, group in lab.cache.groups.items():
        members = lab.cache.members.of(key)
        for edge in pod_edges(group, members):
            origin, target = edge.dependent.node, edge.dependency.node
            if not origin or not target or origin == target or case.limit is None:
                continue
            one, other = zone_of[origin], zone_of[target]
            if one == other:
                continue
            cost = ZONE_COSTS.zones.get((one, other), ZONE_COSTS.regions.get((ZONES[one], ZONES[other])))
            assert cost is not None
            assert cost <= case.limit, f"{origin} -> {target} costs {cost}, allowed {case.limit}"
        for pair, amount in group_bandwidth(pod_edges(group, members)).items():
            for node in pair:
                taken[node] += amount
    for number, (_, _, mbits) in enumerate(case.nodes):
        if mbits:
            assert taken[f"n{number}"] <= mbits * 1e6 * case.threshold + 1
