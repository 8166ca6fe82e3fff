"""Which NetworkTopologies are told what is taken of their links, and when; written for real in tests/integration."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.labels import LABEL_SEGMENT, LABEL_ZONE, WEIGHTS_ALLOCATED
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import CustomObject, Service
from berth.network.bandwidth_allocations import RECOUNTED_PODS
from berth.network.link_budgets import PlacePair, taken
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from controllers.placement import allocation_writer
from controllers.placement.allocation_writer import RECOUNT_SECONDS, AllocationWriter
from controllers.placement.link_usage import SMALL_SECONDS, WRITE_SECONDS
from tests.support.placement import Clock, chain, group_object, member, zoned
from tests.support.topologies import weight_set

LINK = PlacePair(LABEL_ZONE, "z1", "z2")


class Server:
    """Takes writes of one NetworkTopology as the API server does, and shows them to the cache."""

    def __init__(self, cache: Cache, *weights: dict[str, Any]) -> None:
        self.cache, self.writes, self.generation = cache, 0, 1
        self.weights = list(weights)
        self.error: Exception | None = None
        self.proxy: bytes | None = None
        self.show()

    def show(self) -> None:
        metadata = {"name": "net", "namespace": "default", "uid": "u", "generation": self.generation}
        self.cache.update_topology(CustomObject.of({"metadata": metadata, "spec": self.spec}))

    @property
    def spec(self) -> dict[str, Any]:
        return {"configmapName": "", "weights": self.weights}

    def edit(self, *weights: dict[str, Any]) -> None:
        self.weights, self.generation = list(weights), self.generation + 1
        self.show()

    async def apply(self, _: Any, name: str, body: dict[str, Any], *, field_manager: str, namespace: str) -> bytes:
        assert (name, namespace, field_manager) == ("net", "default", "berth-placement")
        if self.error is not None:
            raise self.error
        if self.proxy is not None:
            return self.proxy
        self.writes += 1
        others = [item for item in self.weights if item["name"] != WEIGHTS_ALLOCATED]
        self.edit(*others, *body["spec"]["weights"])
        return json.dumps({"metadata": {"generation": self.generation}}).encode()

    def allocated(self) -> str | None:
        """bandwidthAllocated from z1 to z2."""
        for item in self.weights:
            if item["name"] == WEIGHTS_ALLOCATED:
                (row, *_) = item["topologyList"][0]["originList"]
                return str(row["costList"][0]["bandwidthAllocated"])
        return None


CAPACITY = weight_set("UserDefined", zones={"z1>z2": {"networkCost": 5, "bandwidthCapacity": "1000"}})


class World:
    """A cache of two zones, an AppGroup, a NetworkTopology, and the writer."""

    def __init__(self, *weights: dict[str, Any]) -> None:
        self.clock = Clock()
        self.cache = Cache(clock=self.clock)
        for name, zone in (("n1", "z1"), ("n2", "z2")):
            self.cache.update_node(zoned(name, zone))
        self.cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="100")))
        self.server = Server(self.cache, *(weights or (CAPACITY,)))
        self.started = asyncio.Event()
        self.started.set()
        self.writer = self.restarted()

    def restarted(self) -> AllocationWriter:
        async def idle() -> None: ...

        async def synced() -> None:
            await self.started.wait()

        client = cast("ApiClient", self.server)
        return AllocationWriter(client, self.cache, PlacementConfiguration(), idle, synced)

    def place(self, name: str, node: str) -> None:
        self.cache.update_pod(member(name, name[0], on=node))

    def look(self, after: float = 0.0) -> str | None:
        self.clock.advance(after)
        asyncio.run(self.writer.refresh())
        return self.server.allocated()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation_writer, "PAUSE", 0.0)
    monkeypatch.setattr(allocation_writer, "SHARE", 1.0)


def test_what_is_taken_follows_the_pods() -> None:
    world = World()
    assert world.look() == "0"
    world.place("a1", "n1")
    world.place("b1", "n2")
    assert world.look(WRITE_SECONDS - 1) == "0"
    assert world.look(1) == "100"
    world.cache.delete_pod(member("b1", "b", on="n2"))
    assert world.look(WRITE_SECONDS) == "0"
    assert world.server.writes == 3


@pytest.mark.parametrize(("most", "told"), [(2, "100"), (1, None)], ids=["few places", "too many to count by"])
def test_what_is_taken_between_segments_is_not_told_as_0_where_they_do_not_count(
    most: int, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("berth.scheduling.cache.places.MOST_PLACES", most)
    world = World(weight_set("UserDefined", segments={"s1>s2": {"networkCost": 5, "bandwidthCapacity": "1000"}}))
    for name, segment in (("n1", "s1"), ("n2", "s2")):
        world.cache.update_node(zoned(name, "z1", labels={LABEL_SEGMENT: segment}))
    world.place("a1", "n1")
    world.place("b1", "n2")
    assert world.look() == told
    monkeypatch.setattr("berth.scheduling.cache.places.MOST_PLACES", 2)
    world.cache.update_node(zoned("n3", "z2"))
    world.cache.delete_node(zoned("n3", "z2"))
    assert world.look(WRITE_SECONDS) == "100"


def test_segments_that_count_again_while_topologies_are_read_are_not_told_as_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken is looked up before: by then nobody had counted it."""
    monkeypatch.setattr("berth.scheduling.cache.places.MOST_PLACES", 1)
    world = World(weight_set("UserDefined", segments={"s1>s2": {"networkCost": 5, "bandwidthCapacity": "1000"}}))
    for name, segment in (("n1", "s1"), ("n2", "s2")):
        world.cache.update_node(zoned(name, "z1", labels={LABEL_SEGMENT: segment}))
    world.place("a1", "n1")
    world.place("b1", "n2")
    read = AllocationWriter._stated

    def meanwhile(writer: AllocationWriter, obj: CustomObject) -> Any:
        monkeypatch.setattr("berth.scheduling.cache.places.MOST_PLACES", 2)
        world.cache.update_node(zoned("n3", "z2"))
        world.cache.delete_node(zoned("n3", "z2"))
        return read(writer, obj)

    monkeypatch.setattr(AllocationWriter, "_stated", meanwhile)
    assert world.look() is None
    assert world.look(WRITE_SECONDS) == "100"


