"""``python -m bench.meter.memory USERS``: KiB that so many users take with all round trips that are kept of each."""

from __future__ import annotations

import sys

import psutil

from berth.api.latency_exchange import MAX_SAMPLES, hash_identity
from berth.runtime.measuring.users import UserTable


def fill(users: int) -> UserTable:
    """A table of so many users."""
    table = UserTable(users)
    for number in range(users):
        name, address = hash_identity(b"k" * 32, str(number)), f"198.51.{number // 256}.{number % 256}"
        for step in range(MAX_SAMPLES):
            table.record(table.seen(name, float(step), address=address), 20_000 + number + step, float(step))
    return table


if __name__ == "__main__":
    fill(100)
    _process = psutil.Process()
    _before = _process.memory_info().rss
    _table = fill(int(sys.argv[1]))
    print(len(_table), (_process.memory_info().rss - _before) // 1024)
