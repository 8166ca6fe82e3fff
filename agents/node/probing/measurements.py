"""What this node has measured: a window for each peer, filled by the rounds that were not disturbed."""

from __future__ import annotations

from collections.abc import Mapping

from agents.node.probing.disturbance import DisturbanceDetector
from agents.node.probing.report import ProbedPeer
from agents.node.probing.rounds import Round
from agents.node.probing.window import Window


class Measurements:
    """Windows by peer."""

    def __init__(self) -> None:
        """Start without peers."""
        self._zones: dict[str, str] = {}
        self._windows: dict[str, Window] = {}
        self._detector = DisturbanceDetector()
        self.rounds_dropped = 0
        """Rounds that the machine was too busy to measure in."""

    def keep(self, zones: Mapping[str, str]) -> None:
        """Measure these peers from now on, given with their zones; what others' windows hold is forgotten."""
        self._zones = dict(zones)
        self._windows = {name: self._windows.get(name) or Window() for name in zones}

    def add(self, measured: Round) -> bool:
        """Add a round's samples; return False if it was disturbed, dropped and counted.

        Samples of nodes that are no peers any more, of a round that was under way when peers changed, are left out.
        """
        if self._detector.disturbed(measured.self_probes):
            self.rounds_dropped += 1
            return False
        for name, samples in measured.samples.items():
            if name in self._windows:
                self._windows[name].add(samples)
        return True

    def peers(self, now: float) -> list[ProbedPeer]:
        """Return what the windows say at ``now``, by the boot clock; peers without a sample are left out."""
        found = []
        for name, window in self._windows.items():
            figures = window.figures(now)
            if figures is not None:
                found.append(ProbedPeer(name, self._zones[name], figures))
        return found
