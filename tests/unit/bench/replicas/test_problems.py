"""The generated problems: the same ones every time, small, valid, and with everything in them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.evaluator import routing
from bench.replicas.problems import GROUP, problem, waiting_pods
from bench.replicas.rules import violations
from berth.cli.plan.run import FORECASTS, plan

SEEDS = range(150)


@pytest.fixture(scope="module")
def problems() -> list[list[dict[str, Any]]]:
    return [problem(seed, grown=seed % 3 == 0) for seed in SEEDS]


def test_a_seed_is_one_problem() -> None:
    assert problem(7) == problem(7)
    assert problem(7) != problem(8)


def test_sizes(problems: list[list[dict[str, Any]]]) -> None:
    for documents in problems:
        kinds = [item["kind"] for item in documents]
        assert 3 <= kinds.count("Deployment") <= 5
        assert 4 <= kinds.count("Node") <= 6
        cluster = read_cluster(documents)
        assert 2 <= len({node.zone for node in cluster.nodes.values()} - {""}) <= 3
        members = {name: len(pods) for name, pods in cluster.members(GROUP).items()}
        for pod in waiting_pods(documents):
            members[pod.workload] = members.get(pod.workload, 0) + 1
        assert set(members.values()) <= {1, 2, 3}


def test_what_has_a_node_is_there_by_the_rules(problems: list[list[dict[str, Any]]]) -> None:
    clusters = [read_cluster(documents) for documents in problems]
    assert all(violations(cluster) == [] for cluster in clusters)
    assert any(cluster.members(GROUP) for cluster in clusters)


@pytest.mark.parametrize(
    "mode", ["All", "PreferSameZone", "PreferSameNode", "Local"], ids=["all", "zone", "node", "local"]
)
def test_every_routing_is_there(problems: list[list[dict[str, Any]]], mode: str) -> None:
    for documents in problems:
        cluster = read_cluster(documents)
        for pod in waiting_pods(documents):
            if routing(cluster, pod.workload, [pod]) == mode:
                return
    pytest.fail("no problem has it")


@pytest.mark.parametrize(
    "words",
    [
        "podAntiAffinity': {'required", "podAntiAffinity': {'preferred", "podAffinity': {'required",
        "podAffinity': {'preferred",
        "DoNotSchedule", "ScheduleAnyway", "minDomains", "nodeTaintsPolicy", "nodeAffinityPolicy", "hostPort",
        "nodeSelector", "tolerations", "taints", "maxNetworkCost", "'clusterIP': 'None'", "stranger-0", "-old-0",
    ],
)  # fmt: skip
def test_every_rule_is_there(problems: list[list[dict[str, Any]]], words: str) -> None:
    assert any(words in str(documents) for documents in problems)


def test_costs_are_those_of_the_cheapest_paths(problems: list[list[dict[str, Any]]]) -> None:
    for documents in problems:
        cluster = read_cluster(documents)
        for costs in (cluster.zone_costs, cluster.region_costs):
            for (start, middle), first in costs.items():
                for (begin, end), second in costs.items():
                    if begin == middle and start != end and (start, end) in costs:
                        assert costs[start, end] <= first + second


@pytest.mark.parametrize("seed", range(12))
def test_berth_plan_reads_them(seed: int) -> None:
    """No problem in the input, the same pods by name, and the same costs after its forecasts."""
    documents = problem(seed, grown=seed % 2 == 1)
    made = plan([("problem.yaml", yaml.safe_dump_all(documents))], forecasts=FORECASTS)
    names = {pod["name"] for part in ("pods", "notPlaced") for pod in made[part]}
    assert names == {pod.name for pod in waiting_pods(documents)}
    judged = read_cluster(documents, made)
    assert {pod.name for pod in judged.pods} == {pod.name for pod in read_cluster(documents).pods} | {
        pod["name"] for pod in made["pods"]
    }


def test_pods_that_wait_have_the_names_that_a_plan_gives_them() -> None:
    template: Manifest = {"metadata": {}, "spec": {}}
    replicas = {"metadata": {"name": "db"}, "spec": {"replicas": 2, "template": template}}
    lone = {"kind": "Pod", "metadata": {"name": "lone"}, "spec": {}}
    bound = {"kind": "Pod", "metadata": {"name": "bound"}, "spec": {"nodeName": "n"}}
    found = waiting_pods(
        [{"items": [{"kind": "StatefulSet", **replicas}, lone, bound]}, {"kind": "Deployment", **replicas}]
    )
    assert [(pod.name, pod.stateful) for pod in found] == [
        ("db-0", True), ("db-1", True), ("lone", False), ("db-1", False), ("db-2", False),
    ]  # fmt: skip


def test_preferences_are_the_only_difference() -> None:
    wishes = taints = 0
    for seed in range(20):
        plain, wishing = problem(seed, grown=True), problem(seed, grown=True, preferences=True)
        for item in wishing:
            spec = item["spec"].get("template", item)["spec"]
            wishes += spec.get("affinity", {}).pop("nodeAffinity", None) is not None
            if not spec.get("affinity", {"": ""}):
                del spec["affinity"]
            if item["kind"] == "Node":
                kept = [taint for taint in spec.get("taints", ()) if taint["key"] != "soft"]
                taints += len(spec.pop("taints", ())) - len(kept)
                item["spec"] |= {"taints": kept} if kept else {}
        assert wishing == plain
    assert wishes > 10
    assert taints > 10
