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


class Told:
    """Looks at everybody when something changes."""

    def __init__(self) -> None:
        self.found = UnschedulableEntries()
        self.waiting: dict[str, QueueEntry] = {}
        self.since: dict[str, float] = {}

    def add(self, name: str, follows: frozenset[Change]) -> None:
        self.waiting[name] = entry(name, follows=follows)
        self.found.add(self.waiting[name])
        assert self.waiting[name].unschedulable

    def discard(self, name: str) -> None:
        known = self.waiting.pop(name)
        self.since.pop(name, None)
        self.found.discard(known)
        assert not known.unschedulable
        assert self.found.help_for(known) is None

    def note(self, change: Change, namespace: str, when: float) -> None:
        for name, known in self.waiting.items():
            helped = {
                Change.ANY: True,
                Change.PODS: known.follows_pods,
                Change.VOLUMES: known.follows_volumes,
                Change.CALLS: known.follows_calls,
            }[change]
            if helped and namespace in ("", name[0]):
                self.since.setdefault(name, when)
        self.found.note(change, namespace, when)

    def tell(self) -> None:
        told = {}
        for known, when in self.found.helped():
            told[known.key.name] = when
            self.found.discard(known)
        assert told == self.since
        for name in told:
            del self.waiting[name]
        self.since.clear()
        assert not self.found.changed


NAMES = st.sampled_from([f"{namespace}{number}" for namespace in NAMESPACES for number in range(3)])
FOLLOWS = st.frozensets(st.sampled_from([Change.PODS, Change.VOLUMES, Change.CALLS]))
STEP = st.one_of(
    st.tuples(st.just("add"), NAMES, FOLLOWS),
    st.tuples(st.sampled_from(["more", "discard"]), NAMES, st.none()),
    st.tuples(st.just("change"), st.sampled_from(list(Change)), st.sampled_from(["", *NAMESPACES])),
    st.tuples(st.just("tell"), st.none(), st.none()),
)


@given(st.lists(STEP, max_size=40))
def test_a_change_is_told_to_those_that_it_may_help(steps: list[tuple[str, object, object]]) -> None:
    told = Told()
    for when, (what, one, other) in enumerate(steps):
        if what == "change":
            assert isinstance(one, Change)
            told.note(one, str(other), float(when))
        elif what == "tell":
            told.tell()
        else:
            name = str(one)
            if name in told.waiting:
                if what == "more":
                    told.waiting[name].follows_pods = True  # a pod with rules has joined it: it is about to be tried
                told.discard(name)
            if what == "add":
                assert isinstance(other, frozenset)
                told.add(name, other)
        help_for = {name: told.found.help_for(known) for name, known in told.waiting.items()}
        assert help_for == {name: told.since.get(name) for name in told.waiting}
    told.tell()
    for name in list(told.waiting):
        told.discard(name)
    assert told.found._entries == {}


def test_one_that_does_not_wait_is_left_alone() -> None:
    found, other = UnschedulableEntries(), entry("a1")
    found.add(other)
    found.discard(entry("a1"))
    found.note(Change.ANY, "", 7.0)
    assert list(found.helped()) == [(other, 7.0)]


def test_changes_that_help_nobody_new_are_noted_once() -> None:
    """They come by the thousand while a plan is made, or while nobody plans."""
    found = UnschedulableEntries()
    found.note(Change.ANY, "", 0.0)
    assert not found.changed, "nobody waits"
    for number in range(3):
        found.add(entry(f"a{number}"))
        for when in range(10):
            found.note(Change.ANY, "", float(10 * number + when))
            found.note(Change.ANY, "a", float(10 * number + when))
            found.note(Change.PODS, "", 0.0)
    assert len(found._noted) == 2 * 3
    assert {known.key.name: found.help_for(known) for known in found._entries["", Change.ANY].values()} == {
        "a0": 0.0,
        "a1": 10.0,
        "a2": 20.0,
    }
