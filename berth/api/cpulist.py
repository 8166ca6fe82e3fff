"""Lists of CPUs as the kernel and cpusets write them: ``0-3,8,10-11``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

MAX_CPU: Final = 2**16 - 1
"""Greatest number of a CPU: no kernel is built for as many, and a list that names more is not expanded."""
_RANGE: Final = re.compile("([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


def parse_cpulist(text: str) -> frozenset[int]:
    """Return the CPUs that a list names; none for an empty one.

    Raises:
        ValueError: it is no list; the text says which part is wrong.
    """
    found: set[int] = set()
    named = 0
    for part in text.strip().split(",") if text.strip() else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is no CPU and no range; write a list such as 0-3,8")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise ValueError(f"{part!r} ends before it begins; write the lower CPU first")
        if last > MAX_CPU:
            raise ValueError(f"{part!r} is beyond CPU {MAX_CPU}, the greatest there can be")
        named += last - first + 1
        if named > MAX_CPU + 1:
            # A list that names all of them again and again would take seconds, and who writes one need not be a kernel.
            raise ValueError(f"more than {MAX_CPU + 1} CPUs are named; name each once")
        found.update(range(first, last + 1))
    return frozenset(found)


def format_cpulist(cpus: Iterable[int]) -> str:
    """Return CPUs as a list, in order and with ranges, as the kernel writes it.

    >>> format_cpulist([8, 2, 1, 0])
    '0-2,8'
    """
    numbers = sorted(set(cpus))
    if not numbers:
        return ""
    breaks = [place for place, (one, other) in enumerate(pairwise(numbers), start=1) if other != one + 1]
    edges = [0, *breaks, len(numbers)]
    runs = (numbers[first:last] for first, last in pairwise(edges))
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
