"""What time it is by the nodes' clocks, as reports say that have just come in. No I/O.

A controller whose clock is wrong from its start takes every report for too old, or for one of the future. How old a
report is that was there already nobody knows without a clock. One that comes in was written a moment ago.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from berth.api.base import read_timestamp
from berth.kube.probe_reports import Report
from controllers.networktopology.node_medians import MAX_AGE
from controllers.networktopology.sources.probe_measurements import roughly

VOTE_SECONDS: Final = MAX_AGE
"""Seconds for which the report of a node says what time it is: as long as what it says counts. Agents write every 300,
or with the next round of probes after that."""


class ReportedTime:
    """The median of what the clocks of nodes show, where most of those with a report have just written one."""

    def __init__(self) -> None:
        """Start without having heard of any."""
        self._seen: dict[str, tuple[Report, float | None]] = {}
        self._votes: dict[str, tuple[float, float]] = {}
        self._offsets: dict[str, tuple[float, bool]] = {}

    def hear(self, reports: Mapping[str, Report], moment: float) -> None:
        """Take in all reports as they are now, soon after some have come in.

        Args:
            reports: by node.
            moment: the present by the monotonic clock, seconds.
        """
        seen, offsets = {}, {}
        for node, report in reports.items():
            before = self._seen.get(node)
            if before is not None and node in self._offsets:
                offsets[node] = self._offsets[node]
            if before is not None and before[0] is report:
                seen[node] = before
                continue
            newest = _newest(report)
            seen[node] = report, newest
            if newest is not None and (before is None or newest != before[1]):
                offsets[node] = newest - moment, before is not None
            if before is None:
                # Node and report may both be new, or the watch.
                self._votes.pop(node, None)
            elif newest is not None and before[1] is not None and newest > before[1]:
                self._votes[node] = moment, newest - moment
        self._seen, self._offsets = seen, offsets

    def leads(self, now: datetime, moment: float) -> dict[str, float]:
        """Return the seconds by which nodes' clocks were ahead when their last reports came in, by node.

        A clock stays as it was found until the next report: the present moves away from what a report says, the clock
        does not. Of a report that was there already it is not known whether it is old or its clock behind.

        Args:
            now: what the time is held to be.
            moment: the same by the monotonic clock.
        """
        error = moment - now.timestamp()
        return {
            node: offset + error if written else max(0.0, offset + error)
            for node, (offset, written) in self._offsets.items()
        }

    def at(self, moment: float) -> datetime | None:
        """Return the time of the nodes at a moment of the monotonic clock; None if too few say so."""
        since = moment - VOTE_SECONDS
        ahead = [offset for node, (heard, offset) in self._votes.items() if node in self._seen and heard >= since]
        if 2 * len(ahead) <= len(self._seen):
            return None
        try:
            return datetime.fromtimestamp(statistics.median_low(ahead) + moment, UTC)
        except (OverflowError, ValueError):  # somebody has written of the year 9999
            return None


def clock_comparison(error: float) -> str:
    """Say by how many seconds the controller's clock is ahead, in steps, so that the sentence stays the same."""
    direction = "ahead of" if error > 0 else "behind"
    return f"The clock of this controller is more than {roughly(abs(error))} {direction} those of the nodes"


def _newest(report: Report) -> float | None:
    """Return when the last probe of a report was made, in seconds since the epoch."""
    times = (read_timestamp(peer.last_probe_time) for peer in report.status.peers)
    return max((time.timestamp() for time in times if time is not None), default=None)
