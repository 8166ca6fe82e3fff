"""Chains of required affinity: every placement that exists is found, and where none is found none exists."""

from __future__ import annotations

import pytest

from bench.replicas_core.brute import best
from bench.replicas_core.judge import Judge
from berth.scheduling.planning import finish
from berth.scheduling.replicas.plan import Effort, plan
from tests.support.chains import planted, small, special
from tests.support.counts import state_of

IMPOSSIBLE = [5, 10, 18, 26, 36, 39, 50, 51]
"""Seeds below 60 of large clusters where the nodes that end a chain have too little room for its beginning."""
MISSED = [8, 13, 21, 22, 24, 46, 50, 52, 72, 74, 78, 89, 92, 100, 106, 108, 133, 137]
"""Seeds whose placements the search did not find as long as it looked at the room of one pod at a time."""


@pytest.mark.parametrize("seed", [*IMPOSSIBLE, 31, 43, 0, 1, 2])
def test_a_chain_that_ends_at_few_nodes_is_placed_exactly_if_they_have_room_for_it(seed: int) -> None:
    asked, possible = special(seed)
    assert finish(plan(asked)).complete is possible
    assert possible is (seed not in IMPOSSIBLE)


@pytest.mark.parametrize("seed", MISSED)
def test_a_chain_with_a_placement_is_placed(seed: int) -> None:
    asked = planted(seed)
    answer = finish(plan(asked))
    assert answer.complete
    assert Judge(asked).broken(state_of(answer)) == []


@pytest.mark.parametrize("steps", [pytest.param(0, id="search"), pytest.param(20_000, id="exact search")])
def test_small_chains_are_placed_exactly_if_brute_force_places_them(steps: int) -> None:
    feasible = 0
    for seed in range(80):
        asked = small(seed)
        possible = best(asked)[1] is not None
        answer = finish(plan(asked, effort=Effort(steps=steps)))
        assert answer.complete is possible, f"seed {seed}"
        if possible:
            feasible += 1
            assert Judge(asked).broken(state_of(answer)) == []
    assert 20 < feasible < 60
