"""Who is asked next: the pod of a user's node, else the one with the fewest requests under way. No I/O.

All pods are looked at, not two at random. Choosing from two is for counts that are shared and so out of date, where
everybody would run to the same pod; these are the router's own and always true, and a Service has some tens of pods. Of
several with the fewest one is drawn by lot, so that routers that know nothing of each other do not all begin with
the same one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from agents.router.endpoints import Backend
from berth.runtime.proxy.upstream import Address

FIRST_PAUSE: Final = 1.0
"""Seconds for which a pod is left alone that did not answer; twice as long each time in a row."""
LONGEST_PAUSE: Final = 8.0
"""Seconds at most; by then its EndpointSlice says whether it is ready."""


class Choice(NamedTuple):
    """A pod for a request."""

    backend: Backend
    """the pod"""
    near: bool
    """whether it is on the user's node"""


@dataclass(slots=True)
class _Trouble:
    failures: int
    until: float


class Balancer:
    """The pods of the Service, what they have to do, and which of them are in trouble."""

    def __init__(self, clock: Callable[[], float], draw: Callable[[int], int] = random.randrange) -> None:
        """Begin without pods.

        Args:
            clock: tells seconds of a monotonic clock.
            draw: draws a number below another.
        """
        self.backends: tuple[Backend, ...] = ()
        """pods that may be asked"""
        self._clock = clock
        self._draw = draw
        self._under_way: Counter[Address] = Counter()
        self._troubles: dict[Address, _Trouble] = {}
        self._doubtful: set[Address] = set()
        """pods that have closed a connection or talked nonsense instead of an answer, and answered nobody since"""

    def replace(self, backends: Iterable[Backend]) -> set[Address]:
        """Take these pods from now on; returns the addresses of those that are gone."""
        before = {backend.address for backend in self.backends}
        self.backends = tuple(backends)
        after = {backend.address for backend in self.backends}
        self._troubles = {address: trouble for address, trouble in self._troubles.items() if address in after}
        self._doubtful &= after
        return before - after

    def choose(self, node: str | None, failed: Collection[Address] = ()) -> Choice | None:
        """Return the pod to ask; None where there is none.

        Args:
            node: the node that the user is served by; None: any is as good.
            failed: where this request has failed. They are asked again only where there is no other.
        """
        fit = [backend for backend in self.backends if backend.address not in failed] or list(self.backends)
        now = self._clock()
        well = [backend for backend in fit if not self._in_trouble(backend.address, now)] or fit
        near = [backend for backend in well if backend.node == node] if node else []
        found = self._least(near or well)
        return Choice(found, bool(near)) if found is not None else None

    def load(self, address: Address) -> int:
        """Return how many requests are under way to a pod."""
        return self._under_way[address]

    def begin(self, address: Address) -> None:
        """Count a request that is sent to a pod."""
        self._under_way[address] += 1

    def end(self, address: Address) -> None:
        """Count it as done."""
        self._under_way[address] -= 1
        if not self._under_way[address]:
            del self._under_way[address]

    def answered(self, address: Address) -> None:
        """Note that a pod answers."""
        self._troubles.pop(address, None)
        self._doubtful.discard(address)

    def failed(self, address: Address, *, heard: bool = False) -> None:
        """Note that a pod does not. Requests that were under way together fail together, and count once.

        Args:
            address: where the pod is.
            heard: whether it closed the connection instead, or said what is no answer. Once, that may be the fault of
                the request, and says nothing of others.
        """
        if heard and address not in self._doubtful:
            self._doubtful.add(address)
            return
        now, trouble = self._clock(), self._troubles.get(address)
        if trouble is not None and now < trouble.until:
            return
        failures = trouble.failures if trouble else 0
        until = now + min(FIRST_PAUSE * 2.0**failures, LONGEST_PAUSE)
        if any(backend.address == address for backend in self.backends):
            self._troubles[address] = _Trouble(min(failures + 1, 16), until)

    def in_trouble(self, address: Address) -> bool:
        """Return whether a pod is left alone for now."""
        return self._in_trouble(address, self._clock())

    def _in_trouble(self, address: Address, now: float) -> bool:
        trouble = self._troubles.get(address)
        return trouble is not None and now < trouble.until

    def _least(self, backends: list[Backend]) -> Backend | None:
        if not backends:
            return None
        loads = [self._under_way[backend.address] for backend in backends]
        least = min(loads)
        best = [backend for backend, load in zip(backends, loads, strict=True) if load == least]
        return best[self._draw(len(best))]
