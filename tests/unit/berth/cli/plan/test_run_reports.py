"""Plans with ProbeReports among the manifests: costs between zones, and how busy the nodes' links are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.cli.plan.run import BadInputError
from tests.support import plans
from tests.support.topologies import probe_report, probed_peer

Manifest = dict[str, Any]
THEN = datetime(2026, 5, 1, 12, tzinfo=UTC)
RISK = ("c.yaml", "profiles: [{checkRiskNodeBandwidth: {}}]")
GBIT = 10**9


def link(node: str, *, mean: int, deviation: int = 0, capacity: int | None = GBIT, age: float = 0.0) -> Manifest:
    """A report of how busy a node's link is."""
    bandwidth = {"interface": "eth0", "meanBitsPerSecond": mean, "deviationBitsPerSecond": deviation, "samples": 60}
    known = {} if capacity is None else {"capacityBitsPerSecond": capacity}
    time = (THEN - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    report = probe_report(node)
    return {**report, "status": {"time": time, "bandwidth": {**bandwidth, **known}, "peers": []}}


def node(name: str) -> Manifest:
    made = plans.node(name)
    made["status"]["allocatable"][RESOURCE_BANDWIDTH] = "1G"
    return made


def pod(amount: str) -> Manifest:
    made = plans.pod("wants")
    made["spec"]["containers"][0]["resources"] = {
        "requests": {RESOURCE_BANDWIDTH: amount},
        "limits": {RESOURCE_BANDWIDTH: amount},
    }
    return made


BUSY = {"mean": 700_000_000, "deviation": 600_000_000}


@pytest.mark.parametrize(
    ("reports", "amount", "placed"),
    [
        pytest.param([link("n1", **BUSY)], "100M", "n2", id="a-busy-link"),
        pytest.param([link("n1", **BUSY), link("n2", **BUSY)], "100M", None, id="two"),
        pytest.param([link("n1", **BUSY), link("n2", mean=0)], "100M", "n2", id="one-of-two"),
        pytest.param([link("n1", **BUSY), link("n2", **BUSY, age=900)], "100M", "n2", id="one-that-is-old"),
        pytest.param(
            [link("n1", **BUSY), link("n2", **BUSY), link("gone", mean=0, age=-3600)],
            "100M",
            None,
            id="one-of-no-node",
        ),
        pytest.param(
            [link("n1", **BUSY, capacity=None), link("n2", mean=0)], "100M", "n2", id="the-nodes-own-capacity"
        ),
    ],
)
def test_links_are_judged_as_the_controller_judges_them(
    reports: list[Manifest], amount: str, placed: str | None
) -> None:
    document = plans.made(node("n1"), node("n2"), pod(amount), *reports, configuration=RISK)
    assert plans.where(document) == ({"wants": placed} if placed else {})
    if placed is None:
        assert "likely to be too busy" in document["notPlaced"][0]["message"]
    assert not document["skipped"]


def test_without_the_parameters_no_link_is_judged() -> None:
    both = [link(name, **BUSY) for name in ("n1", "n2")]
    assert plans.where(plans.made(node("n1"), node("n2"), pod("100M"), *both))


def test_costs_of_a_new_topology_come_from_reports_among_the_manifests() -> None:
    """A dump is of a moment: its reports say which."""
    nodes = [plans.node(f"n{number}", region=f"r{number}", zone=f"z{number}", cpu="1") for number in (1, 2)]
    pairs = (("n1", "n2"), ("n2", "n1"))
    reports = [probe_report(name, probed_peer(peer, 78_400, time=THEN)) for name, peer in pairs]
    pods = [
        plans.pod("front", group="shop", workload="front", nodeName="n1"),
        plans.pod("back", group="shop", workload="back"),
    ]
    shop = plans.appgroup("shop", {"front": ["back"], "back": []})
    document = plans.made(*nodes, plans.topology({}, {("r1", "r2"): 20}), shop, *pods, *reports)
    [found] = document["appGroups"]
    assert found["meanEdgeCost"] == 784.0


@pytest.mark.parametrize(
    "ahead", [pytest.param(0, id="right"), pytest.param(30, id="some-seconds"), pytest.param(3600, id="an-hour")]
)
def test_one_clock_that_is_ahead_makes_no_other_report_old(ahead: int) -> None:
    names = [f"n{number}" for number in range(12)]  # one less is coverage enough
    nodes = [plans.node(name, region=f"r{name}", zone=f"z{name}", cpu="1") for name in names]
    reports = [
        probe_report(name, *(probed_peer(peer, 78_400, time=time) for peer in names if peer != name))
        for name in names
        for time in [THEN + timedelta(seconds=ahead if name == "n11" else 0)]
    ]
    pods = [
        plans.pod("front", group="shop", workload="front", nodeName="n0"),
        plans.pod("back", group="shop", workload="back"),
    ]
    shop = plans.appgroup("shop", {"front": ["back"], "back": []})
    document = plans.made(*nodes, plans.topology({}, {("rn0", "rn1"): 20}), shop, *pods, *reports)
    [found] = document["appGroups"]
    assert found["meanEdgeCost"] == 784.0


def test_a_report_that_is_none_is_told_with_its_field() -> None:
    wrong = link("n1", mean=0)
    wrong["status"]["bandwidth"]["meanBitsPerSecond"] = "much"
    with pytest.raises(BadInputError, match="meanBitsPerSecond"):
        plans.made(node("n1"), wrong)
