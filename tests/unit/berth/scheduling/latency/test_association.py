"""Users and the nodes that serve them."""

from __future__ import annotations

import numpy as np
import pytest

from berth.api.latencypolicy import MAX_ASSOCIATIONS, Association, LatencyPolicySpec
from berth.scheduling.latency.association import associate
from berth.scheduling.latency.user_table import Costs, UserTable
from tests.support.latency import NOW, later, measured, policy

NODES = ("a", "b", "c")
SPEC = policy(hard=40)


def serve(
    former: dict[str, str],
    far: dict[str, list[float]],
    serving: set[str],
    spec: LatencyPolicySpec = SPEC,
    at: float = 0,
) -> dict[str, str]:
    """Former associations, made NOW, and how far users are; who serves whom then."""
    users = UserTable()
    for user, row in far.items():
        users.see(user, user, later(at))
        users.observe(user, [measured(node, value, at) for node, value in zip(NODES, row, strict=True)])
    before = [Association(user=user, node=node, last_seen_time=NOW) for user, node in former.items()]
    found = associate(before, users, users.costs(NODES), NODES, serving, spec, later(at))
    return {each.user: each.node for each in found}


@pytest.mark.parametrize(
    ("former", "far", "serving", "after"),
    [
        pytest.param({}, {"u": [30, 10, 20]}, {"a", "b", "c"}, {"u": "b"}, id="a new user has the nearest"),
        pytest.param({}, {"u": [30, 10, 20]}, {"a", "c"}, {"u": "c"}, id="of those that serve"),
        pytest.param({"u": "a"}, {"u": [20, 18.5, 30]}, {"a", "b"}, {"u": "a"}, id="it stays where little is gained"),
        pytest.param({"u": "a"}, {"u": [20, 17, 30]}, {"a", "b"}, {"u": "b"}, id="and goes where enough is"),
        pytest.param({"u": "a"}, {"u": [41, 39, 90]}, {"a", "b"}, {"u": "b"}, id="or where it comes within the limit"),
        pytest.param({"u": "a"}, {"u": [10, 30, 20]}, {"b", "c"}, {"u": "c"}, id="the pod it had is gone"),
        pytest.param({"u": "a"}, {}, {"a"}, {"u": "a"}, id="who is not measured keeps what it had"),
        pytest.param({"u": "a"}, {}, {"b"}, {}, id="as long as that serves"),
        pytest.param({}, {"u": [10, 20, 30]}, set(), {}, id="nothing serves"),
    ],
)
def test_who_is_served_where(
    former: dict[str, str], far: dict[str, list[float]], serving: set[str], after: dict[str, str]
) -> None:
    assert serve(former, far, serving) == after


def test_associations_expire() -> None:
    assert serve({"u": "a"}, {}, {"a"}, at=300) == {"u": "a"}
    assert serve({"u": "a"}, {}, {"a"}, at=301) == {}


def test_a_status_keeps_the_associations_of_those_heard_of_last() -> None:
    before = [Association(user=f"u{at}", node="a", last_seen_time=later(at % 7)) for at in range(MAX_ASSOCIATIONS + 50)]
    found = associate(before, UserTable(), Costs((), np.zeros((0, 3))), NODES, {"a"}, SPEC, later(10))
    assert len(found) == MAX_ASSOCIATIONS
    assert {each.last_seen_time for each in before} - {each.last_seen_time for each in found} == set()
    assert list(found) == sorted(found, key=lambda each: each.user)


def test_who_is_known_keeps_the_association_in_a_flood_of_users_who_come_once() -> None:
    table = UserTable()
    before = [Association(user=f"made up {at}", node="a", last_seen_time=later(9)) for at in range(MAX_ASSOCIATIONS)]
    before.append(Association(user="u", node="b", last_seen_time=NOW))
    table.see("u", "east", later(5))
    table.observe("u", [measured("b", 10, 5)])
    found = associate(before, table, table.costs(NODES), NODES, {"a", "b"}, SPEC, later(10))
    assert {each.user: each.node for each in found}["u"] == "b"
    assert len(found) == MAX_ASSOCIATIONS
