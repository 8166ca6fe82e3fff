"""What a copy of pods shares is let go with the pods: their owners come and go for ever."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_asyncio.client import Configuration

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.objects import Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS


def document(name: str, owner: str, *, uid: str = "", version: int = 1) -> dict[str, Any]:
    owners = [{"kind": "Job", "name": owner, "uid": owner}] if owner else []
    metadata = {"name": name, "namespace": "ns", "uid": uid or name, "resourceVersion": str(version)}
    return {"kind": "Pod", "metadata": {**metadata, "labels": {"job": owner}, "ownerReferences": owners}}


def line(kind: str, body: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": body})


def models(reflector: Reflector[Pod]) -> dict[str, Pod]:
    assert reflector._interning is not None
    return reflector._interning._models


def fresh() -> Reflector[Pod]:
    client = ApiClient(Connection(configuration=Configuration(host="https://unused.invalid"), namespace="default"))
    return Reflector(client, PODS)


@pytest.mark.parametrize("listed", [False, True], ids=["watch", "list"])
def test_jobs_that_end_leave_nothing(listed: bool) -> None:
    reflector = fresh()
    for number in range(20):
        body = document(f"p{number}", f"job-{number}")
        reflector._apply(line("ADDED", body))
        if listed:
            reflector._replace({})
        else:
            reflector._apply(line("DELETED", body))
    assert (reflector.objects, models(reflector)) == ({}, {})


def test_pods_in_the_copy_share() -> None:
    reflector = fresh()
    for name in "ab":
        reflector._apply(line("ADDED", document(name, "job")))
    first, second = reflector.objects.values()
    assert first.metadata.labels is second.metadata.labels


step = st.tuples(
    st.sampled_from("abc"), st.sampled_from(["", "one", "two"]), st.sampled_from("12"), st.sampled_from("+-*")
)


@given(steps=st.lists(step, max_size=30))
def test_every_model_is_a_pod_of_the_copy(steps: list[tuple[str, str, str, str]]) -> None:
    reflector = fresh()
    for version, (name, owner, uid, what) in enumerate(steps, start=1):
        body = document(name, owner, uid=name + uid, version=version)
        if what == "*":
            reflector._replace({f"ns/{name}": msgspec.convert(body, Pod)})
        else:
            reflector._apply(line({"+": "MODIFIED", "-": "DELETED"}[what], body))
        there = {pod.metadata.uid for pod in reflector.objects.values()}
        assert {pod.metadata.uid for pod in models(reflector).values()} <= there
