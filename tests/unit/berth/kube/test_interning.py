"""Pods of one owner share the parts that are equal, and nothing else changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.interning import PodInterning
from berth.kube.objects import Pod


def pod(name: str, *, owner: str = "rs", cpu: str = "1", ready: str = "True", label: str = "web") -> Pod:
    document = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "labels": {"app": label},
            "ownerReferences": [{"kind": "ReplicaSet", "name": owner, "uid": owner}] if owner else [],
        },
        "spec": {"nodeName": f"on-{name}", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


def test_equal_parts_become_one() -> None:
    share, first, second = PodInterning(), pod("a"), pod("b")
    share(first)
    share(second)
    assert second.spec.containers is first.spec.containers
    assert second.metadata.labels is first.metadata.labels
    assert second.status.conditions is first.status.conditions
    assert (second.metadata.name, second.spec.node_name) == ("b", "on-b")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"cpu": "2"}, lambda pod: pod.spec.containers),
        ({"label": "db"}, lambda pod: pod.metadata.labels),
        ({"ready": "False"}, lambda pod: pod.status.conditions),
    ],
    ids=["containers", "labels", "conditions"],
)
def test_what_differs_stays(change: dict[str, str], part: Any) -> None:
    share, first, second = PodInterning(), pod("a"), pod("b", **change)
    share(first)
    share(second)
    assert part(second) is not part(first)
    assert second == pod("b", **change)


@pytest.mark.parametrize("owners", [("one", "two"), ("", "")], ids=["other owner", "no owner"])
def test_only_pods_of_one_owner_share(owners: tuple[str, str]) -> None:
    share, first, second = PodInterning(), pod("a", owner=owners[0]), pod("b", owner=owners[1])
    share(first)
    share(second)
    assert second.spec.containers is not first.spec.containers


def test_the_newest_is_the_model() -> None:
    share, starting, ready, next_ready = PodInterning(), pod("a", ready="False"), pod("b"), pod("c")
    for each in (starting, ready, next_ready):
        share(each)
    assert next_ready.status.conditions is ready.status.conditions


@pytest.mark.parametrize(
    ("old", "new", "models"),
    [
        pytest.param(pod("a"), None, [], id="gone"),
        pytest.param(pod("a", owner="one"), pod("a", owner="two"), ["two"], id="has another owner"),
        pytest.param(pod("a", owner="one"), pod("a", owner=""), [], id="has none any more"),
        pytest.param(pod("a"), pod("a", ready="False"), ["rs"], id="changed"),
        pytest.param(pod("a", owner=""), None, [], id="never had one"),
    ],
)
def test_no_model_is_left_of_a_pod_that_is_gone(old: Pod, new: Pod | None, models: list[str]) -> None:
    share = PodInterning()
    share(old)
    if new is not None:
        share(new)
    share.replaced(old, new)
    assert list(share._models) == models


def test_the_end_of_another_pod_takes_no_model() -> None:
    share, first, second = PodInterning(), pod("a"), pod("b")
    share(first)
    share(second)
    share.replaced(first, None)
    assert list(share._models.values()) == [second]


variant = st.tuples(st.sampled_from(["rs", "sts", ""]), st.sampled_from(["1", "2"]), st.sampled_from(["True", "False"]))


@given(variants=st.lists(variant, max_size=20))
def test_no_pod_ever_changes_its_value(variants: list[tuple[str, str, str]]) -> None:
    share, shared = PodInterning(), []
    for number, (owner, cpu, ready) in enumerate(variants):
        shared.append(pod(f"p{number}", owner=owner, cpu=cpu, ready=ready))
        share(shared[-1])
    assert shared == [
        pod(f"p{number}", owner=owner, cpu=cpu, ready=ready) for number, (owner, cpu, ready) in enumerate(variants)
    ]
