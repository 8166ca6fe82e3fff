"""Which assignments are written, and when; written for real in tests/integration/test_placement_sockets.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import CustomObject, Pod
from berth.scheduling.cache.cache import Cache
from controllers.placement import socket_assignments
from controllers.placement.socket_assignments import FIELD_MANAGER, SocketAssignments
from tests.support import builders
from tests.support.placement import Clock
from tests.support.sockets import asking, classed, owned, status, workload_profile

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Server:
    """Takes assignments as the API server does, and shows them to the cache."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.assigned: dict[str, list[dict[str, Any]]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.errors: list[Exception] = []
        self.refuses: list[str] = []
        """uids of assignments that are not to be left out of what is applied"""
        self.patched: list[dict[str, Any]] = []

    def show(self, node: str) -> None:
        shown = status(node)
        shown.spec = CustomObject.of({"spec": {"assignments": self.assigned.get(node, [])}}).spec
        self.cache.update_sockets(shown)

    async def apply(self, _: Any, name: str, body: dict[str, Any], *, field_manager: str) -> bytes:
        assert field_manager == FIELD_MANAGER
        self.bodies.append(body)
        if self.errors:
            raise self.errors.pop()
        if any(each["uid"] in self.refuses for each in self.assigned.get(name, ())):
            raise ApiError(status=422, reason="Invalid", message="spec.assignments[0].socket: Required value")
        self.assigned[name] = body["spec"]["assignments"]
        self.show(name)
        return b"{}"

    async def get(self, _: Any, name: str) -> dict[str, Any]:
        there = self.assigned.get(name, [])
        items: dict[str, Any] = {f'k:{{"uid":"{each["uid"]}"}}': {"f:socket": {}} for each in there}
        owned = {"f:spec": {"f:assignments": items}}
        metadata: dict[str, Any] = {"uid": f"sockets-{name}", "resourceVersion": "7"}
        metadata["managedFields"] = [{"manager": FIELD_MANAGER, "fieldsV1": owned}, {"manager": "somebody"}]
        theirs = {"uid": "elsewhere", "namespace": "default", "name": "elsewhere", "socket": 1}
        return {"metadata": metadata, "spec": {"assignments": [*there, theirs]}}

    async def merge_patch(self, _: Any, name: str, body: dict[str, Any], *, field_manager: str) -> bytes:
        assert field_manager == FIELD_MANAGER
        self.patched.append(body)
        self.assigned[name] = body["spec"]["assignments"]
        return b"{}"


class World:
    """Two nodes with sockets, and the writer."""

    def __init__(self) -> None:
        self.cache = Cache(clock=Clock(), state=asking())
        for name in ("n1", "n2"):
            self.cache.update_node(builders.node(name, cpu="16"))
        self.server = Server(self.cache)
        self.started = asyncio.Event()

        async def idle() -> None: ...

        async def synced() -> None:
            await self.started.wait()

        self.writer = SocketAssignments(cast("ApiClient", self.server), self.cache, idle, synced, now=lambda: NOW)
        self.cache.state.sockets.follow(self.writer.changed)
        for name in ("n1", "n2"):
            self.server.show(name)

    def bind(self, pod: Pod, node: str) -> None:
        self.cache.assume(pod, node)
        pod.spec.node_name = node
        self.cache.update_pod(pod)

    def write(self) -> dict[str, dict[str, int]]:
        asyncio.run(self.writer.write_all())
        return {
            node: {each["name"]: each["socket"] for each in assignments}
            for node, assignments in self.server.assigned.items()
        }


def test_a_pod_is_assigned_its_socket_once_it_is_bound() -> None:
    world, pod = World(), classed("p", "D")
    world.cache.assume(pod, "n1")
    assert world.write() == {}
    pod.spec.node_name = "n1"
    world.cache.update_pod(pod)
    assert world.write() == {"n1": {"p": 0}}
    (body,) = world.server.bodies
    assert body["metadata"] == {"name": "n1", "uid": "sockets-n1"}
    assert body["spec"]["assignments"] == [
        {
            "uid": "pod-default-p",
            "namespace": "default",
            "name": "p",
            "interferenceClass": "D",
            "socket": 0,
            "time": "2026-11-01T12:00:00Z",
        }
    ]


@pytest.mark.parametrize("profiled", [True, False], ids=["by a profile", "by its label"])
def test_a_pod_of_another_class_is_told_though_it_stays(profiled: bool) -> None:
    world, pod = World(), owned("p", "db")
    if profiled:
        world.cache.update_profile(workload_profile("measured", "D", target="db"))
    else:
        pod.metadata.labels[LABEL_INTERFERENCE_CLASS] = "D"
    world.bind(pod, "n1")
    world.write()
    assert [each["interferenceClass"] for each in world.server.assigned["n1"]] == ["D"]
    if profiled:
        world.cache.update_profile(workload_profile("measured", "A", target="db"))
    else:
        pod.metadata.labels[LABEL_INTERFERENCE_CLASS] = "A"
        world.cache.update_pod(pod)
    for _ in range(2):
        world.write()
        world.writer.changed("n1")
    assert [each["interferenceClass"] for each in world.server.assigned["n1"]] == ["A"]
    assert len(world.server.bodies) == 2


