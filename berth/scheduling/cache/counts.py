"""Pods counted by the node slots that they are on."""

from __future__ import annotations

Counts = dict[int, int]
"""Pods per node slot; slots without any are absent."""


def add_count(counts: Counts, slot: int, amount: int) -> None:
    """Change a count and drop it at zero."""
    number = counts.get(slot, 0) + amount
    if number:
        counts[slot] = number
    else:
        del counts[slot]
