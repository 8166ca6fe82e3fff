"""The published choice as a plugin."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.configuration import Profile
from berth.scheduling.plugins.interference_greedy import InterferenceGreedy
from tests.support import builders
from tests.support.placement import Lab
from tests.support.sockets import classed, status


def lab(*there: tuple[str, str]) -> Lab:
    """Two nodes of one socket for two pods; `there` are nodes and classes of the pods on them."""
    found = Lab([builders.node(name) for name in ("n1", "n2")], Profile(interference=InterferenceGreedy.policy))
    for name in ("n1", "n2"):
        found.cache.update_sockets(status(name, cpus=(8,)))
    for number, (node, letter) in enumerate(there):
        found.cache.update_pod(classed(f"there-{number}", letter, on=node, socket="0"))
    return found


def points(found: Lab, pod: Pod) -> list[float] | None:
    plugin = InterferenceGreedy.of(found.profile)
    cycle, result = found.planner._judge(pod, None, found.costs)
    values = plugin.normalized(cycle, result.mask)
    return None if values is None else values.tolist()


def test_an_empty_node_is_best() -> None:
    assert points(lab(("n1", "A")), classed("p", "D")) != [100.0, 100.0]
    found = points(lab(("n1", "A")), classed("p", "D"))
    assert found is not None
    assert found[1] == 100.0


def test_it_places_by_the_classes_that_are_there() -> None:
    found = lab(*[("n1", "C"), ("n2", "A")])
    (decision,) = found.planner.place_pod(classed("p", "B"), None, found.costs).decisions
    assert decision.node == "n2"
    seat = found.cache.state.sockets.seat(decision.pod.metadata.uid)
    assert seat is not None
    assert seat.socket == 0


def test_a_score_of_0_costs_as_much_as_a_slowdown_that_counts_1() -> None:
    found = lab(*[("n1", "C"), ("n2", "A")])
    plugin = InterferenceGreedy.of(found.profile)
    cycle, result = found.planner._judge(classed("p", "B"), None, found.costs)
    cost, score = plugin.joint_cost(cycle, result.mask), plugin.normalized(cycle, result.mask)
    assert cost is not None
    assert score is not None
    assert cost.tolist() == pytest.approx((10 * (100 - score) / 100).tolist())


@pytest.mark.parametrize("pod", [builders.pod("p", cpu="1"), classed("p", "E")], ids=["no class", "no such class"])
def test_no_opinion_on_pods_without_class(pod: Pod) -> None:
    assert points(lab(("n1", "A")), pod) is None


def test_no_opinion_where_no_sockets_are_known() -> None:
    found = Lab([builders.node("n1")], Profile(interference=InterferenceGreedy.policy))
    assert points(found, classed("p", "A")) is None
