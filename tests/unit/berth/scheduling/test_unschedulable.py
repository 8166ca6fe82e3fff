"""Who is told of a change: as by a look at everybody, whatever came and went, without one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.network.groups import GroupKey
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from berth.scheduling.unschedulable import Change, UnschedulableEntries

NAMESPACES = ("a", "b")


def entry(name: str, *, follows: frozenset[Change] = frozenset()) -> QueueEntry:
    """An entry whose namespace is the first letter of its name."""
    return QueueEntry(
        key=EntryKey.of_group(GroupKey(name[0], name), "s"),
        first_seen=0.0,
        turn=0,
        number=0,
        follows_pods=Change.PODS in follows,
        follows_volumes=Change.VOLUMES in follows,
        follows_calls=Change.CALLS in follows,
    )


NAMES = st.sampled_from([f"{namespace}{number}" for namespace in NAMESPACES for number in range(3)])
FOLLOWS = st.frozensets(st.sampled_from([Change.PODS, Change.VOLUMES, Change.CALLS]))


@given(st.lists(st.tuples(NAMES, st.sampled_from(["add", "more", "discard"]), FOLLOWS), max_size=40))
def test_a_change_is_told_to_those_that_it_may_help(steps: list[tuple[str, str, frozenset[Change]]]) -> None:
    found = UnschedulableEntries()
    waiting: dict[str, tuple[QueueEntry, frozenset[Change]]] = {}
    for name, what, follows in steps:
        if name in waiting and what == "more":
            known, _ = waiting[name]
            known.follows_pods = True  # a pod with rules has joined it: it is about to be tried
        if name in waiting:
            known, _ = waiting.pop(name)
            found.discard(known)
            assert not known.unschedulable
        if what == "add":
            waiting[name] = entry(name, follows=follows), follows
            found.add(waiting[name][0])
            assert waiting[name][0].unschedulable
        for change in Change:
            helped = [one for one, follows in waiting.values() if change is Change.ANY or change in follows]
            assert found.helped_by(change) == helped
            for namespace in NAMESPACES:
                own = [one for one in helped if one.key.namespace == namespace]
                assert found.helped_by(change, namespace) == own
    for known, _ in waiting.values():
        found.discard(known)
    assert found._entries == {}


def test_one_that_does_not_wait_is_left_alone() -> None:
    found, other = UnschedulableEntries(), entry("a1")
    found.add(other)
    found.discard(entry("a1"))
    assert found.helped_by(Change.ANY) == [other]
