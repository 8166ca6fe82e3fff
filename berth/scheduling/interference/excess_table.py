"""What workloads do to each other in pairs, as an array: asked of the slowdown model once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from berth.scheduling.interference.slowdown import SlowdownModel, Workload

REMEMBERED: Final = 512
"""Workloads whose pairs are remembered, 2 MiB; of more it begins anew."""


class ExcessTable:
    """Pairs of workloads that were asked for."""

    def __init__(self, model: SlowdownModel) -> None:
        """Begin without any."""
        self._model = model
        self._numbers: dict[Workload, int] = {}
        self._known = np.zeros((0, 0))

    def among(self, pods: Sequence[Workload]) -> npt.NDArray[np.float64]:
        """float64[P, P], slowdown less 1 of the pod of each row beside that of each column; 0 beside itself."""
        found = self.between(pods)
        np.fill_diagonal(found, 0.0)
        return found

    def between(self, pods: Sequence[Workload]) -> npt.NDArray[np.float64]:
        """float64[P, P], the same, but beside another of its workload in the diagonal."""
        numbers = np.array(self._numbered(pods), dtype=np.int64)
        pairs = numbers[:, None], numbers
        found = self._known[pairs]
        if np.isnan(found).any():
            by_number = dict(zip(numbers.tolist(), pods, strict=True))  # there are many pods of few workloads
            distinct = np.array(list(by_number))
            for pair in distinct[np.argwhere(np.isnan(self._known[distinct[:, None], distinct]))].tolist():
                self._known[tuple(pair)] = self._model.excess(by_number[pair[0]], by_number[pair[1]])
            found = self._known[pairs]
        return found

    def _numbered(self, workloads: Sequence[Workload]) -> list[int]:
        new = dict.fromkeys(each for each in workloads if each not in self._numbers)
        if len(self._numbers) + len(new) > max(REMEMBERED, len(workloads)):
            self._numbers, self._known, new = {}, np.zeros((0, 0)), dict.fromkeys(workloads)
        for workload in new:
            self._numbers[workload] = len(self._numbers)
        if len(self._numbers) > len(self._known):
            before = len(self._known)
            size = max(64, 2 * before, len(self._numbers))
            grown = np.full((size, size), np.nan)
            grown[:before, :before] = self._known
            self._known = grown
        return [self._numbers[each] for each in workloads]
