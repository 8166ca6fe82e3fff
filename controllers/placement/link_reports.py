"""ProbeReports as the filter CheckRiskNodeBandwidth reads them: how much of each node's link is in use.

They are followed only where a profile asks for that filter, and nobody waits for them: a cluster without agents, or
without the kind, is one where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from berth.api.base import read_timestamp
from berth.api.probereport import PLURAL
from berth.kube.client import ApiClient
from berth.kube.probe_reports import LINK_REPORTS, LinkReport
from berth.kube.reflector import Handler, Reflector
from berth.scheduling.cache.link_use import CLOCK_TOLERANCE, MAX_AGE, LinkUseTable


class LinkReports:
    """Keeps the table of link use."""

    def __init__(
        self,
        client: ApiClient,
        table: LinkUseTable,
        *,
        deferring: Callable[[Handler[LinkReport], str], Handler[LinkReport]],
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
        self.watch: Reflector[LinkReport] = Reflector(client, LINK_REPORTS)
        self.watch.add_handler(deferring(self.on_report, PLURAL))

    async def run(self) -> None:
        """Follow reports until cancelled."""
        await self.watch.run()

    def on_report(self, old: LinkReport | None, new: LinkReport | None) -> None:
        """A report came, changed or went."""
        if new is not None:
            self._table.read(new, self._present(old, new))
        elif old is not None:
            self._table.delete(old.metadata.name)

    def _present(self, old: LinkReport | None, new: LinkReport) -> datetime:
        """Return the time by which a report has its age.

        That is the controller's own, unless by that a report which has just come in, with a later time than the one
        before it, is of long ago or of the future: then one of the two clocks is wrong, and it was written just now.
        """
        now = self._now()
        before, written = (read_timestamp(report.status.time) if report else None for report in (old, new))
        if before is None or written is None or written <= before:
            return now
        return now if -CLOCK_TOLERANCE <= (now - written).total_seconds() < MAX_AGE else written
