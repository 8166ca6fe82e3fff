"""Whose turn it is when not all can be placed: nothing waits for ever, and no namespace takes it all."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.scheduling.queue import AGEING_SECONDS, AGEING_TURNS, INITIAL_BACKOFF, MAX_BACKOFF, SchedulingQueue
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from tests.support import builders
from tests.support.placement import Clock

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"


def pod(name: str, *, priority: int = 0, created: str = EARLY, namespace: str = "default") -> Pod:
    made = builders.pod(name, namespace=namespace, spec={"priority": priority})
    made.metadata.creation_timestamp = created
    return made


class Bench:
    """A queue with its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = SchedulingQueue(clock=self.clock, groups={})

    def add(self, *pods: Pod) -> None:
        for made in pods:
            self.queue.add(made, EntryKey.of(made, None))

    def pop(self) -> QueueEntry:
        entry = self.queue.pop()
        assert entry is not None
        return entry

    def fail(self) -> str:
        """Pop an entry, which cannot be placed; its name."""
        entry = self.pop()
        self.queue.back_off(entry)
        return entry.key.name

    def place(self, *, seconds: float = 0.0) -> str:
        """Pop an entry, which is placed after planning for so long; its name."""
        entry = self.pop()
        self.queue.charge(entry, seconds)
        for uid in list(entry.pods):
            self.queue.delete(uid)
        return entry.key.name

    def wake_all(self) -> None:
        """Let every backoff end, and something change in the cluster."""
        self.clock.now += MAX_BACKOFF
        self.queue.move_all_to_active()


@pytest.fixture
def bench() -> Bench:
    return Bench()


