"""Moves that are switched off in the middle of one, at each of its steps: it ends, and no other begins."""

from __future__ import annotations

import pytest

from berth.scheduling.latency import moves
from tests.support.latency import World, policy

FAR: dict[str, float] = {"a": 100, "b": 20, "c": 60}


@pytest.mark.parametrize("off", [{"dry_run": True}, {"max_per_hour": 0}])
@pytest.mark.parametrize("steps", range(9))
def test_a_move_that_has_begun_ends_and_no_other_begins(steps: int, off: dict[str, object]) -> None:
    world = World(policy(hard=80), FAR, told=FAR, place="a", start=5, restarts=True)
    world.run(steps)
    begun = len(world.created)
    assert begun == (steps > 0)
    world.spec = policy(hard=80, **off)
    world.run(60)
    assert (world.places, len(world.created), world.most) == (["b"] if begun else ["a"], begun, 1 + begun)
    assert moves.open_moves(world.status) == ()
    world.far = world.told = {"a": 10, "b": 100, "c": 60}
    world.run(120)
    assert len(world.created) == begun
