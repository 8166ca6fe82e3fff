"""Bandwidth: budgets of nodes and of shared links."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.api.labels import LABEL_WORKLOAD
from berth.kube.objects import Service
from berth.network.groups import GroupKey
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.framework.framework import Framework
from berth.scheduling.plugins.bandwidth import Bandwidth
from tests.support import kinds
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

NET = {"network_aware_com__bandwidth": "100M"}


def reasons(outcome: Outcome) -> dict[str, int]:
    (failure,) = outcome.failures
    return {item.reason: item.count for item in failure.rejections}


class TestBandwidth:
    def lab(self, **arguments: Any) -> Lab:
        lab = Lab([zoned("n1", cpu=1, **NET), zoned("n2", **NET)], **arguments)
        lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        return lab

    def shop(self, lab: Lab) -> Any:
        return lab.cache.groups[GroupKey("default", "shop")]

    def test_exact_fit(self) -> None:
        lab = Lab(
            [zoned("n1", cpu=1, network_aware_com__bandwidth="60M"), zoned("n2", network_aware_com__bandwidth="60M")]
        )
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": "n2"}

    def test_too_little_left_on_the_candidate(self) -> None:
        lab = self.lab()
        lab.see(member("b1", "b", on="n1", cpu="1"), lone("hungry", on="n2", network_aware_com__bandwidth="50M"))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))
        assert reasons(outcome)["node(s) had too little bandwidth for the pod's dependencies"] == 1

    def test_too_little_left_at_the_neighbour(self) -> None:
        lab = self.lab()
        lab.see(member("b1", "b", on="n1", cpu="1"), lone("hungry", on="n1", network_aware_com__bandwidth="50M"))
        outcome = lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))
        assert reasons(outcome)["node(s) had too little bandwidth for the pod's dependencies"] == 1

    def test_on_one_node_no_bandwidth_is_needed_even_when_it_is_overdrawn(self) -> None:
        lab = self.lab()
        lab.see(
            member("b1", "b", on="n2"),
            lone("h1", on="n2", network_aware_com__bandwidth="100M"),
            lone("h2", on="n2", network_aware_com__bandwidth="10M"),
        )
        assert where(lab.place_alone(member("a1", "a", cpu="1"), self.shop(lab))) == {"a1": "n2"}

    def test_a_neighbour_without_demand_on_an_overdrawn_node_harms_nobody(self) -> None:
        lab = Lab([zoned("n1", cpu=1, **NET), zoned("n2", **NET), zoned("n3", cpu=1, **NET)])
        shop = lab.group(
            group_object(
                "shop",
                {
                    "workload": kinds.ref("a"),
                    "dependencies": [
                        {"workload": kinds.ref("b"), "minBandwidth": "10M"},
                        {"workload": kinds.ref("c")},
                    ],
                },
                kinds.workload("b"),
                kinds.workload("c"),
            )
        )
        lab.see(
            member("b1", "b", on="n1", cpu="1"),
            member("c1", "c", on="n3", cpu="1"),
            lone("h1", on="n3", network_aware_com__bandwidth="100M"),
            lone("h2", on="n3", network_aware_com__bandwidth="10M"),
        )
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": "n2"}

    @pytest.mark.parametrize(
        ("capacity", "node"),
        [pytest.param("1G", "n2", id="room-on-the-link"), pytest.param("50M", "n3", id="link-too-narrow")],
    )
    def test_shared_links(self, capacity: str, node: str) -> None:
        profile = Profile(links=[Link(name="trunk", capacity=capacity, zones=[("z1", "z2")])])
        lab = Lab([zoned("n1", "z1", cpu=1), zoned("n2", "z2"), zoned("n3", "z3", "r2")], profile)
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        lab.see(member("b1", "b", on="n1", cpu="1"))
        assert where(lab.place_alone(member("a1", "a", cpu="1"), shop)) == {"a1": node}

    def test_one_node_alone_is_judged_as_among_all(self) -> None:
        """Behind the link, and too full itself; other nodes are as good as not there."""
        profile = Profile(links=[Link(name="trunk", capacity="50M", zones=[("z1", "z2")])])
        full = zoned("n4", "z1", network_aware_com__bandwidth="50M")
        lab = Lab([zoned("n1", "z1"), zoned("n2", "z2"), zoned("n3", "z3", "r2"), full], profile)
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="60M")))
        lab.see(member("b1", "b", on="n1"), member("a1", "a"))
        judge = lab.planner._judge
        cycle, result = judge(member("a1", "a"), shop, lab.costs)
        assert {item.reason for item in result.rejections if item.plugin == "Bandwidth"} == {
            "node(s) had too little bandwidth for the pod's dependencies",
            "node(s) had too little bandwidth on link trunk: 60M bit/s wanted, 50M bit/s free",
        }
        for slot, admitted in enumerate(result.mask.tolist()):
            fresh, _ = judge(member("a1", "a"), shop, lab.costs)
            assert (Framework.refusal([Bandwidth()], fresh, slot) is None) is admitted
            assert fresh.asked.tolist() == [number == slot for number in range(4)]
        assert cycle.asked.tolist() == [True] * 4

    def test_a_joint_plan_that_knows_nothing_of_services_is_judged_by_them(self) -> None:
        """Each caller needs 6 bit/s of the one endpoint in its zone, not 2 of each of the three."""
        lab = Lab(
            [
                zoned("n0", "z1", cpu=1, network_aware_com__bandwidth="10"),
                zoned("n1", "z1", labels={"callers": "here"}),
                zoned("n2", "z2"),
            ]
        )
        spec = {"selector": {LABEL_WORKLOAD: "b"}, "trafficDistribution": "PreferSameZone"}
        lab.cache.update_service(
            msgspec.convert({"metadata": {"name": "b", "namespace": "default"}, "spec": spec}, Service)
        )
        shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth="6")))
        lab.see(member("b0", "b", on="n0", cpu="1"), member("b1", "b", on="n2"), member("b2", "b", on="n2"))
        callers = [member(f"a{n}", "a", spec={"nodeSelector": {"callers": "here"}}) for n in range(2)]
        outcome = lab.place(shop, *callers, partial=True)
        assert where(outcome) == {"a0": "n1"}
        assert reasons(outcome)["node(s) had too little bandwidth for the pod's dependencies"] == 1
        assert lab.cache.bandwidth().nodes["n0"] == 6
