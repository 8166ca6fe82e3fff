"""Who is how far from which node: the last measurements of each user, and what others of the same place say.

It is filled again within seconds from meters and agents, which keep the windows, and so is no part of a status.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from berth.api.latencypolicy import MAX_ASSOCIATIONS, MAX_MICROSECONDS, MeasurementSource
from berth.scheduling.latency.knowledge import METER_PRECEDES
from berth.scheduling.latency.window import Measurement

Floats = npt.NDArray[np.float64]
PATIENCE: Final = timedelta(seconds=5)
"""How long a new user's measurements are awaited before others are placed without them."""
AWAITED: Final = 0.1
"""Share of the users that is waited for; one of those that bring a pod to move has to be as great (`per_user`)."""
LONGEST: Final = timedelta(seconds=30)
"""How long new users are awaited in a row: a great share of them may be new at any time, or one of few may come from
two networks in turn."""
RETURNING: Final = timedelta(seconds=30)
"""How long users who have a pod are awaited by a table that has just begun: meters tell of them with each request."""
ENOUGH: Final = 3
"""Round trips from which on a user's own count: one alone may be a spike, and others of the place know better."""
KNOWN_AFTER: Final = timedelta(seconds=2)
"""How long after the first time a user has to be heard of again to be no newcomer any more: made-up ones are not."""
NEWCOMERS: Final = MAX_ASSOCIATIONS // 5
"""Places that newcomers may take from others; beyond that they push out each other."""
_NOBODY: Final[Mapping[str, str]] = {}


class Costs(NamedTuple):
    """Users and how far they are."""

    users: tuple[str, ...]
    """hashes, in the order in which they were heard of"""
    microseconds: Floats
    """float64[u, n], round trip of each to each node; the greatest there is where one node alone is not known"""


@dataclass(slots=True)
class _User:
    place: str
    since: datetime
    seen: datetime
    measured: dict[str, Measurement] = field(default_factory=dict)


