"""WorkloadProfiles by the workload that they are about, and the model of what was measured."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from typing import Final

from berth.kube.objects import CustomObject
from berth.scheduling.cache.socket_reading import Profile, read_profile
from berth.scheduling.interference.slowdown import SlowdownModel

MOST_SLOWDOWNS: Final = 10_000
"""Slowdowns that are kept of a namespace, 5.4 MB with the longest names; profiles that come later count by class."""


class WorkloadProfiles:
    """Fed with every WorkloadProfile."""

    def __init__(self) -> None:
        """Start empty."""
        self.version = 0
        """Grows with every change of what profiles say."""
        self.model = SlowdownModel()
        """What they say, of those that count; kept up to date."""
        self._revisions: dict[str, int] = {}
        self._profiles: dict[str, Profile] = {}
        self._by_target: dict[str, list[str]] = {}
        self._stated: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return the number of profiles that can be used."""
        return len(self._profiles)

    def update(self, obj: CustomObject) -> tuple[str | None, frozenset[str]]:
        """A profile was added or changed.

        Returns what is wrong with it (None when it can be used as it is), and the workloads whose pods count as others
        now: those that another profile is about, and those beside which a slowdown changed.
        """
        before = self._profiles.get(_key(obj))
        try:
            profile = read_profile(obj)
        except ValueError as error:
            return str(error), self._changed(before, None)
        problem, namespace = None, obj.metadata.namespace
        others = self._stated[namespace] - (len(before.slowdowns) if before is not None else 0)
        if others + len(profile.slowdowns) > MOST_SLOWDOWNS:
            problem = (
                f"spec.slowdowns: not used, only the class: all of the namespace may be {MOST_SLOWDOWNS} slowdowns"
            )
            profile = profile._replace(slowdowns={})
        return problem, frozenset() if before == profile else self._changed(before, profile)

    def delete(self, obj: CustomObject) -> frozenset[str]:
        """A profile was deleted; returns the workloads whose pods count as others now."""
        return self._changed(self._profiles.get(_key(obj)), None)

    def about(self, owner: str) -> Profile | None:
        """Return the profile of a workload; of several the first by name."""
        there = self._by_target.get(owner)
        return None if there is None else self._profiles[there[0]]

    def all(self) -> list[Profile]:
        """Return all that count, by name: of two about one workload the first."""
        return sorted(self._profiles[there[0]] for there in self._by_target.values())

    def revision(self, name: str) -> int:
        """Return what tells a profile that counts from itself before the model last changed about it."""
        return self._revisions[name]

    def _changed(self, before: Profile | None, now: Profile | None) -> frozenset[str]:
        """Have one profile instead of another of its name; returns the workloads that are to be looked at."""
        if before is None and now is None:
            return frozenset()
        self.version += 1
        targets = {each.target for each in (before, now) if each is not None}
        counted = {target: self.about(target) for target in targets}
        namespace, _, _ = next(iter(targets)).partition("/")
        self._stated[namespace] += (len(now.slowdowns) if now else 0) - (len(before.slowdowns) if before else 0)
        if not self._stated[namespace]:
            del self._stated[namespace]
        if before is not None:
            there = self._by_target[before.target]
            del there[bisect_left(there, before.name)]
            if not there:
                del self._by_target[before.target]
            del self._profiles[before.name]
        if now is not None:
            insort(self._by_target.setdefault(now.target, []), now.name)
            self._profiles[now.name] = now
        return self._told({target for target in targets if self.about(target) != counted[target]}, counted)

    def _told(self, changed: set[str], before: Mapping[str, Profile | None]) -> frozenset[str]:
        """Tell the model which profiles count now; returns these workloads, and all others that it says else of."""
        come = {each.name: each for each in map(self.about, changed) if each is not None}
        gone = {each.name for each in map(before.__getitem__, changed) if each is not None} - come.keys()
        concerned = set(come)
        for name in gone:
            del self._revisions[name]
            concerned |= self.model.state(name, {})
        for name, profile in come.items():
            concerned |= self.model.state(name, profile.slowdowns)
        # Slowdowns beside a name that no profile has yet, or none that counts, concern nobody.
        known = come.keys() | (concerned & self._revisions.keys())
        self._revisions |= dict.fromkeys(known, self.version)
        return frozenset(changed | {self._profiles[name].target for name in known})


def _key(obj: CustomObject) -> str:
    return f"{obj.metadata.namespace}/{obj.metadata.name}"
