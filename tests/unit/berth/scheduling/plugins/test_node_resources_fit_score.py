"""NodeResourcesFit's score, on values worked out by hand from kube-scheduler's formula."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.framework.plugin import ScorePlugin
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from tests.support.builders import container, node, pod
from tests.support.filtering import cluster, scores


@pytest.mark.parametrize(
    ("score", "cpu", "expected"),
    [
        # cpu: (4000 - 1000) / 4000 = 75, memory with its default of 200Mi: (2000 - 200) / 2000 = 90
        pytest.param(NodeResourcesFit(), "1", 82, id="least-mean-of-cpu-and-memory"),
        pytest.param(NodeResourcesFit(resources={"cpu": 3, "memory": 1}), "1", 78, id="least-weighted"),
        pytest.param(NodeResourcesFit(resources={"cpu": 1}), "8", 0, id="least-over-full"),
        pytest.param(NodeResourcesFit(resources={"cpu": 1}), None, 97, id="least-default-cpu-of-100m"),
        pytest.param(NodeResourcesFit(resources={"example.com/gpu": 1}), "1", 0, id="unknown-resource"),
    ],
)
def test_allocation(score: ScorePlugin, cpu: str | None, expected: int) -> None:
    state = cluster([node("n", cpu="4", memory="2000Mi")])
    requests: dict[str, Any] = {} if cpu is None else {"cpu": cpu}
    assert scores(score, pod("new", containers=[container(**requests)]), state) == {"n": expected}


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param(2**60, 50, id="half"),
        pytest.param(2**60 + 1, 49, id="a-byte-more-than-half"),
        pytest.param(2**61, 0, id="all"),
        pytest.param(1, 99, id="a-byte"),
    ],
)
def test_allocation_of_a_node_so_large_that_percentages_would_overflow(requested: int, expected: int) -> None:
    state = cluster([node("n", cpu="4", memory=str(2**61))])
    new = pod("new", containers=[container(memory=str(requested))])
    assert scores(NodeResourcesFit(resources={"memory": 1}), new, state) == {"n": expected}


def test_allocation_counts_pods_there_with_their_defaults() -> None:
    state = cluster([node("n", cpu="1", memory="2000Mi")], [pod("there", on="n")])
    # cpu: (1000 - 100 - 100) / 1000 = 80, memory: (2000 - 200 - 200) / 2000 = 80
    assert scores(NodeResourcesFit(), pod("new"), state) == {"n": 80}


def test_allocation_counts_requests_of_the_pod_as_a_whole() -> None:
    state = cluster([node("n", cpu="4", memory="2000Mi")])
    new = pod("new", containers=[container(cpu="1")], spec={"resources": {"requests": {"cpu": "2"}}})
    assert scores(NodeResourcesFit(resources={"cpu": 1}), new, state) == {"n": 50}


def test_extended_resources_take_part_where_requested_and_present() -> None:
    state = cluster([node("gpu", cpu="4", example_com__gpu="4"), node("bare", cpu="4")])
    score = NodeResourcesFit(resources={"cpu": 1, "example.com/gpu": 1})
    with_gpu = pod("new", cpu="2", example_com__gpu="1")
    assert scores(score, with_gpu, state) == {"gpu": 62, "bare": 50}  # (50 + 75) / 2, and cpu alone
    assert scores(score, pod("new", cpu="2"), state) == {"gpu": 50, "bare": 50}
