"""How many objects a page of a list asks for: no more than come to some megabytes. No I/O.

Anybody may make objects of a megabyte, and the API server counts a page in objects: 500 such are 750 MB, three times as
much while they are read, and more than a controller or an agent may have.
"""

from __future__ import annotations

from typing import Final

from berth.kube.http_answer import LARGEST_BODY

LIST_PAGE: Final = 500
"""Objects of a page at the most."""
LARGEST_PAGE: Final = 2**24
"""Bytes of a page; a larger one is broken off, and asked for with fewer objects."""
USUAL_PAGE: Final = LARGEST_PAGE // 2
"""Bytes that the next page may come to, by the mean of the one before."""
PAGE_GROWTH: Final = 4
"""Factor by which pages are larger after a list has expired between two: larger ones take less time together."""
_SHRINKAGE: Final = 8


class PageSize:
    """The size of the next page of one list."""

    def __init__(self, most: int, *, factor: int = 1) -> None:
        """So many objects at the most, and so many times what is usual."""
        self._most = most * factor
        self._factor = factor
        self.limit = self._most
        """objects to ask for"""

    @property
    def largest(self) -> int:
        """Bytes that the page may have; of a single object as many as any answer."""
        return LARGEST_BODY if self.limit == 1 else min(LARGEST_BODY, LARGEST_PAGE * self._factor)

    def shrink(self) -> bool:
        """Ask for fewer objects, as the page was too large; False where it has had a single one."""
        asked, self.limit = self.limit, max(1, self.limit // _SHRINKAGE)
        return asked > 1

    def read(self, count: int, size: int) -> None:
        """A page of so many objects had so many bytes."""
        usual = USUAL_PAGE * self._factor * count // max(1, size)
        self.limit = max(1, min(self._most, usual)) if count else self._most
