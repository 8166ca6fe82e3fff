"""Budgets of links are kept by every way to place pods, and a pod that does not fit is told which link is full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.link_budgets import PlacePair, taken
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, member, where, zoned

STRATEGIES = ["berth", "phare", "replicas"]
REGION = {"n1": "r1", "n2": "r1", "n3": "r2", "n4": "r2"}
LINK = PlacePair(LABEL_REGION, "r1", "r2")


def budgets(**links: int) -> NetworkCosts:
    """``r1_r2=5`` is a budget of 5 bit/s between two regions, ``z1_z2=5`` between two zones."""
    level = {"r": LABEL_REGION, "z": LABEL_ZONE}
    return replace(ZONE_COSTS, budgets={PlacePair.of(level[k[0]], *k.split("_")): bits for k, bits in links.items()})


def lab(costs: NetworkCosts, strategy: str = "replicas", cpu: str = "1") -> Lab:
    """A node in each of four zones, two of each region."""
    nodes = [zoned(name, f"z{name[1]}", region, cpu=cpu) for name, region in REGION.items()]
    return Lab(nodes, Profile.model_validate({"gang": {"strategy": strategy}}), costs)


def reasons(outcome: Outcome) -> set[str]:
    return {item.reason for failure in outcome.failures for item in failure.rejections}


def pods(workload: str, count: int, **spec: Any) -> list[Pod]:
    return [member(f"{workload}{number}", workload, cpu="1", spec=spec) for number in range(count)]


def on(*regions: str) -> dict[str, Any]:
    return {"nodeSelector": {LABEL_REGION: regions[0]}}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("budget", "fits"),
    [
        pytest.param({}, True, id="not-stated"),
        pytest.param({"r1_r2": 60}, True, id="just-enough"),
        pytest.param({"r1_r2": 59}, False, id="one-bit-too-little"),
        pytest.param({"z1_z3": 59, "z1_z4": 59, "z2_z3": 59, "z2_z4": 59}, False, id="zones-of-two-regions"),
        pytest.param({"z1_z3": 59, "z1_z4": 59, "z2_z3": 59, "z2_z4": 60}, True, id="one-pair-of-zones-has-room"),
    ],
)
def test_a_joint_plan(strategy: str, budget: dict[str, int], fits: bool) -> None:
    small = lab(budgets(**budget), strategy)
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60")))
    outcome = small.place(shop, *pods("a", 1, **on("r1")), *pods("b", 1, **on("r2")))
    assert outcome.complete is fits
    assert any("too little bandwidth on link" in reason for reason in reasons(outcome)) is not fits


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_replicas_share_a_link_as_their_demand_is_split(strategy: str) -> None:
    """Two callers of 60 bit/s in r1, an endpoint in each region: each sends 30 over the link."""
    for free, fits in ((60, True), (59, False)):
        small = lab(budgets(r1_r2=free), strategy, cpu="2")
        shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60")))
        near, far = pods("b", 2, **on("r1"))[:1], pods("b", 2, **on("r2"))[1:]
        outcome = small.place(shop, *pods("a", 2, **on("r1")), *near, *far)
        assert outcome.complete is fits


@pytest.mark.parametrize(
    ("costs", "placed"),
    [
        pytest.param(budgets(r1_r2=60), {"a0": "n3"}, id="room"),
        pytest.param(budgets(r1_r2=59), {}, id="too-little"),
        pytest.param(budgets(z1_z3=59), {"a0": "n4"}, id="another-zone-has-room"),
    ],
)
def test_a_pod_that_is_placed_alone(costs: NetworkCosts, placed: dict[str, str]) -> None:
    small = lab(costs)
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60")))
    small.see(member("b0", "b", on="n1", cpu="1"))
    (caller,) = pods("a", 1, **on("r2"))
    small.see(caller)
    outcome = small.place_alone(caller, shop)
    assert where(outcome) == placed
    if not placed:
        wanted = "node(s) had too little bandwidth on link r1-r2 (region): 60 bit/s wanted, 59 bit/s free"
        assert wanted in reasons(outcome)


def test_calls_of_other_groups_and_namespaces_take_of_the_same_link() -> None:
    small = lab(budgets(r1_r2=100), cpu="9")
    for namespace in ("one", "two"):
        small.group(group_object("shop", *chain("a", "b", minBandwidth="40"), namespace=namespace))
        small.see(
            member("a0", "a", namespace=namespace, on="n1", cpu="1"),
            member("b0", "b", namespace=namespace, on="n3", cpu="1"),
        )
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="21")))
    outcome = small.place(shop, *pods("a", 1, **on("r1")), *pods("b", 1, **on("r2")))
    assert any("21 bit/s wanted, 20 bit/s free" in reason for reason in reasons(outcome))


def test_a_link_that_is_overdrawn_takes_those_who_add_nothing_to_it() -> None:
    small = lab(budgets(r1_r2=10), cpu="9")
    shop = small.group(group_object("shop", *chain("a", "b", "c", minBandwidth="60")))
    small.see(member("a0", "a", on="n1", cpu="1"), member("b0", "b", on="n3", cpu="1"))
    outcome = small.place(shop, *pods("c", 1))
    assert REGION[where(outcome)["c0"]] == "r2"


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(STRATEGIES),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 50)), min_size=2, max_size=4),
    st.integers(1, 120),
    st.integers(1, 120),
)
def test_plans_one_after_another_never_overbook_a_link(
    strategy: str, groups: list[tuple[int, int, int]], region: int, zone: int
) -> None:
    costs = budgets(r1_r2=region, z1_z2=zone)
    small = lab(costs, strategy, cpu="4")
    for number, (callers, endpoints, amount) in enumerate(groups):
        name = f"g{number}"
        group = small.group(group_object(name, *chain("a", "b", minBandwidth=str(amount))))
        waiting = [
            member(f"{name}{workload}{one}", workload, group=name, cpu="1")
            for workload, count in (("a", callers), ("b", endpoints))
            for one in range(count)
        ]
        small.place(group, *waiting, partial=bool(number % 2))
        usage = taken(small.cache.bandwidth().places)
        assert all(usage.get(link, 0) <= amount for link, amount in costs.budgets.items())


def test_a_full_link_leads_a_plan_elsewhere() -> None:
    """n1 alone has no room for both; r2 has, though its zones are further apart."""
    small = lab(budgets(z1_z2=5))
    shop = small.group(group_object("shop", *chain("a", "b", minBandwidth="60")))
    outcome = small.place(shop, *pods("a", 1), *pods("b", 1))
    assert {REGION[node] for node in where(outcome).values()} == {"r2"}
