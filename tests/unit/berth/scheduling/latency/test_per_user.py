"""Pods for many users: a plan for all, carried out a pod at a time, and kept until another is better by enough."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.latencypolicy import MAX_PODS, LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency.per_user import Decision, decide
from berth.scheduling.latency.situation import Create, Evict, Pod, View
from berth.scheduling.latency.user_table import UserTable
from tests.support.latency import NOW, again, later, measured, policy

SPEC = policy(hard=40, users={"mode": "PerUser"})
NODES = ("a", "b", "c", "d")
EAST, WEST = [90, 90, 10, 30], [90, 90, 80, 12]


def users_of(rows: list[list[float]], now: datetime = NOW) -> UserTable:
    table = UserTable()
    for at, row in enumerate(rows):
        table.see(f"u{at}", f"r{at}", now)
        table.observe(f"u{at}", [measured(node, far) for node, far in zip(NODES, row, strict=True)])
    return table


def view(*places: str) -> View:
    return View(tuple(Pod(f"p{node}", node) for node in places), len(places), NODES, NODES)


def settle(
    rows: list[list[float]], *places: str, spec: LatencyPolicySpec = SPEC, restarts: bool = False
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


def test_the_number_of_pods_follows_the_users_where_it_may() -> None:
    def wanted(rows: list[list[float]], **users: int) -> Decision:
        spec = policy(hard=25, users={"mode": "PerUser", **users})
        return decide(LatencyPolicyStatus(), spec, view("c"), users_of(rows), NOW)

    assert wanted([EAST, WEST]).replicas == 1
    assert wanted([EAST], maxReplicas=4).replicas == 2
    assert wanted([EAST, WEST], maxReplicas=4).replicas == 3
    assert wanted([EAST, WEST], maxReplicas=2).replicas == 2


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
