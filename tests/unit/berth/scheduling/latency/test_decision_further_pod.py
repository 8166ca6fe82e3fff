"""A workload makes a further pod for one that was evicted: the next move waits until that is not awaited any more.

It would be taken for the pod of that move, as no other would come, and would be on any node.
"""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus, Move, NodeState, Outcome, Surge
from berth.scheduling.latency import per_user
from berth.scheduling.latency.decision import decide, has_room
from berth.scheduling.latency.moves import open_moves
from berth.scheduling.latency.published import rounds
from berth.scheduling.latency.situation import Create, Pod, View
from tests.support.latency import METER, NOW, known, later, policy, users_of

NODES = ("a", "b", "c", "d")
ONE, TWO, THREE = Pod("one", "a"), Pod("two", "b"), Pod("three", "d")
NEW, FURTHER = Pod("new", "c"), Pod("further", "b", ready=False)
SINGLE = policy(hard=100, soft=40, exploration=["Migrate"])
PUBLISHED = policy(hard=100, soft=40, exploration=["Migrate"], decisions="Published")
PER_USER = policy(hard=40, users={"mode": "PerUser"})


def move(outcome: Outcome, *, source: str = "a", target: str = "c") -> Move:
    """Begun a minute ago, and over where it goes on no more."""
    return Move(
        pod=f"of-{source}",
        source_node=source,
        target_node=target,
        reason="BeyondHardLimit",
        outcome=outcome,
        start_time=later(-60),
        ready_time=later(-50),
        new_pod="new",
    )


@pytest.mark.parametrize(
    ("pods", "replicas", "asked", "moves", "room"),
    [
        pytest.param([ONE], 1, 1, [], True, id="nothing moves"),
        pytest.param([ONE], 1, 0, [], True, id="nobody knows what is asked for"),
        pytest.param([], 1, 1, [], True, id="one is to come anyway"),
        pytest.param([NEW], 1, 2, [Outcome.MOVED], False, id="a further pod is to come"),
        pytest.param([NEW, FURTHER], 1, 2, [Outcome.MOVED], False, id="a further pod is there"),
        pytest.param([NEW, FURTHER], 1, 1, [Outcome.MOVED], False, id="it is about to go"),
        pytest.param([NEW], 1, 1, [Outcome.MOVED], True, id="it has gone"),
        pytest.param([ONE, FURTHER], 1, 2, [Outcome.CANCELLED], False, id="one is left of a move that was given up"),
        pytest.param([ONE, NEW], 1, 2, [Outcome.TRYING], True, id="both pods of a move"),
        pytest.param([ONE], 1, 2, [Outcome.CREATING], True, id="the new pod of a move is to come"),
        pytest.param([ONE], 1, 1, [Outcome.CREATING], True, id="and is asked for in a moment"),
        pytest.param([ONE, NEW, THREE], 2, 4, [Outcome.TRYING], False, id="a further pod beside both of a move"),
        pytest.param([ONE, TWO, THREE], 2, 3, [Outcome.CREATING], False, id="one too many, and another to come"),
        pytest.param([ONE, TWO, THREE], 2, 2, [], False, id="a pod of a rollout"),
    ],
)
def test_another_pod_may_be_created(
    pods: list[Pod], replicas: int, asked: int, moves: list[Outcome], room: bool
) -> None:
    status = LatencyPolicyStatus(moves=tuple(move(outcome) for outcome in moves))
    assert has_room(status, View(tuple(pods), replicas, NODES, NODES, asked=asked)) is room


def just_moved(surge: Surge | None) -> LatencyPolicyStatus:
    """A pod went from a to c, which is within the hard limit alone; d is nearer, as far as anybody knows."""
    far = {"a": (180.0, NodeState.INVALID), "c": (70.0, NodeState.HARD_VALID), "d": (20.0, NodeState.SOFT_VALID)}
    nodes = tuple(known(node, *value).model_copy(update={"source": METER}) for node, value in far.items())
    return LatencyPolicyStatus(moves=(move(Outcome.CONFIRMED),), nodes=nodes, surge=surge)


RAISED = Surge(replicas=1, previous=1, wanted=2, seen=True)
LOWERED = Surge(replicas=1, previous=2, wanted=1)


def view(*pods: Pod, asked: int) -> View:
    return View(pods, 1, NODES, NODES, asked=asked)


@pytest.mark.parametrize("spec", [pytest.param(SINGLE, id="Berth's"), pytest.param(PUBLISHED, id="published")])
@pytest.mark.parametrize(
    ("there", "surge", "begins"),
    [
        pytest.param(view(NEW, asked=2), RAISED, False, id="before the further pod is there"),
        pytest.param(view(NEW, FURTHER, asked=2), RAISED, False, id="while it is there"),
        pytest.param(view(NEW, FURTHER, asked=1), LOWERED, False, id="before it has gone"),
        pytest.param(view(NEW, asked=1), None, True, id="once it has gone"),
    ],
)
def test_the_next_move_begins(spec: LatencyPolicySpec, there: View, surge: Surge | None, begins: bool) -> None:
    decider = rounds.decide if spec is PUBLISHED else decide
    status, time = just_moved(surge), NOW
    if spec is PUBLISHED:
        status = rounds.decide(status, spec, there, time).status
        assert status.search is not None
        time = rounds.round_at(status.search)
    found = decider(status, spec, there, time)
    assert any(isinstance(action, Create) for action in found.actions) is begins
    assert bool(open_moves(found.status)) is begins


@pytest.mark.parametrize(("asked", "begins"), [(2, False), (1, True)])
def test_the_next_move_begins_where_each_user_counts(asked: int, begins: bool) -> None:
    table = users_of([(180, 150, 120, 20)] * 4)
    status = LatencyPolicyStatus(moves=(move(Outcome.CONFIRMED),), surge=RAISED if asked > 1 else None)
    found = per_user.decide(status, PER_USER, view(NEW, asked=asked), table, NOW)
    assert any(isinstance(action, Create) for action in found.actions) is begins
