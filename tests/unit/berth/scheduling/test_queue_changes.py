"""Changes in the cluster: those whom they may help are looked for with the next pop, and all comes as if at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling.queue import AGEING_SECONDS, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from berth.scheduling.unschedulable import Change
from tests.support import builders
from tests.support.placement import Clock

NAMESPACES = "abc"
SPREAD = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}
ENTRIES = 500


def pod(name: str, namespace: str = "a", *, priority: int = 0, spread: bool = False, label: str = "") -> Pod:
    spec = {"priority": priority, **(SPREAD if spread else {})}
    made = builders.pod(name, namespace=namespace, spec=spec, labels={"l": label} if label else {})
    made.metadata.creation_timestamp = f"2026-01-01T00:00:0{ord(name[0]) % 7}Z"
    return made


class AtOnce(SchedulingQueue):
    """Looks for those whom a change may help when it comes."""

    def move_all_to_active(self, change: Change = Change.ANY, *, namespace: str = "") -> None:
        super().move_all_to_active(change, namespace=namespace)
        self._wake_helped()


class Pair:
    """What is done to one queue is done to another that looks at everybody at once."""

    def __init__(self, idle_share: float) -> None:
        self.clock = Clock()
        self.queues = [kind(clock=self.clock, groups={}, idle_share=idle_share) for kind in (AtOnce, SchedulingQueue)]

    def each(self, what: str, *arguments: Any, **options: Any) -> None:
        for queue in self.queues:
            getattr(queue, what)(*arguments, **options)

    def key(self, uid: str) -> EntryKey | None:
        keys = [queue._entry_of.get(uid) for queue in self.queues]
        assert keys[0] == keys[1]
        return keys[0]

    def pop(self, held: set[str], what: str, seconds: float) -> None:
        at_once, later = (queue.pop(held=held.__contains__) for queue in self.queues)
        self.compare()
        if at_once is None or later is None:
            assert at_once is later
            return
        assert at_once.key == later.key
        for queue, entry in zip(self.queues, (at_once, later), strict=True):
            queue.charge(entry, seconds)
            if what == "fail":
                queue.back_off(entry)
            elif what == "turn":
                queue.put_back(entry)
            elif what == "later":
                queue.retry_at(entry, self.clock.now + 3.0)
            elif what == "refused":
                pods = list(entry.pods.values())
                for one in pods:
                    queue.delete(one.metadata.uid)
                for one in pods:
                    queue.requeue(one, entry.key)
            else:
                for uid in list(entry.pods):
                    queue.delete(uid)

    def compare(self) -> None:
        states = [{entry.key: state(entry) for entry in queue.entries()} for queue in self.queues]
        assert states[0] == states[1]
        assert self.queues[0].next_due() == self.queues[1].next_due()


def state(entry: QueueEntry) -> tuple[object, ...]:
    """All by which the queue goes."""
    when = (entry.not_before, entry.due, entry.active_since if entry.rank is not None else None)
    how = (entry.attempts, entry.turn, entry.early, entry.helped, entry.out_of_turn, entry.ahead)
    return set(entry.pods), entry.rank, when, how, entry.unschedulable


NAMESPACE, NAME = st.sampled_from(NAMESPACES), st.sampled_from("pqrs")
ADDED = st.fixed_dictionaries({"priority": st.integers(0, 2), "spread": st.booleans(), "label": st.sampled_from("xy")})
STEP = st.one_of(
    st.tuples(st.sampled_from(["add", "join", "requeue"]), NAMESPACE, NAME, ADDED),
    st.tuples(st.sampled_from(["delete", "activate", "activate now", "look again"]), NAMESPACE, NAME, st.none()),
    st.tuples(st.just("advance"), st.sampled_from([0.5, 1.0, 7.0, AGEING_SECONDS + 1, 61.0]), st.none(), st.none()),
    st.tuples(st.just("change"), st.sampled_from([Change.ANY, Change.PODS]), st.sampled_from(["", "a"]), st.none()),
    st.tuples(
        st.just("pop"),
        st.sets(NAMESPACE, max_size=1),
        st.sampled_from(["place", "fail", "fail", "fail", "turn", "later", "refused"]),
        st.sampled_from([0.0, 0.4, 1.6]),
    ),
)


@pytest.mark.parametrize("idle_share", [pytest.param(0.0, id="patient"), pytest.param(0.1, id="early-while-idle")])
@settings(max_examples=200)
@given(steps=st.lists(STEP, min_size=10, max_size=80))
def test_all_comes_as_if_everybody_had_been_looked_at_at_once(
    steps: list[tuple[str, Any, Any, Any]], idle_share: float
) -> None:
    pair = Pair(idle_share)
    for what, one, other, more in steps:
        if what == "advance":
            pair.clock.advance(one)
        elif what == "change":
            pair.each("move_all_to_active", one, namespace=other)
        elif what == "pop":
            pair.pop(one, other, more)
        else:
            made = pod(other, one, **(more or {}))
            key = pair.key(made.metadata.uid)
            if what in ("add", "join", "requeue"):
                group = GroupKey(one, "g") if what == "join" else None
                pair.each("requeue" if what == "requeue" else "add", made, EntryKey.of(made, group))
            elif what == "delete":
                pair.each("delete", made.metadata.uid)
            elif key is not None and what == "look again":
                for queue in pair.queues:
                    queue.look_again(queue._entries[key])
            elif key is not None:
                pair.each("activate", key, skip_backoff=what == "activate now")
    pair.pop(set(), "fail", 0.0)


@pytest.mark.parametrize("backing_off", [False, True], ids=["their backoff is over", "they back off"])
def test_a_change_that_helps_thousands_is_no_work_for_whoever_sees_it(
    monkeypatch: pytest.MonkeyPatch, backing_off: bool
) -> None:
    """The event loop sees it, which serves health and reads watches."""
    clock = Clock()
    queue = SchedulingQueue(clock=clock, groups={}, idle_share=0.1)
    for number in range(ENTRIES):
        made = pod(f"p{number}")
        queue.add(made, EntryKey.of(made, None))
    while (entry := queue.pop()) is not None:
        queue.back_off(entry)
    clock.advance(0.0 if backing_off else 5.0)
    woken, wake = [], SchedulingQueue._wake

    def counted(one: SchedulingQueue, entry: QueueEntry, **options: Any) -> None:
        woken.append(entry.key)
        wake(one, entry, **options)

    monkeypatch.setattr(SchedulingQueue, "_wake", counted)
    for _ in range(10):
        queue.move_all_to_active()
    assert woken == []
    assert queue.next_due() == clock.now
    assert queue.pop() is not None
    assert len(woken) == ENTRIES
    queue.pop()
    assert len(woken) == ENTRIES, "once"
