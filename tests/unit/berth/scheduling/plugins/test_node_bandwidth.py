"""NodeBandwidth: requests for a node's link beside what calls take of it."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.scheduling.cache.bandwidth_annotations import EGRESS
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
    small, took = lab(), set[str]()
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


class TestAnnotations:
    """Limits of the CNI bandwidth plugin, where they count as requests."""

    def lab(self, *, count: bool = True) -> Lab:
        small = Lab([zoned("n1", **link("100M")), zoned("n2")], counts_annotations=count)
        small.see(self.pod("there", "70M", on="n1"))
        return small

    def pod(self, name: str, limit: str, **arguments: Any) -> Pod:
        pod = lone(name, **arguments)
        pod.metadata.annotations = {EGRESS: limit}
        return pod

    @pytest.mark.parametrize(
        ("limit", "own", "count", "fits"),
        [
            pytest.param("30M", {}, True, True, id="just-fits"),
            pytest.param("31M", {}, True, False, id="too-much"),
            pytest.param("31M", {}, False, True, id="not-counted"),
            pytest.param("fast", {}, True, True, id="no-bandwidth"),
            pytest.param("5M", link("30M"), True, True, id="the-greater-of-request-and-annotation"),
            pytest.param("31M", link("30M"), True, False, id="the-annotation-is-greater"),
        ],
    )
    def test_beside_one_of_70m_of_100m(self, limit: str, own: dict[str, Any], count: bool, fits: bool) -> None:
        small = self.lab(count=count)
        new = self.pod("new", limit, spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}}, **own)
        assert small.place_alone(new).complete is fits

    def test_a_node_without_the_resource_has_no_limit(self) -> None:
        assert where(self.lab().place_alone(self.pod("new", "1P"))) == {"new": "n2"}

    def test_requests_of_others_find_what_is_left(self) -> None:
        outcome = self.lab().place_alone(lone("new", **link("31M")))
        assert reasons(outcome)["Insufficient network.aware.com/bandwidth"] == 2

    def test_what_goes_gives_back(self) -> None:
        small = self.lab()
        small.cache.delete_pod(self.pod("there", "70M", on="n1"))
        column = small.cache.state.resources["network.aware.com/bandwidth"]
        assert small.cache.state.used[:, column].tolist() == [0, 0]

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_pods_of_one_plan_count_too(self, strategy: str) -> None:
        profile = Profile.model_validate({"gang": {"strategy": strategy}})
        small = Lab([zoned(name, **link("100M")) for name in ("n1", "n2")], profile, counts_annotations=True)
        shop = small.group(group_object("shop", *chain("x", "y")))
        pods = [member("x0", "x"), member("y0", "y")]
        for pod in pods:
            pod.metadata.annotations = {EGRESS: "60M"}
        assert set(where(small.place(shop, *pods)).values()) == {"n1", "n2"}
