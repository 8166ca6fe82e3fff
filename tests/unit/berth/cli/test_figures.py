"""What a placement is worth, in words."""

from __future__ import annotations

import math
from typing import Any

import pytest

from berth.cli.figures import (
    calls_line,
    cost_line,
    group_figures,
    saving_lines,
    survival_lines,
)
from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.routing import Routing
from berth.network.sites import Placed, Sites
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.group_summary import summarize
from tests.support.edges import COSTS, PLACES

SITES = Sites.of(PLACES, COSTS)
BOTH = {"a1": 1, "b1": 1}


def figures(*edges: tuple[str, str], placed: Placed, **routing: WorkloadRouting) -> dict[str, Any]:
    def of(workload: str) -> WorkloadRouting:
        return routing.get(workload, WorkloadRouting(service=workload))

    shop = Group(key=GroupKey("default", "shop"), edges=tuple(GroupEdge(*ends, 0, math.inf) for ends in edges))
    return group_figures(summarize(shop, placed, SITES, of), of)


def test_a_placement_in_words() -> None:
    group = figures(("web", "cart"), placed={"web": BOTH, "cart": BOTH})
    assert cost_line(group) == "3.00 over 1 edge; 0.00 with trafficDistribution: PreferSameZone on 1 Service"
    assert calls_line(group) == "50% leave their zone"
    assert saving_lines(group) == ["web -> cart: 3.00 now, 0.00 with trafficDistribution: PreferSameZone"]
    assert survival_lines(group) == [
        ("Survive a node", "2 of 2 workloads with two replicas or more"),
        ("Survive a zone", "2 of 2 workloads with two replicas or more"),
    ]


def test_those_that_do_not_survive_are_named_but_not_all_of_many() -> None:
    names = [f"w{number}" for number in range(9)]
    near = {name: {"a1": 1, "a2": 1} for name in names}
    (_, node), (_, zone) = survival_lines(figures(placed={**near, "far": BOTH}))
    assert node == "10 of 10 workloads with two replicas or more"
    assert zone == "1 of 10 workloads with two replicas or more, not w0, w1, w2, w3 and 5 more"
    assert survival_lines(figures(placed=near))[1][1] == "0 of 9 workloads with two replicas or more"


def test_without_edges_there_is_nothing_to_say_about_calls() -> None:
    group = figures(placed={"web": {"a1": 1}})
    assert (cost_line(group), calls_line(group), saving_lines(group)) == ("", "", [])
    assert survival_lines(group) == [("Survive a failure", "no workload has two placed replicas")]


@pytest.mark.parametrize(
    ("routing", "web", "cart", "wanted"),
    [
        pytest.param(
            WorkloadRouting(), BOTH, BOTH, "0.00 with a Service that has trafficDistribution", id="no Service"
        ),
        pytest.param(
            WorkloadRouting(Routing.LOCAL, "cart"),
            BOTH,
            {"a1": 1},
            "3.50 with trafficDistribution: PreferSameNode instead of internalTrafficPolicy: Local",
            id="calls fail",
        ),
        pytest.param(
            WorkloadRouting(service="cart"),
            {"a1": 2},
            {"a1": 1, "x1": 1},
            "PreferSameZone; its busiest endpoint gets 2.0 times the mean",
            id="one endpoint gets all calls",
        ),
    ],
)
def test_a_line_says_what_comes_with_the_setting(
    routing: WorkloadRouting, web: dict[str, int], cart: dict[str, int], wanted: str
) -> None:
    group = figures(("web", "cart"), placed={"web": web, "cart": cart}, cart=routing)
    [line] = saving_lines(group)
    assert wanted in line


def test_calls_that_fail_are_told() -> None:
    local = WorkloadRouting(Routing.LOCAL, "cart")
    group = figures(("web", "cart"), placed={"web": BOTH, "cart": {"a1": 1}}, cart=local)
    assert group["failedShare"] == 0.5
    assert calls_line(group) == "0% leave their zone; 50% reach no endpoint (internalTrafficPolicy: Local)"


def test_services_that_are_not_there_are_counted() -> None:
    placed = {"web": BOTH, "cart": BOTH, "db": BOTH}
    group = figures(("web", "cart"), ("web", "db"), placed=placed, db=WorkloadRouting())
    assert cost_line(group).endswith("PreferSameZone on 2 Services (1 of them not known)")


def test_no_service_at_all_is_told_once() -> None:
    group = figures(("web", "cart"), placed={"web": BOTH, "cart": BOTH}, cart=WorkloadRouting())
    assert cost_line(group).endswith("PreferSameZone on 1 Service (no Service is known)")


def test_the_largest_ten_are_shown() -> None:
    names = [f"w{number:02}" for number in range(12)]
    placed = {"web": BOTH, **dict.fromkeys(names, BOTH), "far": {"a1": 1, "x1": 1}, "near": {"a1": 1, "a2": 1}}
    edges = [*(("web", name) for name in names), ("far", "near"), ("web", "far")]
    group = figures(*edges, placed=placed)
    lines = saving_lines(group)
    assert len(lines) == 11
    assert lines[0].startswith("web -> far:")
    assert lines[-1] == "and 3 more"
    assert len(group["serviceSettings"]["edges"]) == 13
