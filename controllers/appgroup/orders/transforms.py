"""What the Alternate and Reverse algorithms make of a base order."""

from __future__ import annotations

from collections.abc import Sequence


def alternate(order: Sequence[int]) -> list[int]:
    """Return the first, the last, the second, the last but one, ... of ``order``.

    >>> alternate([1, 2, 3, 4, 5])
    [1, 5, 2, 4, 3]
    """
    middle = (len(order) + 1) // 2
    result: list[int] = []
    for front in range(middle):
        result.append(order[front])
        back = len(order) - 1 - front
        if back > front:
            result.append(order[back])
    return result


def reverse(order: Sequence[int]) -> list[int]:
    """Return ``order`` backwards: what is depended on comes before its dependents."""
    return list(reversed(order))
