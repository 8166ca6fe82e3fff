"""ProbeReports as the filter CheckRiskNodeBandwidth reads them: how much of each node's link is in use.

They are followed only where a profile asks for that filter, and nobody waits for them: a cluster without agents, or
without the kind, is one where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from berth.api.labels import BERTH_GROUP
from berth.api.probereport import KIND, PLURAL
from berth.kube.client import ApiClient
from berth.kube.meta import ObjectMeta
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import Resource
from berth.scheduling.cache.link_use import LinkUse, LinkUseTable

CLOCK_TOLERANCE: Final = 60.0
"""Seconds by which a node's clock may be ahead."""


class ReportedBandwidth(msgspec.Struct, rename="camel", gc=False):
    """Use of the node's link."""

    capacity_bits_per_second: int | None = None
    mean_bits_per_second: int | None = None
    deviation_bits_per_second: int | None = None


class ReportStatus(msgspec.Struct, gc=False):
    """Status of a report, as far as it is about the link."""

    time: str = ""
    bandwidth: ReportedBandwidth | None = None


class Report(msgspec.Struct, gc=False):
    """ProbeReport, cut down to what it says of the link."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    status: ReportStatus = msgspec.field(default_factory=ReportStatus)


PROBE_REPORTS: Final = Resource(BERTH_GROUP, "v1alpha1", PLURAL, KIND, Report, namespaced=False)
"""ProbeReports as figures of links."""


class LinkReports:
    """Keeps the table of link use."""

    def __init__(
        self,
        client: ApiClient,
        table: LinkUseTable,
        *,
        deferring: Callable[[Handler[Report], str], Handler[Report]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare.

        Args:
            client: open API client.
            table: what filters read.
            deferring: keeps a handler from the table while a plan is made.
            now: the time of day.
        """
        self._table = table
        self._now = now
        self.watch: Reflector[Report] = Reflector(client, PROBE_REPORTS)
        self.watch.add_handler(deferring(self.on_report, PLURAL))

    async def run(self) -> None:
        """Follow reports until cancelled."""
        await self.watch.run()

    def on_report(self, old: Report | None, new: Report | None) -> None:
        """A report came, changed or went."""
        report = new or old
        if report is None:
            return
        use = _use(report) if new is not None else None
        age = _age(report, self._now())
        if use is None or age is None:
            self._table.delete(report.metadata.name)
        else:
            self._table.update(report.metadata.name, use, age=age)


def _use(report: Report) -> LinkUse | None:
    found = report.status.bandwidth
    if found is None or found.mean_bits_per_second is None or found.mean_bits_per_second < 0:
        return None
    capacity = found.capacity_bits_per_second or 0
    deviation = max(found.deviation_bits_per_second or 0, 0)
    return LinkUse(float(found.mean_bits_per_second), float(deviation), float(capacity) if capacity > 0 else None)


def _age(report: Report, now: datetime) -> float | None:
    """Seconds since a report was written; None where that cannot be said."""
    try:
        age = (now - datetime.fromisoformat(report.status.time)).total_seconds()
    except (ValueError, TypeError):
        return None
    return age if age >= -CLOCK_TOLERANCE else None
