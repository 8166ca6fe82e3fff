"""InterferenceGreedy (score, cost): the published choice "greedy", nodes with pods that do no harm first."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from berth.scheduling.interference import greedy
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.plugins.interference_by_class import ByClass

if TYPE_CHECKING:
    from berth.api.interference import InterferenceClass
    from berth.scheduling.cache.sockets import Arrangement


class InterferenceGreedy(ByClass):
    """Judges a node by the classes of all its pods, see `berth.scheduling.interference.greedy`."""

    name = "InterferenceGreedy"
    policy = InterferencePolicy.GREEDY

    def judge(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        """Whatever socket they are on."""
        return greedy.score(newcomer, list(chain.from_iterable(arrangement)))
