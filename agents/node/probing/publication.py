"""When a report is worth writing: thousands of nodes write to one API server."""

from __future__ import annotations

from typing import Final

from agents.node.probing.window import WINDOW_SECONDS
from berth.api.probereport import BandwidthReport, PeerReport, ProbeReportStatus

WRITE_SECONDS: Final = 30.0
"""Seconds between two writes at least."""
HEARTBEAT_SECONDS: Final = 300.0
"""Seconds after which a report is written though nothing changed: it says that the agent is alive."""
LATENCY_SHARE: Final = 0.1
"""Share of a p90 by which it must change."""
LATENCY_MICROSECONDS: Final = 100
"""And this much: a tenth of a millisecond is the least that costs tell apart, and below it all is noise."""
LOSS_PER_MILLE: Final = 50
"""Loss must change by as much: one echo of a window is 28."""
BANDWIDTH_SHARE: Final = 0.1
"""Share of the link by which mean or deviation of its use must change; of the greater use where the link is unknown."""
BANDWIDTH_BITS: Final = 10_000_000
"""And by so many bit/s."""
MORE_SAMPLES: Final = 1.5
"""Times the samples of a peer by which a report says more than the one before it, once a whole window is behind it."""


class Publication:
    """What was written last, and when."""

    def __init__(self) -> None:
        """Start with nothing written."""
        self._written: ProbeReportStatus | None = None
        self._tried: float | None = None

    def due(self, status: ProbeReportStatus, now: float, *, settling: bool = False) -> bool:
        """Return whether a status should be written now.

        Args:
            status: what there is to say.
            now: seconds since the machine started.
            settling: whether peers are measured and nothing can be said of any yet; it will be soon, and one without
                them would keep them waiting.
        """
        if settling:
            return False
        if self._tried is None:
            # An empty report says nothing that its absence does not.
            return bool(status.peers or (status.bandwidth and status.bandwidth.samples))
        waited = now - self._tried
        if waited < WRITE_SECONDS:
            return False
        if self._written is None or waited >= HEARTBEAT_SECONDS:
            return True
        return changed(self._written, status) or (waited >= WINDOW_SECONDS and says_more(self._written, status))

    def tried(self, now: float) -> None:
        """Remember that a write was begun: one that fails is repeated no sooner than any other."""
        self._tried = now
        self._written = None

    def written(self, status: ProbeReportStatus) -> None:
        """Remember what a write that succeeded has written."""
        self._written = status


def changed(before: ProbeReportStatus, after: ProbeReportStatus) -> bool:
    """Return whether two reports differ in what somebody would act upon."""
    if (before.zone, _places(before)) != (after.zone, _places(after)):
        return True
    if _bandwidth_changed(before.bandwidth, after.bandwidth):
        return True
    return any(_peer_changed(old, new) for old, new in zip(before.peers, after.peers, strict=True))


def says_more(before: ProbeReportStatus, after: ProbeReportStatus) -> bool:
    """Return whether a peer has many more samples behind its figures, as when its window was not full before.

    Both reports are about the same peers.
    """
    pairs = zip(before.peers, after.peers, strict=True)
    return any(new.samples > MORE_SAMPLES * old.samples for old, new in pairs)


def _places(status: ProbeReportStatus) -> list[tuple[str, str]]:
    return [(peer.node, peer.zone) for peer in status.peers]


def _peer_changed(before: PeerReport, after: PeerReport) -> bool:
    if after.method != before.method or abs(after.loss_per_mille - before.loss_per_mille) >= LOSS_PER_MILLE:
        return True
    old, new = before.p90_microseconds, after.p90_microseconds
    if old is None or new is None:
        return old is not new
    return abs(new - old) > max(LATENCY_SHARE * old, LATENCY_MICROSECONDS)


def _bandwidth_changed(before: BandwidthReport | None, after: BandwidthReport | None) -> bool:
    if before is None or after is None:
        return before is not after
    if (before.interface, before.capacity_bits_per_second) != (after.interface, after.capacity_bits_per_second):
        return True
    pairs = (
        (before.mean_bits_per_second, after.mean_bits_per_second),
        (before.deviation_bits_per_second, after.deviation_bits_per_second),
    )
    return any(_use_changed(old, new, after.capacity_bits_per_second) for old, new in pairs)


def _use_changed(old: int | None, new: int | None, capacity: int | None) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(new - old) > max(BANDWIDTH_SHARE * (capacity or max(old, new)), BANDWIDTH_BITS)
