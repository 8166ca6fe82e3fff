"""The scheduling queue: order, backoff, second tries; no entry is ever lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import Pod
from berth.network.groups import Group, GroupKey
from berth.scheduling.queue import FLUSH_AFTER, MAX_BACKOFF, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry, pod_order
from berth.scheduling.unschedulable import Change
from tests.support import builders
from tests.support.placement import Clock

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def pod(name: str, *, priority: int = 0, created: str = EARLY, spec: dict[str, Any] | None = None) -> Pod:
    made = builders.pod(name, spec={"priority": priority, **(spec or {})})
    made.metadata.creation_timestamp = created
    return made


def key_of(made: Pod) -> EntryKey:
    return EntryKey.of(made, None)


def group_key(name: str) -> EntryKey:
    return EntryKey.of_group(GroupKey("ns", name), "s")


class Bench:
    """A queue with its clock and the AppGroups that exist."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.groups: dict[GroupKey, Group] = {}
        self.queue = SchedulingQueue(clock=self.clock, groups=self.groups)

    def add(self, *pods: Pod, key: EntryKey | None = None) -> None:
        for made in pods:
            self.queue.add(made, key or key_of(made))

    def pop(self) -> QueueEntry:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def pods(self) -> list[str]:
        """Names of all waiting pods."""
        return sorted(made.metadata.name for entry in self.queue.entries() for made in entry.pods.values())

    def names(self) -> list[str]:
        """Names of the pods of all active entries in the order they are popped."""
        found = []
        while (entry := self.queue.pop()) is not None:
            found.append(" ".join(made.metadata.name for made in entry.pods.values()))
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


class TestOrder:
    @pytest.mark.parametrize(
        ("pods", "order"),
        [
            pytest.param([pod("a"), pod("b", priority=5)], ["b", "a"], id="priority-first"),
            pytest.param([pod("b", created=LATE), pod("c")], ["c", "b"], id="then-arrival"),
            pytest.param([pod("b"), pod("a")], ["b", "a"], id="of-one-second-by-arrival"),
            pytest.param([pod("b", priority=-1), pod("a", created=LATE)], ["a", "b"], id="negative-priority"),
        ],
    )
    def test_single_pods(self, bench: Bench, pods: list[Pod], order: list[str]) -> None:
        bench.add(*pods)
        assert bench.names() == order

    def test_a_group_arrives_with_its_appgroup_and_has_its_best_pods_priority(self, bench: Bench) -> None:
        old, urgent = group_key("old"), group_key("urgent")
        bench.groups[GroupKey("ns", "old")] = Group(GroupKey("ns", "old"), created="2025-01-01T00:00:00Z")
        bench.add(pod("single"))
        bench.add(pod("o1", created=LATE), key=old)
        bench.add(pod("u1"), pod("u2", priority=7), key=urgent)
        assert bench.names() == ["u1 u2", "o1", "single"]

    def test_a_group_that_is_ready_moves_up_when_an_urgent_pod_joins(self, bench: Bench) -> None:
        group = group_key("g")
        bench.add(pod("g1", created=LATE), key=group)
        bench.add(pod("a"))
        bench.add(pod("g2", priority=9), key=group)
        assert bench.names() == ["g1 g2", "a"]

    def test_a_group_moves_down_when_its_urgent_pod_goes(self, bench: Bench) -> None:
        group = group_key("g")
        urgent = pod("g2", priority=9)
        bench.add(pod("g1", created=LATE), urgent, key=group)
        bench.add(pod("a"))
        bench.queue.delete(urgent.metadata.uid)
        assert bench.names() == ["a", "g1"]

    def test_inside_a_group(self) -> None:
        pods = [
            (pod("late", created=LATE), 1),
            (pod("b"), 1),
            (pod("a"), 1),
            (pod("second"), 2),
            (pod("vip", priority=1), 3),
        ]
        ordered = sorted(pods, key=lambda item: pod_order(*item))
        assert [made.metadata.name for made, _ in ordered] == ["vip", "a", "b", "late", "second"]

    @given(
        st.lists(
            st.tuples(st.sampled_from("abcdef"), st.integers(-1, 1), st.sampled_from([EARLY, LATE]), st.integers(1, 2)),
            min_size=2,
            max_size=8,
            unique_by=lambda item: item[0],
        )
    )
    def test_the_order_is_strict_and_total(self, items: list[tuple[str, int, str, int]]) -> None:
        keys = [pod_order(pod(name, priority=p, created=c), index) for name, p, c, index in items]
        for one in range(len(keys)):
            for other in range(len(keys)):
                relations = (keys[one] < keys[other]) + (keys[other] < keys[one]) + (one == other)
                assert relations == 1

    @given(st.permutations([pod(n, priority=i % 3, created=(EARLY, LATE)[i % 2]) for i, n in enumerate("abcdefgh")]))
    def test_order_depends_on_the_order_of_events_within_a_second_only(self, pods: list[Pod]) -> None:
        bench = Bench()
        bench.add(*pods)
        expected = sorted(pods, key=lambda p: (-p.spec.priority, p.metadata.creation_timestamp))
        assert bench.names() == [made.metadata.name for made in expected]

    def test_one_that_leaves_and_comes_again_has_arrived_anew(self, bench: Bench) -> None:
        bench.add(pod("a"), pod("b"))
        bench.queue.delete(pod("a").metadata.uid)
        bench.add(pod("a"))
        assert bench.names() == ["b", "a"]


