"""What meters, routers and node agents have told of each user of one policy, and who is probed next. No I/O.

Users whose addresses have the same prefix are about as far from every node: agents measure a few of each prefix, and
the others count as these do until they were served often enough themselves (`berth.scheduling.latency.user_table`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from berth.api.latency_exchange import MAX_ADDRESS, UserRoundTrips
from berth.api.latencypolicy import MAX_ASSOCIATIONS, MAX_HASH, MeasurementSource
from berth.scheduling.latency.user_table import UserTable
from berth.scheduling.latency.window import LENGTH, Measurement, Window

AT_ONCE: Final = 5
"""Addresses that agents are asked about at once."""
ROUND: Final = timedelta(seconds=2)
"""How soon others are asked about after those before."""
PROMPTLY: Final = 2
"""Users of a prefix who are probed as soon as it is new: one may not answer."""
REFRESH: Final = timedelta(seconds=60)
"""How often somebody of a prefix is probed while users of it are there."""
TRY_ANOTHER: Final = timedelta(seconds=5)
"""When another is tried where nobody of the prefix has answered."""
ASK_AGAIN: Final = timedelta(minutes=10)
"""How long who did not answer is left alone."""
BOTH: Final = timedelta(seconds=60)
"""How long who comes by IPv4 and IPv6 in turn counts as where the first of them is: browsers choose anew each time."""
MOST_MEMBERS: Final = 2 * MAX_ASSOCIATIONS
"""Users of whom something is kept until those are let go who are not in the table any more."""
MOST_PROBED: Final = 100
"""Users of whom answers are kept: each has some at all nodes, 256 at the most."""
_PREFIXES: Final = {4: 24, 6: 48}


@dataclass(slots=True)
class _Member:
    """What is known of one user."""

    prefix: str
    address: str = ""
    windows: dict[tuple[str, MeasurementSource], Window] = field(default_factory=dict)
    seen: datetime | None = None
    asked: datetime | None = None
    answered: bool = False
    tried_both: bool = False
    """whether it counts as where it is now because nobody answered by the other version of IP"""

    def comes_by_both(self, prefix: str, now: datetime) -> bool:
        """Whether a prefix is of the other version of IP than that by which the user has just been heard of."""
        return self.seen is not None and abs(now - self.seen) <= BOTH and (":" in prefix) is not (":" in self.prefix)


class Crowd:
    """Those heard of last, a thousand at most."""

    def __init__(self, now: datetime) -> None:
        """Begin with nobody."""
        self.table = UserTable(begun=now)
        """how far they are, once :meth:`settle` was called"""
        self._members: dict[str, _Member] = {}
        self._asked: dict[str, str] = {}
        self._silent: dict[str, datetime] = {}
        self._answering: set[str] = set()  # prefixes
        self._round: datetime | None = None
        self._news: dict[tuple[str, str, MeasurementSource], Measurement | None] = {}

    def served(
        self,
        place: str,
        users: Sequence[UserRoundTrips],
        now: datetime,
        source: MeasurementSource,
        time_of: Callable[[UserRoundTrips, datetime], datetime],
    ) -> None:
        """Take in what a meter or a router tells.

        Args:
            place: where they were served: a node, or what shares its measurements.
            users: users of whom there is news.
            now: when it was told.
            source: which of the two it was.
            time_of: when the newest of a user's round trips was.
        """
        for user in sorted(users, key=lambda each: -each.age):
            if not 0 < len(user.user) <= MAX_HASH:
                continue
            time = time_of(user, now)
            known = self._members.get(user.user)
            there = prefix_of(user.address)
            both = known if known is not None and user.user in self.table and known.comes_by_both(there, time) else None
            in_vain = both is not None and self._in_vain(both, time)
            stays = known is not None and (not there or (both is not None and not in_vain))
            prefix = known.prefix if known is not None and stays else there or user.user
            if self.table.see(user.user, prefix, time) or known is None:
                known = self._members[user.user] = _Member(prefix, tried_both=in_vain)
            if prefix == there:
                known.address, known.seen = user.address, time
            window = known.windows.setdefault((place, source), Window())
            for value in user.microseconds[-LENGTH:]:
                window.add(value, time)
            self._news[user.user, place, source] = None
            if len(self._members) > MOST_MEMBERS:
                self._forget()

    def begin_anew(self, place: str) -> None:
        """A pod goes to a place: what users had there before says nothing of what it will gain."""
        for known in self._members.values():
            known.windows.pop((place, MeasurementSource.METER), None)

    def probed(self, place: str, address: str, microseconds: Sequence[int], now: datetime) -> None:
        """Take in what an agent has measured; of who is not there any more, nothing."""
        user = self._asked.get(address, "")
        known = self._members.get(user)
        window = Window()
        for value in microseconds[-LENGTH:]:
            window.add(value, now)
        found = window.measurement(place, MeasurementSource.PROBE, now)
        if found is not None:
            self._silent.pop(address, None)
        if known is not None and known.address == address and found is not None:
            known.answered = True
            self._answering.add(known.prefix)
            self._news[user, place, MeasurementSource.PROBE] = found

    def had_no_turn(self, address: str, now: datetime) -> None:
        """An agent did not come to measure who was asked about: not for that does he count as one who never answers."""
        known = self._members.get(self._asked.get(address, ""))
        if known is not None and known.address == address and not known.answered:
            known.asked = self._silent[address] = now - ASK_AGAIN + REFRESH

    def settle(self, places: Mapping[str, Sequence[str]], now: datetime, expiry: timedelta) -> None:
        """Bring the table up to date, and forget who was not heard of for so long.

        Args:
            places: nodes by place.
            now: the time.
            expiry: how long a user counts after the last request.
        """
        for _ in self.settling(places, now, expiry):
            pass

    def settling(self, places: Mapping[str, Sequence[str]], now: datetime, expiry: timedelta) -> Iterator[None]:
        """Do what `settle` does, in small steps: a thousand users of 32 pods take half a second.

        What is told between two steps is taken in the next time.
        """
        self.table.share({node: place for place, nodes in places.items() for node in nodes})
        told, self._news = self._news, {}
        for (user, place, source), probe in told.items():
            known = self._members.get(user)
            window = known.windows.get((place, source)) if known is not None else None
            found = probe if window is None else window.measurement(place, source, now)
            if found is not None and place in places:
                self.table.observe(user, [found._replace(node=place)])
            yield
        self.table.expire(now, expiry)
        self._forget()
        for known in [*self._members.values()]:
            for key in [key for key, window in known.windows.items() if window.is_over(now)]:
                del known.windows[key]
            yield

    def _forget(self) -> None:
        """Keep nothing of users who are not in the table: as many may come as like, and nobody may look for long."""
        self._members = {user: known for user, known in self._members.items() if user in self.table}
        self._news = {news: probe for news, probe in self._news.items() if news[0] in self._members}
        self._asked = {address: user for address, user in self._asked.items() if user in self._members}
        self._answering = {known.prefix for known in self._members.values() if known.answered}

    def _in_vain(self, known: _Member, now: datetime) -> bool:
        """Whether nobody of where a user is answers agents, and where he also comes from was not tried for that yet.

        Many have an address that answers nobody, most of them that of IPv6, beside one that does.
        """
        asked = self._silent.get(known.address)
        if asked is None or known.tried_both or now - asked < TRY_ANOTHER:
            return False
        return known.prefix not in self._answering

    def ask_anew(self) -> None:
        """Have agents asked about those who did not answer, as if nobody had been: no agent was there."""
        self._silent.clear()
        for known in self._members.values():
            if not known.answered:
                known.asked = None

    def due(self, now: datetime, allowed: Callable[[str], bool]) -> list[str]:
        """Return addresses that agents are to measure now, and remember that they were asked about.

        Args:
            now: the time.
            allowed: whether an address may be probed.
        """
        self._silent = {each: time for each, time in self._silent.items() if time <= now < time + ASK_AGAIN}
        room = MOST_PROBED - sum(known.answered for known in self._members.values())
        found: list[tuple[str, str]] = []
        for members in self._by_prefix().values():
            for user, known in self._due_of(members, now):
                if known.answered or room > 0:
                    room -= not known.answered
                    found.append((user, known.address))
        asked: list[str] = []
        self._round = now
        for user, address in found:
            if len(asked) == AT_ONCE:
                break
            self._members[user].asked = now
            if allowed(address):
                self._asked[address], self._silent[address] = user, now
                asked.append(address)
        return asked

    def due_at(self, now: datetime) -> datetime | None:
        """Return when somebody is to be probed next; None while there is nobody."""
        times = [time for members in self._by_prefix().values() if (time := _next(members, now)) is not None]
        if not times or self._round is None:
            return min(times, default=None)
        return max(min(times), min(self._round, now) + ROUND)

    def _by_prefix(self) -> dict[str, list[tuple[str, _Member]]]:
        """Who may be probed; of those of one address, as behind a NAT, the one who was asked about, or the last.

        That it did not answer is known of an address for as long as it is left alone, whoever of it comes and goes.
        """
        found: dict[str, dict[str, tuple[str, _Member]]] = {}
        for user, known in self._members.items():
            if known.address:
                addresses = found.setdefault(known.prefix, {})
                before = addresses.get(known.address)
                if before is None or _precedence(known) > _precedence(before[1]):
                    addresses[known.address] = user, known
        for addresses in found.values():
            for address, (user, known) in addresses.items():
                if known.asked is None and address in self._silent:
                    known.asked, self._asked[address] = self._silent[address], user
        return {prefix: [*addresses.values()] for prefix, addresses in found.items()}

    def _due_of(self, members: Sequence[tuple[str, _Member]], now: datetime) -> list[tuple[str, _Member]]:
        when = _next(members, now)
        if when is None or when > now:
            return []
        first = all(known.asked is None for _, known in members)
        waiting = [(user, known) for user, known in members if _may_be_asked(known, now)]
        waiting.sort(key=lambda each: (each[1].asked is not None, each[1].asked or now))
        return waiting[: PROMPTLY if first else 1]


def prefix_of(address: str) -> str:
    """Return the network that users are about as far in: /24, or /48 of IPv6; empty for what is no address."""
    if not 0 < len(address) <= MAX_ADDRESS:
        return ""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(ipaddress.ip_network((found, _PREFIXES[found.version]), strict=False))


def _precedence(known: _Member) -> tuple[bool, bool, datetime]:
    """Of whom of an address more is known, or who stays for longer: the first to come is the first to be forgotten."""
    return known.answered, known.asked is not None, known.seen or datetime.min.replace(tzinfo=UTC)


def _may_be_asked(known: _Member, now: datetime) -> bool:
    return known.asked is None or known.answered or known.asked > now or now - known.asked >= ASK_AGAIN


def _next(members: Sequence[tuple[str, _Member]], now: datetime) -> datetime | None:
    """When somebody of a prefix is to be probed next."""
    asked = [min(known.asked, now) for _, known in members if known.asked is not None]
    if not asked:
        return now if members else None
    answered = any(known.answered for _, known in members)
    if not answered and all(known.asked is not None for _, known in members):
        return min(asked) + ASK_AGAIN
    return max(asked) + (REFRESH if answered else TRY_ANOTHER)