def test_our_own_writes_and_a_restart_are_no_reason_to_write() -> None:
    world = World()
    world.look()
    world.look(SMALL_SECONDS)
    world.writer = world.restarted()
    world.look(SMALL_SECONDS)
    assert world.server.writes == 1


def test_a_set_that_an_apply_took_away_is_back() -> None:
    world = World()
    world.look()
    world.server.edit(CAPACITY)
    assert world.look(1) is None
    assert world.look(WRITE_SECONDS) == "0"


def test_small_changes_wait_longer() -> None:
    world = World(weight_set("UserDefined", zones={"z1>z2": {"bandwidthCapacity": "1M"}}))
    world.place("a1", "n1")
    world.place("b1", "n2")
    assert world.look() == "100"
    world.place("a2", "n1")
    assert world.look(WRITE_SECONDS) == "100"
    assert world.look(SMALL_SECONDS - WRITE_SECONDS) == "200"


def test_without_a_capacity_nothing_is_written_and_what_was_goes() -> None:
    world = World(weight_set("UserDefined", zones={"z1>z2": 5}))
    assert world.look() is None
    assert world.server.writes == 0
    world.server.edit(CAPACITY)
    assert world.look(WRITE_SECONDS) == "0"
    world.server.edit(weight_set("UserDefined", zones={"z1>z2": 5}), world.server.weights[-1])
    assert world.look(WRITE_SECONDS) is None
    assert world.look(WRITE_SECONDS) is None
    assert world.server.writes == 2


@pytest.mark.parametrize("written", [True, False], ids=["written since the backup", "edited since the backup"])
def test_an_object_restored_from_a_backup_is_read_anew(written: bool) -> None:
    """Its generation goes back, as no other change has it do."""
    world = World()
    world.look()
    backup = world.server.generation, world.server.weights
    if written:
        world.place("a1", "n1")
        world.place("b1", "n2")
        assert world.look(WRITE_SECONDS) == "100"
    else:
        world.server.edit(weight_set("UserDefined", zones={"z1>z2": {"bandwidthCapacity": "1"}}))
        world.look(1)
        assert world.look(WRITE_SECONDS) == "0"
        world.place("a1", "n1")
        world.place("b1", "n2")
    world.server.generation, world.server.weights = backup
    world.server.show()
    assert world.server.allocated() == "0"
    assert world.look(WRITE_SECONDS) == "100"
    assert world.server.weights[-1]["topologyList"][0]["originList"][0]["costList"][0]["bandwidthCapacity"] == "1000"


def test_a_write_that_the_watch_has_yet_to_show_is_not_repeated() -> None:
    world = World()
    shows, world.server.show = world.server.show, lambda: None  # type: ignore[method-assign]
    world.look()
    world.look(WRITE_SECONDS - 1)
    assert world.server.writes == 1
    world.server.show = shows  # type: ignore[method-assign]
    world.server.show()
    world.look(SMALL_SECONDS)
    assert world.server.writes == 1


