"""A wall clock that a test steps, of one Python process, or its machine's suspension: the machine's own stays as it is.

The process loads :data:`MODULE` as its ``sitecustomize`` module before anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support import chosen_constants

MODULE: Final = """
import datetime, os, time
_true, _real, _gettime = time.time, datetime.datetime, time.clock_gettime
def _offsets():
    with open(os.environ["CLOCK_FILE"]) as stream:
        wall, boot = stream.read().split()
    return float(wall), float(boot)
def _offset():
    return _offsets()[0]
class _Kind(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _real)
class Stepped(_real, metaclass=_Kind):
    @classmethod
    def now(cls, tz=None):
        return _real.now(tz) + datetime.timedelta(seconds=_offset())
    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)
datetime.datetime = Stepped
time.time = lambda: _true() + _offset()
time.clock_gettime = lambda which: _gettime(which) + (_offsets()[1] if which == time.CLOCK_BOOTTIME else 0)
"""
"""Shifts what Python says of the time, and of that since the machine's start, by the seconds in the file that
``CLOCK_FILE`` names: two figures, the second after a blank."""


class SteppedClock:
    """The clock of processes that have :attr:`environment`."""

    def __init__(self, directory: Path, *, seconds: float = 0.0, constants: Mapping[str, float] | None = None) -> None:
        """Begin so many seconds ahead; `directory` is the clock's own. Constants are chosen as elsewhere."""
        self._file = directory / "clock"
        chosen = chosen_constants.chosen_constants(directory, **(constants or {}))
        # Before anything that reads it is imported.
        (directory / "sitecustomize.py").write_text(MODULE + chosen_constants.MODULE)
        self.environment = {**chosen, "CLOCK_FILE": str(self._file)}
        self.step(seconds)

    def step(self, seconds: float) -> None:
        """Be so many seconds ahead of the machine's clock from now on, or behind."""
        self._write(seconds, 0.0)

    def suspend(self, seconds: float) -> None:
        """Have the machine been suspended for so long: all clocks but the monotonic one are ahead by that."""
        self._write(seconds, seconds)

    def _write(self, wall: float, boot: float) -> None:
        # Written beside it: the process may read it at any moment.
        written = self._file.with_suffix(".new")
        written.write_text(f"{wall} {boot}")
        written.replace(self._file)
