"""Which pods with a class are on which sockets, by SocketStatus, decision and annotation."""

from __future__ import annotations

import pytest

from berth.api.interference import InterferenceClass
from berth.scheduling.cache.sockets import Seat, SocketTable
from berth.scheduling.interference.residents import UNKNOWN_LAYOUT, Layout, Resident
from berth.scheduling.interference.slowdown import Workload
from tests.support.sockets import status

A, B = (Resident(Workload("", InterferenceClass(letter)), 1000) for letter in "AB")


def socket_of(table: SocketTable, uid: str) -> int | None:
    seat = table.seat(uid)
    assert seat is not None
    return seat.socket


def test_it_is_active_while_the_sockets_of_a_node_are_known() -> None:
    table = SocketTable()
    assert not table.active
    table.update_node(status("n1", cpus=()))
    assert not table.active
    table.update_node(status("n1"))
    table.update_node(status("n2"))
    table.delete_node("n1")
    assert table.active
    table.update_node(status("n2", true=["TopologyUnknown"]))
    assert not table.active


@pytest.mark.parametrize("pod_first", [True, False], ids=["pod first", "SocketStatus first"])
@pytest.mark.parametrize(
    ("assigned", "bound_with", "socket"),
    [
        pytest.param({"u": 1}, 0, 1, id="the SocketStatus knows better than the annotation"),
        pytest.param({}, 1, 1, id="not assigned yet"),
        pytest.param({}, None, None, id="neither"),
        pytest.param({}, 7, None, id="an annotation with a socket that does not exist"),
        pytest.param({"u": 7}, 1, 1, id="an assignment to a socket that does not exist"),
        pytest.param({"u": 7}, None, None, id="that alone"),
    ],
)
def test_where_a_pod_is_found_after_a_restart(
    assigned: dict[str, int], bound_with: int | None, socket: int | None, pod_first: bool
) -> None:
    table = SocketTable()
    if not pod_first:
        table.update_node(status("n1", assigned=assigned))
    table.add("u", "n1", A, bound_with=bound_with)
    if pod_first:
        table.update_node(status("n1", assigned=assigned))
    assert socket_of(table, "u") == socket


def test_a_decision_stands_until_the_sockets_show_it_and_is_followed_by_others_then() -> None:
    table = SocketTable()
    table.update_node(status("n1", assigned={"u": 0}))
    table.add("u", "n1", A)
    table.assign("u", 1)
    table.update_node(status("n1", assigned={"u": 0}, true=["Pinned", "Drifted"]))  # an old one, or the agent's
    assert socket_of(table, "u") == 1
    table.update_node(status("n1", assigned={"u": 1}))
    assert socket_of(table, "u") == 1
    table.update_node(status("n1", assigned={"u": 0}))  # somebody else's decision
    assert socket_of(table, "u") == 0


def test_a_pod_that_changes_on_its_node_keeps_its_socket_and_elsewhere_has_none() -> None:
    table = SocketTable()
    for node in ("n1", "n2"):
        table.update_node(status(node))
    table.add("u", "n1", A)
    table.assign("u", 1)
    before = table.seat("u")
    table.remove("u")
    table.add("u", "n1", B, before=before)
    assert table.seat("u") == Seat(B, "n1", 1, decided=True)
    table.remove("u")
    table.add("u", "n2", B, before=before)
    assert table.seat("u") == Seat(B, "n2")


def test_a_socket_that_goes_takes_its_pods_with_it() -> None:
    table = SocketTable()
    table.update_node(status("n1"))
    table.add("u", "n1", A)
    table.assign("u", 1)
    table.update_node(status("n1", cpus=(8,)))
    assert socket_of(table, "u") is None


def test_kinds_and_arrangements() -> None:
    table = SocketTable()
    table.update_node(status("n1", cpus=(8, 4)))
    for uid, resident, socket in (("u1", B, 0), ("u2", A, 0), ("u3", A, None)):
        table.add(uid, "n1", resident, bound_with=socket)
    assert table.kind_of("n1") == (Layout((8000, 4000), True), (A, A, B))
    assert table.arrangement_of("n1") == (("A", "B"), (), ("A",))
    assert table.kind_of("n2") == (UNKNOWN_LAYOUT, ())
    assert table.arrangement_of("n2") == ((),)
    assert table.present == {A.workload: 2, B.workload: 1}


def test_what_concerns_assignments_is_told_by_node() -> None:
    told: list[str] = []
    table = SocketTable()
    table.follow(told.append)
    table.update_node(status("n1"))
    table.add("u", "n1", A)
    table.assign("u", 1)
    table.assign("u", 1)  # as before
    table.update_node(status("n1"))  # nothing new
    table.remove("u")
    table.remove("u")
    table.delete_node("n1")
    table.delete_node("n1")
    assert told == ["n1"] * 5


def test_one_that_cannot_be_read_counts_as_none() -> None:
    table = SocketTable()
    table.update_node(status("n1"))
    bad = status("n1")
    bad.status = type(bad.status)(b'{"sockets": "many"}')
    problem = table.update_node(bad)
    assert problem is not None
    assert "sockets" in problem
    assert not table.active


def test_of_moves_for_several_newcomers_the_last_is_planned_with_and_each_may_come_to_nothing() -> None:
    table = SocketTable()
    table.update_node(status("n1", cpus=(8, 8, 8)))
    for uid in ("there", "first", "second"):
        table.add(uid, "n1", B)
    table.assign("there", 0)
    table.move("there", 1, newcomer="first")
    table.move("there", 2, newcomer="second")
    assert socket_of(table, "there") == 2
    table.remove("second")
    assert socket_of(table, "there") == 1
    table.remove("first")
    assert socket_of(table, "there") == 0


@pytest.mark.parametrize(
    ("bound", "settled", "planned"),
    [
        pytest.param(["first"], 1, 2, id="the first"),
        pytest.param(["second"], 2, 2, id="the second overtakes the first"),
        pytest.param(["second", "first"], 2, 2, id="the first later"),
        pytest.param(["first", "second"], 2, 2, id="both"),
        pytest.param(["nobody"], 0, 2, id="none"),
    ],
)
def test_a_move_is_settled_when_the_newcomer_is_bound(bound: list[str], settled: int, planned: int) -> None:
    table = SocketTable()
    table.update_node(status("n1", cpus=(8, 8, 8)))
    for uid in ("there", "first", "second"):
        table.add(uid, "n1", B)
    table.assign("there", 0)
    table.move("there", 1, newcomer="first")
    table.move("there", 2, newcomer="second")
    for uid in bound:
        table.confirm(uid)
    seat = table.seat("there")
    assert seat is not None
    assert (seat.settled, seat.socket) == (settled, planned)


def test_moves_to_a_socket_that_is_gone_are_none() -> None:
    table = SocketTable()
    table.update_node(status("n1"))
    for uid in ("there", "new"):
        table.add(uid, "n1", B)
    table.assign("there", 0)
    table.move("there", 1, newcomer="new")
    table.update_node(status("n1", cpus=(8,)))
    assert socket_of(table, "there") == 0
