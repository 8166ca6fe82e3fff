"""Who is how far from which node: the last measurements of each user, and what others of the same place say.

It is filled again within seconds from meters and agents, which keep the windows, and so is no part of a status.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
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

ENOUGH: Final = 3
"""Round trips from which on a user's own count: one alone may be a spike, and others of the place know better."""


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
    nodes: dict[str, Measurement] = field(default_factory=dict)


class UserTable:
    """The users of a policy; those heard of last, a thousand at most."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._users: OrderedDict[str, _User] = OrderedDict()

    def see(self, user: str, place: str, now: datetime) -> bool:
        """Take note of a request; return whether the user is new, or is at another place than before.

        Args:
            user: hash of the identity.
            place: prefix of the address, or region: users of one place are about as far from every node.
            now: when.
        """
        known = self._users.get(user)
        new = known is None or known.place != place
        if known is None or new:
            known = self._users[user] = _User(place, now, now)
        known.seen = max(known.seen, now)
        self._users.move_to_end(user)
        while len(self._users) > MAX_ASSOCIATIONS:
            self._users.popitem(last=False)
        return new

    def observe(self, user: str, measurements: Iterable[Measurement]) -> None:
        """Take in what was measured of a user; of one who is not known, or was elsewhere then, nothing."""
        known = self._users.get(user)
        if known is None:
            return
        for measurement in measurements:
            before = known.nodes.get(measurement.node)
            if measurement.time >= known.since and not (before and _stands(before, measurement)):
                known.nodes[measurement.node] = measurement

    def expire(self, now: datetime, expiry: timedelta) -> None:
        """Forget users who were not heard of for so long; what was heard or measured later than now was so now."""
        for known in self._users.values():
            known.since, known.seen = min(known.since, now), min(known.seen, now)
            late = [each for each in known.nodes.values() if each.time > now]
            known.nodes.update({each.node: each._replace(time=now) for each in late})
        for user in [user for user, known in self._users.items() if now - known.seen > expiry]:
            del self._users[user]

    def awaited(self, now: datetime) -> datetime | None:
        """Return until when to wait for measurements of new users; None if that is over, or all are there."""
        places = {known.place for known in self._users.values() if len(known.nodes) > 1}
        times = [known.since + PATIENCE for known in self._users.values() if known.place not in places]
        return max((time for time in times if time > now), default=None)

    def seen(self, user: str) -> datetime:
        """Return when a user was last heard of."""
        return self._users[user].seen

    def costs(self, nodes: Sequence[str]) -> Costs:
        """Return how far users are from nodes: as measured thrice or more, else as the median of their place.

        A user of whom neither is known for any of the nodes is left out.
        """
        users = list(self._users)
        found = np.full((len(users), len(nodes)), np.nan)
        few = np.ones(found.shape, dtype=np.bool_)
        for at, known in enumerate(self._users.values()):
            for column, node in enumerate(nodes):
                if node in known.nodes:
                    found[at, column] = known.nodes[node].p50
                    few[at, column] = known.nodes[node].samples < ENOUGH
        self._infer(found, few)
        there = ~np.isnan(found).all(axis=1)
        found[np.isnan(found)] = MAX_MICROSECONDS
        return Costs(tuple(user for user, known in zip(users, there, strict=True) if known), found[there])

    def _infer(self, found: Floats, few: npt.NDArray[np.bool_]) -> None:
        by_place: dict[str, list[int]] = {}
        for at, known in enumerate(self._users.values()):
            by_place.setdefault(known.place, []).append(at)
        for rows in by_place.values():
            part, unsure = found[rows], few[rows]
            for column in np.flatnonzero(unsure.any(axis=0)):
                values = part[~np.isnan(part[:, column]), column]
                if values.size:
                    part[unsure[:, column], column] = np.median(values)
            found[rows] = part


def _stands(before: Measurement, measurement: Measurement) -> bool:
    """What a meter says stands for half a minute against what others say, and what is newer in any case."""
    older = measurement.time < before.time
    meter = before.source is MeasurementSource.METER and measurement.source is not MeasurementSource.METER
    return older or (meter and measurement.time - before.time <= METER_PRECEDES)
