"""A wall clock that a test steps, of one Python process: the machine's own stays as it is.

The process loads :data:`MODULE` as its ``sitecustomize`` module before anything else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

MODULE: Final = """
import datetime, os, time
_true, _real = time.time, datetime.datetime
def _offset():
    with open(os.environ["CLOCK_FILE"]) as stream:
        return float(stream.read() or 0)
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
"""
"""Shifts what Python says of the time by the seconds in the file that ``CLOCK_FILE`` names."""


class SteppedClock:
    """The clock of processes that have :attr:`environment`."""

    def __init__(self, directory: Path, *, seconds: float = 0.0) -> None:
        """Begin so many seconds ahead; `directory` is the clock's own."""
        directory.mkdir(exist_ok=True)
        (directory / "sitecustomize.py").write_text(MODULE)
        self._file = directory / "clock"
        self.environment = {"PYTHONPATH": str(directory), "CLOCK_FILE": str(self._file)}
        self.step(seconds)

    def step(self, seconds: float) -> None:
        """Be so many seconds ahead of the machine's clock from now on, or behind."""
        # Written beside it: the process may read it at any moment.
        written = self._file.with_suffix(".new")
        written.write_text(str(seconds))
        written.replace(self._file)
