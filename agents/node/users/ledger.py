"""Which users are being measured, and what is still to be told of them. No I/O."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Final

from agents.node.probing.user_probes import FoundUser, UserTarget
from berth.api.latency_exchange import ProbeAnswer, ProbeOrder
from berth.network.probe_range import ProbeRange

MOST_MEASURED: Final = 100
"""Users that are being measured at most."""
MOST_TOLD: Final = 100
"""Answers of one message at most."""
MOST_PROBES: Final = 10
"""Probes of one order at most."""
PATIENCE: Final = 10.0
"""Seconds after which what was found, or not yet found, is worth nothing: the controller no longer waits for it."""


class Ledger:
    """Orders that are carried out, and answers that wait to be told."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without any; `clock` tells seconds of a monotonic clock."""
        self._clock = clock
        self._range = ProbeRange(())
        self._measured: dict[str, float] = {}
        self._answers: deque[tuple[float, ProbeAnswer]] = deque(maxlen=MOST_MEASURED + MOST_TOLD)

    @property
    def waiting(self) -> bool:
        """Whether there is something to tell."""
        return bool(self._answers)

    def take(self, order: ProbeOrder) -> UserTarget | None:
        """Return what to measure for an order; None where that is answered at once: what is asked is checked."""
        now = self._clock()
        self._measured = {name: time for name, time in self._measured.items() if now < time + PATIENCE}
        if order.id in self._measured:
            return None
        refusal = self._range.refusal(order.address)
        full = refusal is None and len(self._measured) >= MOST_MEASURED
        if full:
            refusal = f"{MOST_MEASURED} users are being measured"
        if refusal is not None:
            self._tell(ProbeAnswer(order.id, refused=refusal, no_turn=full))
            return None
        self._measured[order.id] = now
        return UserTarget(order.id, order.address, max(1, min(order.count, MOST_PROBES)))

    def refuse(self, target: UserTarget, why: str) -> None:
        """Nobody can measure a user."""
        self.found(FoundUser(target.id, (), why))

    def found(self, found: FoundUser) -> None:
        """A user was measured; one that nobody asked for, or too long ago, is left out."""
        if self._measured.pop(found.id, None) is not None:
            self._tell(ProbeAnswer(found.id, found.microseconds, found.refused, found.no_turn))

    def answers(self) -> tuple[ProbeAnswer, ...]:
        """Return what is to be told now, the oldest first."""
        while self._answers and self._answers[0][0] + PATIENCE <= self._clock():
            self._answers.popleft()
        return tuple(answer for _, answer in itertools.islice(self._answers, MOST_TOLD))

    def told(self, answers: tuple[ProbeAnswer, ...]) -> None:
        """These have arrived."""
        arrived = {answer.id for answer in answers}
        self._answers = deque((each for each in self._answers if each[1].id not in arrived), self._answers.maxlen)

    def _tell(self, answer: ProbeAnswer) -> None:
        self._answers.append((self._clock(), answer))
