"""The published choice "greedy": nodes with pods that do no harm are filled first."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from berth.api.interference import InterferenceClass

A, B, C, D = InterferenceClass

_BESIDE: Final = {A: 0.75, B: 0.5, C: 0.25, D: 0.0}


def score(newcomer: InterferenceClass, residents: Sequence[InterferenceClass]) -> float:
    """Return how good a node is for one more pod, 0 to 1.

    An empty node is best. Otherwise nodes with A come before those with B, C and D, the mean of the residents
    counts; a D finds all others alike.
    """
    if not residents:
        return 1.0
    return 0.0 if newcomer is D else fmean(_BESIDE[resident] for resident in residents)
