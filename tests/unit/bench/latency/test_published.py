"""Runs of the published rules: what their rounds give, and that a seed gives one run."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from bench.latency.published import MODES, Search, run
from bench.latency.scenarios import PUBLISHED, SCENARIOS, Noise, Scenario

S1 = SCENARIOS[0]


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_gives_one_run(mode: str) -> None:
    assert run(S1, MODES[mode], 3) == run(S1, MODES[mode], 3)
    assert len({run(S1, MODES[mode], seed) for seed in range(5)}) > 1


def test_the_search_for_the_minimum_visits_all_and_ends_on_the_best() -> None:
    for seed in range(10):
        found = run(S1, MODES["LAIS-0"], seed)
        assert found.moves in (7, 8)
        assert found.latency == pytest.approx(min(S1.latencies) + 4, rel=0.1)
        assert found.convergence is not None
        assert 180 < found.convergence < 260


def test_a_hard_limit_ends_within_it_and_a_soft_one_mostly() -> None:
    hard = [run(S1, MODES["LAIS-H"], seed) for seed in range(40)]
    soft = [run(S1, MODES["LAIS-S"], seed) for seed in range(40)]
    assert all(each.latency < (S1.hard + 4) * 1.1 for each in hard)
    assert 0.8 < fmean(each.convergence is not None for each in soft) <= 1
    assert fmean(each.latency for each in hard) == pytest.approx(PUBLISHED["LAIS-H"][0].latency, abs=4)


def test_pods_that_are_deleted_first_cost_requests() -> None:
    assert sum(run(S1, MODES["LAIS-0"], seed).failed for seed in range(5)) > 0


def test_a_round_moves_a_pod_from_a_cluster_that_is_measured_beyond_the_limit_and_no_other() -> None:
    scenario = Scenario("two", (100, 10), 40, 40)
    found = Search(scenario, MODES["LAIS-H"], random.Random(1))
    found.place = "c0"
    found.nodes = {name: node._replace(pods=int(name == "c0"), visits=1) for name, node in found.nodes.items()}
    assert not found.round()
    found.measured([90.0, 110.0])
    assert found.round()
    assert (found.place, found.moves) == ("c1", 1)
    found.measured([10.0])
    assert not found.round()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_scenarios_are_as_published(scenario: Scenario) -> None:
    assert len(scenario.latencies) == len(scenario.nodes) == 8
    assert scenario.nearest == 18
    assert sum(each <= scenario.soft for each in scenario.latencies) == 2


def test_noise_is_about_the_path_and_spikes_take_three_times_as_long() -> None:
    chance = random.Random(1)
    assert Noise(0).apply(10, chance) == 10
    drawn = [Noise(0.1).apply(10, chance) for _ in range(2000)]
    assert fmean(drawn) == pytest.approx(10, rel=0.02)
    spikes = [Noise(0, 0.25).apply(10, chance) for _ in range(2000)]
    assert set(spikes) == {10, 30}
    assert spikes.count(30) == pytest.approx(500, rel=0.2)
