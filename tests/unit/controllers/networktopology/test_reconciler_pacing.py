"""Weights of what is measured all the time are written at a pace, and looked at again although nothing happens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.api.base import format_timestamp
from controllers.networktopology import reconciler as subject
from controllers.networktopology.compute import compute
from controllers.networktopology.sources.base import Latencies, LatenciesByLevel, Reading, SourceState
from tests.support.topologies import measured, places, raw_topology, weight_set
from tests.support.topology_passes import KEY, MEASURED_AT, STATED, World, owned


class TestContinuousMeasurements:
    """Weights are written at a pace, and looked at again although nothing happens."""

    @staticmethod
    def world(cost: int, *, written: datetime) -> World:
        """A NetworkTopology with these costs, measured to be 100."""
        reading = replace(measured(n1_n2=100), continuous=True, time=datetime.fromisoformat(MEASURED_AT))
        sets = [weight_set(name, zones={"A>B": cost}) for name in ("Dijkstra", "NetperfCosts")]
        fields = owned("Dijkstra", "NetperfCosts")
        fields[0]["time"] = written.strftime("%Y-%m-%dT%H:%M:%SZ")
        return World(raw_topology(*sets, managedFields=fields), reading=reading)

    @pytest.mark.parametrize(
        ("cost", "age", "parts", "delay"),
        [
            pytest.param(109, 60, ["status"], 540, id="a small difference waits"),
            pytest.param(109, 700, ["weights", "status"], None, id="and is written in the end"),
            pytest.param(500, 10, ["status"], 20, id="a large one waits for the pace alone"),
            pytest.param(500, 60, ["weights", "status"], None, id="a large one"),
            pytest.param(100, 10, ["status"], None, id="none"),
        ],
    )
    async def test_pace(self, cost: int, age: int, parts: list[str], delay: int | None) -> None:
        world = self.world(cost, written=datetime.now(UTC) - timedelta(seconds=age))
        assert await world.reconciler.reconcile(KEY)
        assert world.parts == parts
        assert subject.AGING_DELAY in world.delays
        others = [found for found in world.delays if found != subject.AGING_DELAY]
        assert others == ([] if delay is None else [pytest.approx(delay, abs=3)])

    async def test_latencies_that_a_source_works_out_once_are_computed_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        latencies = LatenciesByLevel(Latencies({}), Latencies({("A", "B"): 10_000}))
        reading = replace(measured(n1_n2=100), continuous=True, latencies=latencies)
        calls: list[Reading] = []
        monkeypatch.setattr(
            subject, "compute", lambda basis, places, **how: calls.append(basis) or compute(basis, places, **how)
        )
        world = World(raw_topology(), reading=reading)
        for _ in range(3):
            world.reading = replace(reading, detail="as Prometheus has it while there is no new answer")
            assert await world.reconciler.reconcile(KEY)
        assert len(calls) == 1
        assert world.weights == ["Dijkstra", "NetperfCosts"]
        latencies = LatenciesByLevel(Latencies({}), Latencies({("A", "B"): 20_000}))
        world.reading = replace(reading, latencies=latencies)
        assert await world.reconciler.reconcile(KEY)
        world.reconciler._nodes._places = places(n1="r/A", n2="r/B", n3="r/C")
        assert await world.reconciler.reconcile(KEY)
        assert len(calls) == 3

    async def test_the_time_of_data_moves_by_the_minute(self) -> None:
        world = self.world(100, written=datetime.now(UTC))
        assert await world.reconciler.reconcile(KEY)
        assert world.reading is not None
        for seconds, parts in ((59, ["status"]), (60, ["status", "status"])):
            moment = datetime.fromisoformat(MEASURED_AT) + timedelta(seconds=seconds)
            world.reading = replace(world.reading, time=moment)
            assert await world.reconciler.reconcile(KEY)
            assert world.parts == parts

    @pytest.mark.parametrize(
        ("ago", "change", "parts"),
        [
            pytest.param(10, {"name": "ProbeReports of 7 nodes"}, [], id="other words wait"),
            pytest.param(31, {"name": "ProbeReports of 7 nodes"}, ["status"], id="for half a minute"),
            pytest.param(10, {"malformed": ("n1",)}, [], id="another reason too"),
            pytest.param(31, {"malformed": ("n1",)}, ["status"], id="for as long"),
            pytest.param(10, {"name": "R", "time": datetime.now(UTC)}, ["status"], id="they go with other news"),
            pytest.param(10, {"name": "R", "continuous": False}, ["status"], id="a source that people write is told"),
        ],
    )
    async def test_words_alone_wait_for_the_pace(self, ago: float, change: dict[str, Any], parts: list[str]) -> None:
        """What nodes say may change the words of a condition all the time."""
        world = self.world(100, written=datetime.now(UTC))
        world.time = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat()
        assert await world.reconciler.reconcile(KEY)
        assert world.reading is not None
        assert world.raw is not None
        world = World(world.raw, reading=replace(world.reading, **change))  # a process that has seen no write
        assert await world.reconciler.reconcile(KEY)
        assert world.parts == parts
        waits = [delay for delay in world.delays if delay != subject.AGING_DELAY]
        assert waits == ([] if parts else [pytest.approx(20, abs=3)])

    @pytest.mark.parametrize("ahead", [-3600, -60, 60, 3600], ids="{:+} s".format)
    async def test_another_clock_changes_no_pace(self, ahead: int) -> None:
        """The API server says when weights and status were written, by a clock that need not be the controller's."""
        written = datetime.now(UTC) + timedelta(seconds=ahead)
        world = self.world(100, written=written - timedelta(days=1))
        world.time = format_timestamp(written)
        assert await world.reconciler.reconcile(KEY)
        assert world.reading is not None
        for name, cost, parts in (("a", 200, ["weights", "status"]), ("b", 300, []), ("c", 400, [])):
            world.writes.clear()
            world.reading = replace(measured(n1_n2=cost), continuous=True, name=name, time=world.reading.time)
            assert await world.reconciler.reconcile(KEY)
            assert world.parts == parts

    async def test_words_about_measurements_wait_also_where_costs_come_from_elsewhere(self) -> None:
        """As where all that nodes say is of another time."""
        unusable = replace(measured(n1_n2=100), continuous=True, state=SourceState.EMPTY, measurements=())
        world = World(raw_topology(STATED), reading=unusable)
        world.time = format_timestamp(datetime.now(UTC))
        for name in ("n1", "n2"):
            world.reading = replace(unusable, malformed=(name,))
            assert await world.reconciler.reconcile(KEY)
        assert world.parts == ["weights", "status"]
