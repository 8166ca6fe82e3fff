"""Large groups in batches, each planned jointly with those before it placed: time and memory grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

BATCH = 400
"""Pods that are planned in one go; the search's matrices grow with its square."""


def batches(items: Sequence[T], kind: Callable[[T], str]) -> list[list[T]]:
    """Split into batches of about one size, each with its share of every kind, in the given order.

    Up to `BATCH` items stay together. So every batch is an application in small, and pods that call each other meet.
    """
    count = -(-len(items) // BATCH)
    if count < 2:
        return [list(items)] if items else []
    sizes = Counter(kind(item) for item in items)
    seen: Counter[str] = Counter()
    places: list[tuple[float, int]] = []
    for number, item in enumerate(items):
        name = kind(item)
        places.append((seen[name] / sizes[name], number))
        seen[name] += 1
    order = [number for _, number in sorted(places)]
    size = -(-len(items) // count)
    return [[items[number] for number in sorted(order[at : at + size])] for at in range(0, len(items), size)]
