"""Which pods wait, in which order they are scheduled, and when they are tried again.

A queue entry is an AppGroup with waiting pods, or a single pod outside any group. Order is strict and total: priority,
turn of entry, creation (of the group, or of the pod) and, within the same second, who came first; inside a group the
topology index, creation time and name. Upstream's comparator is neither strict nor knows priorities inside a group.

The turn of entry is the number of attempts made before the entry came, or before its last failure: what never fits goes
behind what came meanwhile, and what comes between two attempts is ordered by creation. Among entries of the highest
priority the namespace goes first that has used least planning time. Every `AGEING_TURNS`-th attempt is for the entry
that has been active longest, if that is `AGEING_SECONDS` or more: a stream of urgent entries starves nobody. After one
that took long the next comes once others have had as much more time: plans of one namespace that are slow, and old for
that, would take nearly all of it from pods of another that are placed one by one. A plan under way keeps its age until
it is given up.

An entry that could not be placed backs off (1 s doubling to 10 s, kube-scheduler's figures) and stays unschedulable
until something changes that may help: a node, a pod that ended, a group, a network cost. At the latest after
`FLUSH_AFTER` it is tried again anyway, so that a change nobody noticed cannot strand it.

While nothing else waits, an entry that a change may help need not wait for the end of its backoff, unless its binding
was refused or its planning ended with an error. Such attempts have a share of the time at the most: in a cluster full
of changes, what never fits would be planned all the time.

A plan may take several turns; its entry is active in between (:meth:`SchedulingQueue.put_back`).
Every entry is active, or has a time at which it becomes active, or is being scheduled just now; whoever schedules one
ends with :meth:`SchedulingQueue.back_off`, :meth:`SchedulingQueue.retry_at`, or by deleting its pods.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from berth.kube.objects import Pod
from berth.network.groups import Group, GroupKey
from berth.scheduling.cache.volumes import claim_keys, disk_uses
from berth.scheduling.decided_pods import DecidedPods
from berth.scheduling.heaps import LazyHeap, NamespaceHeaps
from berth.scheduling.planning_share import PlanningShare
from berth.scheduling.queue_entry import GROUP, EntryKey, QueueEntry, Rank, Wait, looks_at_pods, restricts_calls
from berth.scheduling.unschedulable import Change, UnschedulableEntries

INITIAL_BACKOFF = 1.0
MAX_BACKOFF = 10.0
FLUSH_AFTER = 60.0
AGEING_SECONDS = 30.0
"""Seconds after which an active entry gets a turn whatever its priority."""
AGEING_TURNS = 4
"""Every so many attempts one is for the entry that has been active longest, in as large a part of the time."""

_Since = tuple[float, EntryKey]
"""A monotonic time that an entry has."""


class SchedulingQueue:
    """The queue entries. Adding and deleting pods and popping is O(log n) in entries and in namespaces."""

    def __init__(
        self, *, clock: Callable[[], float], groups: Mapping[GroupKey, Group], idle_share: float = 0.0
    ) -> None:
        """Start empty.

        Args:
            clock: monotonic time.
            groups: the AppGroups that exist.
            idle_share: share of the time, below 1, for attempts before a backoff is over while nothing else waits.
        """
        self._clock = clock
        self._idle_share = idle_share
        self._ahead_after = -math.inf
        self._aged_after = -math.inf
        self._groups = groups
        self._entries: dict[EntryKey, QueueEntry] = {}
        self._entry_of: dict[str, EntryKey] = {}
        self._unschedulable = UnschedulableEntries()
        self._share = PlanningShare()
        self._turn = 0
        self._numbers = itertools.count()
        self._active_in: Counter[str] = Counter()
        self._active: NamespaceHeaps[Rank] = NamespaceHeaps(
            self._current_rank,
            self._active_in.__getitem__,
            lambda namespace, rank: (rank[0], self._share.rank(namespace), rank),
        )
        self._oldest: NamespaceHeaps[_Since] = NamespaceHeaps(
            self._current_since, self._active_in.__getitem__, lambda _, since: since
        )
        self._timers: LazyHeap[_Since] = LazyHeap(self._current_due, lambda: len(self._entries))
        self._helped: LazyHeap[_Since] = LazyHeap(self._current_helped, lambda: len(self._entries))
        self._decided = DecidedPods(clock)

    def __len__(self) -> int:
        """Number of waiting pods."""
        return len(self._entry_of)

    def entries(self) -> Iterator[QueueEntry]:
        """All entries, in no order."""
        return iter(self._entries.values())

    def add(self, pod: Pod, key: EntryKey) -> None:
        """Note a waiting pod (again, with newer content).

        A new pod, or another spec, makes its entry active; other labels do so once the entry's backoff is over.
        """
        entry, before = self._join(pod, key)
        if before is None or before.spec != pod.spec:
            entry.not_before = 0.0
            self._push(entry, newcomer=pod)
        elif before.metadata.labels != pod.metadata.labels:
            self._wake(entry)

    def requeue(self, pod: Pod, key: EntryKey) -> int:
        """A decision about the pod could not be carried out: let it wait again, longer each time that happens.

        The pods of one plan are refused one after the other, and are one failure of their entry: of those that have
        been refused most often. What made the entry active meanwhile stays good, and so does how long they had waited.

        Returns how often that has happened to the pod, this time included.
        """
        refusals, wait = self._decided.refused(pod.metadata.uid, key)
        entry, _ = self._join(pod, key, wait)
        if entry.rank is None and refusals >= entry.attempts:
            entry.attempts = refusals
            self.back_off(entry, early=False)
        self._wake(entry, newcomer=pod)
        return refusals + 1

    def _join(self, pod: Pod, key: EntryKey, wait: Wait | None = None) -> tuple[QueueEntry, Pod | None]:
        """Put a pod that has perhaps waited before into its entry; returns that and what was known of the pod there."""
        uid = pod.metadata.uid
        if self._entry_of.get(uid, key) != key:
            self.delete(uid)
        entry = self._told_of_changes(key)
        if entry is None:
            entry = QueueEntry(key, first_seen=self._clock(), turn=self._turn, number=next(self._numbers))
            self._entries[key] = entry
        before = entry.pods.get(uid)
        if before is None:
            entry.came(uid, self._clock(), wait)
        entry.pods[uid] = pod
        self._entry_of[uid] = key
        if before is None or before.spec != pod.spec:
            entry.follows_pods = entry.follows_pods or looks_at_pods(pod)
            entry.follows_volumes = entry.follows_volumes or bool(claim_keys(pod) or disk_uses(pod))
        return entry, before

    def decided(self, uid: str, *, left_over: bool) -> None:
        """Forget a pod that has a node, but for how long it waited; `left_over` as of the entry."""
        key = self._entry_of.get(uid)
        if key is not None and key.kind == GROUP:
            self._decided.decided(uid, Wait(key, self._entries[key].first_seen, left_over))
        self.delete(uid)

    def delete(self, uid: str) -> None:
        """Forget a pod: bound, deleted or no longer ours."""
        key = self._entry_of.pop(uid, None)
        if key is None:
            return
        entry = self._entries[key]
        entry.went(uid)
        if not entry.pods:
            del self._entries[key]
            self._unschedulable.discard(entry)
            self._set_rank(entry, None)
        else:
            entry.outranked = True
            if uid in entry.unheard and entry.rank is None:
                # The others may wait for it alone, and who reads its policy knows no more in which entry it was.
                self._wake(entry)

    def pop(self, *, held: Callable[[str], bool] | None = None) -> QueueEntry | None:
        """The next entry to schedule, None when none is due; it stays in the queue until its pods are deleted.

        Args:
            held: which namespaces have no turn at the moment; none by default.
        """
        self._wake_helped()
        self._release_timers()
        entry = self._aged(held) if self._turn % AGEING_TURNS == AGEING_TURNS - 1 else None
        if entry is not None:
            entry.out_of_turn = True
        else:
            rank = self._active.first(held)
            entry = self._entries[rank[-1]] if rank is not None else self._while_idle(held)
            if entry is None:
                return None
        self._share.take_turn()
        self._turn += 1
        self._set_rank(entry, None)
        return entry

    def put_back(self, entry: QueueEntry) -> None:
        """The entry needs another turn: it is active again, behind those that wait for their first, and as old."""
        if self.holds(entry):
            entry.turn = self._turn
            self._push(entry, since=entry.active_since)

    def holds(self, entry: QueueEntry) -> bool:
        """Whether the entry is still in the queue."""
        return self._entries.get(entry.key) is entry

    def look_again(self, entry: QueueEntry) -> None:
        """Try the entry again once its backoff is over, if it has one, whether something changes or not."""
        if self.holds(entry):
            self.activate(entry.key, skip_backoff=False)

    def refresh(self, pod: Pod) -> bool:
        """Note the newest content of a pod that a plan under way has given a node; False for one not in the queue."""
        key = self._entry_of.get(pod.metadata.uid)
        if key is not None:
            self._entries[key].pods[pod.metadata.uid] = pod
        return key is not None

    def charge(self, entry: QueueEntry, seconds: float) -> None:
        """Planning an entry took so long: its namespace comes after those that have used less."""
        self._share.charge(entry.key.namespace, seconds)
        if entry.out_of_turn:
            self._aged_after = self._clock() + seconds * (AGEING_TURNS - 1)
            entry.out_of_turn = False
        if entry.ahead:
            self._ahead_after = max(self._ahead_after, self._clock()) + seconds * (1 / self._idle_share - 1)
            entry.ahead = entry.rank is not None  # its plan may need more turns

    def back_off(self, entry: QueueEntry, *, early: bool = True) -> None:
        """The entry could not be placed: it waits for a change, and at least as long as its backoff.

        With `early` it need not wait for the end of that while nothing else waits.
        """
        entry.early, entry.helped, entry.gathers_since = early, False, None
        wait = min(MAX_BACKOFF, INITIAL_BACKOFF * 2.0 ** min(entry.attempts, 16))
        entry.attempts += 1
        entry.turn, now = self._turn, self._clock()
        entry.not_before = now + wait
        self._set_rank(entry, None)
        entry.due = None
        self._unschedulable.discard(entry)
        if self._entries.get(entry.key) is entry:
            group = self._group(entry)
            entry.follows_calls = group is not None and any(map(restricts_calls, group.edges))
            self._unschedulable.add(entry)
            self.retry_at(entry, now + FLUSH_AFTER)

    def retry_at(self, entry: QueueEntry, when: float, *, keeps_age: bool = False) -> None:
        """Try the entry again at monotonic time `when` or when its backoff is over, earlier if something changes.

        With `keeps_age` it is then as old as it is now: its turn came too early by a moment.
        """
        entry.keeps_age = keeps_age
        when = max(when, entry.not_before)
        if entry.rank is None and (entry.due is None or when < entry.due):
            entry.due = when
            self._timers.push((when, entry.key))

    def activate(self, key: EntryKey, *, skip_backoff: bool = True) -> None:
        """Something about this entry changed: try it now, or once its backoff is over."""
        entry = self._told_of_changes(key)
        if entry is not None:
            if skip_backoff:
                entry.not_before = 0.0
            self._wake(entry)

    def move_all_to_active(self, change: Change = Change.ANY, *, namespace: str = "") -> None:
        """Something in the cluster changed: try unschedulable entries again once their backoff is over.

        They are found with the next :meth:`pop`, as if it had been done now: there may be thousands, and whoever sees a
        change has other things to do.

        Args:
            change: which entries it may help; all of them by default.
            namespace: the only one whose entries it may help, empty for all.
        """
        self._unschedulable.note(change, namespace, self._clock())

    def next_due(self) -> float | None:
        """Monotonic time at which :meth:`pop` may find more: now after a change, or when a timer ends; else None."""
        if self._unschedulable.changed:
            return self._clock()
        timer = self._timers.first()
        if timer is not None and self._ahead_after > self._clock() and self._helped.first() is not None:
            return min(timer[0], self._ahead_after)
        return None if timer is None else timer[0]

    def _wake_helped(self) -> None:
        """Wake all that changes may help."""
        for entry, when in self._unschedulable.helped():
            self._help(entry, when)

    def _told_of_changes(self, key: EntryKey) -> QueueEntry | None:
        """An entry, woken if a change may help it: what else happens to it comes after that."""
        entry = self._entries.get(key)
        if entry is not None and (when := self._unschedulable.help_for(entry)) is not None:
            self._help(entry, when)
        return entry

    def _help(self, entry: QueueEntry, when: float) -> None:
        """Wake an entry that a change of that time may help."""
        self._wake(entry, since=when)
        if self._idle_share and entry.early and entry.rank is None:
            entry.helped = True
            self._helped.push((entry.not_before, entry.key))

    def _wake(self, entry: QueueEntry, *, newcomer: Pod | None = None, since: float | None = None) -> None:
        """Make an entry active, at the end of its backoff if it has one; with `since`, as if it were that time."""
        if entry.not_before <= (self._clock() if since is None else since):
            self._push(entry, newcomer=newcomer, since=since)
        else:
            self._unschedulable.discard(entry)
            self.retry_at(entry, entry.not_before)

    def _push(self, entry: QueueEntry, *, newcomer: Pod | None = None, since: float | None = None) -> None:
        """Make an entry active; one that is active already moves up if its newest pod is more urgent."""
        entry.due, entry.helped = None, False
        self._unschedulable.discard(entry)
        rank = self._rank(entry, newcomer)
        if rank == entry.rank:
            return
        namespace, idle = entry.key.namespace, entry.rank is None
        self._set_rank(entry, rank)
        self._active.push(namespace, rank)
        if idle:
            if not entry.keeps_age:
                entry.active_since = self._clock() if since is None else since
            entry.keeps_age = False
            self._oldest.push(namespace, (entry.active_since, entry.key))

    def _set_rank(self, entry: QueueEntry, rank: Rank | None) -> None:
        """Note the place of an entry among the active ones, and whether its namespace has any of those."""
        namespace, was = entry.key.namespace, entry.rank
        entry.rank = rank
        if was is None and rank is not None:
            self._active_in[namespace] += 1
            if self._active_in[namespace] == 1:
                self._share.enter(namespace)
        elif was is not None and rank is None:
            self._active_in[namespace] -= 1
            if not self._active_in[namespace]:
                del self._active_in[namespace]
                self._share.leave(namespace)
                self._active.drop(namespace)
                self._oldest.drop(namespace)

    def _while_idle(self, held: Callable[[str], bool] | None) -> QueueEntry | None:
        """The entry that a change may help whose backoff ends first, if there is time for it."""
        first = self._helped.first() if self._clock() >= self._ahead_after else None
        if first is None or (held is not None and held(first[1].namespace)):
            return None
        entry = self._entries[first[1]]
        entry.helped, entry.ahead = False, True
        entry.not_before, entry.due, entry.active_since = 0.0, None, self._clock()
        return entry

    def _aged(self, held: Callable[[str], bool] | None) -> QueueEntry | None:
        """The entry that has been active longest, if that is too long, of namespaces that are not held."""
        now = self._clock()
        oldest = self._oldest.first(held) if now >= self._aged_after else None
        if oldest is None or oldest[0] + AGEING_SECONDS > now:
            return None
        return self._entries[oldest[1]]

    def _current_rank(self, rank: Rank) -> Rank | None:
        entry = self._entries.get(rank[-1])
        if entry is None or entry.rank != rank:
            return None
        if entry.outranked:
            entry.rank = self._rank(entry, None)
        return entry.rank

    def _current_since(self, item: _Since) -> _Since | None:
        entry = self._entries.get(item[1])
        return item if entry is not None and entry.rank is not None and entry.active_since == item[0] else None

    def _current_helped(self, item: _Since) -> _Since | None:
        entry = self._entries.get(item[1])
        return item if entry is not None and entry.helped and entry.not_before == item[0] else None

    def _current_due(self, item: _Since) -> _Since | None:
        entry = self._entries.get(item[1])
        return item if entry is not None and entry.due == item[0] else None

    def _rank(self, entry: QueueEntry, newcomer: Pod | None) -> Rank:
        """Place of an entry, from the place that it has if all that is new is one pod."""
        group = self._group(entry)
        created = group.created if group is not None else ""
        if entry.rank is not None and newcomer is not None:
            priority, turn, arrival, *_ = entry.rank
            arrival = created or min(arrival, newcomer.metadata.creation_timestamp)
            return (min(priority, -newcomer.spec.priority), turn, arrival, entry.number, entry.key)
        entry.outranked = False
        return (-entry.priority, entry.turn, created or entry.arrival, entry.number, entry.key)

    def _group(self, entry: QueueEntry) -> Group | None:
        key = entry.key.group
        return self._groups.get(key) if key is not None else None

    def _release_timers(self) -> None:
        now = self._clock()
        while (timer := self._timers.first()) is not None and timer[0] <= now:
            self._timers.pop()
            self._push(self._entries[timer[1]])
