"""What the controller is told next, and what it knows already. No I/O; times are seconds of the boot clock."""

from __future__ import annotations

import secrets
from itertools import islice
from typing import NamedTuple

from berth.api.latency_exchange import MAX_USERS, RoundTrips, UserRoundTrips
from berth.runtime.measuring.users import User, UserTable


class _Told(NamedTuple):
    """A user in a message, as it was made."""

    user: User
    microseconds: tuple[int, ...]
    measured: float
    total: int
    address: str


class Reports:
    """Messages about the users of a table, one at a time.

    A message that got no answer may have arrived: it is repeated with its number and its figures until it is known to
    have, and only then others follow. What is measured meanwhile waits in the table, the newest of each user.
    """

    def __init__(self, table: UserTable, *, policy: str = "", steers: bool = False, age: float = 300.0) -> None:
        """Prepare.

        Args:
            table: the users.
            policy: LatencyPolicy that a router routes for; empty for a meter.
            steers: whether users can be sent to other routers.
            age: seconds after which a round trip is not told any more.
        """
        self.instance = secrets.token_hex(8)
        """random name of this process"""
        self._table = table
        self._policy = policy
        self._steers = steers
        self._age = age
        self._sequence = 0
        self._under_way: list[_Told] | None = None

    @property
    def waiting(self) -> bool:
        """Whether there is a user of whom there is news."""
        return any(user.untold for user in self._table)

    def message(self, now: float, *, telling: bool, addresses: bool, naming: str = "") -> RoundTrips:
        """Return the message to send now: the one that is under way, or else the next.

        Args:
            now: for the ages in it.
            telling: whether round trips are wanted; else a new message has none.
            addresses: whether addresses are told.
            naming: how users are named.
        """
        if self._under_way is None:
            self._sequence += 1
            self._under_way = self._news() if telling else []
        users = tuple(
            UserRoundTrips(
                told.user.name,
                told.microseconds,
                age=round(max(0.0, now - told.measured), 3),
                address=told.address if addresses else "",
            )
            for told in self._under_way
            if now - told.measured < self._age
        )
        return RoundTrips(self.instance, self._sequence, users, self._policy, self._steers, naming)

    def arrived(self) -> None:
        """Note that the message under way has been answered."""
        for told in self._under_way or ():
            told.user.told = max(told.user.told, told.total)
        self._under_way = None

    def start_anew(self) -> None:
        """Forget what is under way; its number is not used again, and what is in it may be told in another message.

        As after a change of the names that users have, or when it has been heard by somebody who wanted nothing.
        """
        self._under_way = None

    def _news(self) -> list[_Told]:
        """Users of whom there is news, those known for longer first: no flood of newcomers keeps them out."""
        found = (
            _Told(user, untold, user.measured, user.count, user.address)
            for user in self._table
            if (untold := user.untold)
        )
        return list(islice(found, MAX_USERS))
