"""What node agents are asked to measure, and what came of it. Agents wait for orders; no I/O but that.

An order is one address for one node. It is answered by that node alone, once, and counts as unanswered after a while.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from berth.api.latency_exchange import ProbeAnswer, ProbeOrder
from controllers.latency.intake import Rate

PATIENCE: Final = 5.0
"""Seconds after which an order that nobody has fetched, or answered since, counts as not answered."""
MOST_WAITING: Final = 100
"""Orders that wait for one node at most; of more, the oldest are left out."""
SHARE: Final = 2.5
"""Addresses a second that the policies of one namespace ask about, on average: as many as one of them at most whose
users count each. An agent measures three (``--node-user-rate``), one after another, and leaves out who has waited for
5 s: who has a hundred policies would keep all others' users from being measured."""
SHARE_AT_ONCE: Final = 50.0
"""Addresses of one namespace at once."""

TURN_AWAITED: Final = 60.0
"""Seconds for which a policy waits at most until agents have a turn for its users, before pods explore."""


class Sent(NamedTuple):
    """An order that an agent has got, or will."""

    policy: str
    """whose user it is"""
    node: str
    """whose agent measures"""
    address: str
    """the user's"""


@dataclass(slots=True)
class _Round:
    """What one policy has asked for last."""

    until: float
    answered: bool = False
    fetched: bool = False
    measured: bool = False
    no_turn: bool = False
    ids: set[str] = field(default_factory=set)


class Orders:
    """Orders by node, and rounds of orders by policy."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without any; `clock` tells seconds of a monotonic clock."""
        self._clock = clock
        self._shares = Rate(SHARE, SHARE_AT_ONCE, clock)
        self._waiting: dict[str, dict[str, ProbeOrder]] = {}
        self._news: dict[str, set[asyncio.Event]] = {}
        self._sent: dict[str, Sent] = {}
        self._rounds: dict[str, _Round] = {}
        self._missed: dict[str, frozenset[str]] = {}
        self._come: set[str] = set()
        self._turns: dict[str, float] = {}
        # An agent may tell what another controller had asked for, which counted from one as well.
        self._name = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    def ask(self, policy: str, nodes: Iterable[str], addresses: Iterable[str]) -> None:
        """Have nodes measure their round trips to addresses; what the policy asked for before is no longer awaited."""
        self._end(policy)
        asked = self._rounds[policy] = _Round(self._clock() + PATIENCE)
        nodes, addresses = tuple(nodes), tuple(addresses)
        if nodes and addresses:
            self._shares.spend(_namespace(policy), len(addresses))
        for node, address in itertools.product(nodes, addresses):
            order = ProbeOrder(id=f"{self._name}-{next(self._numbers)}", address=address)
            asked.ids.add(order.id)
            self._sent[order.id] = Sent(policy, node, address)
            waiting = self._waiting.setdefault(node, {})
            waiting[order.id] = order
            if len(waiting) > MOST_WAITING:
                del waiting[next(iter(waiting))]
            for news in self._news.get(node, ()):
                news.set()

    def pause(self, policy: str) -> float:
        """Return the seconds until a policy may ask again, as those of its namespace have had their share; 0: now."""
        return self._shares.pause(_namespace(policy))

    def turn_awaited(self, policy: str, *, due: bool, users: bool = True) -> float:
        """Return for how many more seconds it is worth waiting until agents measure users of a policy; 0: no more.

        They had no turn for them, or `due`: the policy has to ask now, and those of its namespace have had their share.
        Once some agent has measured them nothing is awaited, whether or not they answered. Without `users` nothing is,
        and those who come then are awaited anew.
        """
        if not users:
            self._turns.pop(policy, None)
            return 0.0
        if due and self.pause(policy):
            self._turns.setdefault(policy, self._clock())
        since = self._turns.get(policy)
        return max(0.0, since + TURN_AWAITED - self._clock()) if since is not None else 0.0

    async def wait(self, node: str, seconds: float) -> tuple[ProbeOrder, ...]:
        """Return the orders for a node as soon as there are any; none after that time."""
        self._come.update(policy for policy, nodes in self._missed.items() if node in nodes)
        if not self._waiting.get(node):
            await self._wait(node, seconds)
        found = tuple(self._waiting.pop(node, {}).values())
        for policy in {self._sent[order.id].policy for order in found if order.id in self._sent}:
            self._fetched(self._rounds[policy])
        return found

    def _fetched(self, asked: _Round) -> None:
        """Somebody measures: answers are awaited from now on, unless that was over before anybody came."""
        now = self._clock()
        if not asked.fetched and now < asked.until:
            asked.fetched, asked.until = True, now + PATIENCE

    async def _wait(self, node: str, seconds: float) -> None:
        """Until there is news for a node, or that time is over; nothing is kept of a node whose agent does not come."""
        news = asyncio.Event()
        waiters = self._news.setdefault(node, set())
        waiters.add(news)
        try:
            async with asyncio.timeout(seconds):
                await news.wait()
        except TimeoutError:
            pass
        finally:
            waiters.discard(news)
            if not waiters:
                self._news.pop(node, None)

    def answer(self, node: str, answer: ProbeAnswer) -> Sent | None:
        """Take an answer in; returns the order that it is about, None where nobody asked that node."""
        sent = self._sent.get(answer.id)
        if sent is None or sent.node != node:
            return None
        del self._sent[answer.id]
        asked = self._rounds[sent.policy]
        asked.ids.discard(answer.id)
        asked.answered = asked.answered or bool(answer.microseconds)
        asked.no_turn = asked.no_turn or answer.no_turn
        if not answer.no_turn:
            asked.measured = True
            self._turns.pop(sent.policy, None)
        return sent

    def awaited(self, policy: str) -> bool:
        """Return whether answers are awaited still of what a policy has asked for last."""
        asked = self._rounds.get(policy)
        return asked is not None and bool(asked.ids) and self._clock() < asked.until

    def silent(self, policy: str) -> bool:
        """Return whether users do not answer agents: nobody got an answer, and no more are awaited.

        It is told once a round.
        """
        asked = self._rounds.get(policy)
        if asked is None or asked.answered or (asked.ids and self._clock() < asked.until):
            return False
        self._end(policy)
        if asked.no_turn and not asked.measured:
            self._turns.setdefault(policy, self._clock())
            return False
        return True

    def agents_came(self, policy: str) -> bool:
        """Return whether an agent has come since that nobody fetched what a policy had asked for: it may ask again.

        It is told once. Agents that cannot reach a controller come when they can again.
        """
        if policy not in self._come:
            return False
        self._missed.pop(policy, None)
        self._come.discard(policy)
        return True

    def forget(self, policy: str) -> None:
        """A policy is gone: what it has asked for is no longer awaited."""
        self._end(policy)
        self._missed.pop(policy, None)
        self._come.discard(policy)
        self._turns.pop(policy, None)

    def _end(self, policy: str) -> None:
        """What a policy has asked for is no longer awaited; it is remembered whose agents should have fetched it."""
        asked = self._rounds.pop(policy, None)
        if asked is None:
            return
        if asked.fetched or asked.answered:
            self._missed.pop(policy, None)
            self._come.discard(policy)
        elif asked.ids:
            self._missed[policy] = frozenset(self._sent[order].node for order in asked.ids)
        for order in asked.ids:
            node = self._sent.pop(order).node
            waiting = self._waiting.get(node, {})
            waiting.pop(order, None)
            if not waiting:
                self._waiting.pop(node, None)


def _namespace(policy: str) -> str:
    return policy.partition("/")[0]
