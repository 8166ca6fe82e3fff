"""What meters and agents tell becomes measurements of nodes; floods and forgeries cost little and change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from berth.api.latency_exchange import MAX_USERS, UserRoundTrips
from berth.api.latencypolicy import MeasurementSource
from berth.scheduling.latency.window import LENGTH
from controllers.latency.observations import PROBED_USERS, Observations

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
POLICY = "shop/web"
PLACES = {"a": ["a"], "zone z": ["b", "c"]}
METER, PROBE, ROUTER = MeasurementSource


def told(*microseconds: int, age: float = 0.0, user: str = "u", address: str = "") -> UserRoundTrips:
    return UserRoundTrips(user, microseconds, age, address)


def found(observations: Observations, now: datetime = NOW) -> list[tuple[str, str, int, int]]:
    said = observations.measurements(POLICY, PLACES, now)
    return [(each.node, each.source.value, each.p50, each.samples) for each in said]


def test_a_place_tells_for_each_of_its_nodes_and_meters_come_first() -> None:
    observations = Observations()
    observations.served(POLICY, "a", [told(20_000, 21_000, 22_000)], NOW)
    observations.probed(POLICY, "zone z", "", [9_000], NOW)
    observations.probed(POLICY, "a", "", [10_000], NOW)
    assert found(observations) == [
        ("a", "Meter", 21_000, 3),
        ("a", "Probe", 10_000, 1),
        ("b", "Probe", 9_000, 1),
        ("c", "Probe", 9_000, 1),
    ]


def test_what_routers_and_meters_tell_of_a_node_is_kept_apart() -> None:
    observations = Observations()
    observations.served(POLICY, "a", [told(20_000)], NOW, source=ROUTER)
    observations.served(POLICY, "a", [told(30_000)], NOW)
    assert found(observations) == [("a", "Meter", 30_000, 1), ("a", "Router", 20_000, 1)]


def test_users_count_as_one_the_newest_round_trips_first() -> None:
    observations = Observations()
    users = [told(10_000, age=20 - at, user=f"u{at}") for at in range(10)] + [told(*[50_000] * 15, user="last")]
    observations.served(POLICY, "a", users, NOW)
    assert found(observations) == [("a", "Meter", 50_000, 15)]
    assert observations.heard(POLICY, NOW) == NOW


def test_where_a_pod_goes_what_its_meter_told_before_is_forgotten_and_nothing_else() -> None:
    observations = Observations()
    observations.begin_anew(POLICY, "a")
    for place in ("a", "zone z"):
        observations.served(POLICY, place, [told(20_000)], NOW)
    observations.probed(POLICY, "a", "192.0.2.1", [10_000], NOW)
    observations.begin_anew(POLICY, "a")
    assert found(observations) == [("a", "Probe", 10_000, 1), ("b", "Meter", 20_000, 1), ("c", "Meter", 20_000, 1)]


@pytest.mark.parametrize(
    "user",
    [
        pytest.param(told(-5, 0), id="negative and nothing"),
        pytest.param(told(10**12), id="absurd"),
        pytest.param(told(5_000, age=10**9), id="of long ago"),
        pytest.param(told(5_000, age=-(10**9)), id="of the time to come"),
        pytest.param(told(5_000, age=float("inf")), id="endless"),
        pytest.param(told(5_000, age=float("nan")), id="no number"),
        pytest.param(told(), id="no round trips"),
    ],
)
def test_what_cannot_be_leaves_all_as_it_is(user: UserRoundTrips) -> None:
    observations = Observations()
    observations.served(POLICY, "a", [user], NOW)
    assert found(observations, NOW + timedelta(seconds=1)) == []
    observations.served(POLICY, "a", [told(20_000)], NOW + timedelta(seconds=1))
    assert found(observations, NOW + timedelta(seconds=1)) == [("a", "Meter", 20_000, 1)]


def test_of_a_flood_of_users_the_last_few_addresses_are_kept() -> None:
    observations = Observations()
    for message in range(10):
        users = [told(20_000, user=f"u{at}", address=f"203.0.113.{message}") for at in range(MAX_USERS)]
        observations.served(POLICY, "a", users, NOW)
    assert observations.to_probe(POLICY, bool, NOW) == [
        f"203.0.113.{message}" for message in range(10 - PROBED_USERS, 10)
    ]


class Counted(tuple[int, ...]):
    """Round trips that count how many of them are read."""

    read = 0

    def __iter__(self) -> Iterator[int]:
        for value in super().__iter__():
            Counted.read += 1
            yield value


@pytest.mark.parametrize("source", [METER, PROBE])
def test_of_a_flood_of_round_trips_the_last_alone_are_read(source: MeasurementSource) -> None:
    observations, flood = Observations(), Counted([20_000] * 5_000)
    observations.served(POLICY, "a", [told(20_000)], NOW)
    Counted.read = 0
    if source is METER:
        observations.served(POLICY, "a", [UserRoundTrips("u", flood)], NOW)
    else:
        observations.probed(POLICY, "a", "", flood, NOW)
    assert Counted.read <= LENGTH
    assert ("a", source.value, 20_000, LENGTH) in found(observations)


def test_what_is_too_long_for_an_address_is_not_kept() -> None:
    observations = Observations()
    observations.served(POLICY, "a", [told(20_000, address="1" * 46), told(20_000, address="1" * 45)], NOW)
    assert observations.to_probe(POLICY, bool, NOW) == ["1" * 45]


def test_agents_tell_of_policies_alone_that_users_were_heard_of() -> None:
    observations = Observations()
    observations.probed(POLICY, "a", "", [9_000], NOW)
    assert found(observations) == []
    observations.served(POLICY, "a", [told(20_000)], NOW)
    observations.forget(POLICY)
    assert found(observations) == []
    assert observations.heard(POLICY, NOW) is None


def test_what_was_told_before_a_clock_was_set_back_counts_no_more() -> None:
    observations, before = Observations(), NOW - timedelta(hours=1)
    observations.served(POLICY, "a", [told(20_000)], NOW)
    assert (found(observations, before), observations.heard(POLICY, before)) == ([], None)
    observations.served(POLICY, "a", [told(60_000)], before)
    assert found(observations, before) == [("a", "Meter", 60_000, 1)]
    assert observations.heard(POLICY, before) == before


def test_what_was_told_of_a_node_that_is_gone_is_let_go() -> None:
    observations = Observations()
    observations.served(POLICY, "gone", [told(20_000)], NOW)
    assert found(observations) == []
    assert observations.measurements(POLICY, {"gone": ["gone"]}, NOW) == []
