"""Joint plans of the gang engine under maxNetworkCost, where Services decide who calls whom."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.labels import LABEL_WORKLOAD
from berth.kube.objects import Service
from berth.network.edge_costs import node_places
from berth.network.over_limit import over_limits
from berth.network.routing import Routing
from berth.scheduling.configuration import GangSettings, Profile
from berth.scheduling.gang import budget
from berth.scheduling.planning import finish
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, member, where, zoned

ROUTINGS: dict[Routing, dict[str, Any]] = {
    Routing.ALL: {},
    Routing.SAME_ZONE: {"trafficDistribution": "PreferSameZone"},
    Routing.SAME_NODE: {"trafficDistribution": "PreferSameNode"},
    Routing.LOCAL: {"internalTrafficPolicy": "Local"},
}


def lab_of(*nodes: tuple[str, str], routing: Routing, called: str = "b", strategy: str = "berth") -> Lab:
    """Nodes of 1 core by zone and region, and a Service for the workload that is called."""
    lab = Lab(
        [zoned(f"n{number}", *place, cpu="1") for number, place in enumerate(nodes)],
        profile=Profile(gang=GangSettings(strategy=strategy)),
    )
    for name in called:
        service = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {LABEL_WORKLOAD: name}, **ROUTINGS[routing]},
        }
        lab.cache.update_service(msgspec.convert(service, Service))
    return lab


def members(**replicas: int) -> list[Any]:
    return [member(f"{name}-{n}", name, cpu="500m") for name, count in replicas.items() for n in range(count)]


@pytest.mark.parametrize("strategy", ["berth", "phare", "replicas"])
@pytest.mark.parametrize(
    ("routing", "placed"),
    [(Routing.ALL, 0), (Routing.SAME_ZONE, 4), (Routing.SAME_NODE, 4), (Routing.LOCAL, 4)],
    ids=str,
)
def test_slices_that_call_only_each_other_are_within_the_limit(strategy: str, routing: Routing, placed: int) -> None:
    """Two zones at cost 5, each with room for two pods: some pair is beyond a limit of 4, but nobody calls there."""
    lab = lab_of(("z1", "r1"), ("z2", "r1"), routing=routing, strategy=strategy)
    shop = lab.group(group_object("shop", *chain("a", "b", maxNetworkCost=4)))
    outcome = lab.place(shop, *members(a=2, b=2))
    assert len(outcome.decisions) == placed
    if placed and routing is not Routing.LOCAL:
        nodes = where(outcome)
        assert sorted(nodes[name] for name in ("a-0", "a-1")) == sorted(nodes[name] for name in ("b-0", "b-1"))


PLACE = st.sampled_from([("z1", "r1"), ("z2", "r1"), ("z3", "r2")])


@pytest.mark.parametrize("turn", range(1, 8))
@pytest.mark.parametrize("strategy", ["berth", "phare"])
def test_nodes_and_pods_may_come_while_a_plan_with_all_limits_is_made(
    strategy: str, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves somebody out. The next, without limits on calls that stay near, is one of the cluster as it is then."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    lab = lab_of(("z1", "r1"), ("z2", "r1"), routing=Routing.SAME_ZONE, strategy=strategy)
    shop = lab.group(group_object("shop", *chain("a", "b", maxNetworkCost=4)))
    pods = members(a=2, b=2)
    lab.see(*pods)
    planning = lab.planner.place_group(shop, pods, lab.costs, partial=False)
    for _ in range(turn):
        next(planning)
    lab.cache.update_node(zoned("late", "z1", "r1", cpu="1", extra={"example.com/gpu": 1}))
    lab.see(member("a-late", "a", on="late"))
    assert len(finish(planning).decisions) == 4


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    nodes=st.lists(PLACE, min_size=1, max_size=5),
    rounds=st.lists(st.fixed_dictionaries(dict.fromkeys("abc", st.integers(0, 2))), min_size=1, max_size=2),
    routing=st.sampled_from(Routing),
    partial=st.booleans(),
)
def test_no_call_goes_beyond_its_limit(
    nodes: list[tuple[str, str]], rounds: list[dict[str, int]], routing: Routing, partial: bool
) -> None:
    lab = lab_of(*nodes, routing=routing, called="bc")
    shop = lab.group(group_object("shop", *chain("a", "b", "c", maxNetworkCost=4)))
    for number, replicas in enumerate(rounds):
        pods = members(**replicas)
        for pod in pods:
            pod.metadata.name += f"-{number}"
            pod.metadata.uid += f"-{number}"
        lab.place(shop, *pods, partial=partial)
        placed = lab.cache.members.places(shop.key)
        over, _ = over_limits(shop, placed, node_places(lab.nodes), ZONE_COSTS, lambda _: routing)
        assert over == 0
