"""An agent that pins while its clock is set, by hours, to 1970 and to 2038, and back and forth.

Left out: that the API server is not reached with a clock by which certificates are not valid.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from tests.support.cpusets import everything
from tests.support.pinning_fixtures import daemon, node
from tests.support.pinning_stand import SOCKETS, Stand, on
from tests.support.stepped_clock import SteppedClock

__all__ = ["daemon", "node"]

ALL = everything()
ONE, OTHER = SOCKETS
HOUR = 3600.0
WRITES = "berth_socketstatus_writes_total"


def to(year: int) -> float:
    """Seconds from now to the first day of a year."""
    return (datetime(year, 1, 1, tzinfo=UTC) - datetime.now(UTC)).total_seconds()


def given(agent: ControllerProcess) -> float:
    """How often it has set CPUs."""
    return sum(agent.metric("berth_pinning_writes_total", way=way) for way in ("runtime", "direct"))


def told(node: Stand) -> list[datetime]:
    """All times that the SocketStatus tells, that of the last write first."""
    status = node.status()
    since = [pod["since"] for pod in status["pods"]]
    changed = [each["lastTransitionTime"] for each in status["conditions"]]
    return [datetime.fromisoformat(each) for each in (status["time"], *since, *changed)]


async def test_pods_stay_pinned_and_their_ages_are_told_by_the_clock_as_it_is(node: Stand, tmp_path: Path) -> None:
    clock = SteppedClock(tmp_path / "clock", seconds=to(2038))
    _, (web,) = await node.pod("web", "D")
    node.assign(web=0)
    agent = node.agent(clock=clock, writes=100)
    on(web, ONE)
    node.condition("Pinned", "True", "1 pod assigned")
    began = datetime.now(UTC) - timedelta(minutes=1)
    for seconds in (0.0, HOUR, 0.0, -HOUR, to(1970), 0.0, HOUR, -HOUR, HOUR, -HOUR):
        writes = agent.metric(WRITES, outcome="written")
        clock.step(seconds)
        since = began + timedelta(seconds=seconds)
        now = datetime.now(UTC) + timedelta(seconds=seconds)
        times = eventually(
            lambda: told(node),
            accept=lambda found, now=now: abs(found[0] - now) < timedelta(minutes=1),  # type: ignore[misc]
            what="the time by its clock",
        )
        assert min(times) >= since
        assert max(times) == times[0]
        # What it is to do goes on, and is all that it does.
        before = given(agent)
        web.set_own_cpus(OTHER)
        on(web, ONE, timeout=20)
        eventually(lambda: given(agent), accept=lambda found, before=before: found > before, what="a write")  # type: ignore[misc]
        assert given(agent) == before + 1
        assert agent.metric(WRITES, outcome="written") <= writes + 3
    assert "<invalid>" not in node.kubectl("get", "sst", node.node)
    assert agent.metric(WRITES, outcome="failed") == 0
