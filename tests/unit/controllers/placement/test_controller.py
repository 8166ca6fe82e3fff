"""The placement controller's parts, put together but not run."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from berth.kube.objects import Service
from berth.network.bandwidth_allocations import RECOUNTED_PODS
from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from berth.scheduling.gang import batches, budget
from berth.scheduling.planning import PlanUnderWay
from berth.scheduling.queue_entry import EntryKey, QueueEntry
from controllers.placement.controller import load_configuration
from tests.support.desk import Desk
from tests.support.kube import running, until
from tests.support.placement import chain, group_object, lone, member, zoned


def test_every_kind_that_placement_reads_is_watched(desk: Desk) -> None:
    assert set(desk.controller.watches) == {
        "nodes", "namespaces", "pods", "services", "appgroups", "networktopologies",
        "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments",
    }  # fmt: skip


async def test_a_plan_under_way_goes_with_the_last_of_its_pods(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether anything else waits or not: until then the plan keeps memory, and room that it has assumed."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(batches, "BATCH", 2)
    controller = desk.controller
    pods = [member(f"{one}{number}", one, cpu="100m") for number in range(3) for one in "ab"]
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    desk.pods(*pods)
    for _ in range(4):
        entry = desk.queue.pop()
        assert entry is not None
        controller.cycle.schedule_one(entry)
    planning = weakref.ref(next(iter(controller.cycle._under_way.values())).planning)
    for watch in controller.watches.values():
        watch.synced.set()
    for pod in pods:
        desk.lose("pods", pod)
    async with running(controller._schedule()):
        await until(lambda: planning() is None, what="the plan is given up", seconds=5.0)
    assert desk.cache.state.pod_count == 0


class TestReroutedCalls:
    """A Service routes the calls of thousands of pods otherwise: they are counted anew though nobody plans."""

    def rerouted(self, desk: Desk) -> None:
        """Twice as many pods as are counted at a time, and a few."""
        desk.see("nodes", zoned("n3"))  # with room
        for number in range(RECOUNTED_PODS + 1):
            name = f"g{number}"
            desk.see("appgroups", group_object(name, *chain("a", "b", minBandwidth="12")))
            labels = {"app": "b"}
            desk.pods(member(f"{name}a", "a", group=name, on="n1"))
            desk.pods(member(f"{name}b", "b", group=name, on="n2", labels=labels))
        assert desk.cache.bandwidth().nodes["n1"] == 12 * (RECOUNTED_PODS + 1)
        for watch in desk.controller.watches.values():
            watch.synced.set()

    def edit(self, desk: Desk) -> None:
        raw = {"selector": {"app": "b"}, "internalTrafficPolicy": "Local"}
        desk.see("services", msgspec.convert({"metadata": {"name": "b", "namespace": "default"}, "spec": raw}, Service))

    async def test_all_of_them_while_nothing_waits(self, desk: Desk) -> None:
        self.rerouted(desk)
        async with running(desk.controller._schedule()):
            self.edit(desk)
            await until(lambda: desk.cache.recount_at() is None, what="all are counted", seconds=30.0)
        assert desk.cache.bandwidth_allocations.nodes["n1"] == 0

    async def test_between_plans_that_ask_for_no_bandwidth(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("berth.scheduling.cache.cache.REROUTE_SECONDS", 0.0)
        monkeypatch.setattr("controllers.placement.controller.TOGETHER", 0.0)
        self.rerouted(desk)
        self.edit(desk)
        behind: list[bool] = []

        def noted(_: QueueEntry) -> None:
            behind.append(desk.cache.bandwidth_allocations.behind)

        monkeypatch.setattr(desk.controller.cycle, "schedule_one", noted)
        desk.pods(*(lone(f"p{number}", cpu="10m") for number in range(6)))
        async with running(desk.controller._schedule()):
            await until(lambda: len(behind) == 6, what="all are planned")
        assert behind == [True, True, True, False, False, False]

    async def test_an_error_does_not_stop_placement(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rerouted(desk)
        refresh, failed = desk.cache.bandwidth_allocations.refresh, list[Any]()

        def odd(*arguments: Any, **options: Any) -> None:
            if not failed:
                failed.append(arguments)
                raise LookupError("odd")
            refresh(*arguments, **options)

        async with running(desk.controller._schedule()) as (task,):
            monkeypatch.setattr(desk.cache.bandwidth_allocations, "refresh", odd)
            self.edit(desk)
            await until(lambda: bool(failed), what="it fails")
            desk.pods(lone("p", cpu="10m"))
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 1, what="a pod is placed")
            assert not task.done()


class TestEntriesTogether:
    """A plan of a pod takes less than handing it to the planning thread and back, on a machine that is busy."""

    def scheduled(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[str]]:
        """How many entries each plan of the thread will have had, and which pods were planned."""
        rounds: list[int] = []
        names: list[str] = []
        run, schedule_one = desk.controller.planning.run, desk.controller.cycle.schedule_one

        async def counted(plan: Callable[[], None]) -> None:
            rounds.append(0)
            await run(plan)

        def named(entry: QueueEntry) -> None:
            rounds[-1] += 1
            names.extend(pod.metadata.name for pod in entry.pods.values())
            if "odd" in names[-1]:
                raise LookupError("odd")
            schedule_one(entry)

        monkeypatch.setattr(desk.controller.planning, "run", counted)
        monkeypatch.setattr(desk.controller.cycle, "schedule_one", named)
        for watch in desk.controller.watches.values():
            watch.synced.set()
        return rounds, names

    @staticmethod
    def with_entries(rounds: list[int]) -> list[int]:
        """Without what else the thread does, such as to count the bandwidth of calls."""
        return [entries for entries in rounds if entries]

    async def test_what_is_due_is_planned_in_one_go(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("controllers.placement.controller.TOGETHER", 60.0)
        rounds, names = self.scheduled(desk, monkeypatch)
        desk.pods(*(lone(f"p{number}", cpu="10m") for number in range(9)))
        async with running(desk.controller._schedule()):
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 9, what="all are decided")
        assert (self.with_entries(rounds), names) == ([9], [f"p{number}" for number in range(9)])

    async def test_who_is_next_is_found_in_the_planning_thread(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A change may have woken thousands, and the event loop serves health and reads watches."""
        pop, threads = desk.queue.pop, set[str]()

        def noted(**options: Any) -> QueueEntry | None:
            threads.add(threading.current_thread().name)
            return pop(**options)

        monkeypatch.setattr(desk.queue, "pop", noted)
        _, names = self.scheduled(desk, monkeypatch)
        desk.pods(lone("a", cpu="10m"))
        async with running(desk.controller._schedule()):
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 1, what="it is decided")
        assert (names, threads) == (["a"], {"planning"})

    async def test_the_event_loop_has_its_turn_after_a_while(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("controllers.placement.controller.TOGETHER", 0.0)
        rounds, _ = self.scheduled(desk, monkeypatch)
        desk.pods(*(lone(f"p{number}", cpu="10m") for number in range(3)))
        async with running(desk.controller._schedule()):
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 3, what="all are decided")
        assert self.with_entries(rounds) == [1, 1, 1]

    async def test_one_that_cannot_be_planned_stops_nobody(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        rounds, names = self.scheduled(desk, monkeypatch)
        desk.pods(*(lone(name, cpu="10m") for name in ("a", "b-odd", "c")))
        async with running(desk.controller._schedule()):
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 2, what="the others are decided")
        assert names == ["a", "b-odd", "c"]
        assert sum(rounds) == 3
        (left,) = desk.queue.entries()
        assert left.unschedulable
        assert left.not_before > desk.cache.clock()

    async def test_the_owner_of_a_pod_that_cannot_be_planned_is_told(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.scheduled(desk, monkeypatch)
        desk.pods(lone("odd"))
        async with running(desk.controller._schedule()):
            await until(lambda: bool(desk.said.notes), what="an Event", seconds=5.0)
        (note,) = desk.said.notes
        assert (note.regarding.name, note.reason, note.warning) == ("odd", "FailedScheduling", True)
        assert "LookupError" not in note.message
        # Not Unschedulable: a cluster autoscaler would add nodes for it.
        (written,) = desk.controller._conditions._waiting.values()
        assert written is not None
        assert written[1] == ("SchedulerError", note.message)

    async def test_an_idle_queue_waits_for_no_backoff_when_room_becomes_free(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("berth.scheduling.queue.INITIAL_BACKOFF", 10.0)
        _, names = self.scheduled(desk, monkeypatch)
        others = [lone(f"other-{node}", on=node, cpu="4") for node in ("n1", "n2")]
        desk.pods(*others, lone("big", cpu="4"))
        async with running(desk.controller._schedule()):
            await until(lambda: bool(desk.said.notes), what="it does not fit", seconds=5.0)
            desk.lose("pods", others[0])
            desk.controller._changed.set()
            await until(lambda: desk.controller.binding._unbound.waiting("default") == 1, what="it fits", seconds=5.0)
        assert names == ["big", "big"]

    async def test_a_namespace_with_too_much_unbound_is_left_out(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("controllers.placement.controller.TOGETHER", 60.0)
        _, names = self.scheduled(desk, monkeypatch)
        monkeypatch.setattr(desk.controller.binding, "full", lambda namespace: namespace == "default" and "a" in names)
        desk.pods(lone("a", cpu="10m"), lone("b", cpu="10m"), lone("c", namespace="other", cpu="10m"))
        async with running(desk.controller._schedule()):
            await until(lambda: desk.controller.binding._unbound.waiting("other") == 1, what="the other is decided")
        assert names == ["a", "c"]


async def test_a_plan_that_cannot_be_given_up_stops_nobody(desk: Desk) -> None:
    class Odd:
        attempt = SimpleNamespace(entry=SimpleNamespace(key=None))
        planning = SimpleNamespace(close=lambda: 1 // 0)

    controller = desk.controller
    controller.cycle._under_way[EntryKey("group", "default", "gone")] = cast("PlanUnderWay", Odd())
    for watch in controller.watches.values():
        watch.synced.set()
    desk.pods(lone("other"))
    async with running(controller._schedule()):
        await until(lambda: len(desk.queue) == 0, what="the others are planned", seconds=5.0)
    assert controller.cycle._under_way == {}


def test_an_application_is_woken_once_for_all_of_its_pods(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time looks at all that wait of it: thousands of which a LatencyPolicy was read would hold up the others."""
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    pods = [member(f"a{number}", "a") for number in range(9)]
    desk.pods(*pods, lone("alone"))
    woken: list[str] = []
    monkeypatch.setattr(desk.queue, "activate", lambda key: woken.append(key.name))
    desk.controller._heard([*pods, lone("alone")])
    assert woken == ["shop", "alone"]


class TestConfiguration:
    def test_default(self) -> None:
        assert load_configuration(None) == PlacementConfiguration()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("profiles: [", "not valid YAML", id="no-yaml"),
            pytest.param("profilez: []", "profilez", id="unknown-field"),
            pytest.param("# \xe9", "not UTF-8 text; ", id="another-encoding"),
        ],
    )
    def test_problems_name_the_file(self, tmp_path: Path, text: str, problem: str) -> None:
        path = tmp_path / "placement.yaml"
        path.write_text(text, encoding="latin-1")
        with pytest.raises(ConfigurationError, match=problem) as raised:
            load_configuration(path)
        assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("in_flight", "connections"), [pytest.param(48, 64, id="default"), pytest.param(1024, 1040, id="most")]
)
def test_bindings_that_hang_leave_connections_to_others(tmp_path: Path, in_flight: int, connections: int) -> None:
    """However many wait for an answer, one of another namespace is sent at once, and so is not taken for slow."""
    config = tmp_path / "config.yaml"
    config.write_text(f"bindingsInFlight: {in_flight}")
    controller = Desk(config).controller
    assert controller._context.client._connections == connections