class UserTable:
    """The users of a policy, a thousand at most: those heard of last, of whom a flood of newcomers pushes out few."""

    def __init__(self, begun: datetime | None = None) -> None:
        """Begin with nobody; `begun` is when, None for long ago."""
        self._users: OrderedDict[str, _User] = OrderedDict()
        self._newcomers: OrderedDict[str, None] = OrderedDict()
        self._begun = begun
        self._shared: Mapping[str, str] = {}
        self.waiting: datetime | None = None
        """since when new users have been awaited without a break"""

    def __len__(self) -> int:
        """Return how many users there are."""
        return len(self._users)

    def __contains__(self, user: str) -> bool:
        """Return whether a user was heard of."""
        return user in self._users

    def copy(self) -> UserTable:
        """Return another that does not change with this one, for who decides by it beside those who fill it."""
        found = UserTable(self._begun)
        found._shared, found.waiting = self._shared, self.waiting
        for user, known in self._users.items():
            found._users[user] = _User(known.place, known.since, known.seen, dict(known.measured))
        return found

    def see(self, user: str, place: str, now: datetime) -> bool:
        """Take note of a request; return whether the user is new, or is at another place than before.

        Args:
            user: hash of the identity.
            place: prefix of the address, or region: users of one place are about as far from every node.
            now: when.
        """
        known = self._users.get(user)
        new = known is None or known.place != place
        if known is None:
            self._newcomers[user] = None
        if known is None or new:
            known = self._users[user] = _User(place, now, now)
        known.seen = max(known.seen, now)
        self._users.move_to_end(user)
        if user in self._newcomers:
            self._newcomers.move_to_end(user)
            if now - known.since >= KNOWN_AFTER:
                del self._newcomers[user]
        while len(self._users) > MAX_ASSOCIATIONS:
            self._drop()
        return new

    def _drop(self) -> None:
        """Let go of one user."""
        if len(self._newcomers) > NEWCOMERS:
            user, _ = self._newcomers.popitem(last=False)
            del self._users[user]
        else:
            user, _ = self._users.popitem(last=False)
            self._newcomers.pop(user, None)

    def share(self, shared: Mapping[str, str]) -> None:
        """Say under which names nodes are measured, by node; those that are left out are by their own.

        Nodes of a zone may share what is measured: it is kept once, as a zone may have thousands of them. What was
        measured under a name that no node has any more is forgotten.
        """
        if shared == self._shared:
            return
        self._shared, names = shared, frozenset(shared.values())
        for known in self._users.values():
            known.measured = {name: each for name, each in known.measured.items() if name in names}

    def observe(self, user: str, measurements: Iterable[Measurement]) -> None:
        """Take in what was measured of a user; of one who is not known, or was elsewhere then, nothing."""
        known = self._users.get(user)
        if known is None:
            return
        for measurement in measurements:
            before = known.measured.get(measurement.node)
            if measurement.time >= known.since and not (before and _stands(before, measurement)):
                known.measured[measurement.node] = measurement

    def expire(self, now: datetime, expiry: timedelta) -> None:
        """Forget users who were not heard of for so long; what was heard or measured later than now was so now."""
        for known in self._users.values():
            known.since, known.seen = min(known.since, now), min(known.seen, now)
            late = [each for each in known.measured.values() if each.time > now]
            known.measured.update({each.node: each._replace(time=now) for each in late})
        for user in [user for user, known in self._users.items() if now - known.seen > expiry]:
            del self._users[user]
            self._newcomers.pop(user, None)

    def awaited(self, now: datetime, nodes: Iterable[str], former: Mapping[str, str] = _NOBODY) -> datetime | None:
        """Return until when to wait for measurements of new users; None if that is over, or all are there.

        Few new ones among many are not waited for, and others not for long in a row: where some come all the time,
        nothing would ever be decided.

        Args:
            now: the time.
            nodes: those that agents measure from; a place is known once somebody of it was measured from all.
            former: users who have a pod already, and its node; empty where none is there any more. A table that has
                just begun awaits them, and how far they are from there: a plan for those alone who are heard of first,
                or where they are heard of first, would have pods leave the others.
        """
        asked = frozenset(map(self._name, nodes))
        places = {known.place for known in self._users.values() if asked <= known.measured.keys()}
        times = [known.since + PATIENCE for known in self._users.values() if known.place not in places]
        times = [time for time in times if time > now]
        times = self._for_a_while(times if len(times) >= AWAITED * len(self._users) else [], now)
        if self.is_returning(now) and not self._are_back(former):
            times.append(min(self._begun or now, now) + RETURNING)
        return max((time for time in times if time > now), default=None)

    def is_returning(self, now: datetime) -> bool:
        """Return whether it has just begun: of those who are there not all may be known, and not from everywhere."""
        return self._begun is not None and now < min(self._begun, now) + RETURNING

    def _are_back(self, former: Mapping[str, str]) -> bool:
        """Whether users were heard of, and it is known how far they, or others of their place, are from their nodes."""
        measured = {(known.place, name) for known in self._users.values() for name in known.measured}
        for user, node in former.items():
            known = self._users.get(user)
            if known is None or (node and (known.place, self._name(node)) not in measured):
                return False
        return True

    def _for_a_while(self, times: list[datetime], now: datetime) -> list[datetime]:
        """Times until when new users are awaited, no later than for so long in a row."""
        if not times:
            self.waiting = None
            return []
        self.waiting = min(self.waiting or now, now)
        return [min(time, self.waiting + LONGEST) for time in times]

    def measured(self, user: str, node: str) -> Measurement | None:
        """Return what was measured of a user at a node."""
        known = self._users.get(user)
        return known.measured.get(self._name(node)) if known is not None else None

    def figures(self, nodes: Iterable[str]) -> dict[str, list[Measurement]]:
        """Return what was measured at these nodes, of each user at most one."""
        names = {node: self._name(node) for node in nodes}
        found: dict[str, list[Measurement]] = {name: [] for name in names.values()}
        for known in self._users.values():
            for name, measurement in known.measured.items():
                if name in found:
                    found[name].append(measurement)
        return {node: found[name] for node, name in names.items()}

    def seen(self, user: str) -> datetime:
        """Return when a user was last heard of."""
        return self._users[user].seen

    def costs(self, nodes: Sequence[str]) -> Costs:
        """Return how far users are from nodes: as measured thrice or more, else as the median of their place.

        A user of whom neither is known for any of the nodes is left out.
        """
        users, names = list(self._users), [self._name(node) for node in nodes]
        columns = {name: column for column, name in enumerate(dict.fromkeys(names))}
        found = np.full((len(users), len(columns)), np.nan)
        few = np.ones(found.shape, dtype=np.bool_)
        for at, known in enumerate(self._users.values()):
            for name, measurement in known.measured.items():
                column = columns.get(name)
                if column is not None:
                    found[at, column] = measurement.p50
                    few[at, column] = measurement.samples < ENOUGH
        self._infer(found, few)
        there = ~np.isnan(found).all(axis=1)
        found[np.isnan(found)] = MAX_MICROSECONDS
        microseconds = found[np.ix_(there, [columns[name] for name in names])]
        return Costs(tuple(user for user, known in zip(users, there, strict=True) if known), microseconds)

    def _name(self, node: str) -> str:
        """Under which a node is measured."""
        return self._shared.get(node, node)

    def _infer(self, found: Floats, few: npt.NDArray[np.bool_]) -> None:
        by_place: dict[str, list[int]] = {}
        for at, known in enumerate(self._users.values()):
            by_place.setdefault(known.place, []).append(at)
        for rows in by_place.values():
            if len(rows) == 1:
                continue
            part, unsure = found[rows], few[rows]
            found[rows] = np.where(unsure, _medians(part), part)


def _medians(values: Floats) -> Floats:
    """float64[n], the median of what is known of each column of float64[u, n]; nan where nothing is.

    All columns at once: one by one, a thousand users of 100 networks and 256 nodes took half a second.
    """
    # Sorted, what is not known is last.
    ordered, known, columns = np.sort(values, axis=0), (~np.isnan(values)).sum(axis=0), np.arange(values.shape[1])
    middle: Floats = ordered[np.maximum(known - 1, 0) // 2, columns] + ordered[known // 2, columns]
    return middle / 2


def _stands(before: Measurement, measurement: Measurement) -> bool:
    """What a meter says stands for half a minute against what others say, and what is newer in any case."""
    older = measurement.time < before.time
    meter = before.source is MeasurementSource.METER and measurement.source is not MeasurementSource.METER
    return older or (meter and measurement.time - before.time <= METER_PRECEDES)
