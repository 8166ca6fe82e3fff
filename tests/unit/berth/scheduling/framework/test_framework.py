"""The filters together: order, counts, messages, and what blocks a pod altogether."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from berth.kube.objects import Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.framework.plugin import FilterPlugin
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.plugins.unsupported_features import unsupported_features
from tests.support.builders import node, pod, required_affinity
from tests.support.differential import build_state
from tests.support.filtering import cluster, cycle_of, filtered, framework
from tests.support.generated import situations
from tests.support.situations import Situation
from tests.support.topics import TOPICS


@pytest.fixture
def state() -> ClusterState:
    return cluster(
        [
            node("fits"),
            node("small", cpu="1", memory="1Gi"),
            node("tiny", cpu="1"),
            node("tainted", cpu="1", taints=["k:NoSchedule"]),
            node("cordoned", unschedulable=True, taints=["k:NoSchedule"]),
        ]
    )


def test_a_node_counts_for_the_first_filter_that_rejects_it(state: ClusterState) -> None:
    result = filtered(pod("new", cpu="2", memory="2Gi"), state)
    assert result.rejections == [
        Rejection("NodeUnschedulable", "node(s) were unschedulable", 1),
        Rejection("TaintToleration", "node(s) had untolerated taint(s)", 1),
        Rejection("NodeResourcesFit", "Insufficient cpu", 2),
        Rejection("NodeResourcesFit", "Insufficient memory", 1),
    ]
    assert (result.feasible, result.nodes, result.blocker) == (1, 5, None)
    assert result.mask.tolist() == [True, False, False, False, False]


def test_message_is_worded_and_sorted_as_kube_scheduler_does(state: ClusterState) -> None:
    state.delete_node("fits")
    result = filtered(pod("new", cpu="2", memory="2Gi"), state)
    assert result.message() == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_message_without_nodes_and_without_rejections(state: ClusterState) -> None:
    assert filtered(pod("new"), ClusterState()).message() == "0/0 nodes are available."
    alone = cluster([node("n")])
    assert filtered(pod("new"), alone).message() == "1/1 nodes are available."


def test_filters_can_be_left_out(state: ClusterState) -> None:
    result = filtered(pod("new", cpu="64"), state, skip={"NodeResourcesFit"})
    assert result.feasible == 3


def test_evaluating_changes_nothing(state: ClusterState) -> None:
    new = pod("new", cpu="2", spec={"affinity": required_affinity(("disk", "DoesNotExist", []))})
    first = filtered(new, state)
    version, used = state.static_version, state.used.copy()
    first.mask[:] = False
    second = filtered(new, state)
    assert second.feasible == 1
    assert state.static_version == version
    assert (state.used == used).all()


def test_gated_pods_are_not_considered(state: ClusterState) -> None:
    result = filtered(pod("new", spec={"schedulingGates": [{"name": "wait"}]}), state)
    assert result.feasible == 0
    assert result.message() == ("0/5 nodes are available: Scheduling is blocked due to non-empty scheduling gates.")


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({}, [], id="plain"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, ["spec.resourceClaims"], id="resource-claims"),
        pytest.param(
            {
                "initContainers": [{"name": "i"}],
                "containers": [{"name": "c", "resources": {"claims": [{"name": "g"}]}}],
            },
            ["spec.containers[0].resources.claims"],
            id="claims-of-a-container",
        ),
        pytest.param({"schedulingGroup": {"name": "g"}}, ["spec.schedulingGroup"], id="scheduling-group"),
    ],
)
def test_unsupported_fields_are_named_and_block(state: ClusterState, spec: dict[str, Any], fields: list[str]) -> None:
    found = msgspec.convert({"metadata": {"name": "new"}, "spec": spec}, Pod)
    assert unsupported_features(found) == fields
    result = filtered(found, state)
    assert (result.feasible == 0) is bool(fields)
    for field in fields:
        assert field in result.message()


def test_pods_that_make_no_sense_are_blocked_with_the_field(state: ClusterState) -> None:
    result = filtered(pod("new", cpu="plenty"), state)
    assert result.feasible == 0
    assert (
        "the pod cannot be understood: spec.containers[*].resources: 'plenty' is not a valid quantity"
        in result.message()
    )


def test_filters_have_distinct_names_and_begin_with_what_is_cheap() -> None:
    names = [plugin.name for plugin in PLUGINS]
    assert len(set(names)) == len(names)
    assert names.index("TaintToleration") < names.index("NodeResourcesFit") < names.index("InterPodAffinity")


@pytest.mark.parametrize("topic", list(TOPICS))
def test_pipeline_admits_what_every_filter_alone_admits(topic: str) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(situations(topic))
    def check(situation: Situation) -> None:
        named = situation.named("s")
        state = build_state(named)
        found = msgspec.convert(named.pod, Pod)
        cycle = cycle_of(found, state)
        result = filtered(found, state)
        rules = [plugin for plugin in framework().plugins if isinstance(plugin, FilterPlugin)]
        alone = np.logical_and.reduce([rule.mask(cycle) for rule in rules])
        assert result.mask.tolist() == alone.tolist()
        assert sum(r.count for r in result.rejections) >= result.nodes - result.feasible or result.blocker is not None

    check()
