"""What was compiled last, within bounds of memory: by how much it was compiled from, not by how many there are.

An object may be a megabyte large, and a tenant may create another one every second.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from operator import itemgetter
from typing import Generic, TypeVar

from cachetools import LRUCache

T = TypeVar("T")

ENTRY_BYTES = 1024
"""What a result counts beside the fields that it was made from."""


def digest(encoded: bytes) -> bytes:
    """16 bytes that stand for encoded fields of any length."""
    return blake2b(encoded, digest_size=16).digest()


class Memo(Generic[T]):
    """Results by the encoded fields that they depend on; those used last are remembered."""

    def __init__(self, size: int) -> None:
        """Begin without any; at most `size` bytes of fields count, ENTRY_BYTES for each result included."""
        self._results: LRUCache[bytes, tuple[int, T]] = LRUCache(maxsize=size, getsizeof=itemgetter(0))

    def __len__(self) -> int:
        """Number of results that are remembered."""
        return len(self._results)

    def get(self, fields: bytes, make: Callable[[bytes], T]) -> T:
        """The result of these fields; `make` is called with their digest where it is not remembered."""
        key = digest(fields)
        found = self._results.get(key)
        if found is None:
            found = len(fields) + ENTRY_BYTES, make(key)
            if found[0] <= self._results.maxsize:
                self._results[key] = found
        return found[1]
