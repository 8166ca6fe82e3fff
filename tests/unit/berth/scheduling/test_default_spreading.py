"""Constraints of pods that state none."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from berth.kube.objects import OwnerReference, Pod
from berth.scheduling.configuration import SYSTEM_DEFAULT_CONSTRAINTS
from berth.scheduling.default_spreading import default_constraints, replicas_of
from tests.support import builders


def owned(kind: str, **labels: str) -> Pod:
    pod = builders.pod("p", labels=labels)
    pod.metadata.owner_references = [OwnerReference(kind=kind, name="x", uid="x", controller=True)]
    return pod


@pytest.mark.parametrize(
    ("kind", "other", "same"),
    [
        pytest.param("ReplicaSet", {"app": "a", "pod-template-hash": "1"}, True, id="same revision"),
        pytest.param("ReplicaSet", {"app": "a", "pod-template-hash": "2"}, False, id="other revision"),
        pytest.param("ReplicaSet", {"pod-template-hash": "1"}, False, id="another app"),
    ],
)
def test_pods_of_a_replica_set_have_its_labels(kind: str, other: dict[str, str], same: bool) -> None:
    selector = replicas_of(owned(kind, app="a", **{"pod-template-hash": "1"}))
    assert selector.matches(other) is same


def test_pods_of_a_stateful_set_are_replicas_whatever_their_name_and_revision() -> None:
    own = {"statefulset.kubernetes.io/pod-name": "db-0", "apps.kubernetes.io/pod-index": "0"}
    selector = replicas_of(owned("StatefulSet", app="db", **own, **{"controller-revision-hash": "db-1"}))
    assert selector.matches({"app": "db", "statefulset.kubernetes.io/pod-name": "db-1"})


def test_pods_with_thousands_of_labels_leave_nothing() -> None:
    def pod(number: int) -> Pod:
        return owned("ReplicaSet", **{f"label-{number}-{place}": "x" * 50 for place in range(4000)})

    assert replicas_of(pod(0)).matches(pod(0).metadata.labels)
    tracemalloc.start()
    try:
        for number in range(1, 10):
            replicas_of(pod(number))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("pod", [owned("Job", app="a"), owned("ReplicaSet"), builders.pod("p", labels={"app": "a"})])
def test_nobody_to_know_replicas_by(pod: Pod) -> None:
    assert replicas_of(pod).nothing
    assert default_constraints(pod, SYSTEM_DEFAULT_CONSTRAINTS) == ()


def test_the_system_defaults_are_those_of_kube_scheduler() -> None:
    found = default_constraints(owned("ReplicaSet", app="a"), SYSTEM_DEFAULT_CONSTRAINTS)
    assert [(each.topology_key, each.max_skew, each.honour_affinity, each.honour_taints) for each in found] == [
        ("kubernetes.io/hostname", 3, True, False),
        ("topology.kubernetes.io/zone", 5, True, False),
    ]
