"""The routers of one policy: which nodes have one that steers, whose requests come there, who is steered. No I/O.

A user is steered by the router that serves him: it sends his next request to the router of another node, which measures
how far that is. Where some node of those that matter has no router that steers, or nothing comes of it, pods explore.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from berth.api.latencypolicy import MAX_HASH

HEARD: Final = timedelta(seconds=75)
"""How long a router counts that was heard of: it tells every five seconds, and of many every half a minute."""
STEERED_USERS: Final = 5
"""Users who are steered at a time, those heard of last; each once in half a minute."""
PATIENCE: Final = timedelta(minutes=2)
"""How long a node is awaited to become known by those who are steered there."""
TRY_AGAIN: Final = timedelta(minutes=10)
"""How long nobody is steered after that: clients may not follow, or send nothing that can be sent elsewhere."""
REMEMBERED: Final = timedelta(days=1)
"""How long it is remembered of a node that it has no router while nobody asks; while somebody does it is anyway."""
RESUMED: Final = timedelta(minutes=1)
"""Pause after which the time of a node begins anew; shorter ones come while agents are awaited."""
INTERVAL: Final = 1.0
"""Seconds between messages of routers while users are steered, so that they hear soon of it and tell soon."""


class Routers:
    """Those that were heard of lately."""

    def __init__(self) -> None:
        """Begin without any."""
        self._nodes: dict[str, datetime] = {}
        self._users: OrderedDict[str, None] = OrderedDict()
        self._target: str | None = None
        self._awaited: tuple[str, datetime] | None = None
        self._paused: datetime | None = None
        self._tried: datetime | None = None
        self._lacking: dict[str, datetime] = {}
        self._others = False

    def heard(self, node: str, users: Iterable[str], now: datetime) -> None:
        """Take note of a router that steers, on a node, and of users whose requests came there."""
        self._nodes[node] = now
        for user in users:
            if not 0 < len(user) <= MAX_HASH:
                continue
            self._users[user] = None
            self._users.move_to_end(user)
        while len(self._users) > STEERED_USERS:
            self._users.popitem(last=False)

    def heard_without(self) -> None:
        """Take note of a router that does not steer: there are such, and none is awaited that nobody has heard of."""
        self._others = True

    def steer_to(self, nodes: Collection[str], now: datetime) -> bool:
        """Return whether users can be steered to all of these nodes, as far as is known."""
        self._nodes = {node: time for node, time in self._nodes.items() if timedelta() <= now - time <= HEARD}
        return bool(nodes) and not self._in_vain(now) and self._nodes.keys() >= set(nodes)

    def awaited(self, nodes: Collection[str], now: datetime, *, known: bool) -> datetime | None:
        """Return until when the routers are awaited that some of these nodes lack; None: none lacks one, or none comes.

        They tell one after another, and those that are there may all tell within :data:`HEARD`. A node without one is
        awaited that long once, and remembered: on some nodes there never is one.

        Args:
            nodes: to which users should be steered.
            now: the time.
            known: whether there were routers before this process began.
        """
        self.steer_to(nodes, now)
        if not self._nodes and (self._others or not known):
            self._lacking.clear()  # the first that comes is not alone
            return None
        without = [node for node in nodes if node not in self._nodes]
        for node in [node for node, since in self._lacking.items() if node in self._nodes or since > now]:
            del self._lacking[node]
        for node in without:
            self._lacking.setdefault(node, now)
        if without:
            asked = set(without)
            self._lacking = {
                node: since for node, since in self._lacking.items() if node in asked or now - since < REMEMBERED
            }
        until = max((self._lacking[node] + HEARD for node in without), default=now)
        return until if now < until and not self._in_vain(now) else None

    def ask(self, node: str | None, now: datetime) -> None:
        """Have users steered to a node from now on; None: to none."""
        self._target = node
        if node is None:
            self._paused = self._paused or now
            return
        paused, self._paused = self._paused, None
        anew = paused is not None and not timedelta() <= now - paused <= RESUMED
        if self._awaited is None or self._awaited[0] != node or self._awaited[1] > now or anew:
            self._awaited = node, now
        elif now - self._awaited[1] >= PATIENCE:
            self._target, self._awaited, self._tried = None, None, now

    def steered(self, node: str) -> dict[str, str]:
        """Return who is to be steered by the router on a node, and where to."""
        if self._target is None or self._target == node:
            return {}
        return dict.fromkeys(self._users, self._target)

    def _in_vain(self, now: datetime) -> bool:
        """Whether users were steered of late, and nothing came of it."""
        return self._tried is not None and timedelta() <= now - self._tried < TRY_AGAIN
