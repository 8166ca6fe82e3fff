"""What meters and node agents have told of the users of each policy: windows of round trips, and whom to probe.

All users of a policy count as one, unless it says that each does (`crowd`). So that nobody's flood costs much, of each
message the newest round trips alone are taken that a window has room for, and of the users the last few addresses alone
are kept. No I/O.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from berth.api.latency_exchange import MAX_ADDRESS, UserRoundTrips
from berth.api.latencypolicy import MeasurementSource
from berth.scheduling.latency.window import LENGTH, MAX_AGE, Measurement, Window
from controllers.latency.crowd import Crowd
from controllers.latency.routers import Routers

PROBED_USERS: Final = 5
"""Users whom agents measure at a time, those heard of last: each gives three round trips, and a window has 15."""


@dataclass(slots=True)
class _Observed:
    """What is known of one policy's users."""

    windows: dict[tuple[str, MeasurementSource], Window] = field(default_factory=dict)
    addresses: OrderedDict[str, None] = field(default_factory=OrderedDict)
    heard: datetime | None = None
    crowd: Crowd | None = None
    routers: Routers = field(default_factory=Routers)


class Observations:
    """By policy, ``namespace/name``."""

    def __init__(self) -> None:
        """Begin without any."""
        self._policies: dict[str, _Observed] = {}

    def served(
        self,
        policy: str,
        place: str,
        users: Sequence[UserRoundTrips],
        now: datetime,
        source: MeasurementSource = MeasurementSource.METER,
        *,
        each: bool = False,
    ) -> None:
        """Take in what a meter or a router tells.

        Args:
            policy: whose users they are.
            place: where they were served: a node, or what shares its measurements.
            users: users of whom there is news.
            now: when it was told; ages are before that.
            source: which of the two it was.
            each: whether each user counts.
        """
        if not users:
            return
        observed = self._policies.setdefault(policy, _Observed())
        if each:
            self.crowd(policy, now).served(place, users, now, source, _time)
        newest = sorted(users, key=lambda user: user.age)[:LENGTH]
        window = observed.windows.setdefault((place, source), Window())
        taken = [(_time(user, now), value) for user in newest for value in user.microseconds[-LENGTH:]]
        for time, value in sorted(taken)[-LENGTH:]:
            window.add(value, time)
        heard = _time(newest[0], now)
        observed.heard = max(heard, self.heard(policy, now) or heard)
        for user in reversed(newest):
            if 0 < len(user.address) <= MAX_ADDRESS:
                observed.addresses[user.address] = None
                observed.addresses.move_to_end(user.address)
        while len(observed.addresses) > PROBED_USERS:
            observed.addresses.popitem(last=False)

    def crowd(self, policy: str, now: datetime) -> Crowd:
        """Return the users of a policy in which each counts."""
        observed = self._policies.setdefault(policy, _Observed())
        if observed.crowd is None:
            observed.crowd = Crowd(now)
        return observed.crowd

    def routers(self, policy: str) -> Routers:
        """Return the routers of a policy, as far as they were heard of."""
        return self._policies.setdefault(policy, _Observed()).routers

    def leave_crowd(self, policy: str) -> None:
        """All users of a policy count as one."""
        if policy in self._policies:
            self._policies[policy].crowd = None

    def probed(self, policy: str, place: str, address: str, microseconds: Sequence[int], now: datetime) -> None:
        """Take in what an agent has measured of an address; of a policy of which no user was heard, nothing."""
        observed = self._policies.get(policy)
        if observed is None:
            return
        if observed.crowd is not None:
            observed.crowd.probed(place, address, microseconds, now)
            return
        window = observed.windows.setdefault((place, MeasurementSource.PROBE), Window())
        for value in microseconds[-LENGTH:]:
            window.add(value, now)

    def had_no_turn(self, policy: str, address: str, now: datetime) -> None:
        """An agent did not come to measure an address; where all users count as one, others are asked with it again."""
        observed = self._policies.get(policy)
        if observed is not None and observed.crowd is not None:
            observed.crowd.had_no_turn(address, now)

    def begin_anew(self, policy: str, place: str) -> None:
        """A pod goes to a place: what users had there before says nothing of what it will gain."""
        if (observed := self._policies.get(policy)) is not None:
            observed.windows.pop((place, MeasurementSource.METER), None)
            if observed.crowd is not None:
                observed.crowd.begin_anew(place)

    def to_probe(self, policy: str, allowed: Callable[[str], bool], now: datetime) -> list[str]:
        """Return addresses that agents are to measure now.

        They are those of the users heard of last, at most :data:`PROBED_USERS`; where each counts, of who is due.

        Args:
            policy: whose users.
            allowed: whether an address may be probed.
            now: the time.
        """
        observed = self._policies.get(policy)
        if observed is None:
            return []
        if observed.crowd is not None:
            return observed.crowd.due(now, allowed)
        return [address for address in observed.addresses if allowed(address)]

    def heard(self, policy: str, now: datetime) -> datetime | None:
        """Return when a user was last heard of; None: not since this process began, or since a clock was set back."""
        observed = self._policies.get(policy)
        heard = observed.heard if observed is not None else None
        return heard if heard is not None and heard <= now else None

    def measurements(self, policy: str, places: Mapping[str, Sequence[str]], now: datetime) -> list[Measurement]:
        """Return what windows say of nodes, what meters say first.

        Args:
            policy: whose users.
            places: nodes by place.
            now: the time. Windows of places that are not there any more, and what a clock said that was set back
                since, are let go.
        """
        observed = self._policies.get(policy)
        if observed is None:
            return []
        found: list[Measurement] = []
        for place, source in sorted(observed.windows):
            said = observed.windows[place, source].measurement(place, source, now)
            if said is None or place not in places or said.time > now:
                del observed.windows[place, source]
            else:
                found += [said._replace(node=node) for node in places[place]]
        return found

    def forget(self, policy: str) -> None:
        """A policy is gone."""
        self._policies.pop(policy, None)


def _time(user: UserRoundTrips, now: datetime) -> datetime:
    """When the newest of a user's round trips was: not later than now, nor longer ago than a window goes back."""
    seconds = user.age if 0 <= user.age <= MAX_AGE.total_seconds() else MAX_AGE.total_seconds()
    return now - timedelta(seconds=seconds)