def test_what_the_sockets_say_already_is_not_written() -> None:
    world = World()
    world.bind(classed("p", "D"), "n1")
    for _ in range(3):
        world.write()
        world.writer.changed("n1")
    assert len(world.server.bodies) == 1


def test_a_decision_that_came_to_nothing_is_not_written() -> None:
    world, pod = World(), classed("p", "D")
    world.cache.assume(pod, "n1")
    world.cache.forget(pod)
    assert world.write() == {}


def test_none_is_left_of_a_pod_that_is_gone() -> None:
    world, pods = World(), [classed(f"p{number}", "D") for number in range(2)]
    for pod in pods:
        world.bind(pod, "n1")
    assert set(world.write()["n1"]) == {"p0", "p1"}
    world.cache.delete_pod(pods[0])
    assert set(world.write()["n1"]) == {"p1"}


def test_who_moves_is_assigned_anew_and_who_stays_keeps_the_time() -> None:
    world = World()
    for name, letter in (("a1", "A"), ("a2", "A"), ("d1", "D")):
        world.bind(classed(name, letter), "n1")
    first = world.write()["n1"]
    times = {each["name"]: each["time"] for each in world.server.assigned["n1"]}
    world.writer.now = lambda: NOW.replace(hour=13)
    world.bind(classed("d2", "D"), "n1")
    then = world.write()["n1"]
    assert then["d1"] != then["d2"]
    for each in world.server.assigned["n1"]:
        stayed = first.get(each["name"]) == each["socket"]
        assert (each["time"] == times.get(each["name"])) == stayed


@pytest.mark.parametrize(
    ("annotation", "assigned", "found"),
    [
        pytest.param("1", {}, {"p": 1}, id="bound and not assigned yet"),
        pytest.param("0", {"pod-default-p": 1}, None, id="assigned another since"),
        pytest.param("1", {"pod-default-gone": 0}, {"p": 1}, id="and one that is gone"),
        pytest.param(None, {"pod-default-p": 1}, None, id="assigned without annotation"),
        pytest.param(None, {}, {"p": 0}, id="by nobody"),
    ],
)
def test_after_a_restart_everything_is_found_in_pods_and_sockets(
    annotation: str | None, assigned: dict[str, int], found: dict[str, int] | None
) -> None:
    world = World()
    world.cache.update_pod(classed("p", "D", on="n1", socket=annotation))
    world.cache.update_sockets(status("n1", assigned=assigned))
    assert world.write().get("n1") == found


def test_a_pod_that_gets_a_class_while_it_runs_is_assigned() -> None:
    world = World()
    world.bind(classed("loud", "D"), "n1")
    for name in ("labelled", "measured"):
        world.bind(owned(name, name), "n1")
    assert world.write() == {"n1": {"loud": 0}}
    labelled = owned("labelled", "labelled")
    labelled.spec.node_name, labelled.metadata.labels[LABEL_INTERFERENCE_CLASS] = "n1", "D"
    world.cache.update_pod(labelled)
    assert world.write()["n1"] == {"loud": 0, "labelled": 1}
    world.cache.update_profile(workload_profile("measured", "A"))
    found = world.write()["n1"]
    assert set(found) == {"loud", "labelled", "measured"}
    assert (found["loud"], found["labelled"]) == (0, 1), "nobody moves for one that suffers nothing"
    world.write()
    assert not world.writer._nodes


@pytest.mark.parametrize(
    ("name", "scheduler", "letter"),
    [
        pytest.param("plain", "berth-scheduler", None, id="without class"),
        pytest.param("theirs", "default-scheduler", "D", id="of another scheduler"),
        pytest.param("off", "quiet", "D", id="of a profile that is off"),
    ],
)
def test_never_assigned_and_never_moved(name: str, scheduler: str, letter: str | None) -> None:
    world = World()
    pod = builders.pod(name, cpu="1") if letter is None else classed(name, letter, socket="0")
    pod.spec.scheduler_name = scheduler
    world.bind(pod, "n1")
    assert world.write() == {}
    for number in range(3):
        world.bind(classed(f"p{number}", "D"), "n1")
    assert set(world.write()["n1"]) == {"p0", "p1", "p2"}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        pytest.param(
            ApiError(status=503, reason="ServiceUnavailable", message="later"), True, id="the API server is not there"
        ),
        pytest.param(TimeoutError(), True, id="no answer"),
        pytest.param(ApiError(status=404, reason="NotFound", message="gone"), False, id="deleted"),
        pytest.param(ApiError(status=409, reason="Conflict", message="changed"), True, id="by somebody else"),
        pytest.param(ApiError(status=422, reason="Invalid", message="too many"), True, id="for what others own wholly"),
    ],
)
def test_a_write_that_fails_is_repeated_where_that_can_help(error: Exception, again: bool) -> None:
    world = World()
    world.bind(classed("p", "D"), "n1")
    world.bind(classed("q", "D"), "n2")
    world.server.errors = [error]
    assert list(world.write()) == ["n2"]
    assert world.server.patched == []
    assert set(world.write()) == ({"n1", "n2"} if again else {"n2"})


