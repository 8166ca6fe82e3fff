"""One pass over a SocketStatus: what it writes, when it looks again, and what it asks.

The API server is a stand-in that keeps one object and some pods. With a real one:
tests/integration/test_socketstatus_controller.py and test_socketstatus_recovery.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from berth.api.base import format_timestamp
from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from berth.api.socketstatus import API_VERSION, CONDITION_PAIRED, KIND, PLACEMENT_MANAGER, PLURAL
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder, Note
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.sockets import SocketTable
from berth.scheduling.interference.exchange import Seated, Terms, best_exchange
from berth.scheduling.interference.slowdown import SlowdownModel
from controllers.socketstatus import reconciler
from controllers.socketstatus.pods import NodePods, SocketPod
from controllers.socketstatus.reconciler import CONFLICT_DELAY, SETTLES, Reconciler
from tests.support.seats import pod
from tests.support.sockets import workload_profile

OLD = "2026-01-31T12:00:00Z"


class World:
    """The SocketStatus of n1 on an API server that can refuse, and the pass over it."""

    def __init__(
        self, *pods: SocketPod, assigned: dict[str, int], sockets: int = 2, time: str = OLD, assign_all: bool = False
    ) -> None:
        self.pods = {each.metadata.name: each for each in pods}
        self.writes: list[dict[str, Any]] = []
        self.notes: list[Note] = []
        self.delays: list[float] = []
        self.asked: list[str] = []
        self.refusal = 0
        self.refused: dict[str, int] = {}
        self.stated = self.known = True
        keys: dict[str, Any] = {f"k:{json.dumps({'uid': f'uid-{name}'})}": {"f:socket": {}} for name in assigned}
        owner = {"manager": PLACEMENT_MANAGER, "fieldsV1": {"f:spec": {"f:assignments": keys}}}
        self.raw: dict[str, Any] | None = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7", "generation": 3, "managedFields": [owner]},
            "spec": {
                "assignments": [
                    {"uid": f"uid-{name}", "namespace": "default", "name": name, "socket": socket, "time": time}
                    for name, socket in assigned.items()
                ]
            },
            "status": {"sockets": [{"socket": n, "cpus": str(n), "cpuCount": 9} for n in range(sockets)]},
        }
        table = SocketTable()
        self.profiles = table.profiles
        known = NodePods(table, LABEL_INTERFERENCE_CLASS)
        for each in pods:
            known.update(None, each)
        self.reconciler = Reconciler(
            client=cast(ApiClient, self),
            recorder=cast(EventRecorder, self),
            profiles=table.profiles,
            pods=known,
            queue=cast("WorkQueue[str]", self),
            versions=SeenVersions(lambda _: None),
            terms=Terms(),
            class_label=LABEL_INTERFERENCE_CLASS,
            assign_all=assign_all,
            profiles_known=lambda: self.known,
        )

    @property
    def sockets(self) -> dict[str, int]:
        assert self.raw is not None
        return {each["name"]: each["socket"] for each in self.raw["spec"]["assignments"]}

    @property
    def reason(self) -> str:
        assert self.raw is not None
        [found] = [each for each in self.raw["status"]["conditions"] if each["type"] == CONDITION_PAIRED]
        return str(found["reason"])

    def later(self, passed: timedelta) -> None:
        """Let time pass: what was assigned was so much earlier."""
        assert self.raw is not None
        for each in self.raw["spec"]["assignments"]:
            each["time"] = format_timestamp(datetime.fromisoformat(each["time"]) - passed)

    # As the API server

    async def get(self, kind: Any, name: str, **_: Any) -> Any:
        if kind.plural == PLURAL:
            if self.raw is None:
                raise ApiError(status=404, reason="NotFound", message="gone", about=(PLURAL, "n1"))
            return self.raw
        self.asked.append(name)
        if name in self.refused:
            raise ApiError(status=self.refused[name], reason="Refused", message="no", stated=self.stated)
        if name not in self.pods:
            raise ApiError(status=404, reason="NotFound", message="gone", about=("pods", name))
        return self.pods[name]

    async def merge_patch(self, _kind: Any, _name: str, body: dict[str, Any], **_: Any) -> bytes:
        if self.refusal:
            raise ApiError(status=self.refusal, reason="Refused", message="refused")
        assert self.raw is not None
        assert body["metadata"] == {"resourceVersion": self.raw["metadata"]["resourceVersion"]}
        metadata = self.raw["metadata"] | {"resourceVersion": "8", "generation": 4}
        return self._written(body, {**self.raw, "metadata": metadata, "spec": body["spec"]})

    async def apply(self, _kind: Any, _name: str, body: dict[str, Any], **_: Any) -> bytes:
        assert self.raw is not None
        assert body["metadata"] == {"name": "n1", "uid": "u"}
        return self._written(body, {**self.raw, "status": self.raw["status"] | body["status"]})

    def _written(self, body: dict[str, Any], raw: dict[str, Any]) -> bytes:
        self.writes.append(body)
        self.raw = raw
        return msgspec.json.encode(raw)

    # As the queue and the recorder

    def add(self, _key: str, *, delay: float = 0.0) -> None:
        self.delays.append(delay)

    def record(self, note: Note) -> None:
        self.notes.append(note)


def crowd(count: int) -> list[SocketPod]:
    return [pod(f"d{number}", "D") for number in range(count)]


async def test_what_is_right_is_written_once_and_asks_for_nothing() -> None:
    world = World(*crowd(2), assigned={"d0": 0, "d1": 1})
    for _ in range(2):
        assert await world.reconciler.reconcile("n1")
    assert (len(world.writes), world.reason, world.delays, world.asked, world.notes) == (1, "Paired", [], [], [])


async def test_one_exchange_a_pass_and_the_next_a_moment_later() -> None:
    world = World(*crowd(3), assigned={"d0": 0, "d1": 0, "d2": 0}, sockets=3)
    await world.reconciler.reconcile("n1")
    assert sorted(world.sockets.values()) == [0, 0, 1]
    assert (world.reason, len(world.delays)) == ("Waiting", 1)
    await world.reconciler.reconcile("n1")
    assert sorted(world.sockets.values()) == [0, 0, 1], "whatever makes it due again"
    assert all(0 < delay <= SETTLES.total_seconds() for delay in world.delays)
    world.later(SETTLES)
    await world.reconciler.reconcile("n1")
    assert (sorted(world.sockets.values()), world.reason, len(world.delays)) == ([0, 1, 2], "Paired", 2)
    assert [note.reason for note in world.notes] == ["SocketChanged", "Waiting", "SocketChanged", "Paired"]


@pytest.mark.parametrize(
    ("caches", "slowdown", "places"),
    [
        pytest.param({}, "1.19", [0, 1], id="one cache"),
        pytest.param({"pinnedCaches": 2}, "1.19", [0, 0], id="two, in which the agent keeps them apart"),
        pytest.param({"coreCount": 2}, "1.09", [0, 0], id="a core each"),
        pytest.param({"coreCount": 1}, "1.09", [0, 1], id="on SMT siblings they suffer twice"),
    ],
)
async def test_pods_suffer_by_how_close_they_are(caches: dict[str, int], slowdown: str, places: list[int]) -> None:
    owners = {name: [{"kind": "StatefulSet", "name": name, "uid": name, "controller": True}] for name in "ab"}
    world = World(*(pod(name, ownerReferences=owner) for name, owner in owners.items()), assigned={"a": 0, "b": 0})
    for name in "ab":
        slower = {"a": slowdown, "b": slowdown}
        world.profiles.update(workload_profile(name, "D", kind="StatefulSet", slowdowns=slower))
    assert world.raw is not None
    for each in world.raw["status"]["sockets"]:
        each.update(caches)
    await world.reconciler.reconcile("n1")
    assert sorted(world.sockets.values()) == places


async def test_profiles_that_change_meanwhile_count_for_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    mild = {"a": "1.0", "b": "1.0"}
    owners = {name: [{"kind": "StatefulSet", "name": name, "uid": name, "controller": True}] for name in mild}
    world = World(
        *(pod(name, ownerReferences=owner) for name, owner in owners.items()), assigned=dict.fromkeys(mild, 0)
    )
    for name in mild:
        world.profiles.update(workload_profile(name, "D", kind="StatefulSet", slowdowns=mild))

    def changed_first(
        pods: Sequence[Seated], capacities: Sequence[int], model: SlowdownModel, *rest: Any, **more: Any
    ) -> Any:
        for name in mild:
            world.profiles.update(workload_profile(name, "D", kind="StatefulSet", slowdowns=dict.fromkeys(mild, "2")))
        return best_exchange(pods, capacities, model, *rest, **more)

    monkeypatch.setattr(reconciler, "best_exchange", changed_first)
    await world.reconciler.reconcile("n1")
    assert world.sockets == {"a": 0, "b": 0}, "the two do each other no harm, by what the pass has begun with"
    await world.reconciler.reconcile("n1")
    assert sorted(world.sockets.values()) == [0, 1]


async def test_a_pod_that_came_lately_is_looked_at_when_it_may_move() -> None:
    world = World(*crowd(2), assigned={"d0": 0, "d1": 0}, time=format_timestamp(datetime.now(UTC)))
    await world.reconciler.reconcile("n1")
    assert (world.sockets, world.reason) == ({"d0": 0, "d1": 0}, "Waiting")
    [delay] = world.delays
    assert timedelta(minutes=4) < timedelta(seconds=delay) <= timedelta(minutes=5)


async def test_a_pod_that_comes_takes_no_room_that_another_moves_into() -> None:
    large = [pod(f"d{number}", "D", cpu="5") for number in range(2)]
    world = World(*large, pod("new", "A", cpu="9"), assigned={"d0": 0, "d1": 0}, assign_all=True)
    await world.reconciler.reconcile("n1")
    assert world.sockets == {"d0": 0, "d1": 0, "new": 1}
    assert [note.reason for note in world.notes] == ["Disturbed"]


@pytest.mark.parametrize(
    ("cpu", "annotations", "assign_all", "expected"),
    [
        pytest.param("1", {}, True, 1, id="with room elsewhere"),
        pytest.param("10", {}, True, 7, id="without room"),
        pytest.param("1", {ANNOTATION_SOCKET: "7"}, True, 7, id="that is for placement to do"),
        pytest.param("1", {}, False, 7, id="that nobody asked for"),
    ],
)
async def test_a_pod_whose_socket_the_node_has_no_more_is_assigned_another(
    cpu: str, annotations: dict[str, str], assign_all: bool, expected: int
) -> None:
    """As one of a machine that has started again with fewer sockets: its pods have the UIDs that they had."""
    far = pod("far", "D", cpu=cpu, annotations=annotations)
    world = World(far, pod("here", "D"), assigned={"far": 7, "here": 0}, assign_all=assign_all)
    for _ in range(2):
        await world.reconciler.reconcile("n1")
    assert world.sockets == {"far": expected, "here": 0}
    assert world.reason == ("Paired" if expected == 1 else "BadInput")
    assert len([each for each in world.writes if "spec" in each]) == (expected == 1), "once"


async def test_a_conflict_is_read_again_and_any_other_refusal_is_told() -> None:
    world = World(*crowd(2), assigned={"d0": 0, "d1": 0})
    world.refusal = 409
    assert await world.reconciler.reconcile("n1")
    assert (world.delays, world.writes) == ([CONFLICT_DELAY], [])
    world.refusal = 422
    with pytest.raises(ApiError):
        await world.reconciler.reconcile("n1")


async def test_only_pods_that_are_not_known_are_asked_for() -> None:
    world = World(pod("d0", "D"), assigned={"d0": 0, "late": 0, "gone": 1})
    world.pods["late"] = pod("late", "D")
    await world.reconciler.reconcile("n1")
    assert (world.asked, world.sockets) == (["late", "gone"], {"d0": 0, "late": 0})
    assert [note.message for note in world.notes] == ["Taken out, no such pod runs here: default/gone (uid-gone)"]


@pytest.mark.parametrize(
    ("letter", "known", "mine", "left"),
    [
        pytest.param("", True, True, [], id="no label"),
        pytest.param("", False, True, ["d"], id="profiles are not known"),
        pytest.param("", True, False, ["d"], id="somebody else has assigned it"),
        pytest.param("D", True, True, ["d"], id="with a class"),
        pytest.param("E", True, True, ["d"], id="with what is no class"),
    ],
)
async def test_what_berth_has_assigned_goes_with_the_class(
    letter: str, known: bool, mine: bool, left: list[str]
) -> None:
    world = World(pod("d", letter), assigned={"d": 0})
    world.known = known
    assert world.raw is not None
    if not mine:
        world.raw["metadata"]["managedFields"] = []
    await world.reconciler.reconcile("n1")
    assert (list(world.sockets), world.asked) == (left, [])
    told = [note.message for note in world.notes if note.reason == "AssignmentsRemoved"]
    assert told == ([] if left else ["Taken out, the pod has no class: default/d (uid-d)"])


async def test_a_pod_whose_class_a_profile_states_stays_assigned() -> None:
    there = pod("d", "", ownerReferences=[{"kind": "StatefulSet", "name": "d", "uid": "s", "controller": True}])
    world = World(there, assigned={"d": 0})
    world.profiles.update(workload_profile("d", "D", kind="StatefulSet"))
    await world.reconciler.reconcile("n1")
    assert world.sockets == {"d": 0}


@pytest.mark.parametrize("field", ["name", "namespace"])
@pytest.mark.parametrize("text", ["..", "a/b", "%2e", "a b", "-a", "a.", "A", "ä", "a\n"])
async def test_what_no_pod_can_be_called_is_gone_without_asking(field: str, text: str) -> None:
    world = World(*crowd(2), assigned={"d0": 0, "d1": 0, "odd": 0})
    assert world.raw is not None
    world.raw["spec"]["assignments"][2][field] = text
    await world.reconciler.reconcile("n1")
    assert (world.asked, world.sockets.keys(), sorted(world.sockets.values())) == ([], {"d0", "d1"}, [0, 1])
    assert [note.reason for note in world.notes] == ["AssignmentsRemoved", "SocketChanged"]


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_an_assignment_whose_pod_the_server_does_not_tell_stays_and_others_go_on(status: int) -> None:
    world = World(*crowd(2), assigned={"odd": 0, "d0": 0, "d1": 0, "gone": 0})
    world.refused = {"odd": status}
    with pytest.raises(ApiError, match="Refused"):  # so that the queue has it looked at again
        await world.reconciler.reconcile("n1")
    assert (world.sockets["odd"], "gone" in world.sockets, world.sockets["d0"]) == (0, False, 1 - world.sockets["d1"])
    assert world.reason == "BadInput"
    text = f"spec.assignments: whether default/odd (uid-odd) is there is not known: {status} Refused: no"
    assert text in world.notes[-1].message


async def test_a_refusal_that_ends_is_noticed_without_an_event() -> None:
    world = World(pod("d0", "D"), assigned={"odd": 0, "d0": 0})
    world.refused = {"odd": 403}
    queue: WorkQueue[str] = WorkQueue(lambda node: node)
    passes: list[str] = []

    async def work(node: str) -> bool:
        passes.append(node)
        if len(passes) == 3:
            world.refused = {}
        found = await world.reconciler.reconcile(node)
        done.set()
        return found

    done = asyncio.Event()
    queue.add("n1")
    working = asyncio.create_task(queue.run(work, workers=1))
    async with asyncio.timeout(60):
        await done.wait()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    assert (len(passes), world.sockets.keys(), world.reason) == (3, {"d0"}, "Paired")


@pytest.mark.parametrize(("status", "stated"), [(401, True), (429, True), (503, True), (404, False)])
async def test_a_server_in_trouble_is_asked_again(status: int, stated: bool) -> None:
    world = World(*crowd(2), assigned={"odd": 0, "d0": 0, "d1": 0})
    world.refused, world.stated = {"odd": status}, stated
    with pytest.raises(ApiError):
        await world.reconciler.reconcile("n1")
    assert world.writes == []


async def test_one_that_cannot_be_read_is_left_alone_and_one_that_is_gone_forgotten() -> None:
    world = World(assigned={})
    assert world.raw is not None
    raw, world.raw = world.raw, {**world.raw, "spec": {"assignments": "none"}}
    assert await world.reconciler.reconcile("n1")
    world.raw = {**raw, "metadata": raw["metadata"] | {"deletionTimestamp": OLD}}
    assert not await world.reconciler.reconcile("n1")
    world.raw = None
    assert not await world.reconciler.reconcile("n1")
    assert world.writes == []
