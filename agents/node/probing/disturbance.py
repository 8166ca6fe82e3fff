"""Whether a round measured the network, or a machine that was too busy to measure.

Every round probes the node's own responder over loopback. That round trip has no network in it: where it takes much
longer than usual, so did all others of that round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median
from typing import Final

FACTOR: Final = 3.0
"""Times the usual round trip from which a round is disturbed."""
MARGIN_MICROSECONDS: Final = 200.0
"""A round that takes less than this above the usual is not disturbed: it moves no figure that anybody uses."""
HISTORY_ROUNDS: Final = 360
"""Rounds that say what is usual: half an hour of them. After half of it, a machine that became slower is usual."""
FEWEST_ROUNDS: Final = 5
"""Rounds without which nothing is usual yet."""


class DisturbanceDetector:
    """What is usual for this machine, and whether a round is."""

    def __init__(self) -> None:
        """Start without knowing anything."""
        self._history: deque[float] = deque(maxlen=HISTORY_ROUNDS)

    def disturbed(self, self_probes: Sequence[int | None]) -> bool:
        """Return whether a round is to be dropped, and remember it.

        Args:
            self_probes: round trips over loopback of this round in microseconds, None for those without an answer.
                A round in which more than half had none is disturbed; without any, nothing speaks against it.
        """
        if not self_probes:
            return False
        answered = [value for value in self_probes if value is not None]
        if 2 * len(answered) < len(self_probes):
            return True
        now = median(answered)
        usual = median(self._history) if len(self._history) >= FEWEST_ROUNDS else None
        # Disturbed rounds too say what is usual: else a slower machine would never measure again.
        self._history.append(now)
        return usual is not None and now > max(FACTOR * usual, usual + MARGIN_MICROSECONDS)