class TestContents:
    def test_counts_pods_not_entries(self, bench: Bench) -> None:
        bench.add(pod("a"), pod("b"), key=group_key("g"))
        bench.add(pod("c"))
        assert len(bench.queue) == 3
        assert len(list(bench.queue.entries())) == 2

    def test_a_removed_pod_never_pops(self, bench: Bench) -> None:
        bench.add(pod("a"), pod("b"))
        bench.queue.delete("pod-default-a")
        bench.queue.delete("pod-default-a")
        assert bench.names() == ["b"]
        assert bench.pods() == ["b"]

    def test_a_pod_that_changes_its_entry_is_in_one_only(self, bench: Bench) -> None:
        made = pod("a")
        bench.add(made)
        bench.add(made, key=group_key("g"))
        assert [entry.key for entry in bench.queue.entries()] == [group_key("g")]

    def test_an_entry_stays_until_its_pods_go(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.pop()
        assert bench.pods() == ["a"]
        assert bench.queue.pop() is None

    def test_an_entry_that_comes_back_waits_anew_and_ignores_old_timers(self, bench: Bench) -> None:
        made = pod("a")
        bench.add(made)
        bench.queue.back_off(bench.pop())
        bench.queue.delete(made.metadata.uid)
        bench.clock.advance(30)
        bench.add(made)
        entry = bench.pop()
        assert (entry.first_seen, entry.attempts) == (bench.clock.now, 0)
        bench.queue.back_off(entry)
        bench.clock.advance(FLUSH_AFTER - 30)  # the first life's timer
        assert bench.queue.pop() is None

    @pytest.mark.parametrize(
        ("newer", "tried"),
        [
            pytest.param(pod("a"), False, id="same-content"),
            pytest.param(pod("a", spec={"nodeSelector": {"x": "y"}}), True, id="other-spec"),
        ],
    )
    def test_news_about_a_backed_off_pod(self, bench: Bench, newer: Pod, tried: bool) -> None:
        bench.add(pod("a"))
        bench.queue.back_off(bench.pop())
        bench.add(newer)
        assert (bench.queue.pop() is not None) is tried
        (entry,) = bench.queue.entries()
        assert entry.pods["pod-default-a"] is newer


class TestBackoff:
    def test_doubles_from_one_to_ten_seconds(self, bench: Bench) -> None:
        bench.add(pod("a"))
        waits = []
        for _ in range(7):
            entry = bench.pop()
            bench.queue.back_off(entry)
            waits.append(entry.not_before - bench.clock.now)
            bench.clock.advance(FLUSH_AFTER)
        assert waits == [1, 2, 4, 8, MAX_BACKOFF, MAX_BACKOFF, MAX_BACKOFF]

    def test_an_unschedulable_entry_is_flushed(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.queue.back_off(bench.pop())
        assert bench.queue.next_due() == bench.clock.now + FLUSH_AFTER
        bench.clock.advance(FLUSH_AFTER - 1)
        assert bench.queue.pop() is None
        bench.clock.advance(1)
        assert bench.names() == ["a"]

    def test_a_change_wakes_it_when_the_backoff_is_over(self, bench: Bench) -> None:
        bench.add(pod("a"))
        entry = bench.pop()
        entry.attempts = 2
        bench.queue.back_off(entry)
        bench.queue.move_all_to_active()
        assert bench.queue.pop() is None
        assert bench.queue.next_due() == bench.clock.now + 4
        bench.clock.advance(4)
        assert bench.names() == ["a"]

    def test_a_change_after_the_backoff_wakes_it_at_once(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.queue.back_off(bench.pop())
        bench.clock.advance(1)
        assert bench.queue.pop() is None
        bench.queue.move_all_to_active()
        assert bench.names() == ["a"]

    def test_wake_ignores_the_backoff(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.queue.back_off(bench.pop())
        bench.queue.activate(key_of(pod("a")))
        bench.queue.activate(key_of(pod("unknown")))
        assert bench.names() == ["a"]

    def test_many_wakes_do_not_add_attempts(self, bench: Bench) -> None:
        bench.add(pod("a"))
        for _ in range(20):
            bench.queue.back_off(bench.pop())
            bench.queue.activate(key_of(pod("a")))
        bench.queue.back_off(bench.pop())
        last = bench.clock.now
        tries = 0
        while bench.clock.now < last + 10 * FLUSH_AFTER:
            bench.clock.advance(1)
            entry = bench.queue.pop()
            if entry is not None:
                tries += 1
                bench.queue.back_off(entry)
        assert tries == 10

    @pytest.mark.parametrize(
        ("spec", "woken"),
        [
            pytest.param({}, False, id="plain"),
            pytest.param({"topologySpreadConstraints": [builders.spread("zone")]}, True, id="spread"),
            pytest.param(
                {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
                True,
                id="pod-affinity",
            ),
            pytest.param({"affinity": {"nodeAffinity": {}}}, False, id="node-affinity"),
        ],
    )
    def test_waking_those_that_follow_pods(self, bench: Bench, spec: dict[str, Any], woken: bool) -> None:
        bench.add(pod("a", spec=spec))
        bench.queue.back_off(bench.pop())
        bench.clock.advance(5)
        bench.queue.move_all_to_active(Change.PODS)
        assert (bench.queue.pop() is not None) is woken

    def test_waking_those_that_follow_volumes(self, bench: Bench) -> None:
        claim = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
        token = {"volumes": [{"name": "token"}]}  # what every pod has
        bench.add(pod("a", spec=claim), pod("b", spec=token))
        for _ in range(2):
            bench.queue.back_off(bench.pop())
        bench.clock.advance(5)
        bench.queue.move_all_to_active(Change.VOLUMES)
        assert bench.names() == ["a"]


class TestRetry:
    def test_at_a_time(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.queue.retry_at(bench.pop(), bench.clock.now + 30)
        bench.clock.advance(29)
        assert bench.queue.pop() is None
        bench.clock.advance(1)
        assert bench.names() == ["a"]

    def test_a_time_inside_the_backoff_means_its_end(self, bench: Bench) -> None:
        """A group's wait that ends during its backoff must not be forgotten until the flush."""
        bench.add(pod("a"))
        entry = bench.pop()
        entry.attempts = 5
        bench.queue.back_off(entry)
        bench.queue.retry_at(entry, bench.clock.now + 2)
        bench.clock.advance(MAX_BACKOFF - 1)
        assert bench.queue.pop() is None
        bench.clock.advance(1)
        assert bench.names() == ["a"]

    def test_the_earliest_time_counts(self, bench: Bench) -> None:
        bench.add(pod("a"))
        entry = bench.pop()
        for seconds in (30, 10, 20):
            bench.queue.retry_at(entry, bench.clock.now + seconds)
        assert bench.queue.next_due() == bench.clock.now + 10
        bench.clock.advance(10)
        assert bench.names() == ["a"]
        assert bench.queue.next_due() is None


ACTION = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("abcdef"), st.sampled_from(["g", "h", ""])),
    st.tuples(st.just("remove"), st.sampled_from("abcdef"), st.just("")),
    st.tuples(st.just("wake"), st.sampled_from("gh"), st.just("")),
    st.tuples(st.just("changes"), st.just(""), st.just("")),
    st.tuples(st.just("advance"), st.sampled_from(["0.5", "3", "20"]), st.just("")),
    st.tuples(st.just("look"), st.sampled_from(["fail", "wait", "place", "place-one"]), st.just("")),
    st.tuples(st.just("requeue"), st.sampled_from("abcdef"), st.sampled_from(["g", ""])),
)


@settings(max_examples=300)
@given(st.lists(ACTION, max_size=60))
def test_no_entry_is_ever_lost(actions: list[tuple[str, str, str]]) -> None:
    """After any history every entry is popped within FLUSH_AFTER, and nothing else is."""
    bench = Bench()
    queue, clock = bench.queue, bench.clock
    for action, what, where in actions:
        if action in ("add", "requeue"):
            made = pod(what)
            key = group_key(where) if where else key_of(made)
            (queue.add if action == "add" else queue.requeue)(made, key)
        elif action == "remove":
            queue.delete(f"pod-default-{what}")
        elif action == "wake":
            queue.activate(group_key(what))
        elif action == "changes":
            queue.move_all_to_active()
        elif action == "advance":
            clock.advance(float(what))
        elif (entry := queue.pop()) is not None:
            assert entry.pods
            assert entry.not_before <= clock.now
            if what == "fail":
                queue.back_off(entry)
            elif what == "wait":
                queue.retry_at(entry, entry.first_seen + 30)
            else:
                placed = list(entry.pods) if what == "place" else list(entry.pods)[:1]
                for uid in placed:
                    queue.delete(uid)
                if entry.pods:
                    queue.back_off(entry)
        for entry in queue.entries():
            assert entry.rank is not None or entry.due is not None, f"{entry.key} would wait for ever"
            assert entry.due is None or entry.due <= clock.now + FLUSH_AFTER
    waiting = {entry.key for entry in queue.entries()}
    clock.advance(FLUSH_AFTER)
    popped = []
    while (entry := queue.pop()) is not None:
        popped.append(entry.key)
    assert sorted(popped) == sorted(waiting)
    assert len(queue) == sum(len(entry.pods) for entry in queue.entries())
