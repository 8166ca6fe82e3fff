"""Sizes: the nearest workload, shrunk as a whole, within the limit of pods, and not too short to be measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.schedperf.sizes import choose
from bench.schedperf.source import Workload

BASIC = (
    Workload("5Nodes", {"initNodes": 5, "initPods": 5, "measurePods": 10}),
    Workload("500Nodes", {"initNodes": 500, "initPods": 500, "measurePods": 1000}),
    Workload("5000Nodes", {"initNodes": 5000, "initPods": 1000, "measurePods": 1000}),
)
DAEMONSET = (
    Workload("5Nodes", {"initNodes": 5, "measurePods": 10}),
    Workload("15000Nodes", {"initNodes": 15000, "measurePods": 30000}),
)
GATED = (
    Workload("1Node_10GatedPods", {"gatedPods": 10, "measurePods": 10}),
    Workload("1Node_10000GatedPods", {"gatedPods": 10000, "measurePods": 20000}),
)
SELECTORS = (
    Workload("500Nodes", {"initNodes": 500, "initPodsPerNamespace": 4, "initNamespaces": 10, "measurePods": 100}),
)
POLICY = (Workload("5000Nodes", {"taintNodes": 1000, "normalNodes": 4000, "measurePods": 4000}),)
RESOURCE = (
    Workload("fast", {"nodesWithExtendedResource": 10, "nodesWithoutExtendedResource": 1, "measurePods": 10}),
    Workload("all", {"nodesWithExtendedResource": 5000, "nodesWithoutExtendedResource": 0, "measurePods": 5000}),
)


@pytest.mark.parametrize(
    ("workloads", "chosen"),
    [
        pytest.param(BASIC, ("500Nodes", 500, 500, 1000), id="as it is"),
        pytest.param(DAEMONSET, ("15000Nodes", 500, 1000), id="nodes and pods shrink alike"),
        pytest.param(GATED, ("1Node_10000GatedPods", 1000, 1000), id="no nodes: the most pods, within the limit"),
        pytest.param(SELECTORS, ("500Nodes", 500, 4, 10, 400), id="more measured pods"),
        pytest.param(POLICY, ("5000Nodes", 100, 400, 400), id="kinds of nodes keep their shares"),
        pytest.param(RESOURCE, ("all", 500, 0, 500), id="none stays none"),
    ],
)
def test_the_size_for_500_nodes(workloads: tuple[Workload, ...], chosen: tuple[str, *tuple[int, ...]]) -> None:
    workload = choose(workloads, nodes=500, pods=1000)
    assert (workload.name, *workload.params.values()) == chosen


@given(
    workloads=st.sampled_from([BASIC, DAEMONSET, POLICY, RESOURCE]),
    nodes=st.integers(10, 20000),
    pods=st.integers(1, 5000),
)
def test_never_more_than_asked_for(workloads: tuple[Workload, ...], nodes: int, pods: int) -> None:
    params = choose(workloads, nodes=nodes, pods=pods).params
    kinds = [value for name, value in params.items() if "nodes" in name.lower()]
    assert sum(kinds) <= nodes + len(kinds)  # every kind keeps at least one node
    assert all(value <= pods for name, value in params.items() if "pods" in name.lower())