def test_what_is_refused_for_others_parts_of_it_is_taken_out_as_it_was_read() -> None:
    world, pods = World(), [classed(f"p{number}", "D") for number in range(2)]
    for pod in pods:
        world.bind(pod, "n1")
    world.write()
    world.server.refuses = [pods[0].metadata.uid]
    world.cache.delete_pod(pods[0])
    assert set(world.write()["n1"]) == {"p1"}
    (body,) = world.server.patched
    assert body["metadata"] == {"uid": "sockets-n1", "resourceVersion": "7"}
    assert [each["name"] for each in body["spec"]["assignments"]] == ["p1", "elsewhere"]


async def test_it_waits_for_all_that_says_where_pods_are_and_goes_on_after_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, looks, again = World(), list[int](), asyncio.Event()

    async def write_all(_: SocketAssignments) -> None:
        looks.append(len(looks))
        if len(looks) == 1:
            raise RuntimeError("odd")
        again.set()

    monkeypatch.setattr(SocketAssignments, "write_all", write_all)
    monkeypatch.setattr(socket_assignments, "RETRY_SECONDS", 0.001)
    task = asyncio.create_task(world.writer.run())
    await asyncio.sleep(0)
    assert not looks
    world.started.set()
    async with asyncio.timeout(30):
        await again.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Moving(World):
    """A node whose pods have to move for the pod `last`, which is assumed there."""

    def __init__(self) -> None:
        super().__init__()
        for name, letter in (("a", "A"), ("b", "B"), ("c", "C")):
            self.bind(classed(name, letter), "n1")
        self.before = self.write()["n1"]
        self.last = classed("last", "C")
        self.cache.assume(self.last, "n1")

    @property
    def seats(self) -> dict[str, int | None]:
        """Socket by uid, as it is planned with."""
        return {uid: seat.socket for uid, seat in self.cache.state.sockets.seats("n1").items()}


def test_nobody_moves_for_a_pod_that_is_not_bound_yet() -> None:
    world = Moving()
    planned = world.seats
    assert {uid: socket for uid, socket in planned.items() if uid != "pod-default-last"} != {
        f"pod-default-{name}": socket for name, socket in world.before.items()
    }
    assert world.write()["n1"] == world.before
    world.last.spec.node_name = "n1"
    world.cache.update_pod(world.last)
    assert {f"pod-default-{name}": socket for name, socket in world.write()["n1"].items()} == planned


@pytest.mark.parametrize("relabelled", [False, True], ids=["as it was", "with other labels"])
def test_those_that_move_do_so_with_the_pod_that_is_bound(relabelled: bool) -> None:
    world = Moving()
    planned = world.seats
    world.last.spec.node_name = "n1"
    if relabelled:
        world.last.metadata.labels = world.last.metadata.labels | {"version": "2"}
    world.cache.update_pod(world.last)
    assert world.seats == planned


@pytest.mark.parametrize(
    "undo",
    [
        pytest.param(lambda world: world.cache.forget(world.last), id="refused"),
        pytest.param(lambda world: world.cache.delete_pod(world.last), id="deleted"),
    ],
)
def test_a_plan_that_comes_to_nothing_leaves_all_where_they_were(undo: Callable[[Moving], None]) -> None:
    world = Moving()
    undo(world)
    assert world.seats == {f"pod-default-{name}": socket for name, socket in world.before.items()}
    assert world.write()["n1"] == world.before


def test_a_pod_that_is_judged_anew_has_the_same_pods_move_for_it() -> None:
    world = Moving()
    planned = world.seats
    with world.cache.set_aside(world.last):
        assert world.seats == {f"pod-default-{name}": socket for name, socket in world.before.items()}
    assert world.seats == planned
    assert world.write()["n1"] == world.before


@given(
    letters=st.lists(st.sampled_from("ABCD"), min_size=1, max_size=4),
    coming=st.lists(st.tuples(st.sampled_from("ABCD"), st.booleans()), max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_only_those_that_are_bound_have_moved_anybody(
    letters: list[str], coming: list[tuple[str, bool]], order: Random
) -> None:
    world = World()
    for number, letter in enumerate(letters):
        world.bind(classed(f"there{number}", letter), "n1")
    written = world.write().get("n1", {})
    pods = [(classed(f"new{number}", letter), bound) for number, (letter, bound) in enumerate(coming)]
    for pod, _ in pods:
        world.cache.assume(pod, "n1")
    order.shuffle(pods)
    for pod, bound in pods:
        if bound:
            pod.spec.node_name = "n1"
            world.cache.update_pod(pod)
        else:
            world.cache.forget(pod)
            assert world.write().get("n1", {}) == written
        written = world.write().get("n1", {})
    seats = world.cache.state.sockets.seats("n1").values()
    assert all(not seat.moves and seat.socket == seat.settled for seat in seats)
    assert len(written) == len(seats)
