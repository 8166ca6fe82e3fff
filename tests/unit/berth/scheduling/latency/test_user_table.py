"""Users: who is there, what was measured of them, and what others of the same place say."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from berth.api.latencypolicy import MAX_ASSOCIATIONS, MAX_MICROSECONDS
from berth.scheduling.latency.user_table import KNOWN_AFTER, LONGEST, NEWCOMERS, PATIENCE, UserTable
from berth.scheduling.latency.window import Measurement
from tests.support.latency import METER, NOW, PROBE, later, measured

NODES = ("a", "b")


def table(**places: str) -> UserTable:
    found = UserTable()
    for user, place in places.items():
        found.see(user, place, NOW)
    return found


def milliseconds(users: UserTable) -> dict[str, list[float]]:
    costs = users.costs(NODES)
    return dict(zip(costs.users, (costs.microseconds / 1000).tolist(), strict=True))


def test_who_is_new_and_who_is_elsewhere() -> None:
    users = table(u="east")
    assert not users.see("u", "east", later(1))
    assert users.see("v", "east", later(1))
    assert users.see("u", "west", later(2))


def test_what_is_not_measured_is_what_others_of_the_place_have() -> None:
    users = table(u="east", v="east", w="east", x="west")
    users.observe("u", [measured("a", 10), measured("b", 50)])
    users.observe("v", [measured("a", 20), measured("b", 70)])
    users.observe("w", [measured("b", 40)])
    assert milliseconds(users) == {"u": [10, 50], "v": [20, 70], "w": [15, 40]}


def test_a_user_measured_once_or_twice_has_what_the_place_has() -> None:
    users = table(u="east", v="east", w="east", x="west")
    users.observe("u", [measured("a", 10), measured("b", 50)])
    users.observe("v", [measured("a", 20), measured("b", 60)])
    users.observe("w", [measured("a", 90, samples=2), measured("b", 70, samples=3)])
    users.observe("x", [measured("a", 90, samples=1), measured("b", 5, samples=1)])
    assert milliseconds(users) == {"u": [10, 50], "v": [20, 60], "w": [20, 70], "x": [90, 5]}


def test_a_node_that_nobody_of_the_place_has_measured_is_as_far_as_can_be() -> None:
    users = table(u="east")
    users.observe("u", [measured("a", 10)])
    assert np.array_equal(users.costs(NODES).microseconds, [[10_000, MAX_MICROSECONDS]])


def test_who_goes_elsewhere_is_measured_anew() -> None:
    users = table(u="east", v="west")
    users.observe("u", [measured("a", 10), measured("b", 50)])
    users.observe("v", [measured("a", 60), measured("b", 5)])
    users.see("u", "west", later(10))
    users.observe("u", [measured("a", 10, 9)])
    assert milliseconds(users)["u"] == [60, 5]
    users.observe("u", [measured("a", 66, 11)])
    assert milliseconds(users)["u"] == [66, 5]


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        pytest.param(measured("a", 10), measured("a", 20, 30, PROBE), 10, id="a meter stands for half a minute"),
        pytest.param(measured("a", 10), measured("a", 20, 31, PROBE), 20, id="and then yields"),
        pytest.param(measured("a", 10, 0, PROBE), measured("a", 20, 1), 20, id="to a meter at once"),
        pytest.param(measured("a", 10, 5), measured("a", 20, 4), 10, id="what is older changes nothing"),
    ],
)
def test_whose_word_counts(first: Measurement, second: Measurement, value: int) -> None:
    users = table(u="east")
    users.observe("u", [first, second])
    assert milliseconds(users)["u"][0] == value


def test_users_expire_and_others_are_not_known() -> None:
    users = table(u="east")
    users.see("v", "east", later(100))
    users.observe("nobody", [measured("a", 10)])
    users.expire(later(301), timedelta(seconds=300))
    users.observe("v", [measured("a", 10, 100)])
    assert users.costs(NODES).users == ("v",)


def test_a_clock_that_is_set_back_has_users_measured_and_awaited_no_longer_than_others() -> None:
    users = UserTable()
    for user, place in {"u": "east", "v": "west"}.items():
        users.see(user, place, later(3600))
    users.observe("u", [measured("a", 10, 3600)])
    users.expire(NOW, timedelta(seconds=300))
    assert users.awaited(NOW, NODES) == NOW + PATIENCE
    users.observe("u", [measured("a", 20, 1)])
    users.observe("v", [measured("b", 30, 1)])
    assert [values[at] for at, values in enumerate(milliseconds(users).values())] == [20, 30]
    users.expire(later(301), timedelta(seconds=300))
    assert users.costs(NODES).users == ()


def test_new_users_are_awaited_unless_their_place_is_known() -> None:
    users = table(u="east", v="east")
    assert users.awaited(NOW, NODES) == NOW + PATIENCE
    users.observe("u", [measured("a", 10)])
    assert users.awaited(NOW, NODES) == NOW + PATIENCE
    users.observe("u", [measured("b", 10)])
    assert users.awaited(NOW, NODES) is None
    assert table(w="west").awaited(NOW + PATIENCE, NODES) is None


def test_a_flood_of_new_users_drops_those_heard_of_longest_ago() -> None:
    users = UserTable()
    for number in range(MAX_ASSOCIATIONS):
        users.see(f"u{number}", "east", NOW)
    users.see("u0", "east", later(1))
    users.see("new", "east", later(1))
    for user in ("u0", "u1", "new"):
        users.observe(user, [Measurement("a", METER, 1000, 1000, 1, later(1))])
    assert set(users.costs(("a",)).users) >= {"u0", "new"}
    assert len(users.costs(("a",)).users) == MAX_ASSOCIATIONS
    with pytest.raises(KeyError):
        users.seen("u1")


# Nodes that share what is measured


def test_a_flood_of_users_who_come_once_leaves_those_who_are_known() -> None:
    users = UserTable()
    for at in (0.0, KNOWN_AFTER.total_seconds()):
        for number in range(20):
            users.see(f"u{number}", "east", later(at))
    for number in range(5000):
        users.see(f"made up {number}", "west", later(3 + number / 1000))
    assert all(f"u{number}" in users for number in range(20))
    assert all(f"made up {number}" in users for number in range(5000 - MAX_ASSOCIATIONS + 20, 5000))
    assert len(users) == MAX_ASSOCIATIONS


def test_where_all_places_are_taken_newcomers_take_some_and_push_out_each_other() -> None:
    users = UserTable()
    for at in (0.0, KNOWN_AFTER.total_seconds()):
        for number in range(MAX_ASSOCIATIONS):
            users.see(f"u{number}", "east", later(at))
    for number in range(5000):
        users.see(f"new {number}", "west", later(3 + number / 1000))
    assert [f"u{number}" in users for number in range(MAX_ASSOCIATIONS)] == [
        number >= NEWCOMERS for number in range(MAX_ASSOCIATIONS)
    ], "those heard of longest ago give way"
    assert sum(f"new {number}" in users for number in range(5000)) == NEWCOMERS


def test_what_nodes_share_is_kept_once_and_counts_for_each() -> None:
    """Of a zone of 1700 nodes a thousand users had 1.7 million measurements: 200 MB, and 2 s to take them in."""
    users = table(u="east", v="west")
    users.share({"a": "zone z", "b": "zone z", "c": "c"})
    users.observe("u", [measured("zone z", 10)])
    assert np.array_equal(users.costs(("a", "b", "c")).microseconds, [[10_000, 10_000, MAX_MICROSECONDS]])
    assert [users.measured("u", node) for node in ("a", "b", "c")] == [measured("zone z", 10)] * 2 + [None]
    assert {node: len(found) for node, found in users.figures(("a", "b", "c")).items()} == {"a": 1, "b": 1, "c": 0}
    assert len(users._users["u"].measured) == 1


def test_a_place_is_known_once_somebody_was_measured_from_all_names() -> None:
    users = table(u="east")
    users.share({"a": "zone z", "b": "zone z", "c": "c"})
    users.observe("u", [measured("zone z", 10)])
    assert users.awaited(later(1), ("a", "c")) is not None
    assert users.awaited(later(1), ("a", "b")) is None


def test_what_was_measured_under_a_name_that_no_node_has_any_more_is_forgotten() -> None:
    """A user who stays while nodes come and go would have a measurement for each that ever was."""
    users = table(u="east")
    for number in range(100):
        users.share({"a": "a", f"n{number}": f"n{number}"})
        users.observe("u", [measured("a", 10, number), measured(f"n{number}", 10, number)])
    assert {*users._users["u"].measured} == {"a", "n99"}


def test_a_copy_does_not_change_with_the_table() -> None:
    users = table(u="east")
    users.share({"a": "zone z", "b": "b"})
    users.observe("u", [measured("zone z", 10)])
    copied = users.copy()
    users.observe("u", [measured("zone z", 90, 1), measured("b", 20)])
    users.see("v", "west", NOW)
    copied.expire(later(1000), timedelta(seconds=300))
    assert (len(users), len(copied)) == (2, 0)
    copied = users.copy()
    users.see("u", "west", later(5))
    users.observe("u", [measured("b", 70, 6)])
    assert milliseconds(copied) == {"u": [90, 20]}


# How long new users are awaited in a row


def test_one_of_few_who_comes_from_two_networks_in_turn_is_awaited_for_a_while_and_no_longer() -> None:
    """As one identity on two devices: measured anew each time, he kept all pods from moving."""
    users, longest = table(u="east"), LONGEST.total_seconds()
    users.observe("u", [measured(node, 10) for node in NODES])
    found = []
    for at in range(0, 40, 2):
        users.see("v", f"place {at % 4}", later(at))
        found.append(users.awaited(later(at), NODES))
    assert found[0] == later(PATIENCE.total_seconds())
    assert [each is not None for each in found] == [at < longest for at in range(0, 40, 2)]
    assert max(each for each in found if each is not None) == later(longest)


def test_after_a_break_new_users_are_awaited_again() -> None:
    users = table(u="east")
    assert users.awaited(later(1), NODES) is not None
    assert users.awaited(later(20), NODES) is None
    users.see("v", "west", later(31))
    assert users.awaited(later(31), NODES) == later(36)


def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    users = UserTable()
    users.see("u", "east", later(3600))
    assert users.awaited(later(3600), NODES) is not None
    users.expire(NOW, timedelta(seconds=300))
    found = users.awaited(NOW, NODES)
    assert found is not None
    assert found <= later(LONGEST.total_seconds())
