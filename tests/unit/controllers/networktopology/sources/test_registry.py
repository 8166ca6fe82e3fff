"""A source is one class: registered, its readings, its reasons and its changes take effect without any other edit.

The source of these tests measures what the annotation ``toy`` of a NetworkTopology says.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from berth.api.conditions import ConditionUpdate
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.api.networktopology import ANNOTATION_SOURCE, NetworkTopology
from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder, Note
from berth.runtime.component import ComponentContext
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.networktopology.forecast import forecast
from controllers.networktopology.nodes import NodeWatch
from controllers.networktopology.places import Places
from controllers.networktopology.reconciler import Reconciler
from controllers.networktopology.sources.base import (
    Measurement,
    Published,
    Reading,
    Source,
    SourceState,
    TopologyKey,
    available,
)
from controllers.networktopology.sources.configmap import ConfigMaps
from controllers.networktopology.sources.probereports import ProbeReports
from controllers.networktopology.sources.prometheus import Prometheus
from controllers.networktopology.sources.registry import SOURCES, Sources, candidates, choice_problems
from controllers.networktopology.sources.userdefined import UserDefined
from tests.support.topologies import places, raw_topology, topology, weight_set

KEY = TopologyKey("shop", "net")
TWO_ZONES = places(n1="r/A", n2="r/B")
LABELS = {name: {LABEL_REGION: place.region, LABEL_ZONE: place.zone} for name, place in TWO_ZONES.nodes.items()}


class Toy(Source):
    """Named by the annotation ``toy``, whose value is the latency from n1 to n2."""

    followed: set[TopologyKey]

    @classmethod
    def named_by(cls, topology: NetworkTopology) -> bool:
        """Return whether there is the annotation."""
        return "toy" in topology.metadata.annotations

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        """Return the one measurement."""
        value = topology.metadata.annotations["toy"]
        if value == "soon":
            return Reading(SourceState.PENDING, "Toy")
        if value == "none":
            return Reading(SourceState.EMPTY, "Toy")
        return Reading(SourceState.READ, "Toy", measurements=(Measurement("n1", "n2", 100 * int(value)),))

    async def read(self, key: TopologyKey, topology: NetworkTopology, places: Places) -> Reading:
        """Follow and read."""
        self.followed = {*getattr(self, "followed", ()), key}
        return await super().read(key, topology, places)

    def availability(self, reading: Reading, instead: str) -> ConditionUpdate:
        """Return a reason of its own."""
        if reading.usable:
            return available(True, "ToyRead", "The toy was read")
        return available(False, "ToyEmpty", f"The toy says nothing; {instead}")

    def forget(self, key: TopologyKey) -> None:
        """Follow no longer."""
        self.followed = getattr(self, "followed", set()) - {key}


def sources(changed: Callable[[TopologyKey], None]) -> Sources:
    context, client = cast(ComponentContext, None), cast(ApiClient, None)
    return Sources(context, client=client, changed=changed, kinds=(Toy, ConfigMaps, UserDefined))


class Server:
    """Holds one NetworkTopology and takes in what is applied to it."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    async def get(self, *_: Any, **__: Any) -> dict[str, Any]:
        return self.raw

    async def apply(self, _kind: Any, _name: str, body: dict[str, Any], *, subresource: str = "", **_: Any) -> bytes:
        if subresource:
            self.raw["status"] = body["status"]
        else:
            self.raw["spec"]["weights"] += body["spec"]["weights"]
        return msgspec.json.encode(self.raw)


