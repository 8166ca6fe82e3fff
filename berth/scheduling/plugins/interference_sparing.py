"""InterferenceSparing (score, cost): the published choice "sparing", those that do harm are put together."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from berth.scheduling.interference import sparing
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.plugins.interference_by_class import ByClass

if TYPE_CHECKING:
    from berth.api.interference import InterferenceClass
    from berth.scheduling.cache.sockets import Arrangement


class InterferenceSparing(ByClass):
    """Judges a node by the classes of all its pods, see `berth.scheduling.interference.sparing`."""

    name = "InterferenceSparing"
    policy = InterferencePolicy.SPARING

    def judge(self, newcomer: InterferenceClass, arrangement: Arrangement) -> float:
        """Whatever socket they are on."""
        return sparing.score(newcomer, list(chain.from_iterable(arrangement)))
