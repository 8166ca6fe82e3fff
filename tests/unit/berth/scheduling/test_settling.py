"""The settling window: who waits for network data, how long, and what ends it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.costs import DEFAULT_WEIGHT_SETS, NO_COSTS, NetworkCosts
from berth.network.groups import GroupKey
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from berth.scheduling.settling import (
    DEPLOYMENTS_GATHER_AT_MOST_SECONDS,
    DEPLOYMENTS_GATHER_SECONDS,
    GATHER_AT_MOST_SECONDS,
    GATHER_SECONDS,
    REMEMBERED,
    SETTLE_SECONDS,
    WEIGHTS_SECONDS,
    SettlingWindow,
)
from tests.support.placement import Clock


def _costs(*weight_sets: str, uid: str = "net", generation: int = 1, current: bool = True) -> NetworkCosts:
    zones = {("a", "b"): 5.0} if weight_sets else {}
    return NetworkCosts(
        source="default/net", uid=uid, weight_sets=weight_sets, zones=zones, generation=generation, current=current
    )


def _entry(came: float) -> QueueEntry:
    """Pods of a group, the last of which came at that time."""
    return QueueEntry(EntryKey.of_group(GroupKey("a", "shop"), "s"), first_seen=came, last_came=came, turn=0, number=0)


EDITED = _costs("Dijkstra", "UserDefined", generation=2, current=False)
STATED, COMPUTED, MEASURED = _costs("UserDefined"), _costs("Dijkstra", "UserDefined"), _costs("NetperfCosts")


@pytest.mark.parametrize(
    ("costs", "weight_sets", "waits"),
    [
        (NO_COSTS, DEFAULT_WEIGHT_SETS, True),
        (_costs(), DEFAULT_WEIGHT_SETS, True),
        (STATED, DEFAULT_WEIGHT_SETS, True),
        (COMPUTED, DEFAULT_WEIGHT_SETS, False),
        (MEASURED, DEFAULT_WEIGHT_SETS, False),
        (EDITED, DEFAULT_WEIGHT_SETS, True),
        (EDITED, ("UserDefined",), False),
        (STATED, ("UserDefined",), False),
        (NO_COSTS, ("UserDefined",), True),
    ],
    ids=[
        "no topology",
        "empty",
        "stated only",
        "computed",
        "measured",
        "edited since",
        "edited, computed not wanted",
        "computed not wanted",
        "stated wanted, none",
    ],
)
def test_a_group_waits_for_the_costs_that_its_profile_uses(
    costs: NetworkCosts, weight_sets: tuple[str, ...], waits: bool
) -> None:
    assert (SettlingWindow(Clock()).look_again("uid", costs, weight_sets) is not None) is waits


@pytest.mark.parametrize(
    ("waited", "since_last", "due"),
    [
        pytest.param(0.0, 0.0, GATHER_SECONDS, id="one-came-just-now"),
        pytest.param(0.5, 0.04, GATHER_SECONDS - 0.04, id="they-keep-coming"),
        pytest.param(0.0, GATHER_SECONDS, None, id="none-came-for-a-while"),
        pytest.param(GATHER_AT_MOST_SECONDS - 0.02, 0.0, 0.02, id="nearly-waited-enough"),
        pytest.param(GATHER_AT_MOST_SECONDS, 0.0, None, id="waited-enough"),
    ],
)
def test_a_group_waits_for_pods_that_keep_coming(waited: float, since_last: float, due: float | None) -> None:
    clock = Clock()
    window, entry = SettlingWindow(clock), _entry(clock.now)
    window.next_pod(entry)
    clock.advance(waited)
    entry.last_came = clock.now - since_last
    found = window.next_pod(entry)
    assert found == (None if due is None else pytest.approx(clock.now + due))


def test_pods_of_several_deployments_gather_longer() -> None:
    clock = Clock()
    window, entry = SettlingWindow(clock), _entry(clock.now)
    entry.of_several = True
    assert window.next_pod(entry) == pytest.approx(clock.now + DEPLOYMENTS_GATHER_SECONDS)
    begun = clock.now
    while window.next_pod(entry) is not None:
        clock.advance(0.8 * DEPLOYMENTS_GATHER_SECONDS)
        entry.last_came = clock.now
    assert clock.now - begun == pytest.approx(DEPLOYMENTS_GATHER_AT_MOST_SECONDS, abs=DEPLOYMENTS_GATHER_SECONDS)


def test_pods_gather_without_room_to_remember_windows() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    for number in range(REMEMBERED + 1):
        window.look_again(number, NO_COSTS, DEFAULT_WEIGHT_SETS)
    assert window.next_pod(_entry(clock.now)) is not None


def test_the_weights_arrival_ends_the_window() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    for costs in (NO_COSTS, STATED):
        assert window.look_again("uid", costs, DEFAULT_WEIGHT_SETS) is not None
        clock.now += 0.5
    assert window.look_again("uid", COMPUTED, DEFAULT_WEIGHT_SETS) is None


def test_a_window_that_is_over_does_not_begin_again() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    window.look_again("uid", NO_COSTS, DEFAULT_WEIGHT_SETS)
    clock.now += SETTLE_SECONDS
    assert window.look_again("uid", NO_COSTS, DEFAULT_WEIGHT_SETS) is None
    clock.now += WEIGHTS_SECONDS - SETTLE_SECONDS
    assert window.look_again("uid", STATED, DEFAULT_WEIGHT_SETS) is None
    assert window.look_again("another", NO_COSTS, DEFAULT_WEIGHT_SETS) is not None


def test_a_topology_that_nobody_computes_is_waited_for_once() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    window.look_again("first", STATED, DEFAULT_WEIGHT_SETS)
    clock.now += WEIGHTS_SECONDS
    assert window.look_again("second", STATED, DEFAULT_WEIGHT_SETS) is None
    other = _costs("UserDefined", uid="other")
    assert window.look_again("third", other, DEFAULT_WEIGHT_SETS) is not None


@pytest.mark.parametrize("appears", [0.0, 1.9], ids=["at-once", "late"])
def test_weights_of_a_topology_that_is_there_are_waited_for_longer_than_for_one(appears: float) -> None:
    """Who computes them is there as a rule, and takes long where the machine is busy."""
    clock = Clock()
    window = SettlingWindow(clock)
    assert window.look_again("uid", NO_COSTS if appears else STATED, DEFAULT_WEIGHT_SETS) is not None
    clock.now += appears
    assert window.look_again("uid", STATED, DEFAULT_WEIGHT_SETS) is not None
    clock.now += WEIGHTS_SECONDS - appears - 0.1
    assert window.look_again("uid", STATED, DEFAULT_WEIGHT_SETS) is not None
    clock.now += 0.1
    assert window.look_again("uid", STATED, DEFAULT_WEIGHT_SETS) is None


def test_services_are_waited_for_no_longer_than_for_a_topology() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    assert window.look_again("uid", COMPUTED, DEFAULT_WEIGHT_SETS, unserved=True) is not None
    clock.now += SETTLE_SECONDS
    assert window.look_again("uid", COMPUTED, DEFAULT_WEIGHT_SETS, unserved=True) is None


def test_one_that_is_deleted_and_made_anew_is_waited_for_again() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    assert window.look_again("first", STATED, DEFAULT_WEIGHT_SETS) is not None
    clock.now += 60
    anew = _costs("UserDefined", uid="anew")
    assert (anew.source, anew.generation) == (STATED.source, STATED.generation)
    assert window.look_again("second", anew, DEFAULT_WEIGHT_SETS) is not None
    clock.now += WEIGHTS_SECONDS
    assert window.look_again("third", anew, DEFAULT_WEIGHT_SETS) is None


def test_every_edit_of_a_topology_is_waited_for_once() -> None:
    clock = Clock()
    window = SettlingWindow(clock)
    for generation in (2, 3):
        edited = _costs("Dijkstra", generation=generation, current=False)
        assert window.look_again(f"first of {generation}", edited, DEFAULT_WEIGHT_SETS) is not None
        clock.now += WEIGHTS_SECONDS
        assert window.look_again(f"second of {generation}", edited, DEFAULT_WEIGHT_SETS) is None


@given(st.lists(st.sampled_from([NO_COSTS, STATED, EDITED, _costs()]), min_size=1))
def test_nobody_waits_longer_than_the_window(seen: list[NetworkCosts]) -> None:
    clock = Clock()
    window, start = SettlingWindow(clock), clock.now
    again = None
    for costs in [*seen, *[NO_COSTS] * 100]:
        again = window.look_again("uid", costs, DEFAULT_WEIGHT_SETS)
        if again is None:
            break
        assert again > clock.now
        clock.now = again
    assert again is None
    assert clock.now - start <= (WEIGHTS_SECONDS if any(costs.source for costs in seen) else SETTLE_SECONDS) + 0.2


def test_more_groups_than_are_remembered_do_not_begin_their_windows_again_and_again() -> None:
    """Each of them took the place of another, whose window then began anew at its next look: none was ever planned."""
    clock, groups = Clock(), range(REMEMBERED + 100)
    window = SettlingWindow(clock)
    waiting = [group for group in groups if window.look_again(group, NO_COSTS, DEFAULT_WEIGHT_SETS) is not None]
    assert len(waiting) == REMEMBERED
    clock.now += SETTLE_SECONDS
    assert [group for group in waiting if window.look_again(group, NO_COSTS, DEFAULT_WEIGHT_SETS) is not None] == []
    clock.now += WEIGHTS_SECONDS - SETTLE_SECONDS
    # Who comes later has a window again.
    assert window.look_again("later", NO_COSTS, DEFAULT_WEIGHT_SETS) is not None
