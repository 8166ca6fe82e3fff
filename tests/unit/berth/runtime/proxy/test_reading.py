"""How much is read at a time."""

from __future__ import annotations

import asyncio
from typing import cast

from berth.runtime.proxy.reading import BUFFERED_BYTES, LITTLE_BYTES, Reading


class Transport:
    max_size = 0


def begun(reading: Reading) -> Transport:
    made = Transport()
    reading.begin(cast("asyncio.BaseTransport", made))
    return made


def test_all_read_less_while_memory_is_short() -> None:
    reading = Reading()
    before, gone = begun(reading), begun(reading)
    assert before.max_size == BUFFERED_BYTES
    reading.end(cast("asyncio.BaseTransport", gone))
    reading.read_little(True)
    after = begun(reading)
    assert [each.max_size for each in (before, gone, after)] == [LITTLE_BYTES, BUFFERED_BYTES, LITTLE_BYTES]
    reading.read_little(False)
    assert {each.max_size for each in (before, after)} == {BUFFERED_BYTES}
