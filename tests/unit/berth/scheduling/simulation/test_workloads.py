"""Workloads become the pods that their controllers would create, and live pods of theirs count."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from tests.support import builders, plans


def pods_of(*manifests: dict[str, Any], live: dict[str, Any] | None = None) -> list[Pod]:
    inputs, problems = plans.inputs_of(*manifests, live=live)
    assert problems == []
    return [pod for pod in inputs.of("Pod") if not pod.spec.node_name]


def names(*manifests: dict[str, Any], live: dict[str, Any] | None = None) -> list[str]:
    return [pod.metadata.name for pod in pods_of(*manifests, live=live)]


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param("Deployment", {"replicas": 2}, ["web-1", "web-2"], id="Deployment"),
        pytest.param("Deployment", {}, ["web-1"], id="one replica by default"),
        pytest.param("Deployment", {"replicas": 0}, [], id="scaled to nothing"),
        pytest.param("ReplicaSet", {"replicas": 1}, ["web-1"], id="ReplicaSet"),
        pytest.param("StatefulSet", {"replicas": 2}, ["web-0", "web-1"], id="StatefulSet counts from 0"),
        pytest.param("StatefulSet", {"replicas": 2, "ordinals": {"start": 5}}, ["web-5", "web-6"], id="ordinals"),
        pytest.param("Job", {}, ["web-1"], id="Job"),
        pytest.param("Job", {"parallelism": 3}, ["web-1", "web-2", "web-3"], id="parallel Job"),
        pytest.param("Job", {"parallelism": 3, "completions": 2}, ["web-1", "web-2"], id="fewer completions"),
        pytest.param("Job", {"suspend": True}, [], id="suspended Job"),
        pytest.param("CronJob", {"job": {"parallelism": 2}}, ["web-1", "web-2"], id="one run of a CronJob"),
        pytest.param("CronJob", {"suspend": True}, [], id="suspended CronJob"),
    ],
)
def test_pods_of_a_workload(kind: str, spec: dict[str, Any], expected: list[str]) -> None:
    assert names(plans.workload(kind, "web", spec=spec)) == expected


def test_a_pod_carries_what_its_template_says() -> None:
    manifest = plans.workload("Deployment", "web", group="shop", nodeSelector={"disk": "ssd"}, cpu="500m")
    [pod] = pods_of(manifest)
    assert pod.spec.scheduler_name == "berth-scheduler"
    assert pod.spec.node_selector == {"disk": "ssd"}
    assert pod.spec.containers[0].resources.requests == {"cpu": "500m"}
    assert pod.metadata.labels == plans.labels("shop", "web", app="web")
    assert pod.metadata.namespace == "default"
    assert [(owner.kind, owner.name, owner.controller) for owner in pod.metadata.owner_references] == [
        ("Deployment", "web", True)
    ]


def test_replicas_do_not_share_objects() -> None:
    first, second = pods_of(plans.workload("Deployment", "web", spec={"replicas": 2}))
    first.spec.node_selector["a"] = "b"
    assert second.spec.node_selector == {}
    assert first.metadata.uid != second.metadata.uid


def test_a_replication_controller_selects_by_plain_labels() -> None:
    manifest = plans.workload("Deployment", "web", spec={"selector": {"app": "web"}})
    manifest |= {"apiVersion": "v1", "kind": "ReplicationController"}
    assert names(manifest) == ["web-1"]


def test_claims_of_a_stateful_set() -> None:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}}
    manifest = plans.workload("StatefulSet", "db", spec={"replicas": 2, "volumeClaimTemplates": [template]})
    inputs, problems = plans.inputs_of(manifest)
    assert problems == []
    assert sorted(inputs.objects["PersistentVolumeClaim"]) == ["default/data-db-0", "default/data-db-1"]
    volumes = [pod.spec.volumes for pod in inputs.of("Pod")]
    assert [item.persistent_volume_claim.claim_name for [item] in volumes if item.persistent_volume_claim] == [
        "data-db-0",
        "data-db-1",
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"replicas": "3"}, "spec.replicas: must be a whole number without quotes, found '3'", id="text"),
        pytest.param({"replicas": -1}, "spec.replicas: -1 is not between 0 and 100000; correct", id="negative"),
        pytest.param({"replicas": True}, "spec.replicas: must be a whole number without quotes", id="boolean"),
        pytest.param({"replicas": 10**9}, "spec.replicas: 1000000000 is not between", id="a slip of the pen"),
        pytest.param({"template": None}, "spec.template: missing; a workload has a pod template", id="no template"),
        pytest.param({"template": "x"}, "spec.template: must be a map with metadata and spec", id="template is text"),
        pytest.param(
            {"selector": {"matchLabels": {"app": "x"}}}, "spec.selector: does not match the labels", id="other"
        ),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}},
            "spec.selector.matchExpressions[0].operator: 'Like' is none of In",
            id="selector operator",
        ),
    ],
)
def test_a_wrong_workload_is_a_problem(spec: dict[str, Any], said: str) -> None:
    _, problems = plans.inputs_of(plans.workload("Deployment", "web", spec=spec))
    assert any(said in str(problem) for problem in problems), [str(problem) for problem in problems]


def live_pods(count: int, **labels: str) -> dict[str, Any]:
    return {"Pod": [builders.pod(f"web-x{n}", on="n1", labels={"app": "web", **labels}) for n in range(count)]}


@pytest.mark.parametrize(
    ("live", "expected"),
    [(0, ["web-1", "web-2", "web-3"]), (2, ["web-1"]), (3, []), (5, [])],
    ids=["none", "some", "all", "more than wanted"],
)
def test_live_pods_of_the_workload_count(live: int, expected: list[str]) -> None:
    manifest = plans.workload("Deployment", "web", spec={"replicas": 3})
    assert names(manifest, live=live_pods(live)) == expected


def test_live_pods_of_a_job_are_known_by_the_label_of_its_controller() -> None:
    live = {"Pod": [builders.pod("web-x", on="n1", labels={"job-name": "web"})]}
    assert names(plans.workload("Job", "web", spec={"parallelism": 2}), live=live) == ["web-1"]


def test_a_pod_that_is_in_the_cluster_stays_as_it_is_there() -> None:
    live = {"Pod": [builders.pod("web", on="n1")]}
    inputs, problems = plans.inputs_of(plans.pod("web"), live=live)
    assert problems == []
    assert [pod.spec.node_name for pod in inputs.of("Pod")] == ["n1"]
    assert inputs.notes == ["Pod default/web is in the cluster and stays as it is there"]


def test_a_pod_that_has_ended_in_the_cluster_is_made_anew() -> None:
    live = {"Pod": [builders.pod("web", on="n1", phase="Failed")]}
    assert names(plans.pod("web"), live=live) == ["web"]


def test_live_pods_of_others_do_not_count() -> None:
    other_namespace = {"Pod": [builders.pod("web-x", namespace="other", on="n1", labels={"app": "web"})]}
    other_labels = {"Pod": [builders.pod("web-x", on="n1", labels={"app": "api"})]}
    ended = {"Pod": [builders.pod("web-x", on="n1", labels={"app": "web"}, phase="Succeeded")]}
    for live in (other_namespace, other_labels, ended):
        assert "web-1" in names(plans.workload("Deployment", "web"), live=live)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param("Deployment", "Job", ["web-1", "web-2", "web-3", "web-4"], id="both with names of ours"),
        pytest.param("StatefulSet", "Deployment", ["web-0", "web-1", "web-2", "web-3"], id="one with names of its own"),
        pytest.param("Deployment", "StatefulSet", ["web-0", "web-1", "web-2", "web-3"], id="which is read last"),
    ],
)
def test_workloads_of_one_name_have_all_their_pods(first: str, second: str, expected: list[str]) -> None:
    replicas = {"replicas": 2, "parallelism": 2}
    found = pods_of(*(plans.workload(kind, "web", spec=replicas) for kind in (first, second)))
    assert sorted(pod.metadata.name for pod in found) == expected
    kinds = {pod.metadata.name: pod.metadata.owner_references[0].kind for pod in found}
    assert sorted(kinds.values()) == sorted((first, first, second, second))
    if "StatefulSet" in (first, second):
        assert [kinds["web-0"], kinds["web-1"]] == ["StatefulSet", "StatefulSet"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.parametrize("live", [True, False], ids=["in the cluster", "in a manifest"])
def test_a_pod_of_another_keeps_its_name_and_node(kind: str, live: bool) -> None:
    name, ours = ("web-1", ["web-2"]) if kind == "Deployment" else ("web-0", ["web-1"])
    there = {"Pod": [builders.pod(name, on="n1", labels={"app": "api"})]} if live else None
    stated = [] if live else [plans.pod(name, nodeName="n1")]
    inputs, problems = plans.inputs_of(*stated, plans.workload(kind, "web"), live=there)
    assert problems == []
    assert {pod.metadata.name: pod.spec.node_name for pod in inputs.of("Pod")} == {name: "n1", ours[0]: ""}


def test_pods_of_a_stateful_set_that_are_stated_with_it_stay_where_they_are() -> None:
    stated = {**plans.pod("web-1", nodeName="n1")}
    stated["metadata"]["labels"] = {"app": "web"}
    inputs, problems = plans.inputs_of(plans.workload("StatefulSet", "web", spec={"replicas": 2}), stated)
    assert problems == []
    assert {pod.metadata.name: pod.spec.node_name for pod in inputs.of("Pod")} == {"web-0": "", "web-1": "n1"}
