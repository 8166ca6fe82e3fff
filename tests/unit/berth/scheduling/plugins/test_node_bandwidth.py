"""NodeBandwidth: requests for a node's link beside what calls take of it."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.framework.reasons import LINK_TAKEN_BY_CALLS
from berth.scheduling.plugins.node_bandwidth import NodeBandwidth
from berth.scheduling.single import cycle_of
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

STRATEGIES = ["berth", "phare", "replicas"]


def link(amount: str) -> dict[str, Any]:
    return {"network_aware_com__bandwidth": amount}


def lab(strategy: str = "replicas") -> Lab:
    """Of 100M each, calls take 60M on n1 and n2; n3 is free."""
    nodes = [zoned(name, cpu=9, **link("100M")) for name in ("n1", "n2", "n3")]
    made = Lab(nodes, Profile.model_validate({"gang": {"strategy": strategy}}))
    made.group(group_object("calls", *chain("a", "b", minBandwidth="60M")))
    made.see(member("a1", "a", group="calls", on="n1"), member("b1", "b", group="calls", on="n2"))
    return made


def reasons(outcome: Outcome) -> dict[str, int]:
    return {item.reason: item.count for failure in outcome.failures for item in failure.rejections}


@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        pytest.param("40M", {"n1", "n2", "n3"}, id="just-fits"),
        pytest.param("41M", {"n3"}, id="calls-are-in-the-way"),
        pytest.param("101M", set(), id="more-than-a-link"),
    ],
)
def test_a_request_beside_calls(request_: str, nodes: set[str]) -> None:
    small, took = lab(), set()
    for name in ("n1", "n2", "n3"):
        pod = lone("new", spec={"nodeSelector": {"kubernetes.io/hostname": name}}, **link(request_))
        took.update(where(small.place_alone(pod)).values())
        small.cache.forget(pod)
    assert took == nodes


def test_request_and_calls_of_one_pod_add_up() -> None:
    small = lab()
    shop = small.group(group_object("shop", *chain("x", "y", minBandwidth="30M")))
    small.see(member("y0", "y", on="n3", cpu="9"))
    for request_, fits in (("10M", True), ("11M", False)):
        spec = {"nodeSelector": {"kubernetes.io/hostname": "n1"}}
        pod = member("x0", "x", spec=spec, **link(request_))
        small.see(pod)
        assert small.place_alone(pod, shop).complete is fits
        small.cache.forget(pod)


def view(small: Lab) -> Any:
    return small.planner.view.current(small.costs, small.cache.bandwidth())


def test_the_reason_is_told() -> None:
    small = lab()
    outcome = small.place_alone(lone("new", spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}}, **link("50M")))
    assert reasons(outcome)[LINK_TAKEN_BY_CALLS] == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pods_of_one_plan_leave_room_for_calls_that_are_there(strategy: str) -> None:
    small = lab(strategy)
    shop = small.group(group_object("shop", *chain("x", "y")))
    outcome = small.place(shop, *(member(f"{name}0", name, **link("50M")) for name in "xy"))
    assert set(where(outcome).values()) == {"n3"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_plan_never_gives_a_link_twice(strategy: str) -> None:
    """Requests and calls of the same pods: n3 has room for both requests, or for the calls."""
    small = lab(strategy)
    shop = small.group(group_object("shop", *chain("x", "y", minBandwidth="60M")))
    small.place(shop, *(member(f"{name}{n}", name, **link("30M")) for name in "xy" for n in range(3)), partial=True)
    exact = view(small).exact
    assert (exact.bandwidth_free >= 0).all()


def test_a_node_without_the_resource_has_no_limit_for_calls() -> None:
    small = Lab([zoned("n1", cpu=1), zoned("n2", **link("50M"))])
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
    small.see(member("b1", "b", on="n1", cpu="1"))
    cycle = cycle_of(member("a1", "a"), shop, small.cache, view(small), limits_known=False)
    scores = NodeBandwidth().normalized(cycle, small.cache.state.alive)
    assert scores is not None
    assert scores[[small.cache.state.node_index[name] for name in ("n1", "n2")]].tolist() == [100.0, 0.0]


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        pytest.param(lone("new", **link("20M")), [20.0, 20.0, 80.0], id="requests"),
        pytest.param(lone("new"), None, id="needs-none"),
    ],
)
def test_the_emptier_link_is_the_better(pod: Any, scores: list[float] | None) -> None:
    small = lab()
    cycle = cycle_of(pod, None, small.cache, view(small), limits_known=False)
    found = NodeBandwidth().normalized(cycle, small.cache.state.alive)
    if scores is None:
        assert found is None
    else:
        assert found is not None
        assert found[[small.cache.state.node_index[name] for name in ("n1", "n2", "n3")]].tolist() == scores
