"""Rounds that a controller holds, by another process each time, leave the same nodes as those of the simulator."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.latency.published import MODES, Search
from bench.latency.scenarios import SCENARIOS, Scenario
from berth.api.latencypolicy import Decisions, LatencyPolicySpec, Objective
from berth.scheduling.latency.decision import Decision
from berth.scheduling.latency.published import rounds
from berth.scheduling.latency.situation import View
from tests.support.latency import World, again, later, policy

ROUNDS = 12


class InOrder(random.Random):
    """Of equal nodes the first is taken."""

    def sample(self, population: Any, k: int, **_: Any) -> list[Any]:
        return list(population)[:k]


class Rounds(World):
    """Decides by the published rules, and forgets all but the status."""

    def decide(self) -> Decision:
        names = tuple(self.far)
        view = View(tuple(self.pods.values()), 1, names, names)
        decision = rounds.decide(again(self.status), self.spec, view, later(self.now))
        self.status = decision.status
        return decision


def spec_of(mode: str, scenario: Scenario) -> LatencyPolicySpec:
    limits: dict[str, dict[str, Any]] = {
        "LAIS-H": {"hard": scenario.hard},
        "LAIS-S": {"hard": scenario.hard, "soft": scenario.soft},
        "LAIS-0": {"objective": Objective.MINIMUM},
    }
    return policy(decisions=Decisions.PUBLISHED, max_per_hour=64, **limits[mode])


def simulated(mode: str, scenario: Scenario) -> list[str]:
    """Clusters that a pod is on, round after round."""
    found = Search(scenario, MODES[mode], InOrder())
    at = dict(zip(scenario.nodes, scenario.latencies, strict=True))
    places = [found.place]
    for _ in range(ROUNDS):
        found.measured([at[found.place]])
        found.round()
        places.append(found.place)
    return places


def held(mode: str, scenario: Scenario) -> list[str]:
    far = dict(zip(scenario.nodes, map(float, scenario.latencies), strict=True))
    world, places = Rounds(spec_of(mode, scenario), far), [scenario.nodes[0]]
    world.step(1.0)
    for _ in range(ROUNDS):
        world.run(rounds.ROUND_SECONDS - 1, step=10.0)
        before = list(world.evicted)
        assert len(world.pods) == 1, "a move has ended long before the next round"
        world.step(1.0)
        assert world.evicted == before, "another pod is there first"
        places.append(list(world.pods.values())[-1].node)
    assert world.most <= 2
    return places


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_published_scenarios(mode: str, scenario: Scenario) -> None:
    assert held(mode, scenario) == simulated(mode, scenario)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 100), min_size=2, max_size=9), st.integers(2, 99), st.sampled_from(sorted(MODES)))
def test_any_scenario(latencies: Sequence[int], hard: int, mode: str) -> None:
    scenario = Scenario("any", tuple(latencies), hard, hard // 2)
    assert held(mode, scenario) == simulated(mode, scenario)
