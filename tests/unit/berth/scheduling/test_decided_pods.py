"""What is remembered of pods that got a node, and for how long."""

from __future__ import annotations

from berth.network.groups import GroupKey
from berth.scheduling.decided_pods import REMEMBER_REFUSALS, REMEMBER_WAITS, REMEMBERED, DecidedPods
from berth.scheduling.queue_entry import EntryKey, Wait
from tests.support.placement import Clock

SHOP, OTHER = (EntryKey.of_group(GroupKey("a", name), "s") for name in ("shop", "other"))
WAIT = Wait(SHOP, 5.0, left_over=True)


def test_refusals_are_counted_and_forgiven_after_a_quiet_time() -> None:
    clock = Clock()
    pods = DecidedPods(clock)
    assert [pods.refused("p", SHOP)[0] for _ in range(3)] == [0, 1, 2]
    clock.advance(REMEMBER_REFUSALS)
    assert pods.refused("p", SHOP)[0] == 0


def test_a_wait_is_that_of_one_decision() -> None:
    pods = DecidedPods(Clock())
    pods.decided("p", WAIT)
    assert pods.refused("p", SHOP) == (0, WAIT)
    assert pods.refused("p", SHOP) == (1, None)


def test_a_pod_of_another_group_begins_anew() -> None:
    pods = DecidedPods(Clock())
    pods.decided("p", WAIT)
    assert pods.refused("p", OTHER) == (0, None)


def test_waits_are_forgotten_after_a_while_and_beyond_a_number() -> None:
    clock = Clock()
    pods = DecidedPods(clock)
    pods.decided("p", WAIT)
    clock.advance(REMEMBER_WAITS)
    assert pods.refused("p", SHOP) == (0, None)
    for number in range(REMEMBERED + 1):
        pods.decided(str(number), WAIT)
    assert [pods.refused(uid, SHOP)[1] for uid in ("0", "1")] == [None, WAIT]
