"""Each user of a policy: what is told of whom, and who is probed when."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from berth.api.latency_exchange import UserRoundTrips
from berth.api.latencypolicy import MAX_ASSOCIATIONS, MAX_HASH, MeasurementSource
from controllers.latency.crowd import (
    ASK_AGAIN,
    AT_ONCE,
    MOST_MEMBERS,
    MOST_PROBED,
    REFRESH,
    ROUND,
    TRY_ANOTHER,
    Crowd,
    prefix_of,
)
from controllers.latency.observations import Observations
from tests.support.latency import METER, NOW, PROBE, ROUTER, later

KEY = "shop/web"
EXPIRY = timedelta(minutes=5)
PLACES = {"a": ["a"], "zone z": ["b", "c"]}
NODES = ("a", "b", "c")


def told(user: str, *microseconds: int, address: str = "", age: float = 0.0) -> UserRoundTrips:
    return UserRoundTrips(user, microseconds, age, address)


def serve(
    crowd: Crowd, *users: UserRoundTrips, place: str = "a", at: float = 0, source: MeasurementSource = METER
) -> None:
    def time_of(user: UserRoundTrips, now: datetime) -> datetime:
        return now - timedelta(seconds=user.age)

    crowd.served(place, users, later(at), source, time_of)


def known(crowd: Crowd, user: str, at: float = 0) -> dict[str, tuple[str, int, int]]:
    """Who measured a user, the median and the number of round trips, by node."""
    crowd.settle(PLACES, later(at), EXPIRY)
    found = ((node, crowd.table.measured(user, node)) for node in NODES)
    return {node: (each.source.value, each.p50, each.samples) for node, each in found if each is not None}


def test_what_is_told_of_a_user_counts_for_the_nodes_of_the_place() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, 30_000, 25_000))
    serve(crowd, told("u", 9_000), place="zone z", source=ROUTER)
    assert known(crowd, "u") == {"a": ("Meter", 25_000, 3), "b": ("Router", 9_000, 1), "c": ("Router", 9_000, 1)}
    serve(crowd, told("u", 26_000), at=1)
    assert known(crowd, "u", 1)["a"] == ("Meter", 25_000, 4)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(told("", 20_000), id="no name"),
        pytest.param(told("u" * (MAX_HASH + 1), 20_000), id="a name that no status can hold"),
    ],
)
def test_who_has_no_name_is_nobody(user: UserRoundTrips) -> None:
    crowd = Crowd(NOW)
    serve(crowd, user)
    crowd.settle(PLACES, NOW, EXPIRY)
    assert len(crowd.table) == 0


def test_nobody_looks_at_a_policy_whose_users_come_and_go() -> None:
    """As of one whose Deployment is not there: of users beyond those of the table nothing is kept."""
    crowd = Crowd(NOW)
    for at in range(5):
        serve(crowd, *(told(f"{at}-{number}", 20_000) for number in range(MAX_ASSOCIATIONS)), at=at)
    assert all(len(kept) <= MOST_MEMBERS for kept in (crowd._members, crowd._news))
    assert known(crowd, "4-0", 5) == {"a": ("Meter", 20_000, 1)}


def test_a_place_that_is_gone_and_a_round_trip_that_is_none_say_nothing() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", -5, 10**12), told("v", 20_000), place="a")
    serve(crowd, told("v", 20_000), place="gone")
    assert (known(crowd, "u"), known(crowd, "v")) == ({}, {"a": ("Meter", 20_000, 1)})


def test_a_node_that_comes_to_a_place_has_what_was_told_of_it() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000), place="zone z")
    assert set(known(crowd, "u")) == {"b", "c"}
    crowd.settle({"a": ["a"], "zone z": ["b", "c", "new"]}, NOW, EXPIRY)
    assert crowd.table.measured("u", "new") == crowd.table.measured("u", "b")


def test_where_a_pod_goes_what_its_meter_told_of_users_before_is_forgotten_and_nothing_else() -> None:
    observations = Observations()
    for place, source in (("a", METER), ("a", ROUTER), ("zone z", METER)):
        observations.served(KEY, place, [told("u", *[20_000] * 5)], NOW, source=source, each=True)
    observations.begin_anew(KEY, "a")
    for place, source in (("a", METER), ("a", ROUTER), ("zone z", METER)):
        observations.served(KEY, place, [told("u", 21_000)], later(1), source=source, each=True)
    assert {place: each[2] for place, each in known(observations.crowd(KEY, NOW), "u", 1).items()} == {
        "a": 1,
        "b": 6,
        "c": 6,
    }


def test_who_comes_from_elsewhere_is_measured_anew() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, 20_000, 20_000, address="203.0.113.7"))
    serve(crowd, told("u", 20_000, address="203.0.113.99"), at=1)
    assert known(crowd, "u", 1) == {"a": ("Meter", 20_000, 4)}, "the same network"
    serve(crowd, told("u", 90_000, address="198.51.100.7"), at=2)
    assert known(crowd, "u", 2) == {"a": ("Meter", 90_000, 1)}


def test_who_comes_by_ipv4_and_ipv6_in_turn_is_where_he_was() -> None:
    crowd = Crowd(NOW)
    for at in range(0, 120, 10):
        serve(crowd, told("u", 20_000, address="2001:db8:1::7" if at % 20 else "203.0.113.7"), at=at)
    assert known(crowd, "u", 110) == {"a": ("Meter", 20_000, 12)}
    assert crowd.due(later(110), lambda _: True) == ["203.0.113.7"]
    serve(crowd, told("u", 21_000, address="198.51.100.7"), at=111)
    assert known(crowd, "u", 111) == {"a": ("Meter", 21_000, 1)}, "another network of the same"


def test_who_is_not_heard_of_any_more_by_the_one_is_where_he_is_by_the_other() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, address="203.0.113.7"))
    for at in (1, 30, 60):
        serve(crowd, told("u", 20_000, address="2001:db8:1::7"), at=at)
    assert known(crowd, "u", 60) == {"a": ("Meter", 20_000, 4)}
    serve(crowd, told("u", 90_000, address="2001:db8:1::7"), at=61)
    assert known(crowd, "u", 61) == {"a": ("Meter", 90_000, 1)}
    assert crowd.due(later(61), lambda _: True) == ["2001:db8:1::7"]


def test_who_does_not_answer_by_the_one_is_measured_by_the_other_and_then_stays_there() -> None:
    crowd = Crowd(NOW)
    asked = list[str]()
    for at in range(0, 120, 2):
        serve(crowd, told("u", 20_000, address="203.0.113.7" if at % 4 else "2001:db8:1::7"), at=at)
        crowd.settle(PLACES, later(at), EXPIRY)
        found = crowd.due(later(at), bool)
        asked += found
        if "203.0.113.7" in found:
            answer(crowd, "203.0.113.7", 9_000, at=at, place="zone z")
    assert asked == ["2001:db8:1::7", "203.0.113.7", "203.0.113.7"], "and again after a minute"
    assert known(crowd, "u", 120)["b"] == ("Probe", 9_000, 1)


def test_who_answers_by_neither_does_not_go_to_and_fro() -> None:
    crowd = Crowd(NOW)
    for at in range(0, 120, 2):
        serve(crowd, told("u", 20_000, address="203.0.113.7" if at % 4 else "2001:db8:1::7"), at=at)
        crowd.settle(PLACES, later(at), EXPIRY)
        crowd.due(later(at), bool)
    assert known(crowd, "u", 120)["a"][2] == 15


def test_whose_neighbour_answers_stays_where_both_are() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("v", 20_000, address="2001:db8:1::8"))
    crowd.due(NOW, bool)
    answer(crowd, "2001:db8:1::8", 9_000)
    for at in range(0, 60, 2):
        serve(crowd, told("u", 20_000, address="203.0.113.7" if at % 4 else "2001:db8:1::7"), at=at)
        assert "203.0.113.7" not in crowd.due(later(at), bool)


def test_whom_others_have_driven_out_is_new_by_whichever_he_comes() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, address="203.0.113.7"))
    serve(crowd, *(told(f"v{at}", 20_000) for at in range(MAX_ASSOCIATIONS)), at=1)
    assert "u" not in crowd.table
    serve(crowd, told("u", 20_000, address="2001:db8:1::7"), at=2)
    assert crowd.due(later(2), lambda _: True) == ["2001:db8:1::7"]


def test_who_is_silent_for_long_is_forgotten() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, address="203.0.113.7"))
    assert known(crowd, "u", 301) == {}
    assert crowd.due_at(later(301)) is None


def test_of_a_flood_those_heard_of_last_are_kept() -> None:
    crowd = Crowd(NOW)
    for message in range(3):
        users = [told(f"u{message}-{at}", 20_000, address=f"203.0.{at % 256}.7") for at in range(MAX_ASSOCIATIONS)]
        serve(crowd, *users, at=message)
    crowd.settle(PLACES, later(3), EXPIRY)
    assert len(crowd.table) == MAX_ASSOCIATIONS
    assert known(crowd, "u2-0", 3)


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        pytest.param("203.0.113.7", "203.0.113.0/24", id="IPv4"),
        pytest.param("2001:db8:1:2::7", "2001:db8:1::/48", id="IPv6"),
        pytest.param("", "", id="not told"),
        pytest.param("somewhere", "", id="no address"),
        pytest.param("1" * 46, "", id="too long"),
    ],
)
def test_prefixes(address: str, prefix: str) -> None:
    assert prefix_of(address) == prefix


def test_what_is_told_between_two_steps_is_taken_in_the_next_time() -> None:
    crowd = Crowd(NOW)
    serve(crowd, *(told(f"u{number}", 20_000) for number in range(3)))
    steps = crowd.settling(PLACES, NOW, EXPIRY)
    next(steps)
    serve(crowd, told("u0", 21_000, 21_000), told("v", 30_000), at=1)
    serve(crowd, *(told(f"w{number}", 30_000) for number in range(MOST_MEMBERS)), at=2)
    assert len([*steps]) >= MAX_ASSOCIATIONS
    serve(crowd, told("u0", 21_000), at=3)
    assert known(crowd, "u0", 3) == {"a": ("Meter", 21_000, 1)}, "whom others had driven out"
    assert len(crowd.table) == MAX_ASSOCIATIONS


# Who is probed


def answer(crowd: Crowd, address: str, *microseconds: int, at: float = 0, place: str = "a") -> None:
    crowd.probed(place, address, microseconds, later(at))


def test_two_of_a_new_prefix_are_probed_at_once_and_their_answers_count() -> None:
    crowd = Crowd(NOW)
    serve(crowd, *(told(f"u{at}", 20_000, address=f"203.0.113.{at}") for at in range(1, 4)))
    asked = crowd.due(NOW, bool)
    assert asked == ["203.0.113.1", "203.0.113.2"]
    answer(crowd, asked[0], 9_000, 9_500, 8_000, place="zone z")
    answer(crowd, "203.0.113.3", 9_000, place="zone z")
    assert known(crowd, "u1")["b"] == ("Probe", 9_000, 3)
    assert set(known(crowd, "u3")) == {"a"}, "nobody was asked about that one"


@pytest.mark.parametrize(
    ("answers", "passed", "due"),
    [
        pytest.param([], ROUND, [], id="answers may still come"),
        pytest.param([], TRY_ANOTHER, ["203.0.113.3"], id="nobody has answered: another is tried"),
        pytest.param([(), ()], TRY_ANOTHER, ["203.0.113.3"], id="who does not answer counts as that"),
        pytest.param([(9_000,)], TRY_ANOTHER, [], id="one has answered"),
        pytest.param([(9_000,)], REFRESH, ["203.0.113.3"], id="and again after a minute, who was not asked yet"),
    ],
)
def test_who_of_a_prefix_is_probed_next(answers: list[tuple[int, ...]], passed: timedelta, due: list[str]) -> None:
    crowd = Crowd(NOW)
    serve(crowd, *(told(f"u{at}", 20_000, address=f"203.0.113.{at}") for at in range(1, 4)))
    for address, microseconds in zip(crowd.due(NOW, bool), answers, strict=False):
        answer(crowd, address, *microseconds)
    when = NOW + passed
    crowd.settle(PLACES, when, EXPIRY)
    soon = crowd.due_at(when)
    assert soon is not None
    assert (crowd.due(when, bool) if soon <= when else []) == due


def test_who_never_answers_is_left_alone_for_ten_minutes() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, address="203.0.113.7"))
    assert crowd.due(NOW, bool) == ["203.0.113.7"]
    serve(crowd, told("u", 20_000, address="203.0.113.7"), at=290)
    assert crowd.due_at(later(290)) == NOW + ASK_AGAIN
    assert crowd.due(later(290), bool) == []


def test_users_of_one_address_are_probed_as_one() -> None:
    crowd, address = Crowd(NOW), "192.0.2.1"
    asked = list[tuple[int, list[str]]]()
    for at in range(0, 720, 60):
        # More come all the time: behind a NAT, or made up.
        serve(crowd, *(told(f"{at + number}", 20_000, address=address) for number in range(5)), at=at)
        crowd.settle(PLACES, later(at), 4 * EXPIRY)
        asked += [(at, found)] if (found := crowd.due(later(at), bool)) else []
    assert asked == [(0, [address]), (600, [address])], "who does not answer is left alone, under each name"
    answer(crowd, address, 30_000, at=661)
    assert crowd.due(later(661), bool) == [address], "who answers, each minute"
    assert crowd.due_at(later(670)) == later(661) + REFRESH


@pytest.mark.parametrize("many", [1, 250], ids=lambda many: f"{many} new ones every five seconds")
@pytest.mark.parametrize("answers", [False, True], ids=["silent", "answers"])
def test_an_address_whose_users_come_and_go_is_asked_about_as_rarely(many: int, answers: bool) -> None:
    """Each makes one request and is forgotten before ten minutes have passed, or at once in a flood of them."""
    crowd, address = Crowd(NOW), "192.0.2.1"
    asked = []
    for at in range(0, 720, 5):
        serve(crowd, *(told(f"{at + number / many}", 20_000, address=address) for number in range(many)), at=at)
        crowd.settle(PLACES, later(at), EXPIRY)
        if crowd.due(later(at), bool):
            asked.append(at)
            if answers:
                answer(crowd, address, 30_000, at=at)
    if not answers:
        assert asked == [0, 600]
    elif many == 1:
        assert len(asked) <= 720 / REFRESH.seconds + 720 / EXPIRY.seconds + 1


def test_five_at_once_in_rounds() -> None:
    crowd = Crowd(NOW)
    serve(crowd, *(told(f"u{at}", 20_000, address=f"203.0.{at}.7") for at in range(AT_ONCE + 2)))
    assert len(crowd.due(NOW, bool)) == AT_ONCE
    assert crowd.due_at(NOW) == NOW + ROUND
    assert len(crowd.due(NOW + ROUND, bool)) == 2


def test_an_address_that_must_not_be_probed_is_not_and_counts_as_one_that_does_not_answer() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000, address="169.254.169.254"))
    assert crowd.due(NOW, lambda _: False) == []
    assert crowd.due_at(later(1)) == NOW + ASK_AGAIN


def test_who_does_not_tell_the_address_is_not_probed() -> None:
    crowd = Crowd(NOW)
    serve(crowd, told("u", 20_000))
    assert crowd.due_at(NOW) is None


def test_of_a_flood_of_networks_the_answers_of_so_many_are_kept() -> None:
    crowd = Crowd(NOW)
    serve(crowd, *(told(f"u{at}", 20_000, address=f"203.{at // 250}.{at % 250}.7") for at in range(500)))
    for number in range(500):
        for address in crowd.due(later(2 * number % 200), bool):
            answer(crowd, address, 9_000, at=2 * number % 200, place="zone z")
    crowd.settle(PLACES, later(200), EXPIRY)
    found = [crowd.table.measured(f"u{at}", "b") for at in range(500)]
    assert sum(each is not None and each.source is PROBE for each in found) == MOST_PROBED


def test_a_clock_that_is_set_back_keeps_nobody_from_being_probed() -> None:
    crowd = Crowd(later(3600))
    serve(crowd, told("u", 20_000, address="203.0.113.7"), at=3600)
    assert crowd.due(later(3600), bool) == ["203.0.113.7"]
    crowd.settle(PLACES, NOW, EXPIRY)
    when = crowd.due_at(NOW)
    assert when is not None
    assert when <= NOW + ASK_AGAIN
