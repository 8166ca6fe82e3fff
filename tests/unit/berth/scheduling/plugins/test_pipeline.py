"""The filters together: order, counts, messages, and what blocks a pod altogether."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from berth.kube.objects import Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.plugins import FilterPipeline, default_filters, unsupported_features
from tests.support.builders import node, pod, required_affinity
from tests.support.differential import build_state
from tests.support.filtering import cluster
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
    result = FilterPipeline().evaluate(pod("new", cpu="2", memory="2Gi"), state)
    assert result.rejected == {
        "node(s) were unschedulable": 1,
        "node(s) had untolerated taint(s)": 1,
        "Insufficient cpu": 2,
        "Insufficient memory": 1,
    }
    assert result.rejected_by == {"NodeUnschedulable": 1, "TaintToleration": 1, "NodeResourcesFit": 2}
    assert (result.feasible, result.nodes, result.blocker) == (1, 5, None)
    assert result.mask.tolist() == [True, False, False, False, False]


def test_message_is_worded_and_sorted_as_kube_scheduler_does(state: ClusterState) -> None:
    state.remove_node("fits")
    result = FilterPipeline().evaluate(pod("new", cpu="2", memory="2Gi"), state)
    assert result.message() == (
        "0/4 nodes are available: 1 Insufficient memory, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


def test_message_without_nodes_and_without_rejections(state: ClusterState) -> None:
    assert FilterPipeline().evaluate(pod("new"), ClusterState()).message() == "0/0 nodes are available."
    alone = cluster([node("n")])
    assert FilterPipeline().evaluate(pod("new"), alone).message() == "1/1 nodes are available."


def test_filters_can_be_left_out(state: ClusterState) -> None:
    result = FilterPipeline().evaluate(pod("new", cpu="64"), state, skip={"NodeResourcesFit"})
    assert result.feasible == 3


def test_pod_info_can_be_passed_instead_of_the_pod(state: ClusterState) -> None:
    new = pod("new", cpu="2")
    pipeline = FilterPipeline()
    assert pipeline.evaluate(state.info(new), state).rejected == pipeline.evaluate(new, state).rejected


def test_evaluating_changes_nothing(state: ClusterState) -> None:
    new = pod("new", cpu="2", spec={"affinity": required_affinity(("disk", "DoesNotExist", []))})
    first = FilterPipeline().evaluate(new, state)
    version, used = state.version, state.used.copy()
    first.mask[:] = False
    second = FilterPipeline().evaluate(new, state)
    assert second.feasible == 1
    assert state.version == version
    assert (state.used == used).all()


def test_gated_pods_are_not_considered(state: ClusterState) -> None:
    result = FilterPipeline().evaluate(pod("new", spec={"schedulingGates": [{"name": "wait"}]}), state)
    assert result.feasible == 0
    assert result.rejected_by == {"SchedulingGates": 5}
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
    result = FilterPipeline().evaluate(found, state)
    assert (result.feasible == 0) is bool(fields)
    for field in fields:
        assert field in result.message()


def test_pods_that_make_no_sense_are_blocked_with_the_field(state: ClusterState) -> None:
    result = FilterPipeline().evaluate(pod("new", cpu="plenty"), state)
    assert result.feasible == 0
    assert "the pod cannot be understood: spec.containers[*].resources: 'plenty' is not a quantity" in result.message()


def test_filters_have_distinct_names_and_begin_with_what_is_cheap() -> None:
    names = [rule.name for rule in default_filters()]
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
        info = state.info(found)
        result = FilterPipeline().evaluate(found, state)
        alone = np.logical_and.reduce([rule.mask(info, state) for rule in default_filters()])
        assert result.mask.tolist() == alone.tolist()
        assert result.nodes - result.feasible == sum(result.rejected_by.values())
        assert sum(result.rejected.values()) >= result.nodes - result.feasible or result.blocker is not None

    check()