class TestTurnOfEntry:
    def test_old_entries_that_never_fit_do_not_starve_younger_ones(self, bench: Bench) -> None:
        bench.add(pod("old-1"), pod("old-2"))
        tried = [bench.fail(), bench.fail()]
        bench.add(pod("young", created=LATE))
        for _ in range(3):
            bench.wake_all()
            tried.append(bench.fail())
        assert tried == ["old-1", "old-2", "old-1", "old-2", "young"]

    def test_each_failure_sends_an_entry_behind_what_came_before_it(self, bench: Bench) -> None:
        bench.add(pod("a"), pod("b"))
        bench.fail()
        bench.add(pod("c", created=LATE))
        bench.wake_all()
        assert [bench.place(), bench.place(), bench.place()] == ["b", "a", "c"]

    def test_what_comes_between_two_attempts_is_ordered_by_creation(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.place()
        bench.add(pod("late", created=LATE), pod("early"))
        assert [bench.place(), bench.place()] == ["early", "late"]

    def test_priority_comes_first(self, bench: Bench) -> None:
        bench.add(pod("urgent", priority=9))
        bench.fail()
        bench.add(pod("young"))
        bench.wake_all()
        assert bench.place() == "urgent"


class TestAgeing:
    def test_a_stream_of_urgent_entries_starves_nobody(self, bench: Bench) -> None:
        bench.add(pod("low", priority=-5))
        placed = []
        for number in range(100):
            bench.add(pod(f"urgent-{number}", priority=9))
            placed.append(bench.place())
            bench.clock.now += 1
            if placed[-1] == "low":
                break
        assert placed[-1] == "low"
        assert len(placed) <= AGEING_SECONDS + AGEING_TURNS + 1

    def test_aged_entries_get_one_turn_in_so_many(self, bench: Bench) -> None:
        bench.add(*(pod(f"low-{n}", priority=-5) for n in range(10)))
        bench.clock.now += AGEING_SECONDS
        bench.add(*(pod(f"urgent-{n}", priority=9) for n in range(20)))
        placed = [bench.place().partition("-")[0] for _ in range(4 * AGEING_TURNS)]
        assert placed.count("low") == 4

    def test_a_plan_under_way_keeps_its_age(self, bench: Bench) -> None:
        """It holds room: one turn in half a minute would keep that from everybody for minutes."""
        bench.add(pod("low", priority=-5))
        bench.clock.now += AGEING_SECONDS
        turns = 0
        for number in range(4 * AGEING_TURNS):
            bench.add(pod(f"urgent-{number}", priority=9))
            entry = bench.pop()
            bench.queue.put_back(entry) if entry.key.name == "low" else bench.queue.delete(*entry.pods)
            turns += entry.key.name == "low"
        assert turns == 4

    @pytest.mark.parametrize("seconds", [0.25, 2.0])
    def test_aged_entries_whose_plans_take_long_get_that_share_of_the_time(self, bench: Bench, seconds: float) -> None:
        bench.add(*(pod(f"heavy-{n}", namespace="big") for n in range(400)))
        bench.clock.now += AGEING_SECONDS
        bench.add(*(pod(f"light-{n}", namespace="small", priority=1) for n in range(2000)))
        used = dict.fromkeys(("heavy", "light"), 0.0)
        for number in range(2000):
            entry = bench.pop()
            kind = entry.key.name.partition("-")[0]
            took = seconds if kind == "heavy" else 0.01
            used[kind] += took
            bench.clock.now += took
            bench.queue.charge(entry, took)
            for uid in list(entry.pods):
                bench.queue.delete(uid)
            bench.add(pod(f"light-{2000 + number}", namespace="small", priority=1))
        assert 0.0 < used["heavy"] <= (used["heavy"] + used["light"]) / AGEING_TURNS + seconds

    def test_a_namespace_that_is_held_takes_no_turn_of_other_aged_entries(self, bench: Bench) -> None:
        bench.add(pod("held", priority=-5, namespace="full"))
        bench.clock.now += 1
        bench.add(pod("low", priority=-5))
        bench.clock.now += AGEING_SECONDS
        bench.add(*(pod(f"urgent-{n}", priority=9) for n in range(20)))
        popped = [bench.queue.pop(held=lambda namespace: namespace == "full") for _ in range(AGEING_TURNS)]
        assert [entry.key.name for entry in popped if entry is not None][-1] == "low"

    def test_an_entry_that_is_not_active_does_not_age(self, bench: Bench) -> None:
        bench.add(pod("never-fits", priority=-5))
        bench.fail()
        bench.clock.now += AGEING_SECONDS
        bench.add(*(pod(f"urgent-{n}", priority=9) for n in range(8)))
        assert {bench.place().partition("-")[0] for _ in range(8)} == {"urgent"}


class TestNamespaces:
    def test_a_namespace_full_of_work_shares_planning_time_with_another(self, bench: Bench) -> None:
        bench.add(*(pod(f"big-{n}", namespace="big") for n in range(10)))
        bench.place(seconds=2.0)
        bench.add(*(pod(f"small-{n}", namespace="small", created=LATE) for n in range(3)))
        placed = [bench.place(seconds=1.0 if n % 2 else 0.1) for n in range(4)]
        assert placed[:3] == ["small-0", "small-1", "small-2"]

    def test_a_namespace_that_was_idle_has_no_credit(self, bench: Bench) -> None:
        bench.add(*(pod(f"big-{n}", namespace="big") for n in range(10)))
        for _ in range(4):
            bench.place(seconds=1.0)
        bench.add(*(pod(f"small-{n}", namespace="small", created=LATE) for n in range(6)))
        placed = [bench.place(seconds=1.0).partition("-")[0] for _ in range(6)]
        assert placed.count("big") >= 2

    def test_one_whose_pods_have_gone_keeps_the_others_no_credit(self, bench: Bench) -> None:
        bench.add(pod("idle", namespace="idle", priority=-5))
        bench.add(*(pod(f"big-{n}", namespace="big") for n in range(10)))
        bench.place(seconds=5.0)
        bench.queue.delete("pod-idle-idle")
        bench.place(seconds=1.0)
        bench.add(*(pod(f"small-{n}", namespace="small", created=LATE) for n in range(4)))
        placed = [bench.place(seconds=1.0).partition("-")[0] for _ in range(4)]
        assert placed.count("small") <= 2

    def test_priority_comes_before_shares(self, bench: Bench) -> None:
        bench.add(pod("a", namespace="big"), pod("urgent", namespace="big", priority=1))
        bench.add(pod("b", namespace="small"))
        bench.queue.charge(bench.pop(), 9.0)
        bench.add(pod("also-urgent", namespace="big", priority=1))
        assert bench.place() == "also-urgent"

    @pytest.mark.parametrize("aged", [False, True])
    def test_one_that_is_held_up_holds_nobody_up(self, bench: Bench, aged: bool) -> None:
        bench.add(pod("big-0", namespace="big", priority=9), pod("big-1", namespace="big"), pod("small-0"))
        bench.clock.now += AGEING_SECONDS if aged else 0.0
        turns = [bench.queue.pop(held=lambda namespace: namespace == "big") for _ in range(AGEING_TURNS + 1)]
        assert [entry.key.name for entry in turns if entry is not None] == ["small-0"]
        assert bench.place() == "big-0"


class TestBackoff:
    @pytest.mark.parametrize(
        ("labels", "spec", "ready"),
        [
            pytest.param({"app": "other"}, {}, False, id="labels"),
            pytest.param({}, {"nodeSelector": {"disk": "ssd"}}, True, id="spec"),
            pytest.param({}, {}, False, id="nothing"),
        ],
    )
    def test_only_an_edit_that_can_help_ends_it(
        self, bench: Bench, labels: dict[str, str], spec: dict[str, object], ready: bool
    ) -> None:
        bench.add(pod("a"))
        bench.fail()
        bench.add(builders.pod("a", labels=labels, spec={"priority": 0, **spec}))
        assert (bench.queue.pop() is not None) is ready

    def test_other_labels_count_once_it_is_over(self, bench: Bench) -> None:
        bench.add(pod("a"))
        bench.fail()
        bench.add(builders.pod("a", labels={"app": "other"}, spec={"priority": 0}))
        bench.clock.now += INITIAL_BACKOFF
        assert bench.place() == "a"

    @pytest.mark.parametrize("skip_backoff", [True, False])
    def test_a_change_of_the_group_may_wait_for_its_end(self, bench: Bench, skip_backoff: bool) -> None:
        bench.add(pod("a"))
        entry = bench.pop()
        bench.queue.back_off(entry)
        bench.queue.activate(entry.key, skip_backoff=skip_backoff)
        assert (bench.queue.pop() is entry) is skip_backoff
        bench.clock.now += INITIAL_BACKOFF
        assert (bench.queue.pop() is entry) is not skip_backoff
