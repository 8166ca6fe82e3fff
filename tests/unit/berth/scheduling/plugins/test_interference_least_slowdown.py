"""The score and the cost of InterferenceLeastSlowdown, and what it costs where it has nothing to say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from berth.api.interference import InterferenceClass
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.configuration import Profile
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.slowdown import CLASS_EXCESS, Workload, harm
from berth.scheduling.plugins import interference_least_slowdown
from berth.scheduling.plugins.interference_least_slowdown import WORST, InterferenceLeastSlowdown
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, member, zoned
from tests.support.sockets import classed, owned, status, workload_profile

ASKED = InterferencePolicy.LEAST_SLOWDOWN
D_BESIDE_D = 2 * harm(1 + CLASS_EXCESS[True, True])


def lab(*sockets: str, profile: Profile | None = None, **node: Any) -> Lab:
    """Two nodes of 64 CPUs; those named have two sockets of 8, as somebody knows."""
    found = Lab(
        [builders.node(name, cpu="64", **node) for name in ("n1", "n2")], profile or Profile(interference=ASKED)
    )
    for name in sockets:
        found.cache.update_sockets(status(name))
    return found


def put(found: Lab, node: str, *letters: str) -> None:
    for number, letter in enumerate(letters):
        found.cache.update_pod(classed(f"there-{node}-{number}", letter, on=node))


def cost(found: Lab, pod: Pod, plugin: InterferenceLeastSlowdown | None = None) -> list[float] | None:
    plugin = plugin or InterferenceLeastSlowdown.of(found.profile)
    cycle, result = found.planner._judge(pod, None, found.costs)
    values = plugin.joint_cost(cycle, result.mask)
    return None if values is None else values.tolist()


def test_the_cost_is_the_weighted_harm_of_the_best_pairing() -> None:
    found = lab("n1", "n2")
    for name in ("n1", "n2"):
        found.cache.update_sockets(status(name, cpus=(8,)))
    put(found, "n1", "D")
    values = cost(found, classed("p", "D"))
    assert values is not None
    alone = found.cache.state.socket_choice._judge.on_socket([Workload("", InterferenceClass.D)], room=True)
    assert values == [pytest.approx(10 * (D_BESIDE_D - alone)), pytest.approx(10 * alone)]


def test_nodes_that_are_not_feasible_have_no_points() -> None:
    """Nor are they looked at, so that nobody knows what the pod would cost there."""
    found = lab("n1", "n2")
    put(found, "n2", "D")
    pod = classed("p", "D", cpu="8")
    found.cache.update_node(builders.node("n2", cpu="4"))
    cycle, result = found.planner._judge(pod, None, found.costs)
    points = InterferenceLeastSlowdown.of(found.profile).normalized(cycle, result.mask)
    assert points is not None
    assert [bool(feasible) for feasible in result.mask] == [True, False]
    assert points[0] > 0
    assert points[1] == 0


def test_a_profile_says_what_a_slowdown_costs() -> None:
    weights = {"interference": 3.0}
    one = lab("n1", profile=Profile.model_validate({"interference": ASKED, "weights": weights}))
    put(one, "n1", "D", "D")
    ten = lab("n1")
    put(ten, "n1", "D", "D")
    cheap, dear = cost(one, classed("p", "D")), cost(ten, classed("p", "D"))
    assert cheap is not None
    assert dear is not None
    assert cheap[0] == pytest.approx(0.3 * dear[0])


@pytest.mark.parametrize(
    ("sockets", "pod"),
    [
        pytest.param(("n1",), builders.pod("p", cpu="1"), id="a pod without class"),
        pytest.param((), classed("p", "D"), id="no sockets known"),
        pytest.param(("n1",), classed("p", "E"), id="a class that nobody can read"),
    ],
)
def test_no_opinion(sockets: tuple[str, ...], pod: Pod) -> None:
    assert cost(lab(*sockets), pod) is None


@pytest.mark.parametrize(
    "profile",
    [
        pytest.param({"interference": "Off"}, id="off"),
        pytest.param({"interference": "Greedy"}, id="another choice"),
        pytest.param({"interference": ASKED, "weights": {"interference": 0}}, id="no weight"),
        pytest.param({}, id="by default"),
    ],
)
def test_a_profile_may_do_without(profile: dict[str, Any]) -> None:
    found = lab("n1", profile=Profile.model_validate(profile))
    put(found, "n1", "D", "D")
    assert cost(found, classed("p", "D")) is None


def test_without_a_socketstatus_nothing_is_worked_out() -> None:
    found = lab()
    for number in range(20):
        found.planner.place_pod(classed(f"p{number}", "ABCD"[number % 4]), None, found.costs)
    choice = found.cache.state.socket_choice
    assert choice._costs is None
    assert not found.cache.state.sockets.kinds._numbers.keys() - {found.cache.state.sockets.kinds.kinds[0]}


def test_points_fall_from_no_harm_to_that_of_a_pod_1_3_times_slower() -> None:
    found = lab("n1", "n2")
    plugin = InterferenceLeastSlowdown()
    cycle, result = found.planner._judge(classed("p", "D"), None, found.costs)
    raw = result.mask.astype(float)
    for harm_there, points in ((0.0, 100.0), (WORST / 2, 50.0), (WORST, 0.0), (9.0, 0.0)):
        raw[:] = harm_there
        assert plugin.normalize_score(raw, result.mask).tolist() == [pytest.approx(points)] * 2
    assert cycle.cluster is found.cache.state


def test_points_are_worked_out_for_kinds_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [builders.node(f"n{number}", cpu="64") for number in range(200)]
    found, weighed, points = Lab(nodes, Profile(interference=ASKED)), [], interference_least_slowdown._points
    for node in nodes:
        found.cache.update_sockets(status(node.metadata.name))
    put(found, "n7", "D", "D")

    def counted(harm: NDArray[np.float64]) -> NDArray[np.float64]:
        weighed.append(len(harm))
        return points(harm)

    monkeypatch.setattr(interference_least_slowdown, "_points", counted)
    plugin = InterferenceLeastSlowdown.of(found.profile)
    cycle, result = found.planner._judge(classed("p", "D"), None, found.costs)
    result.mask[0] = False
    values = plugin.normalized(cycle, result.mask)
    assert values is not None
    assert sum(weighed) <= 4
    assert values[0] == 0
    raw = plugin.score(cycle, result.mask)
    assert raw is not None
    assert values.tolist() == plugin.normalize_score(raw, result.mask).tolist()
    assert values[7] < values[1]


def test_a_d_goes_where_an_a_is_and_not_where_a_d_is() -> None:
    found = lab()
    for name in ("n1", "n2"):
        found.cache.update_sockets(status(name, cpus=(8,)))
    put(found, "n1", "D")
    put(found, "n2", "A")
    (decision,) = found.planner.place_pod(classed("p", "D"), None, found.costs).decisions
    assert decision.node == "n2"
    assert decision.terms["interference"] > 0


def test_measured_slowdowns_say_more_than_classes() -> None:
    found = lab()
    for name in ("n1", "n2"):
        found.cache.update_sockets(status(name, cpus=(8,)))
    found.cache.update_profile(workload_profile("web", "D", slowdowns={"db": "1.01", "web": "1.01"}))
    found.cache.update_profile(workload_profile("db", "D", slowdowns={"web": "1.01", "db": "1.01"}))
    for node, owner in (("n1", "db"), ("n2", "other")):
        pod = owned(f"there-{node}", owner)
        pod.spec.node_name = node
        found.cache.update_pod(pod)
    found.cache.update_profile(workload_profile("other", "A", slowdowns={"web": "1.5"}))
    (decision,) = found.planner.place_pod(owned("p", "web"), None, found.costs).decisions
    assert decision.node == "n1"


def test_a_pod_of_an_appgroup_that_is_placed_alone_weighs_slowdown_against_network_cost() -> None:
    nodes = [zoned("n1", "z1", cpu="64"), zoned("n2", "z2", cpu="64")]

    def placed(weight: float) -> str:
        found = Lab(nodes, Profile.model_validate({"interference": ASKED, "weights": {"interference": weight}}))
        for name in ("n1", "n2"):
            found.cache.update_sockets(status(name, cpus=(8,)))
        group: Group = found.group(group_object("shop", *chain("web", "db")))
        found.cache.update_pod(member("db-1", "db", on="n1", cpu="1", labels={LABEL_INTERFERENCE_CLASS: "D"}))
        pod = member("web-1", "web", cpu="1", labels={LABEL_INTERFERENCE_CLASS: "D"})
        (decision,) = found.planner.place_pod(pod, group, found.costs).decisions
        assert set(decision.terms) >= ({"interference"} if weight and decision.node == "n1" else set())
        return decision.node

    assert placed(0.0) == "n1"  # 5 nearer
    assert placed(InterferenceLeastSlowdown().cost_weight) == "n2"  # beside another D it would be 1.23 times slower


@pytest.mark.parametrize("policy", list(InterferencePolicy))
def test_one_choice_of_a_profile_has_an_opinion(policy: InterferencePolicy) -> None:
    found = lab("n1", profile=Profile(interference=policy))
    put(found, "n1", "D")
    outcome = found.planner.place_pod(classed("p", "A"), None, found.costs)
    active = [
        plugin.name
        for plugin in found.planner._framework._scores
        if plugin.term == "interference" and (plugin.score_weight or plugin.cost_weight)
    ]
    assert active == ([] if policy is InterferencePolicy.OFF else [f"Interference{policy}"])
    assert len(outcome.decisions) == 1
