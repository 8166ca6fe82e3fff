"""What a status knows of nodes: whose word counts, how long, and what is remembered as bad."""

from __future__ import annotations

from datetime import timedelta

import pytest

from berth.api.latencypolicy import MAX_NODES, LatencyPolicyStatus, MeasurementSource, NodeState, NodeStatus
from berth.scheduling.latency.knowledge import (
    FIRST_REJECTION,
    LONGEST_REJECTION,
    MAX_AGE,
    PROBE_AGE,
    by_limits,
    by_name,
    forget,
    is_rejected,
    observe,
    reject,
)
from berth.scheduling.latency.window import Measurement
from tests.support.latency import METER, NOW, PROBE, ROUTER, again, later, measured, policy

SPEC = policy(hard=40, soft=30)
EMPTY = LatencyPolicyStatus()


def after(*measurements: Measurement) -> LatencyPolicyStatus:
    status = EMPTY
    for measurement in measurements:
        status = observe(status, SPEC, [measurement])
    return status


@pytest.mark.parametrize(
    ("first", "second", "milliseconds"),
    [
        pytest.param(measured("a", 20), measured("a", 10, 30, PROBE), 20, id="a meter stands for half a minute"),
        pytest.param(measured("a", 20), measured("a", 10, 31, PROBE), 10, id="and then yields"),
        pytest.param(measured("a", 20), measured("a", 10, 30, ROUTER), 20, id="to the router likewise"),
        pytest.param(measured("a", 20, 0, PROBE), measured("a", 10, 1), 10, id="it comes before a probe at once"),
        pytest.param(measured("a", 20, 0, PROBE), measured("a", 10, 1, PROBE), 10, id="the newer of two probes"),
        pytest.param(measured("a", 20, 5), measured("a", 10, 1), 20, id="what is older changes nothing"),
        pytest.param(measured("a", 20, 5, PROBE), measured("a", 10, 1), 20, id="not even from a meter"),
    ],
)
def test_whose_word_counts(first: Measurement, second: Measurement, milliseconds: int) -> None:
    assert by_name(after(first, second))["a"].p50_microseconds == milliseconds * 1000


def test_what_changes_nothing_makes_no_new_status() -> None:
    status = after(measured("a", 20, 5))
    assert observe(status, SPEC, [measured("a", 10, 1)]) is status
    assert forget(status, later(6), ["a"]) is status


def test_too_few_samples_leave_a_node_unknown() -> None:
    spec = policy(hard=40, min_samples=3)
    status = observe(EMPTY, spec, [measured("a", 70, samples=2)])
    assert by_name(status)["a"].state is NodeState.UNKNOWN
    assert by_name(observe(status, spec, [measured("a", 70, 1, samples=3)]))["a"].state is NodeState.INVALID


@pytest.mark.parametrize(
    ("milliseconds", "limits", "state"),
    [
        pytest.param(35, {"hard": 20}, NodeState.INVALID, id="lower"),
        pytest.param(35, {"hard": 50, "soft": 40}, NodeState.SOFT_VALID, id="higher"),
        pytest.param(35, {"hard": 50, "soft": 30}, NodeState.HARD_VALID, id="the other one"),
        pytest.param(70, {}, NodeState.SOFT_VALID, id="gone"),
        pytest.param(35, {"hard": 40, "min_samples": 15}, NodeState.UNKNOWN, id="more samples"),
    ],
)
def test_limits_that_are_changed_hold_for_what_nobody_measures_again(
    milliseconds: float, limits: dict[str, object], state: NodeState
) -> None:
    status = after(measured("a", milliseconds, samples=14))
    assert by_name(by_limits(status, policy(**limits)))["a"].state is state
    assert by_limits(status, SPEC) is status


def test_a_state_without_a_round_trip_is_none() -> None:
    status = LatencyPolicyStatus(nodes=(NodeStatus(node="a", state=NodeState.SOFT_VALID, samples=3),))
    assert by_name(by_limits(status, SPEC))["a"].state is NodeState.UNKNOWN


@pytest.mark.parametrize("milliseconds", [29, 31, 32, 39, 41, 43])
def test_states_about_a_limit_stay_as_they_are(milliseconds: float) -> None:
    for first in (20, 35, 60):
        status = after(measured("a", first), measured("a", milliseconds, 1))
        assert by_limits(status, SPEC) is status


def test_nodes_that_are_gone_are_forgotten_and_old_measurements_too() -> None:
    status = reject(after(measured("a", 20), measured("b", 20, 60), measured("c", 20)), "a", NOW)
    found = by_name(forget(status, later(1) + MAX_AGE, ["a", "b"]))
    assert set(found) == {"a", "b"}
    assert (found["a"].state, found["a"].time, found["a"].rejections) == (NodeState.UNKNOWN, None, 1)
    assert found["b"].state is NodeState.SOFT_VALID


@pytest.mark.parametrize(("source", "age"), [(PROBE, PROBE_AGE), (METER, MAX_AGE), (ROUTER, MAX_AGE)])
def test_probes_are_old_soon_for_they_are_repeated(source: MeasurementSource, age: timedelta) -> None:
    status = after(measured("a", 20, 0, source))
    assert forget(status, NOW + age, ["a"]) is status
    assert forget(status, NOW + age + timedelta(seconds=1), ["a"]).nodes == ()


def test_each_rejection_lasts_twice_as_long_up_to_a_day() -> None:
    status, spans = EMPTY, []
    for _ in range(20):
        status = reject(status, "a", NOW)
        until = by_name(status)["a"].rejected_until
        assert until is not None
        spans.append(until - NOW)
    assert spans[:3] == [FIRST_REJECTION, 2 * FIRST_REJECTION, 4 * FIRST_REJECTION]
    assert spans[-1] == LONGEST_REJECTION
    known = by_name(status)["a"]
    assert is_rejected(known, NOW)
    assert not is_rejected(known, NOW + LONGEST_REJECTION)
    assert not is_rejected(None, NOW)


def test_a_full_status_keeps_nodes_with_users_those_remembered_as_bad_and_of_others_the_nearest() -> None:
    status = observe(reject(EMPTY, "bad", NOW), SPEC, [measured("here", 900)])
    many = [measured(f"n{number}", 500 - number, number, PROBE) for number in range(MAX_NODES)]
    status = observe(status, SPEC, many)
    assert [known.node for known in status.nodes] == ["bad", "here", *(f"n{at}" for at in range(2, MAX_NODES))]
    assert observe(status, SPEC, many[2:][::-1]).nodes == status.nodes, "in the same order"


def test_a_status_reads_as_it_was_written() -> None:
    moment = NOW + timedelta(microseconds=123_456)
    status = observe(EMPTY, SPEC, [Measurement("a", METER, 12_345, 23_456, 3, moment)])
    assert again(reject(status, "a", moment)) == reject(status, "a", moment)
