"""Users who come back to where they were: what meters measured of a node that pods have left is not in their way."""

from __future__ import annotations

import pytest

from berth.scheduling.latency.measuring import REFRESH
from tests.support.latency import World, policy

WEST = {"a": 180.0, "b": 120.0, "c": 20.0}
EAST = {"a": 20.0, "b": 120.0, "c": 180.0}


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "another each time"])
@pytest.mark.parametrize("stayed", [10, 20, 40])
@pytest.mark.parametrize("soft", [None, 60], ids=["hard", "soft"])
def test_a_pod_follows_them_as_soon_as_agents_have_measured(stayed: int, soft: int | None, restarts: bool) -> None:
    world = World(policy(hard=100, soft=soft), WEST, told=WEST, restarts=restarts)
    world.run(stayed)
    assert world.places == ["c"]
    world.far = world.told = EAST
    world.run(REFRESH.total_seconds() + world.start + 2)
    assert world.places == ["a"]
    world.run(60)
    assert len(world.created) == 2
