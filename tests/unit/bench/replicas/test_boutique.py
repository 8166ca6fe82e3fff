"""The cases of Online Boutique: what they are made of, and that a plan of one is judged."""

from __future__ import annotations

from typing import Any

import pytest

from bench.replicas.boutique import CASES, GROUP, RULES, Case, manifests, run
from bench.replicas.cluster import read_cluster
from bench.replicas.evaluator import routing
from bench.replicas.problems import waiting_pods


def of(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in documents if item["kind"] == kind]


@pytest.mark.parametrize("case", [Case(), Case(replicas=4, nodes=200, cores=1)], ids=lambda case: case.name)
def test_sizes(case: Case) -> None:
    documents = manifests(case)
    cluster = read_cluster(documents)
    assert len(waiting_pods(documents)) == 11 * case.replicas
    assert len(cluster.nodes) == case.nodes
    zones = [node.zone for node in cluster.nodes.values()]
    assert {zones.count(zone) for zone in set(zones)} == {case.nodes // 4}
    assert {node.allocatable["cpu"] for node in cluster.nodes.values()} == {float(case.cores)}
    assert len(cluster.groups[GROUP]) == 15


@pytest.mark.parametrize(("prefer", "mode"), [("", "All"), ("PreferSameZone", "PreferSameZone")])
def test_every_workload_has_a_service(prefer: str, mode: str) -> None:
    documents = manifests(Case(prefer=prefer))
    cluster = read_cluster(documents)
    assert {routing(cluster, pod.workload, [pod]) for pod in waiting_pods(documents)} == {mode}
    assert len(cluster.services) == 11


@pytest.mark.parametrize("limits", [False, True])
def test_limits(limits: bool) -> None:
    edges = read_cluster(manifests(Case(limits=limits))).groups[GROUP]
    assert {edge.limit is not None for edge in edges} == {limits}


@pytest.mark.parametrize("rule", list(RULES))
def test_rules_are_about_the_own_replicas(rule: str) -> None:
    for deployment in of(manifests(Case(rule=rule)), "Deployment"):
        spec = deployment["spec"]["template"]["spec"]
        rules = {key: spec[key] for key in ("affinity", "topologySpreadConstraints") if key in spec}
        assert (str(rules).count("labelSelector") == 1) is (rule != "none")
        if rules:
            assert f"'{deployment['metadata']['name']}'" in str(rules)


def test_cases_are_told_apart_by_their_names() -> None:
    assert len({(case.name, case.rule, case.prefer) for case in CASES}) == len(CASES)


def test_a_plan_is_judged() -> None:
    found = run(Case(rule="required anti-affinity by host"))
    assert (found.waiting, found.broken) == (0, [])
    assert (found.evaluation.pods, found.evaluation.survive_node) == (33, 11)
    assert found.seconds > 0
