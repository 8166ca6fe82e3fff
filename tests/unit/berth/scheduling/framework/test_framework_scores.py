"""The scores added up."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from berth.kube.objects import Pod
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.plugin import CostPlugin, Floats, ScorePlugin
from berth.scheduling.plugins.node_resources_fit import NodeResourcesFit
from berth.scheduling.plugins.taint_toleration import TaintToleration
from tests.support.builders import node, pod
from tests.support.differential import build_state
from tests.support.filtering import cluster, cycle_of, filtered, framework, scored
from tests.support.generated import situations
from tests.support.situations import Situation

TOPICS_WITH_OPINIONS = ["taints", "node-affinity", "pod-affinity", "spread", "resources"]


def test_default_weights_are_kube_schedulers() -> None:
    own = {"NetworkOverhead", "ResourceCost", "NodeBandwidth", "UserLatency"}
    own |= {f"Interference{choice}" for choice in ("LeastSlowdown", "Greedy", "Sparing", "SocketBased")}
    scores = [plugin for plugin in framework().plugins if isinstance(plugin, ScorePlugin) and plugin.name not in own]
    assert {score.name: score.score_weight for score in scores} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
    }


def test_total_is_the_weighted_sum_of_the_terms() -> None:
    state = cluster([node("n"), node("soft", taints=["k:PreferNoSchedule"])])
    taints, room = TaintToleration(), NodeResourcesFit()
    taints.score_weight, room.score_weight = 5, 0.5
    result = scored(pod("new", cpu="2"), state, state.alive, taints, room)
    assert result.terms["TaintToleration"].tolist() == [500, 0]
    assert result.total.tolist() == [500 + 0.5 * 74, 0.5 * 74]


def test_a_weight_of_zero_switches_a_score_off() -> None:
    state = cluster([node("n")])
    room = NodeResourcesFit()
    room.score_weight = 0
    assert scored(pod("new"), state, state.alive, room).terms == {}


@pytest.mark.parametrize("topic", TOPICS_WITH_OPINIONS)
def test_every_score_is_from_0_to_100_on_feasible_nodes_and_0_elsewhere(topic: str) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(situations(topic))
    def check(situation: Situation) -> None:
        named = situation.named("s")
        state = build_state(named)
        found = msgspec.convert(named.pod, Pod)
        feasible = filtered(found, state).mask
        scores = [plugin for plugin in framework().plugins if isinstance(plugin, ScorePlugin)]
        parts = {plugin.name: plugin.normalized(cycle_of(found, state), feasible) for plugin in scores}
        for name, part in parts.items():
            if part is None:
                continue
            assert part.dtype == np.float64
            assert not part[~feasible].any(), name
            assert ((part >= 0) & (part <= 100)).all(), name
            assert (part == np.trunc(part)).all(), name

    check()


class Odd(CostPlugin):
    name = "Odd"
    cost_weight = 1.0

    def cost(self, cycle: CycleState) -> Floats | None:
        return np.array([np.nan, np.inf, -1.0, 2.0])


def test_a_plugin_with_odd_costs_does_not_stop_a_joint_plan() -> None:
    state = cluster([node(name) for name in "abcd"])
    costs = framework(Odd()).joint_costs(cycle_of(pod("new"), state), state.alive)
    assert costs["Odd"].tolist() == [0.0, 0.0, 0.0, 2.0]
