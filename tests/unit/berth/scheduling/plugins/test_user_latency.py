"""UserLatency: pods of a workload with a LatencyPolicy go where they are awaited, else near their users."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject, OwnerReference, Pod
from berth.scheduling.configuration import ObjectiveWeights, Profile
from tests.support.placement import Lab, chain, group_object, lone, member, zoned

TIME = "2026-01-31T12:00:00Z"


def policy(
    far: dict[str, float], *, awaited: str = "", outcome: str = "Creating", name: str = "web", plan: str = ""
) -> CustomObject:
    """Policy on the Deployment web, with milliseconds by node; `awaited` and `plan` are names of nodes."""
    nodes = [{"node": node, "p50Microseconds": round(value * 1000), "time": TIME} for node, value in far.items()]
    move = {"pod": "p", "sourceNode": "n", "reason": "Nearer", "outcome": outcome, "startTime": TIME}
    status: dict[str, Any] = {"nodes": nodes, "moves": [move | {"targetNode": node} for node in awaited.split()]}
    status["plan"] = plan.split()
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"targetRef": {"name": "web"}, "objective": "Minimum"}
    return CustomObject.of({"metadata": metadata, "spec": spec, "status": status})


def of_web(pod: Pod, deployment: str = "web") -> Pod:
    pod.metadata.labels["pod-template-hash"] = "5d"
    pod.metadata.owner_references = [OwnerReference("ReplicaSet", f"{deployment}-5d", deployment, controller=True)]
    return pod


def lab(*policies: CustomObject, **weights: float) -> Lab:
    made = Lab([zoned("a", cpu="8"), zoned("b"), zoned("c")], Profile(weights=ObjectiveWeights(**weights)))
    for each in policies:
        assert made.cache.state.user_latency.update(each) is None
    return made


@pytest.mark.parametrize(
    ("policies", "node"),
    [
        pytest.param([], "a", id="no policy: where most room is"),
        pytest.param([policy({})], "a", id="nothing is known"),
        pytest.param([policy({"a": 90, "b": 20, "c": 30})], "b", id="nearest"),
        pytest.param([policy({"b": 20})], "a", id="all others count as far as that: room decides"),
        pytest.param([policy({"a": 90, "c": 30})], "c", id="one is not known"),
        pytest.param([policy({"b": 20}, awaited="c")], "c", id="awaited"),
        pytest.param([policy({"a": 90, "b": 20}, awaited="c", outcome="Evicting")], "c", id="had come, and was taken"),
        pytest.param([policy({"a": 90, "b": 20}, awaited="c", outcome="Moved")], "b", id="no longer awaited"),
        pytest.param([policy({"b": 20}, plan="c")], "c", id="planned for many users"),
        pytest.param([policy({"a": 20}, plan="c", awaited="b")], "b", id="planned, while one moves elsewhere"),
        pytest.param([policy({"b": 20}, awaited="gone")], "a", id="awaited where nothing is"),
        pytest.param(
            [policy({"a": 90, "b": 20}), policy({"a": 90, "c": 20}, name="also")], "c", id="of two, the first by name"
        ),
    ],
)
def test_where_one_more_pod_goes(policies: list[CustomObject], node: str) -> None:
    [decision] = lab(*policies).place_alone(of_web(lone("p", cpu="1"))).decisions
    assert decision.node == node


def test_where_the_pod_that_was_awaited_has_come_no_further_one_is_drawn() -> None:
    made = Lab([zoned("a"), zoned("b", cpu="64"), zoned("c")])
    assert made.cache.state.user_latency.update(policy({"a": 20, "b": 90, "c": 90}, awaited="b c")) is None
    pods = [of_web(lone(f"p{number}", cpu="1")) for number in range(3)]
    decisions = [decision for pod in pods for decision in made.place_alone(pod).decisions]
    assert [decision.node for decision in decisions] == ["b", "c", "a"]


@pytest.mark.parametrize("outcome", ["Creating", "Evicting"])
def test_where_a_plan_has_no_pod_one_comes_once_that_of_a_move_is_there(outcome: str) -> None:
    made = lab(policy({"a": 20, "b": 90, "c": 90}, awaited="b", outcome=outcome, plan="b c"))
    pods = [of_web(lone(f"p{number}", cpu="1")) for number in range(3)]
    decisions = [decision for pod in pods for decision in made.place_alone(pod).decisions]
    assert [decision.node for decision in decisions] == ["b", "c", "a"]


def test_other_workloads_do_not_mind() -> None:
    made = lab(policy({"a": 90, "b": 20}))
    [decision] = made.place_alone(of_web(lone("p", cpu="1"), "db")).decisions
    assert decision.node == "a"
    assert "userLatency" not in decision.terms


def test_a_pod_of_an_application_goes_where_it_is_awaited() -> None:
    made = lab(policy({"b": 20}, awaited="c"))
    group = made.group(group_object("shop", *chain("web")))
    [decision] = made.place(group, of_web(member("p", "web", cpu="1"))).decisions
    assert decision.node == "c"


@pytest.mark.parametrize("weights", [{"user_latency_score": 0.0}], ids=["switched off"])
def test_a_weight_of_zero_switches_it_off(weights: dict[str, float]) -> None:
    [decision] = lab(policy({"a": 90, "b": 20}), **weights).place_alone(of_web(lone("p", cpu="1"))).decisions
    assert decision.node == "a"


def test_a_policy_that_goes_or_cannot_be_read_counts_for_nothing() -> None:
    made = lab(policy({"b": 20}))
    table = made.cache.state.user_latency
    table.forget("default/web")
    assert (len(table), table.of("default/Deployment/web")) == (0, None)
    assert table.update(policy({"b": 20})) is None
    broken = CustomObject.of({"metadata": {"name": "web", "namespace": "default"}, "spec": {}, "status": {}})
    assert "targetRef" in str(table.update(broken))
    assert len(table) == 0
