"""The users that a meter has seen lately and their round trips; so many at most, whoever comes."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from berth.api.latency_exchange import MAX_SAMPLES
from berth.api.latencypolicy import MAX_MICROSECONDS

NEWCOMERS: Final = 0.2
"""Share of the places that is for users who have not come back yet, whoever else is there."""
COME_BACK_SECONDS: Final = 1.0
"""Seconds after the first request of a user from which on another makes the user a known one."""
KEPT_SECONDS: Final = 60.0
"""Seconds without a request for which a known user gives way to nobody."""


@dataclass(slots=True, eq=False)
class User:
    """What is known of one user; times are seconds of one clock that is never set and goes on in suspension."""

    name: str
    """keyed hash of the identity"""
    first: float
    """when the first request came"""
    last: float
    """when the last one came"""
    address: str = ""
    """where that came from"""
    microseconds: array[int] = field(default_factory=lambda: array("I"))
    """the newest round trips, oldest first"""
    measured: float = 0.0
    """when the newest of them was"""
    count: int = 0
    """round trips that were measured, those dropped since among them"""
    told: int = 0
    """how many of them the controller has been told of, or are too old for it"""
    change: int = 0
    """number of the table's last change that is about this user"""

    @property
    def untold(self) -> tuple[int, ...]:
        """Round trips that the controller does not know, oldest first."""
        left = min(self.count - self.told, len(self.microseconds))
        return tuple(self.microseconds[len(self.microseconds) - left :])


class UserTable:
    """Users by name.

    Whoever makes up identities gets none of those who are there out of it: newcomers have a share of the places to
    themselves, and what known users leave of the others, and push out each other. A user who comes back is a known one.
    Of these the one who has been silent longest gives way, and nobody who was there within :data:`KEPT_SECONDS`: while
    all were, newcomers stay newcomers. (A segmented LRU cache whose protected part has a least age.)
    """

    def __init__(self, places: int = 10_000, *, age: float = 300.0) -> None:
        """Prepare.

        Args:
            places: users at most, 5 or more.
            age: seconds without a request after which a user is forgotten.
        """
        self._new: OrderedDict[str, User] = OrderedDict()
        self._known: OrderedDict[str, User] = OrderedDict()
        self._places = places
        self._most_known = places - max(1, int(places * NEWCOMERS))
        self._age = age
        self.changes = 0
        """round trips that were recorded since the start"""
        self.pushed_out = 0
        """users who had to give way to others"""

    def __len__(self) -> int:
        """Users that are there."""
        return len(self._new) + len(self._known)

    def __iter__(self) -> Iterator[User]:
        """All of them: first those known, of these first who has been silent longest, then newcomers likewise."""
        return chain(self._known.values(), self._new.values())

    def seen(self, name: str, now: float, *, address: str = "") -> User:
        """Note a request of a user, and return the user."""
        user = self._known.get(name)
        if user is not None:
            self._known.move_to_end(name)
        else:
            user = self._newcomer(name, now)
        user.last, user.address = now, address
        return user

    def record(self, user: User, microseconds: int, now: float) -> bool:
        """Note a round trip of a user; False if it cannot be one."""
        if not 1 <= microseconds <= MAX_MICROSECONDS:
            return False
        user.microseconds.append(microseconds)
        if len(user.microseconds) > MAX_SAMPLES:
            del user.microseconds[0]
        user.count += 1
        user.measured = now
        self.changes += 1
        user.change = self.changes
        return True

    def forget_old(self, now: float) -> None:
        """Forget who has not come for as long as users are kept."""
        for users in (self._new, self._known):
            while users and next(iter(users.values())).last <= now - self._age:
                users.popitem(last=False)

    def clear(self) -> None:
        """Forget everybody, as after a change of what users are told from each other by."""
        self._new.clear()
        self._known.clear()

    def _newcomer(self, name: str, now: float) -> User:
        user = self._new.get(name)
        if user is None:
            self.forget_old(now)
            if len(self) >= self._places:
                self._new.popitem(last=False)
                self.pushed_out += 1
            user = self._new[name] = User(name, now, now)
        elif now - user.first >= COME_BACK_SECONDS and self._has_place(now):
            del self._new[name]
            self._known[name] = user
        else:
            self._new.move_to_end(name)
        return user

    def _has_place(self, now: float) -> bool:
        """Whether there is a place for one more known user; somebody may lose his for that."""
        if len(self._known) < self._most_known:
            return True
        if next(iter(self._known.values())).last > now - KEPT_SECONDS:
            return False
        self._known.popitem(last=False)
        self.pushed_out += 1
        return True
