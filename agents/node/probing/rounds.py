"""One round: every peer by TCP and ICMP, and the node itself over loopback, in a few threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, NamedTuple

from agents.node import boot_clock
from agents.node.probing.exhaustion import ExhaustedError
from agents.node.probing.icmp import Icmp
from agents.node.probing.pacing import Pacer
from agents.node.probing.request_response import PROBE_TIMEOUT, RequestResponse
from agents.node.probing.window import Method, Sample

TCP_PROBES: Final = 3
"""TCP probes of a peer in a round, and self-probes at its begin and its end."""
ICMP_PROBES: Final = 2
"""ICMP probes of a peer in a round."""
THREADS: Final = 5
"""Peers that are probed at the same time; more of them measure each other."""

_WAITS: Final = 3 * TCP_PROBES + ICMP_PROBES
"""Probe timeouts that a peer can take: of each TCP probe a kept connection that is reset, a new one, and its answer."""


class Target(NamedTuple):
    """A peer, and where its responder is."""

    name: str
    """name of its node"""
    address: str
    """IP address or host name"""
    port: int
    """port of its responder; 0: it has none, ICMP alone is used"""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round measured."""

    self_probes: tuple[int | None, ...]
    """round trips over loopback in microseconds, None for those that were lost"""
    samples: Mapping[str, tuple[Sample, ...]]
    """samples by name of the peer"""


EXHAUSTED: Final = Round((None,), {})
"""A round in which the prober itself had no room for a probe: it could not even reach itself, and is disturbed."""


def paced_seconds(peers: int, rate: float) -> float:
    """Return the seconds that a round takes by its cap alone, where all answer at once.

    Args:
        peers: how many are probed.
        rate: probes a second at most.
    """
    return (peers * (TCP_PROBES + ICMP_PROBES) + 2 * TCP_PROBES) / rate


def longest_round(peers: int, rate: float) -> float:
    """Return the seconds that a round takes at most; arguments as above.

    All answer at the last moment, and each probe on a kept connection is made again on a new one.
    """
    again = (peers + 2) * TCP_PROBES / rate
    return paced_seconds(peers, rate) + again + math.ceil(peers / THREADS) * _WAITS * PROBE_TIMEOUT


class Prober:
    """Runs rounds; keeps a connection to every target from one round to the next."""

    def __init__(self, own: Target, *, rate: float) -> None:
        """Prepare.

        Args:
            own: the own responder, for self-probes; without a port, there are none.
            rate: probes a second at most.
        """
        self._pacer = Pacer(rate)
        self._own = own
        self._icmp = Icmp()
        self._connections: dict[Target, RequestResponse] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="probe")

    def run(self, targets: Iterable[Target], done: Callable[[Target], object] = lambda _target: None) -> Round:
        """Probe all targets once; what takes long are those that do not answer.

        Args:
            targets: whom to probe, each name once.
            done: called in any thread with each target that has been probed.
        """
        wanted = list(targets)
        self._forget_all_but({self._own, *wanted})

        def probe(target: Target) -> tuple[Sample, ...] | None:
            try:
                return (*self._by_tcp(target), *self._by_icmp(target))
            except ExhaustedError:
                return None
            finally:
                done(target)

        try:
            at_begin = self._self_probes()
            # All of them, also after one that could not be probed: threads share connections with the next round.
            found = list(self._threads.map(probe, wanted))
            at_end = self._self_probes()
        except ExhaustedError:
            return EXHAUSTED
        samples = {target.name: item for target, item in zip(wanted, found, strict=True) if item is not None}
        return Round((*at_begin, *at_end), samples) if len(samples) == len(wanted) else EXHAUSTED

    def close(self) -> None:
        """Close all connections."""
        self._threads.shutdown(cancel_futures=True)
        self._forget_all_but(set())

    def _self_probes(self) -> list[int | None]:
        return [sample.microseconds for sample in self._by_tcp(self._own)]

    def _by_tcp(self, target: Target) -> list[Sample]:
        samples: list[Sample] = []
        if not target.port:
            return samples
        connection = self._connections.get(target)
        if connection is None:
            # A peer that resets its connections is probed no faster for it.
            connection = RequestResponse(target.address, target.port, once_more=self._pacer.wait)
            self._connections[target] = connection
        for _ in range(TCP_PROBES):
            self._pacer.wait()
            samples.append(Sample(boot_clock.now(), Method.TCP, connection.probe()))
            if not connection.connected:
                break  # the others would only wait as long
        return samples

    def _by_icmp(self, target: Target) -> list[Sample]:
        samples: list[Sample] = []
        for _ in range(ICMP_PROBES if self._icmp.permitted else 0):
            self._pacer.wait()
            samples.append(Sample(boot_clock.now(), Method.ICMP, self._icmp.probe(target.address)))
        return samples

    def _forget_all_but(self, wanted: set[Target]) -> None:
        for target in self._connections.keys() - wanted:
            self._connections.pop(target).close()
