"""The published choice "sparing": those that do harm are put together, so that the others are spared."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from berth.api.interference import InterferenceClass

A, B, C, D = InterferenceClass

_CONTENTIOUS: Final = {D: 0.75, C: 0.5, B: 0.0, A: 0.0}
_QUIET: Final = {A: 0.75, B: 0.5, C: 0.0, D: 0.0}


def score(newcomer: InterferenceClass, residents: Sequence[InterferenceClass]) -> float:
    """Return how good a node is for one more pod, 0 to 1.

    An empty node is best. Otherwise a contentious pod goes to D, then C, another to A, then B; the mean of the
    residents counts.
    """
    if not residents:
        return 1.0
    beside = _CONTENTIOUS if newcomer.contentious else _QUIET
    return fmean(beside[resident] for resident in residents)
