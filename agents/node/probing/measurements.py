"""What this node has measured: a window for each peer, filled by the rounds that were not disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agents.node.probing.disturbance import DisturbanceDetector
from agents.node.probing.report import ProbedPeer
from agents.node.probing.rounds import Round
from agents.node.probing.window import WINDOW_SECONDS, Window

FEWEST_ROUNDS: Final = 5
"""Rounds before anything is said of a peer: they have ten samples or more by either method, and of fewer the p90 is the
greatest. A peer whose agent has just come may answer the first of them late, or not yet."""
LONGEST_WAIT: Final = 20.0
"""Seconds after which it is said all the same, where rounds are rare."""


@dataclass(slots=True)
class _Peer:
    """One node that is measured, or was."""

    window: Window = field(default_factory=Window)
    rounds: int = 0
    """rounds since there were samples without a break"""
    since: float = 0.0
    """when the first of them was, by the boot clock"""


class Measurements:
    """Windows by peer."""

    def __init__(self) -> None:
        """Start without peers."""
        self._zones: dict[str, str] = {}
        self._peers: dict[str, _Peer] = {}
        self._detector = DisturbanceDetector()
        self._looked = 0.0
        self.rounds_dropped = 0
        """Rounds that the machine was too busy to measure in."""

    def keep(self, zones: Mapping[str, str]) -> None:
        """Measure these peers from now on, given with their zones.

        What others' windows hold is kept as long as it counts: a peer whose agent is replaced is gone for some seconds.
        """
        self._zones = dict(zones)

    def add(self, measured: Round) -> bool:
        """Add a round's samples; return False if it was disturbed, dropped and counted.

        Samples of nodes that are no peers any more, of a round that was under way when peers changed, are left out.
        """
        if self._detector.disturbed(measured.self_probes):
            self.rounds_dropped += 1
            return False
        begun = min((sample.time for samples in measured.samples.values() for sample in samples), default=0.0)
        if begun - self._looked >= WINDOW_SECONDS:
            # There was no round for as long, as where the machine was suspended: all that windows hold is too old.
            self._peers.clear()
        for name, samples in measured.samples.items():
            if name in self._zones and samples:
                peer = self._peers.setdefault(name, _Peer(since=samples[0].time))
                peer.window.add(samples)
                peer.rounds += 1
        return True

    def peers(self, now: float) -> list[ProbedPeer]:
        """Return what the windows say at ``now``, by the boot clock; peers of too few rounds are left out."""
        self._looked = now
        figures = {name: peer.window.figures(now) for name, peer in self._peers.items()}
        self._peers = {name: peer for name, peer in self._peers.items() if figures[name] is not None}
        return [
            ProbedPeer(name, zone, said)
            for name, zone in self._zones.items()
            if (said := figures.get(name)) is not None and self._settled(self._peers[name], now)
        ]

    def settling(self, now: float) -> bool:
        """Return whether peers are measured of which nothing can be said yet, nor of any other."""
        return not self.peers(now) and any(name in self._zones for name in self._peers)

    def _settled(self, peer: _Peer, now: float) -> bool:
        return peer.rounds >= FEWEST_ROUNDS or now - peer.since >= LONGEST_WAIT
