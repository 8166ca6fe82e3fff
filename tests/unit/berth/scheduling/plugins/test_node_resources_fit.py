"""NodeResourcesFit: what is requested, what is left."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from tests.support.builders import container, node, pod
from tests.support.filtering import cluster, passing, rejected


@pytest.mark.parametrize(
    ("requests", "reasons"),
    [
        pytest.param({"cpu": "1"}, [], id="exactly-what-is-left"),
        pytest.param({"cpu": "1001m"}, ["Insufficient cpu"], id="a-milli-too-much"),
        pytest.param({"memory": "1Gi"}, [], id="memory-left"),
        pytest.param({"memory": "1025Mi"}, ["Insufficient memory"], id="memory-short"),
        pytest.param({"cpu": "2", "memory": "2Gi"}, ["Insufficient cpu", "Insufficient memory"], id="both-short"),
        pytest.param({}, [], id="nothing-requested"),
        pytest.param({"example_com__gpu": "1"}, ["Insufficient example.com/gpu"], id="resource-the-node-lacks"),
        pytest.param({"example_com__gpu": "0"}, [], id="zero-of-a-resource-the-node-lacks"),
        pytest.param({"ephemeral_storage": "1"}, ["Insufficient ephemeral-storage"], id="no-local-storage"),
    ],
)
def test_resources(requests: dict[str, Any], reasons: list[str]) -> None:
    state = cluster([node("n", cpu="2", memory="2Gi")], [pod("there", on="n", cpu="1", memory="1Gi")])
    assert rejected(NodeResourcesFit(), pod("new", **requests), state) == ({"n": reasons} if reasons else {})


def test_pod_slots_run_out() -> None:
    state = cluster([node("n", pods=1)], [pod("there", on="n")])
    assert rejected(NodeResourcesFit(), pod("new"), state) == {"n": ["Too many pods"]}


def test_over_committed_node_takes_pods_that_do_not_request_what_is_short() -> None:
    state = cluster([node("n", cpu="1")], [pod("there", on="n", cpu="4")])
    assert rejected(NodeResourcesFit(), pod("new", memory="1Gi"), state) == {}
    assert rejected(NodeResourcesFit(), pod("new", cpu="1m"), state) == {"n": ["Insufficient cpu"]}


def test_init_containers_and_sidecars_count() -> None:
    state = cluster([node("small", cpu="2"), node("big", cpu="3")])
    new = pod("new", containers=[container(cpu="1")])
    new.spec.init_containers = [container("s", sidecar=True, cpu="1"), container("i", cpu="1500m")]
    assert rejected(NodeResourcesFit(), new, state) == {"small": ["Insufficient cpu"]}


def test_devices_in_use_are_gone() -> None:
    state = cluster([node("n", example_com__gpu="2")], [pod("there", on="n", example_com__gpu="1")])
    assert passing(NodeResourcesFit(), pod("one", example_com__gpu="1"), state) == {"n"}
    assert passing(NodeResourcesFit(), pod("two", example_com__gpu="2"), state) == set()
