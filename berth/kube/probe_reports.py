"""ProbeReports as programs read them, cut down to what somebody acts upon: thousands of them are kept in memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from berth.api.base import read_timestamp
from berth.api.labels import BERTH_GROUP
from berth.api.probereport import KIND, PLURAL
from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource


class ReportedPeer(msgspec.Struct, rename="camel", gc=False):
    """What a report says about one peer, as far as costs come from it."""

    node: str = ""
    p50_microseconds: int | None = None
    p90_microseconds: int | None = None
    p99_microseconds: int | None = None
    last_probe_time: str = ""


class ReportedBandwidth(msgspec.Struct, rename="camel", gc=False):
    """Use of the node's link."""

    capacity_bits_per_second: int | None = None
    mean_bits_per_second: int | None = None
    deviation_bits_per_second: int | None = None


class LinkStatus(msgspec.Struct, gc=False):
    """Status of a report, as far as it is about the link."""

    time: str = ""
    bandwidth: ReportedBandwidth | None = None


class LinkReport(msgspec.Struct, gc=False):
    """ProbeReport, cut down to what it says of the link."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: LinkStatus = msgspec.field(default_factory=LinkStatus)


class ReportStatus(LinkStatus, gc=False):
    """Status of a report."""

    peers: list[ReportedPeer] = []


class Report(LinkReport, gc=False):
    """ProbeReport."""

    status: ReportStatus = msgspec.field(default_factory=ReportStatus)


PROBE_REPORTS: Final = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, Report, namespaced=False)
"""ProbeReports with round trips and links."""
LINK_REPORTS: Final = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, LinkReport, namespaced=False)
"""ProbeReports as figures of links."""


FRESH_AGE: Final = 330.0
"""Seconds for which what a report says is of now: agents write every 300, or with the next round after that."""


def moment_of(reports: Iterable[Report]) -> datetime | None:
    """Return when reports that are of one moment were read; None if they state no time.

    It is the latest that any of them states, of those at most :data:`FRESH_AGE` after the median: one clock that is
    ahead would make all others old. Of two that far apart, the later counts.
    """
    latest = sorted(time for report in reports if (time := _latest(report)) is not None)
    if not latest:
        return None
    median = statistics.median_high(latest)
    return max(time for time in latest if (time - median).total_seconds() <= FRESH_AGE)


def _latest(report: Report) -> datetime | None:
    texts = (report.status.time, *(peer.last_probe_time for peer in report.status.peers))
    return max((time for text in texts if (time := read_timestamp(text)) is not None), default=None)
