"""The scores added up."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from berth.kube.objects import Pod
from berth.scheduling.plugins import FilterPipeline
from berth.scheduling.plugins.scores import ScorePipeline, default_scores
from berth.scheduling.plugins.scores.resources import LeastAllocatedScore, MostAllocatedScore
from berth.scheduling.plugins.scores.taints import TaintTolerationScore
from tests.support.builders import node, pod
from tests.support.differential import build_state
from tests.support.filtering import cluster
from tests.support.generated import situations
from tests.support.situations import Situation

TOPICS_WITH_OPINIONS = ["taints", "node-affinity", "pod-affinity", "spread", "resources"]


def test_default_weights_are_kube_schedulers() -> None:
    assert {score.name: score.weight for score in default_scores()} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
    }


def test_total_is_the_weighted_sum_of_the_parts() -> None:
    state = cluster([node("n"), node("soft", taints=["k:PreferNoSchedule"])])
    pipeline = ScorePipeline([TaintTolerationScore(weight=5), LeastAllocatedScore(weight=0.5)])
    result = pipeline.evaluate(pod("new", cpu="2"), state, state.alive)
    assert result.parts["TaintToleration"].tolist() == [100, 0]
    assert result.total.tolist() == [500 + 0.5 * 74, 0.5 * 74]


@pytest.mark.parametrize(
    ("score", "best"), [(LeastAllocatedScore(), "empty"), (MostAllocatedScore(), "full")], ids=["spread", "pack"]
)
def test_best_node(score: LeastAllocatedScore | MostAllocatedScore, best: str) -> None:
    state = cluster([node("full"), node("empty")], [pod("there", on="full", cpu="2", memory="8Gi")])
    slot = ScorePipeline([score]).evaluate(pod("new"), state, state.alive).best()
    assert slot == state.node_index[best]


def test_best_of_equals_is_the_lowest_slot_and_of_none_is_none() -> None:
    state = cluster([node("a"), node("b")])
    feasible = np.array([False, True])
    assert ScorePipeline().evaluate(pod("new"), state, state.alive).best() == 0
    assert ScorePipeline().evaluate(pod("new"), state, feasible).best() == 1
    assert ScorePipeline().evaluate(pod("new"), state, np.zeros(2, dtype=np.bool_)).best() is None


def test_best_is_feasible_even_when_all_totals_are_zero() -> None:
    state = cluster([node("a"), node("b")])
    result = ScorePipeline([]).evaluate(pod("new"), state, np.array([False, True]))
    assert result.best() == 1


@pytest.mark.parametrize("topic", TOPICS_WITH_OPINIONS)
def test_every_score_is_from_0_to_100_on_feasible_nodes_and_0_elsewhere(topic: str) -> None:
    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(situations(topic))
    def check(situation: Situation) -> None:
        named = situation.named("s")
        state = build_state(named)
        found = msgspec.convert(named.pod, Pod)
        feasible = FilterPipeline().evaluate(found, state).mask
        result = ScorePipeline().evaluate(found, state, feasible)
        for name, part in result.parts.items():
            assert part.dtype == np.float64
            assert not part[~feasible].any(), name
            assert ((part >= 0) & (part <= 100)).all(), name
            assert (part == np.trunc(part)).all(), name
        assert (result.best() is None) == (not feasible.any())

    check()