class World:
    """A reconciler with the toy source."""

    def __init__(self, annotation: str) -> None:
        stated = weight_set("UserDefined", zones={"A>B": 9})
        self.server = Server(raw_topology(stated, annotations={"toy": annotation}))
        self.notes: list[Note] = []
        self.queue: WorkQueue[TopologyKey] = WorkQueue(lambda key: key.namespace)
        self.sources = sources(self.queue.add)
        nodes = NodeWatch(cast(ApiClient, self.server), changed=lambda: None)
        nodes._places = TWO_ZONES
        self.reconciler = Reconciler(
            client=cast(ApiClient, self.server),
            recorder=cast(EventRecorder, self),
            nodes=nodes,
            sources=self.sources,
            queue=self.queue,
            versions=SeenVersions(lambda _: None),
            algorithm="Dijkstra",
            cost_unit=100,
        )

    def record(self, note: Note) -> None:
        self.notes.append(note)

    @property
    def source(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.raw["status"]["conditions"][0]
        return found

    def zones(self, name: str) -> Any:
        (weights,) = [item for item in self.server.raw["spec"]["weights"] if item["name"] == name]
        return weights["topologyList"][-1]["originList"]


async def test_its_reading_is_written() -> None:
    world = World("7")
    assert await world.reconciler.reconcile(KEY)
    assert world.zones("Dijkstra") == [{"origin": "A", "costList": [{"destination": "B", "networkCost": 7}]}]
    assert world.zones("NetperfCosts") == world.zones("Dijkstra")
    assert (world.source["reason"], world.source["message"]) == ("ToyRead", "The toy was read")


async def test_its_reasons_are_told_and_stated_costs_stand_in_for_it() -> None:
    world = World("none")
    assert await world.reconciler.reconcile(KEY)
    assert world.zones("Dijkstra") == [{"origin": "A", "costList": [{"destination": "B", "networkCost": 9}]}]
    assert world.source["message"] == "The toy says nothing; until then costs come from UserDefined"
    assert ("ToyEmpty", True) in [(note.reason, note.warning) for note in world.notes]


@pytest.mark.parametrize("annotation", ["7", "none"], ids=["read", "stated costs stand in"])
async def test_a_plan_counts_with_what_the_controller_writes(annotation: str) -> None:
    world = World(annotation)
    expected = forecast(copy.deepcopy(world.server.raw), LABELS, {}, kinds=(Toy, *SOURCES))
    assert await world.reconciler.reconcile(KEY)
    assert expected["spec"] == world.server.raw["spec"]


async def test_while_it_is_pending_nothing_is_written_and_it_is_looked_at_again() -> None:
    world = World("soon")
    before = msgspec.json.encode(world.server.raw)
    assert await world.reconciler.reconcile(KEY)
    assert msgspec.json.encode(world.server.raw) == before
    assert len(world.queue) == 1


async def test_its_changes_make_a_topology_due() -> None:
    world = World("7")
    toy = world.sources._sources[0]
    toy._changed(KEY)
    assert len(world.queue) == 1
    assert world.queue.known == {KEY}


@pytest.mark.parametrize("gone", [True, False], ids=["deleted", "names another source"])
async def test_it_follows_only_what_names_it(gone: bool) -> None:
    world = World("7")
    toy = world.sources._sources[0]
    assert isinstance(toy, Toy)
    await world.reconciler.reconcile(KEY)
    assert toy.followed == {KEY}
    if gone:
        world.server.raw["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    else:
        del world.server.raw["metadata"]["annotations"]["toy"]
    assert await world.reconciler.reconcile(KEY) != gone
    assert toy.followed == set()


async def test_the_first_source_that_is_named_is_read() -> None:
    both = topology(configmap="netperf")
    both.metadata.annotations["toy"] = "3"
    named, reading, basis, choice = await sources(print).read(KEY, both, TWO_ZONES)
    assert isinstance(named, Toy)
    assert reading is basis
    assert basis.measurements == (Measurement("n1", "n2", 300),)
    assert choice == Toy.choice


@pytest.mark.parametrize(
    ("configmap", "choice", "expected"),
    [
        pytest.param("", None, (ProbeReports, Prometheus, UserDefined), id="by preference"),
        pytest.param("netperf", None, (ProbeReports, Prometheus, ConfigMaps, UserDefined), id="with a ConfigMap"),
        pytest.param("netperf", "probereports", (ProbeReports, UserDefined), id="reports alone"),
        pytest.param("netperf", "prometheus", (Prometheus, UserDefined), id="Prometheus alone"),
        pytest.param("netperf", "configmap", (ConfigMaps, UserDefined), id="the ConfigMap alone"),
        pytest.param("", "configmap", (UserDefined,), id="a ConfigMap that the spec does not name"),
        pytest.param("netperf", "userdefined", (UserDefined,), id="what people stated"),
        pytest.param("netperf", "guesses", (ProbeReports, Prometheus, ConfigMaps, UserDefined), id="no such source"),
    ],
)
def test_an_annotation_chooses_the_source(
    configmap: str, choice: str | None, expected: tuple[type[Source], ...]
) -> None:
    net = topology(configmap=configmap)
    if choice is not None:
        net.metadata.annotations[ANNOTATION_SOURCE] = choice
    assert candidates(net, SOURCES) == list(expected)
    problems = [str(problem) for problem in choice_problems(net)]
    if choice == "guesses":
        known = "probereports, prometheus, configmap, userdefined"
        assert problems == [f"metadata.annotations.berth.dev/source: no such source: 'guesses'; choose from {known}"]
    else:
        assert problems == []


class Automatic(Toy):
    """Used where it exists, although nobody named it; its annotation says in which state it is."""

    automatic = True
    choice = "automatic"

    @classmethod
    def reading(cls, topology: NetworkTopology, places: Places, published: Published) -> Reading:
        state = SourceState(topology.metadata.annotations["toy"])
        return Reading(state, "Automatic")


@pytest.mark.parametrize(
    ("state", "choice", "told", "basis", "used_choice"),
    [
        pytest.param("Missing", "", UserDefined, "UserDefined", "userdefined", id="passed over without a word"),
        pytest.param("Missing", "automatic", Automatic, "UserDefined", "userdefined", id="missed, for it was chosen"),
        pytest.param("Empty", "", Automatic, "UserDefined", "userdefined", id="there and of no use: told"),
        pytest.param("Read", "", Automatic, "Automatic", "automatic", id="used"),
        pytest.param("TooFew", "", Automatic, "UserDefined", "userdefined", id="too few to begin with: told"),
        pytest.param("Pending", "", Automatic, "Automatic", "", id="pending: nothing may stand in for it"),
        pytest.param("Failed", "", Automatic, "Automatic", "", id="unreadable: nothing may stand in for it"),
    ],
)
async def test_what_is_told_of_a_source_that_nobody_named(
    state: str, choice: str, told: type[Source], basis: str, used_choice: str
) -> None:
    context, client = cast(ComponentContext, None), cast(ApiClient, None)
    several = Sources(context, client=client, changed=print, kinds=(Automatic, UserDefined))
    net = topology(weight_set("UserDefined", zones={"A>B": 9}))
    net.metadata.annotations.update({"toy": state, ANNOTATION_SOURCE: choice})
    source, reading, used, chosen = await several.read(KEY, net, TWO_ZONES)
    assert (type(source), used.name, chosen) == (told, basis, used_choice)
    assert reading.settled == used.settled
