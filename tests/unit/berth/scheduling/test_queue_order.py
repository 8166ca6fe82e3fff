"""Whose turn it is among many namespaces: as by the plain rule, and without a look at all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling.planning_share import QUANTUM, PlanningShare
from berth.scheduling.queue import AGEING_SECONDS, AGEING_TURNS, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from tests.support import builders
from tests.support.placement import Clock

NAMESPACES = "abcde"


class PlainRule:
    """Looks at every entry and every namespace."""

    def __init__(self, queue: SchedulingQueue, clock: Clock) -> None:
        self.queue, self.clock = queue, clock
        self.used: dict[str, float] = {}
        self.now = 0.0
        self.turn = 0
        self.by_age = False
        self.aged_after = 0.0

    def charge(self, namespace: str, seconds: float) -> None:
        self.used[namespace] = self.used.get(namespace, self.now) + seconds
        if self.by_age:
            self.aged_after = self.clock.now + seconds * (AGEING_TURNS - 1)

    def active(self) -> Iterator[QueueEntry]:
        for entry in self.queue.entries():
            if entry.rank is not None or (entry.due is not None and entry.due <= self.clock.now):
                yield entry

    def enter(self) -> None:
        for namespace in {entry.key.namespace for entry in self.active()}:
            self.used[namespace] = max(self.used.get(namespace, 0.0), self.now)

    def pop(self, held: set[str]) -> EntryKey | None:
        """The entry whose turn it is, before the queue is asked."""
        self.enter()
        due = [entry for entry in self.active() if entry.key.namespace not in held]
        if not due:
            return None
        chosen = min(due, key=self.order).key
        self.by_age = False
        if self.turn % AGEING_TURNS == AGEING_TURNS - 1 and self.aged_after <= self.clock.now:
            since, oldest = min(
                (entry.active_since if entry.rank is not None else self.clock.now, entry.key) for entry in due
            )
            self.by_age = since + AGEING_SECONDS <= self.clock.now
            chosen = oldest if self.by_age else chosen
        self.now = max(self.now, min(self.used[entry.key.namespace] for entry in self.active()))
        self.turn += 1
        return chosen

    def order(self, entry: QueueEntry) -> tuple[object, ...]:
        rank = (-entry.priority, entry.turn, entry.arrival, entry.number)
        return rank[0], int(self.used[entry.key.namespace] // QUANTUM), rank


def pod(name: str, namespace: str, *, priority: int = 0) -> Pod:
    made = builders.pod(name, namespace=namespace, spec={"priority": priority})
    made.metadata.creation_timestamp = f"2026-01-01T00:00:0{ord(name) % 7}Z"
    return made


NAMESPACE, NAME = st.sampled_from(NAMESPACES), st.sampled_from("pqrstu")
STEP = st.one_of(
    st.tuples(st.just("add"), NAMESPACE, NAME, st.integers(0, 2)),
    st.tuples(st.just("join"), NAMESPACE, NAME, st.integers(0, 2)),
    st.tuples(st.just("delete"), NAMESPACE, NAME, st.just(0)),
    st.tuples(st.just("advance"), st.just(""), st.just(""), st.sampled_from([1, 7, 31])),
    st.tuples(st.just("changes"), st.just(""), st.just(""), st.just(0)),
    st.tuples(st.sampled_from(["place", "fail", "turn"]), st.just(""), st.just(""), st.sampled_from([0, 1, 4])),
)


@pytest.mark.parametrize("idle_share", [pytest.param(0.0, id="patient"), pytest.param(0.1, id="early-while-idle")])
@settings(max_examples=100)
@given(
    steps=st.lists(st.tuples(STEP, st.sets(NAMESPACE, max_size=2)), min_size=10, max_size=80),
)
def test_the_order_is_that_of_the_plain_rule(
    steps: list[tuple[tuple[str, str, str, int], set[str]]], idle_share: float
) -> None:
    clock = Clock()
    queue = SchedulingQueue(clock=clock, groups={}, idle_share=idle_share)
    rule = PlainRule(queue, clock)
    for (what, namespace, name, number), held in steps:
        made = pod(name, namespace, priority=number) if namespace else None
        if made is not None and what in ("add", "join"):
            group = GroupKey(namespace, "g") if what == "join" else None
            if all(made.metadata.uid not in entry.pods for entry in queue.entries()):
                queue.add(made, EntryKey.of(made, group))
        elif made is not None:
            queue.delete(made.metadata.uid)
        elif what == "advance":
            clock.advance(number)
        elif what == "changes":
            queue.move_all_to_active()
            queue._wake_helped()  # the rule looks at entries before the queue does
        else:
            expected = rule.pop(held)
            entry = queue.pop(held=held.__contains__)
            if entry is not None and entry.ahead and expected is None:
                assert idle_share, "only while nothing else waits"
                assert entry.key.namespace not in held
                rule.turn += 1
                rule.by_age = False
            else:
                assert (entry.key if entry is not None else None) == expected
            if entry is None:
                continue
            queue.charge(entry, number * 0.4)
            rule.charge(entry.key.namespace, number * 0.4)
            if what == "fail":
                queue.back_off(entry)
            elif what == "turn":
                queue.put_back(entry)
            else:
                for uid in list(entry.pods):
                    queue.delete(uid)


@pytest.mark.parametrize("aged", [False, True], ids=["young", "aged"])
def test_a_pop_does_not_look_at_every_namespace(monkeypatch: pytest.MonkeyPatch, aged: bool) -> None:
    looks = 0
    of = PlanningShare.of

    def counting(share: PlanningShare, namespace: str) -> float:
        nonlocal looks
        looks += 1
        return of(share, namespace)

    clock, many = Clock(), 1000
    queue = SchedulingQueue(clock=clock, groups={})
    for number in range(many):
        made = pod("p", f"n{number}")
        queue.add(made, EntryKey.of(made, None))
    clock.advance(AGEING_SECONDS if aged else 0.0)
    monkeypatch.setattr(PlanningShare, "of", counting)
    held: list[str] = []
    for _ in range(many // 2):
        entry = queue.pop(held=lambda namespace: bool(held.append(namespace)))
        assert entry is not None
        queue.charge(entry, 0.1)
        queue.back_off(entry)
    assert looks <= 10 * many // 2
    assert len(held) <= many
