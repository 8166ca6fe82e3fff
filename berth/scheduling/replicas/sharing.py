"""What pods on one node do to each other, as a problem in counts states it: they share sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Residents = tuple[int, ...]
"""Numbers of planned pods on a node, one a pod, ascending; pods with one number are the same to each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Pods that mind each other on a node, and nodes that are alike to them."""

    kind: npt.NDArray[np.int64]
    """int64[N], each node's kind, a row of `alone`'s second axis: nodes alike in all that matters to newcomers"""
    number: Mapping[int, int]
    """what its pods are to others, a row of `alone`, by pod set; a pod set that is absent does not matter to anybody"""
    alone: npt.NDArray[np.float64]
    """float64[numbers, kinds], what one pod adds on a node of each kind, nothing else being planned there; weighted"""
    together: Callable[[int, Residents], float]
    """what two or more pods add together on a node of a kind, weighted; less than nothing where they are better company
    than those who were expected. It says the same whenever it is asked the same."""
    highest: float
    """what one pod adds at about the most"""
