"""The load: one pod of each workload as in the examples, or several with the rules of a Helm chart."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.live.workload import application, services

GROUP = "appgroup.diktyo.x-k8s.io"
WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_workload_has_its_replicas(replicas: int) -> None:
    group, pods = application("shop", scheduler="berth-scheduler", replicas=replicas)
    assert group["metadata"]["name"] == "shop"
    count = Counter(pod["metadata"]["labels"][WORKLOAD] for pod in pods)
    assert set(count.values()) == {replicas}
    assert len(count) == len(group["spec"]["workloads"]) == 11
    assert len({pod["metadata"]["name"] for pod in pods}) == 11 * replicas
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"berth-scheduler"}


def test_a_single_replica_has_no_rules_and_keeps_its_limits() -> None:
    group, pods = application("shop", scheduler="berth-scheduler")
    assert not any("affinity" in pod["spec"] or "topologySpreadConstraints" in pod["spec"] for pod in pods)
    assert "maxNetworkCost" in str(group)


def test_replicas_avoid_their_own_workload_of_their_own_application_and_no_limit_forbids_it() -> None:
    group, pods = application("shop", scheduler="berth-scheduler", replicas=3)
    assert "maxNetworkCost" not in str(group)
    for pod in pods:
        labels, spec = pod["metadata"]["labels"], pod["spec"]
        own = {"matchLabels": {GROUP: "shop", WORKLOAD: labels[WORKLOAD]}}
        (rule,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        term = rule["podAffinityTerm"]
        assert (rule["weight"], term["topologyKey"], term["labelSelector"]) == (100, "kubernetes.io/hostname", own)
        (spread,) = spec["topologySpreadConstraints"]
        assert (spread["whenUnsatisfiable"], spread["topologyKey"]) == ("ScheduleAnyway", "topology.kubernetes.io/zone")
        assert spread["labelSelector"] == own


def test_each_workload_of_an_application_has_a_service_that_selects_its_replicas() -> None:
    group, pods = application("app", scheduler="s", replicas=3)
    made = services(pods)
    assert len(made) == len(group["spec"]["workloads"]) == 11
    for service in made:
        selector = service["spec"]["selector"].items()
        assert sum(selector <= pod["metadata"]["labels"].items() for pod in pods) == 3
