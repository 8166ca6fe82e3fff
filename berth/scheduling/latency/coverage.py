"""Nodes for k pods so that most users are within their limit, and then all are as near as possible (k-median).

Each user is served from the nearest of the nodes. Few choices are all looked at; of many, nodes are added one by one
and then exchanged as long as that helps. For the mean alone such exchanges end within five times the best (Arya et al.,
Local search heuristics for k-median and facility location problems, SIAM J. Comput. 33, 2004); mostly they find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MOST_CHOICES: Final = 5_000
"""Choices that are all looked at."""


class Worth(NamedTuple):
    """What a choice of nodes is to users; less is better, and the first counts most."""

    beyond: int
    """users beyond the limit"""
    mean: float
    """mean round trip in microseconds"""


def worth(costs: Floats, nodes: Sequence[int], limit: float) -> Worth:
    """Return what a choice is worth.

    Args:
        costs: float64[u, n], round trip of each user to each node in microseconds.
        nodes: the choice, by number; at least one.
        limit: round trip in microseconds that users should have at most.
    """
    nearest = costs[:, list(nodes)].min(axis=1)
    return Worth(int((nearest > limit).sum()), float(nearest.mean()))


def best_nodes(costs: Floats, candidates: Sequence[int], count: int, limit: float) -> tuple[int, ...]:
    """Return the best choice that is found, in ascending order; all candidates where there are no more than `count`.

    Args:
        costs: float64[u, n], round trip of each user to each node in microseconds; u > 0.
        candidates: nodes to choose from, by number.
        count: how many to choose; at least one.
        limit: round trip in microseconds that users should have at most.
    """
    if len(candidates) <= count:
        return tuple(sorted(candidates))
    if comb(len(candidates), count) <= MOST_CHOICES:
        return _all(costs, candidates, count, limit)
    return exchanged(costs, candidates, count, limit)


def extended(
    costs: Floats, nodes: Sequence[int], candidates: Sequence[int], count: int, limit: float
) -> tuple[int, ...]:
    """Return a choice with others added one by one, each the best beside those before, until there are `count`.

    Args:
        costs: float64[u, n], round trip of each user to each node in microseconds; u > 0.
        nodes: the choice so far, by number.
        candidates: nodes that may be added, by number.
        count: how many there should be; fewer where there are no more candidates.
        limit: round trip in microseconds that users should have at most.
    """
    chosen = list(nodes)
    nearest = costs[:, chosen].min(axis=1, initial=np.inf)
    while len(chosen) < count:
        others = [each for each in candidates if each not in chosen]
        if not others:
            break
        added, _ = _one_more(costs, nearest, others, limit)
        chosen.append(added)
        nearest = np.minimum(nearest, costs[:, added])
    return tuple(chosen)


def exchanged(costs: Floats, candidates: Sequence[int], count: int, limit: float) -> tuple[int, ...]:
    """Return a choice that no exchange of one node makes better; arguments as of `best_nodes`, with more candidates."""
    chosen = list(extended(costs, (), candidates, count, limit))
    reached = worth(costs, chosen, limit)
    while True:
        others = [each for each in candidates if each not in chosen]
        tries: list[tuple[Worth, list[int]]] = []
        for at in range(count):
            rest = [*chosen[:at], *chosen[at + 1 :]]
            added, value = _one_more(costs, costs[:, rest].min(axis=1, initial=np.inf), others, limit)
            tries.append((value, [*rest, added]))
        value, found = min(tries, key=itemgetter(0))
        if not _better(value, reached):
            return tuple(sorted(chosen))
        chosen, reached = found, value


def _one_more(costs: Floats, nearest: Floats, others: Sequence[int], limit: float) -> tuple[int, Worth]:
    """The node that is best beside those from which users are that far, and what they are worth with it.

    All others at once: one by one, a thousand users, 256 nodes and 32 pods took nine seconds.
    """
    far = np.minimum(costs.T[others], nearest)
    beyond, mean = (far > limit).sum(axis=1), far.mean(axis=1)
    best = int(np.lexsort((mean, beyond))[0])
    return others[best], Worth(int(beyond[best]), float(mean[best]))


def _all(costs: Floats, candidates: Sequence[int], count: int, limit: float) -> tuple[int, ...]:
    choices = np.array(list(combinations(sorted(candidates), count)))
    nearest = np.full((len(choices), len(costs)), np.inf)
    for column in range(count):
        np.minimum(nearest, costs.T[choices[:, column]], out=nearest)
    found = np.lexsort((nearest.mean(axis=1), (nearest > limit).sum(axis=1)))[0]
    return tuple(int(each) for each in choices[found])


def _better(one: Worth, other: Worth) -> bool:
    """Less by more than rounding, so that exchanges end."""
    return (one.beyond, one.mean) < (other.beyond, other.mean * (1 - 1e-12))
