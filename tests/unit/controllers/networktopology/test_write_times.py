"""How long ago a write was, while wall clocks differ and jump."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from controllers.networktopology.write_times import WriteTimes

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Clocks:
    """Both clocks of a process."""

    def __init__(self) -> None:
        self.moment, self.wall = 1000.0, NOW
        self.times: WriteTimes[str] = WriteTimes(lambda: self.wall, lambda: self.moment)

    def ago(self, written: datetime) -> float:
        return (self.times.present("net", written) - written).total_seconds()


def test_what_was_there_is_as_old_as_the_wall_clock_says() -> None:
    clocks = Clocks()
    assert clocks.ago(NOW - timedelta(seconds=7)) == 7
    assert clocks.times.present("other", None) == NOW


def test_a_write_that_was_seen_is_as_old_as_the_monotonic_clock_says() -> None:
    clocks = Clocks()
    assert clocks.times.present("net", None) == NOW
    clocks.times.wrote("net")
    clocks.moment += 5
    clocks.wall -= timedelta(days=1)
    written = NOW + timedelta(hours=1)
    assert clocks.ago(written) == 5
    clocks.moment += 20
    assert clocks.ago(written) == 25


def test_a_write_of_another_process_is_of_when_it_was_seen() -> None:
    clocks = Clocks()
    clocks.ago(NOW)
    written = NOW - timedelta(hours=1)
    assert clocks.ago(written) == 0
    clocks.moment += 5
    assert clocks.ago(written) == 5


def test_nothing_is_known_of_what_is_gone() -> None:
    clocks = Clocks()
    clocks.times.wrote("net")
    clocks.times.forget("net")
    clocks.moment += 5
    assert clocks.ago(NOW - timedelta(seconds=7)) == 7
