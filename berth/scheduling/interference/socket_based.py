"""The published choice "socket-based": the node with the socket whose pods pair best with the newcomer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from berth.api.interference import InterferenceClass
from berth.scheduling.interference.pairing import PairQuality, pair_quality

_SCORES: Final = {PairQuality.BEST: 0.7, PairQuality.WASTEFUL: 0.4, PairQuality.WORST: 0.0}
_EMPTY_SOCKET: Final = 0.8
"""Better than every pair: nobody is there."""


def score(newcomer: InterferenceClass, sockets: Sequence[Sequence[InterferenceClass]], *, empty_node: bool) -> float:
    """Return how good a node is for one more pod, 0 to 1; it is as good as its best socket.

    Args:
        newcomer: class of the pod.
        sockets: classes of the pods on each socket that has room; of several pods the worst pair counts.
        empty_node: whether nobody is on the node, which is best.
    """
    return 1.0 if empty_node else max((socket_score(newcomer, residents) for residents in sockets), default=0.0)


def socket_score(newcomer: InterferenceClass, residents: Sequence[InterferenceClass]) -> float:
    """Return how good a socket is for one more pod, 0 to 1."""
    pairs = (_SCORES[pair_quality(newcomer, resident)] for resident in residents)
    return min(pairs, default=_EMPTY_SOCKET)