def test_a_set_that_is_left_alone_stays() -> None:
    """An apply of nothing would remove the list itself, which every NetworkTopology must have."""
    world = World()
    world.look()
    world.server.edit(world.server.weights[-1])
    assert world.look(WRITE_SECONDS) == "0"
    assert world.server.writes == 1


def test_refused_writes_are_tried_at_the_pace_of_writes() -> None:
    world = World()
    world.server.error = ApiError(status=403, reason="Forbidden", message="no")
    assert world.look() is None
    world.server.error = None
    assert world.look(WRITE_SECONDS - 1) is None
    assert world.look(1) == "0"


class TestHalfCounted:
    """A Service routes the calls of more pods otherwise than are counted at a time."""

    def rerouted(self, policy: str) -> World:
        world = World()
        for number in range(RECOUNTED_PODS):
            name = f"g{number}"
            world.cache.update_group(group_object(name, *chain("a", "b", minBandwidth="100")))
            for workload, node in (("a", "n1"), ("b", "n2")):
                labels = {"app": workload}
                world.cache.update_pod(member(f"{name}{workload}", workload, group=name, on=node, labels=labels))
        assert world.look() == str(100 * RECOUNTED_PODS)
        self.edit(world, policy)
        return world

    @staticmethod
    def edit(world: World, policy: str) -> None:
        raw = {"selector": {"app": "b"}, "internalTrafficPolicy": policy}
        metadata = {"name": "b", "namespace": "default"}
        world.cache.update_service(msgspec.convert({"metadata": metadata, "spec": raw}, Service))

    def test_nothing_is_written_until_the_sums_are_whole(self) -> None:
        world = self.rerouted("Local")
        assert world.look(RECOUNT_SECONDS - 1) == str(100 * RECOUNTED_PODS)
        assert world.cache.bandwidth().behind
        assert world.look(1) == "0", "the second half is counted"
        assert world.server.writes == 2

    def test_who_routes_calls_otherwise_all_the_time_holds_it_up_for_a_minute(self) -> None:
        world = self.rerouted("Local")
        written = []
        for number in range(int(RECOUNT_SECONDS) // 10 + 1):
            world.look(10.0)
            written.append(world.server.writes)
            self.edit(world, "Cluster" if number % 2 == 0 else "Local")
        assert written == [1] * (len(written) - 1) + [2]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"<html>Welcome</html>", id="html"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"null", id="null"),
        pytest.param(b'{"metadata": {"generation": "x"}}', id="another-kind"),
        pytest.param(b'{"kind": "Status"}', id="no-metadata"),
    ],
)
def test_what_a_proxy_answers_has_written_nothing(answer: bytes) -> None:
    world = World()
    world.place("a-0", "n1")
    world.place("b-0", "n2")
    world.server.proxy = answer
    assert world.look() is None
    world.server.proxy = None
    assert world.look(WRITE_SECONDS - 1) is None
    assert world.look(1) == "100"


def test_nothing_is_written_before_the_cluster_has_been_seen() -> None:
    world = World()
    world.started.clear()

    async def run() -> None:
        task = asyncio.create_task(world.writer.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.server.writes == 0
        world.started.set()
        while not world.server.writes:
            await asyncio.sleep(0.001)
        task.cancel()

    asyncio.run(run())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a1", "a2", "b1", "b2"]), st.sampled_from(["n1", "n2", "gone", "group", "edit", "restart"])
    ),
    max_size=15,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_whatever_happened_it_says_what_is_placed_now(steps: list[tuple[str, str]]) -> None:
    world = World()
    there: dict[str, str] = {}
    stated = True
    for name, what in steps:
        if what == "gone":
            world.cache.delete_pod(member(name, name[0], on=there.pop(name, "n1")))
        elif what == "group":
            stated = not stated
            world.cache.update_group(group_object("shop", *chain("a", "b", minBandwidth="100" if stated else "40")))
        elif what == "edit":
            world.server.edit(CAPACITY)
        elif what == "restart":
            world.writer = world.restarted()
        elif name not in there:
            there[name] = what
            world.place(name, what)
        world.look(7.0)
    shown = world.look(SMALL_SECONDS)
    callers = [node for name, node in there.items() if name[0] == "a"]
    endpoints = [node for name, node in there.items() if name[0] == "b"]
    each = -(-(100 if stated else 40) // max(len(endpoints), 1))
    assert shown == str(sum(each for here in callers for other in endpoints if here != other))
    assert taken(world.cache.bandwidth().places).get(LINK, 0) >= 0
