"""Pauses among the same nodes: what ends them, and when time is looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from berth.scheduling.cache.cache import Cache
from berth.scheduling.gang.budget import STRETCH_SECONDS, TURN_SECONDS, Budget
from berth.scheduling.replica_plan.same_nodes import NodesChangedError, SameNodes
from tests.support.placement import Clock, Lab, lone, zoned


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        pytest.param(lambda cache: cache.update_pod(lone("p", on="n0")), False, id="a pod comes"),
        pytest.param(lambda cache: cache.update_node(zoned("n0")), False, id="a node is seen again"),
        pytest.param(lambda cache: cache.update_node(zoned("n1")), True, id="a node comes"),
        pytest.param(lambda cache: cache.update_node(zoned("n0", "z2")), True, id="a node changes"),
        pytest.param(lambda cache: cache.delete_node(zoned("n0")), True, id="a node goes"),
    ],
)
def test_only_nodes_that_change_end_it(change: Callable[[Cache], object], ends: bool) -> None:
    clock = Clock()
    lab = Lab([zoned("n0")], clock=clock)
    same = SameNodes(lab.cache.state, Budget(clock, 2.0))
    clock.advance(TURN_SECONDS)
    turn = same.pause()
    next(turn)
    change(lab.cache)
    if ends:
        with pytest.raises(NodesChangedError):
            next(turn)
    else:
        assert list(turn) == []


def test_time_is_looked_at_once_a_turn() -> None:
    clock = Clock()
    same = SameNodes(Lab([]).cache.state, budget := Budget(clock, TURN_SECONDS / 4))
    clock.advance(TURN_SECONDS)
    assert not same.exhausted
    assert len(list(same.pause())) == 1
    assert budget.pauses == 1
    assert (same.exhausted, same.exhausted) == (True, False)


@pytest.mark.parametrize(
    ("seconds", "planning", "over"),
    [
        pytest.param(STRETCH_SECONDS, 60.0, True, id="over"),
        pytest.param(0.9 * STRETCH_SECONDS, 60.0, False, id="not over"),
        pytest.param(0.9 * STRETCH_SECONDS, 0.1, True, id="that of the plan is over"),
    ],
)
def test_at_a_stretch_nobody_has_a_turn_and_time_is_short(seconds: float, planning: float, over: bool) -> None:
    clock = Clock()
    budget = Budget(clock, planning)
    clock.advance(0.1)
    same = SameNodes(Lab([]).cache.state, budget, at_a_stretch=True)
    assert not same.exhausted
    clock.advance(seconds)
    assert list(same.pause()) == []
    assert same.exhausted is over
