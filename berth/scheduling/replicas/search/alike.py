"""Columns that are alike, for exact search: of ways that differ only in which of these they use, one is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from berth.scheduling.replicas.columns import classes
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Ints

LARGEST: Final = 2**62
"""Number that is spelled at most; of what tables say of a column more is numbered anew."""


def kinds(model: Model) -> Ints:
    """int64[K], equal for columns that the problem does not tell apart and where no replica is; 0 to the last kind."""
    kind = classes(model.problem)[model.columns]
    there = (model.placed + model.leaving).any(axis=0)
    return _numbered(np.where(there, np.arange(model.size), np.unique(kind, return_inverse=True)[1] + model.size))


def told_apart(kind: Ints, planned: Iterable[Floats]) -> Ints:
    """Kinds of columns once pods of further sets, float64[K] each, are on them."""
    for counts in planned:
        kind = _numbered(kind * (int(counts.max(initial=0.0)) + 1) + counts.astype(np.int64))
    return kind


def one_of_each(kind: Ints, tables: Sequence[Floats], numbers: Iterable[int]) -> Iterator[int]:
    """Of ways that put as many pods on columns of each kind, the first.

    Args:
        kind: int64[K], as `kinds` has them.
        tables: float64[P, K], pods of each set by way.
        numbers: ways, in the order in which they are looked at.
    """
    if kind.max(initial=-1) + 1 == len(kind):
        yield from numbers
        return
    spelled, beyond = np.zeros_like(tables[0], dtype=np.int64) + kind, int(kind.max()) + 1
    for table in tables:
        more = int(table.max(initial=0.0)) + 1
        if beyond * more > LARGEST:
            spelled = _numbered(spelled).reshape(spelled.shape)
            beyond = int(spelled.max(initial=0)) + 1
        spelled, beyond = spelled * more + table.astype(np.int64), beyond * more
    spelled.sort(axis=1)
    seen = set[bytes]()
    for number in numbers:
        way = spelled[number].tobytes()
        if way not in seen:
            seen.add(way)
            yield number


def _numbered(kind: Ints) -> Ints:
    number: Ints = np.unique(kind, return_inverse=True)[1].reshape(-1)
    return number
