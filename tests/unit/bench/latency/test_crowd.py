"""Runs with many users: pods go where most of them are, and users who go elsewhere find another pod."""

from __future__ import annotations

import random

from bench.latency import crowd
from bench.latency.cells import TARGET
from bench.latency.crowd import MOVERS, NODES, PODS, REGIONS, USERS, Simulation
from berth.api.latencypolicy import LatencyPolicySpec, UserMode, Users

SPEC = LatencyPolicySpec(target_ref=TARGET, hard_max_latency=crowd.HARD, users=Users(mode=UserMode.PER_USER))


def test_users_are_spread_over_regions_and_a_third_of_them_moves() -> None:
    found = crowd.crowd(random.Random(1))
    assert (len(found.at), len(found.at[0])) == (USERS, NODES)
    assert {found.region.count(region) for region in range(REGIONS)} == {USERS // REGIONS}
    moved = [user for user in range(USERS) if found.region[user] != found.region_then[user]]
    assert len(moved) == USERS * MOVERS
    assert all((found.at[user] != found.then[user]) == (user in moved) for user in range(USERS))


def test_a_run_ends_near_the_optimum_before_and_after_users_have_moved() -> None:
    run = Simulation(SPEC, 0.3, 1)
    found = run.run()
    assert found.failed == 0
    assert found.extra <= 1
    for phase in (found.first, found.then):
        assert phase.best * 0.9 <= phase.mean <= phase.best * 1.1
        assert phase.within >= 0.8
    assert found.first.mean < found.start
    assert found.first.moves <= PODS
    assert len({pod.node for pod in run.pods.values()}) == PODS
