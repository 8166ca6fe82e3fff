"""Node agents whose clock is set by an hour and a day, ahead and back, and whose machine was suspended for as long.

Two of them measure each other. Left out: what a report that is too old is worth
(tests/integration/test_networktopology_clock.py), users whom the latency controller asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.integration.test_node_agent import ZONES, plane, report, start
from tests.support.stepped_clock import SteppedClock

__all__ = ["plane"]

HOUR, DAY = 3600, 86_400
STEPPED, OTHER, *_ = ZONES
WRITES = "berth_probereport_writes_total"


@pytest.fixture
def clock(tmp_path: Path) -> SteppedClock:
    """Where it tells the time though nothing else has changed: round trips of one machine stay as they are for long."""
    publication = "agents.node.probing.publication"
    constants = {f"{publication}.WRITE_SECONDS": 2.0, f"{publication}.HEARTBEAT_SECONDS": 4.0}
    return SteppedClock(tmp_path / "clock", constants=constants)


@pytest.fixture
def agent(plane: LocalCluster, clock: SteppedClock, tmp_path: Path) -> Iterator[ControllerProcess]:
    """One with that clock, beside another."""
    with (
        start(plane, OTHER, "probing", tmp_path),
        start(plane, STEPPED, "probing", tmp_path, environment=clock.environment) as process,
    ):
        yield process


def peer(found: dict[str, Any]) -> dict[str, Any]:
    """What is said of the other agent."""
    peers = found.get("status", {}).get("peers", [])
    return next((each for each in peers if each["node"] == OTHER and each.get("method")), {})


def time_of(found: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(found["status"]["time"])


def test_round_trips_are_right_whatever_the_clock_says(
    plane: LocalCluster,
    clock: SteppedClock,
    agent: ControllerProcess,
) -> None:
    eventually(lambda: report(plane, STEPPED), accept=lambda found: bool(peer(found)), what="a report")
    for seconds in (HOUR, -HOUR, DAY, 0, -DAY):
        rounds, writes = agent.metric("berth_probe_rounds_total"), agent.metric(WRITES, outcome="written")
        clock.step(seconds)
        wanted = datetime.now(UTC) + timedelta(seconds=seconds)
        found = eventually(
            lambda: report(plane, STEPPED),
            accept=lambda found, wanted=wanted: abs(time_of(found) - wanted) < timedelta(minutes=5),  # type: ignore[misc]
            what=f"a report by a clock that is {seconds} s ahead",
        )
        said = peer(found)
        assert 0 < said["p50Microseconds"] <= said["p99Microseconds"] < 1_000_000
        assert said["lossPerMille"] < 1000
        apart = time_of(found) - datetime.fromisoformat(said["lastProbeTime"])
        assert timedelta() <= apart < timedelta(minutes=1), "ages are those of the samples"
        # A write is counted once the agent has the answer, and the report is there before.
        wrote = eventually(lambda writes=writes: agent.metric(WRITES, outcome="written") - writes, what="one counted")  # type: ignore[misc]
        made = agent.metric("berth_probe_rounds_total") - rounds
        assert wrote <= 1 + made / 4, "a write in two seconds, of rounds of half a second"


def test_what_was_measured_before_a_suspension_is_not_reported_after_it(
    plane: LocalCluster,
    clock: SteppedClock,
    agent: ControllerProcess,
) -> None:
    before = eventually(
        lambda: report(plane, STEPPED), accept=lambda found: peer(found).get("samples", 0) >= 100, what="many samples"
    )
    clock.suspend(DAY)
    found = eventually(
        lambda: report(plane, STEPPED),
        accept=lambda found: time_of(found) - time_of(before) > timedelta(seconds=DAY / 2) and bool(peer(found)),
        what="a report after it",
    )
    said = peer(found)
    assert said["samples"] < peer(before)["samples"]
    assert 0 < said["p99Microseconds"] < 1_000_000
    assert time_of(found) - datetime.fromisoformat(said["lastProbeTime"]) < timedelta(minutes=1)
    assert agent.running
