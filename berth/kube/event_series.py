"""Which notes about an object are worth a write: series of Events, as client-go's recorder keeps them. No I/O.

Notes of one object, reason and action are one series, whatever their texts. The API server lets nobody change the text
of an Event, so another text is another Event:

- the first note of a series and the first few other texts after it are written at once;
- from then on a series is written at intervals that double up to half an hour: counted in its Event while the text is
  the same, as a new Event with the text of that moment otherwise;
- after a silence of some minutes it begins anew.

So a pod that waits for a day costs some fifty writes, its Event never runs out meanwhile (the API server keeps Events
for an hour after the last write), and what an Event says is never older than half an hour.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

FIRST_INTERVAL = 30.0
"""Seconds before a series is written for the first time after its note was."""
LONGEST_INTERVAL = 1800.0
"""Seconds between writes of a series at most, half of the time that an Event lives."""
SILENCE = 360.0
"""Seconds without a note after which a series begins anew."""
MAX_TEXTS = 5
"""Other texts that are written at once."""
MAX_SERIES = 20_000
"""Series that are remembered, those noted last."""


@dataclass(slots=True)
class Series:
    """How often notes of one kind came, and when that is worth a write."""

    event_name: str
    """metadata.name of the Event; another text has another"""
    last: float
    """monotonic time of the last note"""
    next_write: float
    """monotonic time from which the next note is written"""
    interval: float = FIRST_INTERVAL
    """seconds from one write to the next"""
    count: int = 1
    """notes since the first, whatever their texts"""
    texts: int = 0
    """other texts that were written at once"""
    written: bool = False
    """True once the Event is known to exist"""

    def due(self, event_name: str, now: float) -> bool:
        """Count one more note; True if it should be written now."""
        self.count += 1
        if now - self.last > SILENCE:
            self.interval, self.texts = FIRST_INTERVAL, 0
        self.last = now
        other = event_name != self.event_name
        if now >= self.next_write:
            self.interval = min(self.interval * 2, LONGEST_INTERVAL)
        elif other and self.texts < MAX_TEXTS:
            self.texts += 1
        else:
            return False
        self.next_write = now + self.interval
        if other:
            self.event_name, self.written = event_name, False
        return True


class SeriesMemory:
    """The series noted last, at most :data:`MAX_SERIES` of them."""

    def __init__(self) -> None:
        """Remember none yet."""
        self._series: OrderedDict[Hashable, Series] = OrderedDict()

    def __len__(self) -> int:
        """Number of series."""
        return len(self._series)

    def due(self, key: Hashable, event_name: str, now: float) -> Series | None:
        """Count a note of a series; returns the series if the note should be written now.

        Args:
            key: identity of the series: object, reason and action.
            event_name: name of the Event that has the note's text.
            now: monotonic time, seconds.
        """
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(event_name, last=now, next_write=now + FIRST_INTERVAL)
            while len(self._series) > MAX_SERIES or self._forgotten(now):
                self._series.popitem(last=False)
            return series
        self._series.move_to_end(key)
        return series if series.due(event_name, now) else None

    def _forgotten(self, now: float) -> bool:
        """Whether the series that was silent longest has been so for twice the longest interval: its Event is gone."""
        oldest = next(iter(self._series.values()))
        return now - oldest.last > 2 * LONGEST_INTERVAL
