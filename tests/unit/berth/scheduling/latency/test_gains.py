"""What nodes are to users of whom each counts, and what moves gained them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.api.latencypolicy import Association, LatencyPolicyStatus, Move, NodeState, NodeStatus, Outcome
from berth.scheduling.latency.gains import figures, judge
from berth.scheduling.latency.moves import ENOUGH, LIE
from berth.scheduling.latency.situation import Reason, View
from berth.scheduling.latency.user_table import UserTable
from tests.support.latency import METER, NOW, PROBE, later, measured, policy

SPEC = policy(hard=40, soft=20, users={"mode": "PerUser"})


def table(**users: list[tuple[str, float]]) -> UserTable:
    """Users with milliseconds by node, measured now."""
    found = UserTable()
    for user, values in users.items():
        found.see(user, "place", NOW)
        found.observe(user, [measured(node, far) for node, far in values])
    return found


def on(*nodes: str) -> View:
    return View((), 1, nodes, nodes)


# -- figures


@pytest.mark.parametrize(
    ("milliseconds", "p50", "p90", "state"),
    [
        pytest.param([10], 10, 10, NodeState.SOFT_VALID, id="one"),
        pytest.param([10, 30], 10, 30, NodeState.SOFT_VALID, id="of two the nearer is the median"),
        pytest.param([30, 10, 90], 30, 90, NodeState.HARD_VALID, id="in any order"),
        pytest.param([*range(1, 11)], 5, 9, NodeState.SOFT_VALID, id="nine of ten are no farther than the p90"),
        pytest.param([80, 80, 1], 80, 80, NodeState.INVALID, id="most are beyond the hard limit"),
    ],
)
def test_a_node_is_to_all_users_what_it_is_to_their_median(
    milliseconds: list[float], p50: float, p90: float, state: NodeState
) -> None:
    users = {f"u{at}": [("a", value)] for at, value in enumerate(milliseconds)}
    (node,) = figures(LatencyPolicyStatus(), SPEC, table(**users), on("a")).nodes
    assert (node.p50_microseconds, node.p90_microseconds) == (1000 * p50, 1000 * p90)
    assert (node.node, node.state, node.samples, node.source, node.time) == ("a", state, len(milliseconds), None, NOW)


def test_what_is_known_of_a_node_besides_stays_and_nodes_that_nobody_measured_too() -> None:
    before = LatencyPolicyStatus(
        nodes=(
            NodeStatus(node="a", state=NodeState.INVALID, source=PROBE, rejections=2, rejected_until=later(60)),
            NodeStatus(node="b", rejections=1),
        )
    )
    after = {node.node: node for node in figures(before, SPEC, table(u=[("a", 41), ("gone", 1)]), on("a", "b")).nodes}
    assert after.keys() == {"a", "b"}
    assert (after["a"].rejections, after["a"].rejected_until) == (2, later(60))
    assert after["a"].state is NodeState.INVALID, "beyond the limit, by little, and it was so before"
    assert after["b"] == before.nodes[1]


# -- gains


def move(target: str = "b", **fields: object) -> Move:
    stated = {"reason": Reason.MORE_USERS, "outcome": Outcome.MOVED, "expected_microseconds": 20_000, **fields}
    return Move.model_validate(
        {"pod": "p", "source_node": "a", "target_node": target, "start_time": NOW, "ready_time": later(10), **stated}
    )


def moved(*moves: Move, users: int = 2) -> LatencyPolicyStatus:
    served = tuple(Association(user=f"u{at}", node="b", last_seen_time=NOW) for at in range(users))
    return LatencyPolicyStatus(moves=moves, associations=served)


def served(*milliseconds: float, at: float = 20, samples: int = ENOUGH, source: object = METER) -> UserTable:
    found = UserTable()
    for number, value in enumerate(milliseconds):
        found.see(f"u{number}", "place", NOW)
        found.observe(f"u{number}", [measured("b", value, at, source, samples)])  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("milliseconds", "outcome", "after"),
    [
        pytest.param([20, 20], Outcome.CONFIRMED, 20, id="as it seemed"),
        pytest.param([20 * LIE, 20 * LIE], Outcome.CONFIRMED, 25, id="farther by as much as it may be"),
        pytest.param([20 * LIE + 1, 20 * LIE + 1], Outcome.DISAPPOINTED, 26, id="farther than that"),
        pytest.param([10, 90], Outcome.CONFIRMED, 10, id="the median of two is the nearer"),
        pytest.param([20], Outcome.CONFIRMED, 20, id="half of them are enough"),
    ],
)
def test_a_move_is_judged_by_the_median_of_those_whom_it_serves(
    milliseconds: list[float], outcome: Outcome, after: float
) -> None:
    status = judge(moved(move()), served(*milliseconds), later(30))
    assert (status.moves[0].outcome, status.moves[0].after_microseconds) == (outcome, 1000 * after)
    rejected = {node.node: node.rejected_until for node in status.nodes}
    bad = outcome is Outcome.DISAPPOINTED
    assert rejected == ({"b": later(30) + timedelta(minutes=10)} if bad else {})


@pytest.mark.parametrize("milliseconds", [[90, 90], [20, 90], [90]])
def test_a_move_waits_for_users_who_may_be_nearer_than_those_who_are_served_first(milliseconds: list[float]) -> None:
    """Who was near the new node before is measured there at once, who went there is not."""
    before = moved(move(), users=4)
    assert judge(before, served(*milliseconds), later(30)) == before
    far = judge(before, served(*milliseconds, 90, 90, 90), later(30)).moves[0]
    assert (far.outcome, far.after_microseconds) == (Outcome.DISAPPOINTED, 90_000)
    near = judge(before, served(*milliseconds, *[20] * (4 - len(milliseconds))), later(30)).moves[0]
    assert (near.outcome, near.after_microseconds) == (Outcome.CONFIRMED, 20_000)


def test_a_move_is_not_judged_by_those_who_are_left_when_others_have_gone() -> None:
    """Expected was the median of all whom the new pod was for; who is far stays so."""
    before = moved(move(users=14), users=6)
    assert judge(before, served(*[70] * 6), later(30)) == before
    lied = judge(moved(move(users=6), users=6), served(*[70] * 6), later(30)).moves[0]
    assert lied.outcome is Outcome.DISAPPOINTED


def test_a_move_without_an_expectation_cannot_disappoint() -> None:
    status = judge(moved(move(expected_microseconds=None)), served(90, 90), later(30))
    assert (status.moves[0].outcome, status.nodes) == (Outcome.CONFIRMED, ())


@pytest.mark.parametrize(
    ("status", "users"),
    [
        pytest.param(moved(move(), users=3), served(90), id="fewer than half are served"),
        pytest.param(moved(move(), users=0), served(90, 90), id="nobody is to be served there"),
        pytest.param(moved(move(target="c")), served(90, 90), id="they are served elsewhere"),
        pytest.param(moved(move()), served(90, 90, at=5), id="measured before the pod was ready"),
        pytest.param(
            moved(move(ready_time=None, start_time=later(30))), served(90, 90), id="or before the move, if it never was"
        ),
        pytest.param(moved(move()), served(90, 90, samples=ENOUGH - 1), id="after too few requests"),
        pytest.param(moved(move()), served(90, 90, source=PROBE), id="by agents, who measured no request"),
        pytest.param(moved(move()), UserTable(), id="after a restart, of nobody yet"),
        pytest.param(moved(move(outcome=Outcome.EVICTING)), served(90, 90), id="the old pod is there yet"),
        pytest.param(moved(move(outcome=Outcome.CONFIRMED)), served(90, 90), id="judged already"),
        pytest.param(moved(move(reason=Reason.NEARER)), served(90, 90), id="of a time when users counted as one"),
    ],
)
def test_nothing_is_said_of_a_move_that_cannot_be_judged(status: LatencyPolicyStatus, users: UserTable) -> None:
    assert judge(status, users, later(60)) == status


def test_each_move_is_judged_by_itself() -> None:
    other = move(target="c", pod="q")
    status = judge(moved(other, move(), other), served(90, 90), later(30))
    assert [each.outcome for each in status.moves] == [Outcome.MOVED, Outcome.DISAPPOINTED, Outcome.MOVED]
