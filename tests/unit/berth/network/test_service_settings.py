"""Settings of Services that would make calls cheaper, as pods are placed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from berth.network.groups import GroupEdge
from berth.network.routing import Routing
from berth.network.service_settings import Advice, advise
from berth.network.sites import Sites
from berth.network.traffic import Traffic, mean_cost
from tests.support.edges import COSTS, PLACES

SITES = Sites.of(PLACES, COSTS)
SLICES = {"a1": 1, "b1": 1, "x1": 1}


def advice(
    *edges: tuple[str, str],
    routing: Routing = Routing.ALL,
    settable: bool = True,
    **placed: Mapping[str, int],
) -> Advice:
    traffic = Traffic([GroupEdge(*ends, 0, math.inf) for ends in edges], placed, SITES)
    return advise(traffic, traffic.routed(lambda _: routing), lambda _: settable)


def test_a_complete_slice_in_every_zone_wants_its_calls_to_stay_there() -> None:
    found = advice(("web", "cart"), web=SLICES, cart=SLICES)
    [setting] = found.settings
    assert (setting.callee, setting.routing, setting.replaces) == ("cart", Routing.SAME_ZONE, Routing.ALL)
    [(saving, _)] = found.savings
    assert saving.now == pytest.approx((5 + 7 + 4 * 40) / 9)
    assert saving.then == 0
    assert found.mean_cost == 0
    assert setting.busiest == pytest.approx(1)


@pytest.mark.parametrize(
    ("routing", "web", "cart", "wanted"),
    [
        pytest.param("All", {"a1": 1}, {"a2": 1, "b1": 1}, "PreferSameZone", id="an endpoint in the zone"),
        pytest.param("All", {"a1": 1}, {"a1": 1, "bare": 1}, "PreferSameNode", id="zones are not known"),
        pytest.param("All", {"a1": 1}, {"x1": 1}, None, id="no endpoint is nearer"),
        pytest.param("All", {"a1": 1, "a2": 1}, {"a1": 1, "a2": 1}, None, id="half a unit is no gain"),
        pytest.param("All", {"a1": 1}, {"x1": 19, "a2": 1}, "PreferSameZone", id="one near of twenty"),
        pytest.param("PreferSameZone", {"a1": 1}, {"a1": 1, "a2": 1}, None, id="within the zone it is near enough"),
        pytest.param("PreferSameZone", {"a1": 1}, {"a1": 1, "bare": 1}, "PreferSameNode", id="zones do not count"),
        pytest.param("PreferSameNode", {"a1": 1}, {"b1": 1}, None, id="nothing is left to set"),
        pytest.param("Local", {"a1": 1, "b1": 1}, {"a1": 1}, "PreferSameNode", id="half of the calls fail"),
        pytest.param("Local", {"a1": 1}, {"a1": 1}, None, id="all calls find their node"),
    ],
)
def test_the_setting_that_is_worth_it(
    routing: str, web: dict[str, int], cart: dict[str, int], wanted: str | None
) -> None:
    found = advice(("web", "cart"), routing=Routing(routing), web=web, cart=cart)
    assert [setting.routing for setting in found.settings] == ([Routing(wanted)] if wanted else [])


def test_a_gain_below_a_tenth_is_not_worth_it() -> None:
    # One of forty callers has an endpoint of its own zone.
    web = {"x1": 39, "a1": 1}
    assert advice(("web", "cart"), web=web, cart={"a1": 1, "a2": 1, "b1": 38}).settings == ()


def test_workloads_that_are_called_by_name_have_no_setting() -> None:
    assert advice(("web", "cart"), settable=False, web=SLICES, cart=SLICES).settings == ()


def test_the_largest_gain_comes_first_and_the_mean_is_over_all_edges() -> None:
    edges = [("web", "cart"), ("near", "cart"), ("web", "db"), ("db", "log")]
    placed = {"web": SLICES, "cart": SLICES, "near": {"a1": 1}, "db": {"a1": 1, "b1": 1}, "log": {"x1": 1}}
    traffic = Traffic([GroupEdge(*ends, 0, math.inf) for ends in edges], placed, SITES)
    now = traffic.routed(lambda _: Routing.ALL)
    found = advise(traffic, now, lambda _: True)
    gains = [saving.now - saving.then for saving, _ in found.savings]
    assert gains == sorted(gains, reverse=True)
    assert {setting.callee for setting in found.settings} == {"cart", "db"}
    then = {(item.caller, item.callee): item.cost for item in now}
    then |= {(edge.caller, edge.callee): edge.cost for setting in found.settings for edge in setting.edges}
    assert found.mean_cost == pytest.approx(sum(then.values()) / 4)
    assert found.mean_cost < mean_cost(now)
    assert then["db", "log"] == 40


def test_a_setting_that_crowds_one_endpoint_says_so() -> None:
    found = advice(("web", "cart"), web={"a1": 3}, cart={"a1": 1, "x1": 2})
    assert found.settings[0].busiest == pytest.approx(3)
