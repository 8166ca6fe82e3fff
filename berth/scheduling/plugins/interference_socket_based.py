"""InterferenceSocketBased (score, cost): the published choice "socket-based", by the best socket of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.scheduling.interference import socket_based
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.plugins.interference_by_class import ByClass

if TYPE_CHECKING:
    from berth.api.interference import InterferenceClass
    from berth.scheduling.cache.sockets import Arrangement


class InterferenceSocketBased(ByClass):
    """Judges a node by its best socket, see `berth.scheduling.interference.socket_based`."""

    name = "InterferenceSocketBased"
    policy = InterferencePolicy.SOCKET_BASED

    def judge(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        """Pods that are on no socket may run on any, as where nobody pins; whether a socket has room is not asked."""
        *sockets, unseated = arrangement
        there = [(*own, *unseated) for own in sockets or [()]]
        return socket_based.score(newcomer, there, empty_node=not any(arrangement))
