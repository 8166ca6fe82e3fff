"""Pods for many users: a plan for all, carried out a pod at a time, and kept until another is better by enough."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.latencypolicy import MAX_PODS, LatencyPolicySpec, LatencyPolicyStatus, NodeState, Outcome, Surge
from berth.scheduling.latency.per_user import Decision, decide
from berth.scheduling.latency.situation import Create, Evict, Pod, View
from berth.scheduling.latency.user_table import UserTable
from tests.support.latency import NODES, NOW, again, later, measured, policy, users_of

SPEC = policy(hard=40, users={"mode": "PerUser"})
EAST, WEST = [90, 90, 10, 30], [90, 90, 80, 12]


def view(*places: str) -> View:
    return View(tuple(Pod(f"p{node}", node) for node in places), len(places), NODES, NODES)


def settle(
    rows: Sequence[Sequence[float]], *places: str, spec: LatencyPolicySpec = SPEC, restarts: bool = False
) -> tuple[LatencyPolicyStatus, list[str], list[str], int]:
    """Carry out what is decided until nothing is; the status, places, pods created, and most pods at once."""
    status, there, created, most = LatencyPolicyStatus(), view(*places), [], 0
    for step in range(40):
        status = again(status) if restarts else status
        decision = decide(status, spec, there, users_of(rows), later(step))
        status = decision.status
        pods = list(there.pods)
        for action in decision.actions:
            if isinstance(action, Create):
                pods.append(Pod(f"n{step}", action.node))
                created.append(action.node)
            elif isinstance(action, Evict):
                pods = [pod for pod in pods if pod.name != action.pod]
        there = there._replace(pods=tuple(pods))
        most = max(most, len(pods))
    return status, [pod.node for pod in there.pods], created, most


@pytest.mark.parametrize(
    ("rows", "places", "end"),
    [
        pytest.param([EAST, WEST], ("a", "b"), {"c", "d"}, id="both move, one after the other"),
        pytest.param([EAST, WEST], ("a", "d"), {"c", "d"}, id="one is right already"),
        pytest.param([EAST, WEST], ("c", "d"), {"c", "d"}, id="both are"),
        pytest.param([EAST, WEST], ("a",), {"d"}, id="one pod for both goes where both are within the limit"),
        pytest.param([EAST], ("d",), {"c"}, id="nearer by enough"),
        pytest.param([[90, 90, 29, 30]], ("d",), {"d"}, id="nearer by too little"),
    ],
)
def test_pods_go_where_most_users_are_served(rows: list[list[float]], places: tuple[str, ...], end: set[str]) -> None:
    status, found, created, most = settle(rows, *places)
    assert set(found) == end
    assert set(created) == end - set(places)
    assert len(created) == len(end - set(places))
    assert most <= len(places) + 1
    assert status.plan == ()
    nearest = [min(end, key=lambda node: row[NODES.index(node)]) for row in rows]
    assert [each.node for each in status.associations] == nearest


@pytest.mark.parametrize(
    ("former", "node"),
    [
        pytest.param(("d",), "c", id="a pod that has to move anyway goes where it is better by however little"),
        pytest.param((), None, id="one that need not stays"),
    ],
)
def test_a_plan_that_is_not_carried_out_yet_follows_what_is_known_now(
    former: tuple[str, ...], node: str | None
) -> None:
    place = "a" if former else "d"
    status = LatencyPolicyStatus(plan=former)
    decision = decide(status, SPEC, view(place), users_of([[90, 90, 11, 12]]), NOW)
    assert (decision.wish and decision.wish.node) == node


def test_few_users_about_the_limit_move_no_pod() -> None:
    rows = [[90.0, 90.0, 35.0, 36.0] for _ in range(30)] + [[90.0, 90.0, 41.0, 39.0]]
    _, found, created, _ = settle(rows, "c")
    assert (found, created) == (["c"], [])


def test_one_of_few_users_who_is_about_the_limit_does_not_move_pods_to_and_fro() -> None:
    """Where he is within it both are nearer on average, and where he is beyond it more are within it elsewhere."""
    status, there, places = LatencyPolicyStatus(), view("c"), list[str]()
    for step in range(20):
        about = 39.0 if step % 2 else 41.0
        users = users_of([[90, 90, about, 90], [90, 90, 60, 38]], later(400 * step))
        decision = decide(status, SPEC, there, users, later(400 * step + 10))
        status = decision.status
        for action in decision.actions:
            if isinstance(action, Create):
                there = there._replace(pods=(*there.pods, Pod(f"p{action.node}{step}", action.node)))
                places.append(action.node)
            elif isinstance(action, Evict):
                there = there._replace(pods=tuple(pod for pod in there.pods if pod.name != action.pod))
    assert places in ([], ["d"])


def test_nothing_moves_before_new_users_are_measured() -> None:
    table = users_of([EAST])
    table.see("new", "elsewhere", NOW)
    decision = decide(LatencyPolicyStatus(), SPEC, view("a"), table, later(1))
    assert decision.wish is None
    assert decision.look_again == later(5)
    assert decide(LatencyPolicyStatus(), SPEC, view("a"), table, later(5)).wish is not None


def test_without_measurements_pods_and_associations_stay() -> None:
    """As after a restart, until meters and agents have told again."""
    status, *_ = settle([EAST, WEST], "c", "d")
    decision = decide(again(status), SPEC, view("c", "d"), UserTable(), later(50))
    assert decision.actions == ()
    assert decision.status.associations == status.associations


def test_dry_run_tells_the_move_and_makes_none() -> None:
    spec = policy(hard=40, users={"mode": "PerUser"}, dry_run=True)
    decision = decide(LatencyPolicyStatus(), spec, view("a"), users_of([EAST]), NOW)
    assert decision.actions == ()
    assert decision.wish is not None
    assert decision.wish.node == "c"
    assert decision.wish.message == "10.0 ms on average, 0 of 1 beyond the limit"


LEAVING = Surge(replicas=2, previous=2, wanted=2, seen=True, leaving="pd")
ONE = policy(hard=40, users={"mode": "PerUser", "maxReplicas": 1})


def sized(
    rows: Sequence[Sequence[float]], there: View, seconds: float = 0, since: float | None = None, **users: int
) -> Decision:
    """What follows when fewer have been enough since then."""
    spec = policy(hard=25, users={"mode": "PerUser", **users})
    status = LatencyPolicyStatus(fewer_time=None if since is None else later(since))
    return decide(status, spec, there, users_of(rows, later(seconds)), later(seconds))


def test_the_number_of_pods_follows_the_users_where_it_may() -> None:
    assert sized([EAST, WEST], view("c")).replicas == 1
    assert sized([EAST], view("c"), maxReplicas=4).replicas == 2
    assert sized([EAST, WEST], view("c"), maxReplicas=4).replicas == 3
    assert sized([EAST, WEST], view("c"), maxReplicas=2).replicas == 2


def test_more_pods_come_where_the_plan_has_a_node_without_one_and_none_moves_meanwhile() -> None:
    found = sized([EAST, WEST], view("a"), maxReplicas=3)
    assert (found.replicas, found.wish, found.actions) == (3, None, ())
    assert {"c", "d"} < {*found.status.plan}
    assert len(found.status.plan) == 3


def test_a_workload_that_is_switched_off_stays_so() -> None:
    assert sized([EAST, WEST], view(), maxReplicas=3).replicas == 0


@pytest.mark.parametrize(
    ("rows", "since", "leaving", "again"),
    [
        pytest.param([EAST], None, None, 300, id="fewer would do from now on"),
        pytest.param([EAST], -299, None, 1, id="not for long enough"),
        pytest.param([EAST], -300, "pa", None, id="the one that is missed least goes"),
        pytest.param([], -300, "pa", None, id="nobody is there"),
    ],
)
def test_fewer_pods_come_after_a_while(
    rows: list[list[float]], since: float | None, leaving: str | None, again: float | None
) -> None:
    found = sized(rows, view("a", "c", "d"), since=since, maxReplicas=4)
    assert (found.replicas, found.leaving) == (3 if leaving is None else 2, leaving)
    assert again is None or found.look_again == later(again)


def test_a_pod_that_leaves_is_evicted_and_serves_nobody_from_then_on() -> None:
    status = LatencyPolicyStatus(surge=LEAVING, fewer_time=later(-300))
    found = decide(status, ONE, view("c", "d"), users_of([EAST, WEST]), NOW)
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == ["pd"]
    assert {each.node for each in found.status.associations} == {"c"}
    assert (found.replicas, found.leaving) == (1, "pd")


@pytest.mark.parametrize(
    ("unready", "evicted"),
    [
        pytest.param("pc", [], id="another does not serve yet"),
        pytest.param("pd", ["pd"], id="it does not serve itself"),
    ],
)
def test_a_pod_that_leaves_goes_while_as_many_others_serve_as_should(unready: str, evicted: list[str]) -> None:
    status = LatencyPolicyStatus(surge=LEAVING, fewer_time=later(-300))
    both = view("c", "d")
    both = both._replace(pods=tuple(pod._replace(ready=pod.name != unready) for pod in both.pods))
    found = decide(status, ONE, both, users_of([EAST, WEST]), NOW)
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted
    assert (found.replicas, found.leaving) == (1, "pd")


def test_a_pod_that_leaves_stays_where_users_come_back() -> None:
    status = LatencyPolicyStatus(surge=LEAVING, fewer_time=later(-300))
    found = decide(status, policy(hard=40, users={"maxReplicas": 2}), view("c", "d"), users_of([EAST, WEST]), NOW)
    assert (found.actions, found.replicas) == ((), 2)


def test_nobody_goes_where_the_number_is_left_to_others_meanwhile() -> None:
    table = users_of([EAST])
    table.see("new", "elsewhere", NOW)
    found = decide(LatencyPolicyStatus(surge=LEAVING), SPEC, view("c", "d"), table, later(1))
    assert (found.actions, found.replicas) == ((), 2)


def test_a_pod_goes_on_leaving_while_new_users_are_awaited() -> None:
    table = users_of([EAST])
    table.see("new", "elsewhere", NOW)
    found = decide(LatencyPolicyStatus(surge=LEAVING), ONE, view("c", "d"), table, later(1))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == ["pd"]
    assert (found.replicas, found.leaving) == (1, "pd")


def test_users_leave_a_pod_before_it_is_evicted() -> None:
    begun = decide(LatencyPolicyStatus(), SPEC, view("a"), users_of([EAST]), NOW)
    [created] = [action for action in begun.actions if isinstance(action, Create)]
    both = view("a")._replace(pods=(Pod("pa", "a"), Pod("new", created.node)))
    found = decide(begun.status, SPEC, both, users_of([[20, 90, 10, 30]]), later(1))
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == ["pa"]
    assert [each.node for each in found.status.associations] == [created.node]


def test_no_pod_goes_where_one_did_not_get_ready_until_that_is_forgiven() -> None:
    begun = decide(LatencyPolicyStatus(), SPEC, view("a"), users_of([EAST]), NOW)
    assert begun.wish is not None
    assert begun.wish.node == "c"
    table = users_of([EAST], later(300))
    given_up = decide(begun.status, SPEC, view("a"), table, later(300))
    assert (given_up.status.moves[0].target_node, given_up.status.moves[0].outcome) == ("c", Outcome.CANCELLED)
    assert given_up.wish is not None
    assert given_up.wish.node == "d"
    moved = decide(given_up.status, SPEC, view("d"), table, later(301))
    assert moved.wish is None
    forgiven = decide(moved.status, SPEC, view("d"), users_of([EAST], later(901)), later(901))
    assert forgiven.wish is not None
    assert forgiven.wish.node == "c"


@pytest.mark.parametrize(
    ("after", "samples", "outcome"),
    [
        pytest.param(10, 3, Outcome.CONFIRMED, id="as expected"),
        pytest.param(12.4, 3, Outcome.CONFIRMED, id="a little farther"),
        pytest.param(60, 3, Outcome.DISAPPOINTED, id="the agent lied"),
        pytest.param(60, 2, Outcome.MOVED, id="not served often enough yet"),
    ],
)
def test_what_a_move_gained_is_what_users_have_who_are_served_there(
    after: float, samples: int, outcome: Outcome
) -> None:
    table = users_of([EAST])
    begun = decide(LatencyPolicyStatus(), SPEC, view("a"), table, NOW)
    [move] = begun.status.moves
    assert (move.before_microseconds, move.expected_microseconds, move.users) == (90_000, 10_000, 1)
    both = view("a")._replace(pods=(Pod("pa", "a"), Pod("new", "c")))
    status = decide(begun.status, SPEC, both, table, later(1)).status
    there = view("c")._replace(candidates=("a", "c", "d"))
    status = decide(status, SPEC, there, table, later(2)).status
    assert status.moves[0].outcome is Outcome.MOVED
    table.observe("u0", [measured("c", after, 3, samples=samples)])
    found = decide(status, SPEC, there, table, later(4)).status
    assert found.moves[0].outcome is outcome
    told = found.moves[0].after_microseconds
    assert told == (None if outcome is Outcome.MOVED else round(after * 1000))
    known = next(known for known in found.nodes if known.node == "c")
    assert known.rejections == (outcome is Outcome.DISAPPOINTED)


def test_after_a_restart_nothing_moves_for_those_alone_who_are_heard_of_first() -> None:
    status, *_ = settle([EAST, WEST], "c", "d")
    status = again(status)
    table = UserTable(begun=later(50))
    table.see("u0", "r0", later(50))
    table.observe("u0", [measured(node, far, 50) for node, far in zip(NODES, EAST, strict=True)])
    spec = policy(hard=40, users={"mode": "PerUser", "maxReplicas": 2})
    decision = decide(status, spec, view("c", "d"), table, later(51))
    assert (decision.actions, decision.wish, decision.replicas) == ((), None, 2)
    assert decision.look_again == later(80)
    assert decision.status.fewer_time is None
    assert decide(status, spec, view("a", "d"), table, later(80)).wish is not None


def test_after_a_restart_nobody_is_taken_for_far_from_the_pod_that_serves_him_before_that_is_measured_again() -> None:
    """Agents and routers look for the controller one after the other: some nodes are heard of later than others."""
    rows = {"u0": EAST, "u1": [90, 30, 80, 12]}
    status, *_ = settle([*rows.values()], "c", "d")
    table = UserTable(begun=later(50))
    for user, row in rows.items():
        table.see(user, user, later(50))
        known = NODES if user == "u0" else ("a", "b", "c")
        table.observe(user, [measured(node, far, 50) for node, far in zip(NODES, row, strict=True) if node in known])
    decision = decide(again(status), SPEC, view("c", "d"), table, later(60))
    assert (decision.wish, decision.look_again) == (None, later(80))
    assert {each.user: each.node for each in decision.status.associations} == {"u0": "c", "u1": "d"}
    late = decide(again(status), SPEC, view("c", "d"), table, later(80))
    assert late.wish is not None, "it is not waited for without end"
    assert late.wish.node == "b"
    assert {each.node for each in late.status.associations} == {"c"}
    table.observe("u1", [measured("d", 12, 61)])
    assert decide(again(status), SPEC, view("c", "d"), table, later(62)).wish is None, "all is known, and well"
    assert decide(again(status), SPEC, view("a", "d"), table, later(62)).wish is not None, "all is known"


def test_those_who_come_all_the_time_do_not_keep_pods_from_moving() -> None:
    table = users_of([EAST for _ in range(30)])
    table.see("new", "elsewhere", NOW)
    assert decide(LatencyPolicyStatus(), SPEC, view("a"), table, later(1)).wish is not None


def test_figures_of_nodes_are_those_of_all_users_and_move_nobody() -> None:
    status, found, created, _ = settle([EAST, EAST, WEST], "c", "d")
    assert ({*found}, created) == ({"c", "d"}, [])
    nodes = {known.node: (known.state, known.p50_microseconds, known.samples) for known in status.nodes}
    assert nodes["c"] == (NodeState.SOFT_VALID, 10_000, 3)
    assert nodes["a"] == (NodeState.INVALID, 90_000, 3)


def test_a_pod_whose_node_is_gone_keeps_no_other_from_moving() -> None:
    there = view("a", "b")._replace(nodes=("a", "c", "d"), candidates=("c", "d"))
    wish = decide(LatencyPolicyStatus(), SPEC, there, users_of([EAST, WEST]), NOW).wish
    assert wish is not None
    assert wish.node in ("c", "d")


def test_users_expire_after_a_clock_that_went_ahead_was_set_back() -> None:
    table, expiry = users_of([EAST]), timedelta(seconds=SPEC.users.expiry_seconds)
    table.see("u0", "r0", later(86_400))
    for seconds, users in ((0, 1), (expiry.total_seconds() + 1, 0)):
        table.expire(later(seconds), expiry)
        assert len(table.costs(NODES).users) == users


ROWS = st.lists(st.lists(st.integers(5, 120), min_size=4, max_size=4), min_size=1, max_size=6)


@settings(max_examples=25, deadline=None)
@given(ROWS, st.sets(st.sampled_from(NODES), min_size=1, max_size=3), st.integers(0, 5))
def test_never_more_than_allowed_and_a_restart_at_every_step_changes_nothing(
    rows: list[list[int]], places: set[str], per_hour: int
) -> None:
    spec = policy(hard=40, users={"mode": "PerUser"}, max_per_hour=per_hour)
    given_rows = [[float(far) for far in row] for row in rows]
    straight = settle(given_rows, *sorted(places), spec=spec)
    assert straight == settle(given_rows, *sorted(places), spec=spec, restarts=True)
    status, found, created, most = straight
    assert len(created) <= min(per_hour, len(places))
    assert most <= len(places) + 1
    assert len(found) == len(set(found)) == len(places)
    assert len(status.associations) == len(rows)


@pytest.mark.parametrize("pods", [MAX_PODS, MAX_PODS + 1], ids=["as many as a plan has", "one more"])
def test_a_plan_is_no_longer_than_a_status_keeps(pods: int) -> None:
    nodes = tuple(f"n{at}" for at in range(pods + 1))
    table = UserTable()
    table.see("u", "r", NOW)
    table.observe("u", [measured(node, 10 if node == nodes[-1] else 90) for node in nodes])
    there = View(tuple(Pod(f"p{node}", node) for node in nodes[:-1]), pods, nodes, nodes)
    status = decide(LatencyPolicyStatus(), SPEC, there, table, NOW).status
    assert again(status) == status
    assert len(status.plan) == (pods if pods <= MAX_PODS else 0)
