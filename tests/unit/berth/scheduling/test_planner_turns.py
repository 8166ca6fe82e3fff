"""Groups that an author made to hold others up: how long others wait at a stretch, and what an attempt comes to.

Work is counted and not timed. Operations on arrays count as one, however long the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial as having

import pytest

from bench.planning import hostile, relations
from bench.planning.__main__ import COSTS, in_turns
from berth.scheduling.configuration import Profile
from berth.scheduling.gang import budget
from berth.scheduling.planner import Planner
from tests.support.work import Work

TURN = 0.02
"""Of a turn here; cases are as much smaller than real ones."""
LONGEST = {"replicas": 0.16, "berth": 0.35}
"""A turn and what is made in one go, such as tables of all calls of a batch."""
SECONDS = 0.5
"""Planning time of an attempt, which may take three times as long."""
CASES = [
    pytest.param(having(hostile.rules, nodes=10, pods=60, terms=250), id="rules"),
    pytest.param(having(hostile.ports, nodes=30, pods=12, each=300, among=600), id="host ports"),
    pytest.param(having(hostile.members, nodes=8, pods=600), id="priorities"),
    pytest.param(having(hostile.dense, nodes=8, workloads=30, replicas=20), id="dense calls"),
    pytest.param(having(hostile.many, nodes=50, workloads=400, replicas=3), id="workloads"),
    pytest.param(having(hostile.claims, nodes=60, pods=40, each=20), id="claims"),
    pytest.param(having(relations.topology_keys, nodes=20, pods=20, terms=250), id="topology keys"),
    pytest.param(having(relations.unlike_callers, nodes=10, workloads=30, pods=10), id="calls of pods that are unlike"),
    pytest.param(having(relations.tangled_calls, nodes=10, workloads=60), id="calls in a tangle"),
    pytest.param(having(relations.backwards, nodes=10, pods=400), id="chain backwards"),
    pytest.param(having(relations.spread_anew, nodes=80, replicas=80, constraints=120), id="spread constraints"),
]


def attempt(case: Callable[[Work], relations.Case], *, strategy: str, partial: bool) -> tuple[int, float, float]:
    """Pods placed, work of the attempt, and the longest turn of it."""
    work = Work()
    cache, group, pods = case(work)
    planner = Planner(cache, Profile.model_validate({"gang": {"strategy": strategy, "planningSeconds": SECONDS}}))
    with work.counting():
        outcome, longest = in_turns(planner.place_group(group, pods, COSTS, partial=partial), work)
    return len(outcome.decisions), work.seconds, longest


@pytest.mark.parametrize("strategy", ["replicas", "berth"])
@pytest.mark.parametrize("partial", [False, True], ids=["all or nothing", "what fits"])
@pytest.mark.parametrize("case", CASES)
def test_others_have_their_turns_and_every_attempt_gets_somewhere(
    case: Callable[[Work], relations.Case], partial: bool, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", TURN)
    placed, work, longest = attempt(case, strategy=strategy, partial=partial)
    assert longest <= LONGEST[strategy]
    assert work <= 2 * 3 * SECONDS + 2 * TURN
    assert placed or not partial
