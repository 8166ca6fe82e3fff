"""What is looked at before it is decided about a policy in which each user counts, and what of the decision is kept.

Left out: the decisions (tests/unit/berth/scheduling/latency), carrying them out (tests/integration/test_latency_*).
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from berth.api.latency_exchange import ProbeAnswer, UserRoundTrips
from berth.api.latencypolicy import (
    MAX_NODES,
    Association,
    Exploration,
    LatencyPolicy,
    LatencyPolicyStatus,
    MeasurementSource,
    Move,
    Objective,
    Outcome,
    Surge,
)
from berth.kube.objects import ObjectMeta, PodCondition
from berth.scheduling.cache.cache import Cache
from berth.scheduling.latency import moves
from berth.scheduling.latency.situation import Create, Evict, Probe, Steer
from controllers.latency.candidates import Candidates
from controllers.latency.crowd import AT_ONCE
from controllers.latency.deciding import Chosen, Deciding
from controllers.latency.objects import NetworkNode
from controllers.latency.observations import Observations
from controllers.latency.orders import PATIENCE, Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies, target_of
from controllers.latency.routers import HEARD
from controllers.latency.workloads import Workloads
from tests.support import builders
from tests.support.latency import NOW, later
from tests.support.placement import Clock
from tests.unit.controllers.latency.test_workloads import autoscaler, policy, web_pod

KEY = "shop/web"


class Room:
    """A workload with one pod on node a, users of one network, and agents that are played."""

    def __init__(
        self, *nodes: str, held: bool = False, status: LatencyPolicyStatus | None = None, **users: Any
    ) -> None:
        self.workloads, self.places, self.observations = Workloads(), Places([]), Observations()
        self.clock, self.evicted = Clock(), set[str]()
        self.orders, self.candidates = Orders(self.clock), Candidates(Cache(clock=Clock()))
        self.nodes = nodes or ("a", "b", "c")
        for name in self.nodes:
            self.candidates.node_changed(None, builders.node(name, cpu="8"))
            self.places.node_changed(None, NetworkNode(metadata=ObjectMeta(name=name)))
        pod = web_pod("u1", cpu="100m")
        pod.status.conditions.append(PodCondition(type="Ready", status="True"))
        self.workloads.pod_changed(None, pod)
        self.candidates.pod_changed(None, pod)
        if held:
            self.workloads.autoscaler_changed(None, autoscaler())
        policies = Policies()
        spec: dict[str, Any] = {"hardMaxLatency": 40, "users": {"mode": "PerUser", **users}}
        assert policies.update(policy(**spec)) is None
        found = policies.get(KEY)
        assert found is not None
        self.policy: LatencyPolicy = found.model_copy(update={"status": status or LatencyPolicyStatus()})
        self.deciding = Deciding(
            workloads=self.workloads,
            candidates=self.candidates,
            places=self.places,
            observations=self.observations,
            orders=self.orders,
            evicted=lambda _: self.evicted,
            refusal=lambda _: "",
        )

    def hear(self, at: float = 0, count: int = 3) -> None:
        users = [UserRoundTrips(f"u{number}", (90_000,) * 3, 0.0, f"203.0.113.{number + 1}") for number in range(count)]
        self.observations.served(KEY, "a", users, later(at), each=True)

    async def choose(self, at: float = 0, replicas: int = 1) -> Chosen:
        return await self.deciding.choose(KEY, self.policy, replicas, later(at))

    async def probes(self, at: float) -> list[str]:
        """Choose, remember that, and ask agents as the reconciler does; returns the nodes whose agents are asked."""
        found = await self.choose(at)
        self.policy = self.policy.model_copy(update={"status": found.status})
        for action in found.actions:
            if isinstance(action, Probe):
                self.orders.ask(KEY, action.nodes, self.observations.to_probe(KEY, bool, later(at)))
                return sorted(action.nodes)
        return []

    def measure(self, at: float = 0, **far: float) -> None:
        """Agents measure who is due, from nodes that are named."""
        for address in self.observations.to_probe(KEY, bool, later(at)):
            for node, milliseconds in far.items():
                self.observations.probed(KEY, node, address, (round(milliseconds * 1000),) * 3, later(at))


async def test_users_are_probed_then_a_pod_moves_and_each_has_a_node() -> None:
    room = Room()
    room.hear()
    found = await room.choose()
    assert [{*action.nodes} for action in found.actions if isinstance(action, Probe)] == [{"a", "b", "c"}]
    room.measure(a=90, b=60, c=10)
    found = await room.choose(1)
    assert [action.node for action in found.actions if isinstance(action, Create)] == ["c"]
    assert {each.node for each in found.status.associations} == {"a"}
    assert found.each is not None
    assert (found.each.users, found.each.served) == (3, (90_000,) * 3)


async def test_nobody_is_probed_while_answers_are_awaited() -> None:
    room = Room()
    room.hear()
    room.orders.ask(KEY, ["a"], ["203.0.113.1"])
    assert not [action for action in (await room.choose()).actions if isinstance(action, Probe)]
    [order] = await room.orders.wait("a", 0)
    assert room.orders.answer("a", ProbeAnswer(order.id)) is not None
    assert [action for action in (await room.choose()).actions if isinstance(action, Probe)]


@pytest.mark.parametrize("mode", ["Single", "PerUser"])
async def test_users_are_probed_by_agents_that_come_late(mode: str) -> None:
    room = Room(mode=mode)
    users = [UserRoundTrips(f"u{number}", (90_000,), 0.0, f"203.0.{number}.1") for number in range(AT_ONCE + 1)]
    room.observations.served(KEY, "a", users, NOW, each=mode == "PerUser")
    for at in (0.0, PATIENCE, 2 * PATIENCE):
        found = await room.probes(at)
        room.clock.advance(PATIENCE)
    assert found == [], "they count as those who do not answer"
    room.clock.advance(60)
    assert await room.probes(60) == [], "and are left alone without agents"
    await room.orders.wait("b", 0)
    assert await room.probes(61) == ["a", "b", "c"]
    assert {order.address for order in await room.orders.wait("b", 0)} >= {user.address for user in users[1:5]}


@pytest.mark.parametrize(
    ("held", "replicas"), [pytest.param(False, 2, id="ours"), pytest.param(True, None, id="who else scales it")]
)
async def test_who_else_scales_the_workload_has_the_number_and_the_pods(held: bool, replicas: int | None) -> None:
    going = Move(
        pod="web-1",
        source_node="a",
        target_node="c",
        reason="MoreUsers",
        outcome=Outcome.CREATING,
        start_time=later(-10),
    )
    room = Room(held=held, maxReplicas=3, status=LatencyPolicyStatus(moves=(going,) if held else ()))
    room.hear()
    room.measure(a=90, b=60, c=10)
    found = await room.choose(1)
    assert found.replicas == replicas
    assert not [action for action in found.actions if not isinstance(action, Probe)]
    assert len(found.status.associations) == 3
    assert [move.outcome for move in found.status.moves] == ([Outcome.CANCELLED] if held else [])
    assert found.each is not None
    assert (found.each.held is not None) is held


async def test_of_many_nodes_those_with_pods_and_those_that_are_known_are_looked_at() -> None:
    room = Room(*(f"n{number:03}" for number in range(MAX_NODES + 50)), "a")
    room.hear()
    found = await room.choose()
    assert len(found.view.nodes) == MAX_NODES
    assert found.view.nodes[0] == "a"
    assert {*found.view.candidates} <= {*found.view.nodes}


async def test_a_move_to_one_of_many_nodes_goes_on_though_each_user_counts_from_now_on() -> None:
    """No plan has its node then, and that is not gone because others are looked at."""
    going = Move(
        pod="web-1",
        source_node="a",
        target_node="z",
        reason="Nearer",
        outcome=Outcome.CREATING,
        start_time=later(-10),
    )
    many = (f"n{number:03}" for number in range(MAX_NODES + 50))
    room = Room(*many, "a", "z", status=LatencyPolicyStatus(moves=(going,)))
    room.hear()
    assert [move.outcome for move in (await room.choose()).status.moves] == [Outcome.CREATING]


async def test_those_who_have_a_pod_are_users_after_a_restart() -> None:
    routed = (Association(user="u", node="a", last_seen_time=later(-100)),)
    room = Room(status=LatencyPolicyStatus(associations=routed))
    assert (await room.choose()).users
    assert not (await room.choose(201)).users


async def test_where_all_count_as_one_nobody_is_routed() -> None:
    routed = (Association(user="u", node="a", last_seen_time=NOW),)
    room = Room(status=LatencyPolicyStatus(associations=routed, plan=("b",), fewer_time=NOW), mode="Single")
    found = await room.choose()
    assert (found.status.associations, found.status.plan, found.status.fewer_time) == ((), (), None)
    assert (found.each, found.replicas) == (None, None)


def measured_by_routers(room: Room, *nodes: str, there: str) -> None:
    """Users on node a, whose requests came through routers of these nodes; others have told nothing yet."""
    room.observations.served(KEY, "a", [UserRoundTrips("u", (120_000,) * 3)], NOW)
    for node in nodes:
        user = UserRoundTrips("u", (60_000,) * 3)
        room.observations.served(KEY, node, [user], NOW, MeasurementSource.ROUTER)
    for node in there:
        room.observations.routers(KEY).heard(node, ["u"], NOW)


def aims_at_the_minimum(room: Room, *exploration: Exploration) -> None:
    changed = {"objective": Objective.MINIMUM, "hard_max_latency": None, "exploration": exploration}
    room.policy = room.policy.model_copy(update={"spec": room.policy.spec.model_copy(update=changed)})


@pytest.mark.parametrize("exploration", [(Exploration.STEER,), (Exploration.STEER, Exploration.MIGRATE)])
async def test_no_pod_moves_before_the_routers_of_all_nodes_have_had_time_to_tell(
    exploration: tuple[Exploration, ...],
) -> None:
    """They tell one after another, as after a start: a pod went to the first node that was known, and then went on."""
    room = Room(mode="Single")
    aims_at_the_minimum(room, *exploration)
    measured_by_routers(room, "b", there="ab")
    first = await room.choose()
    assert first.actions == ()
    assert first.times[0] == NOW + HEARD
    room.observations.routers(KEY).heard("c", [], NOW)
    assert (await room.choose()).actions == (Steer("c"),)


@pytest.mark.parametrize(("after", "moves"), [(HEARD.total_seconds() - 1, False), (HEARD.total_seconds(), True)])
async def test_a_restarted_process_awaits_routers_that_there_were(after: float, moves: bool) -> None:
    room = Room(mode="Single")
    aims_at_the_minimum(room, Exploration.STEER)
    measured_by_routers(room, "b", there="abc")
    room.policy = room.policy.model_copy(update={"status": (await room.choose()).status})
    room.observations.forget(KEY)
    measured_by_routers(room, there="")
    assert (await room.choose()).actions == ()
    found = await room.choose(after)
    assert [action.node for action in found.actions if isinstance(action, Create)] == (["b"] if moves else [])


@pytest.mark.parametrize(
    ("there", "steers"),
    [
        pytest.param("abc", True, id="routers on all nodes: through them"),
        pytest.param("", False, id="on none: a pod explores"),
    ],
)
async def test_nodes_are_explored_by_requests_where_routers_can_send_them(there: str, steers: bool) -> None:
    room = Room(mode="Single")
    aims_at_the_minimum(room, *Exploration)
    room.observations.served(KEY, "a", [UserRoundTrips("u", (90_000,) * 3)], NOW)
    for node in there:
        room.observations.routers(KEY).heard(node, ["u"], NOW)
    asked = await room.choose()
    room.policy = room.policy.model_copy(update={"status": asked.status})
    found = await room.choose(6)
    assert any(isinstance(action, Steer) for action in found.actions) is steers
    assert any(isinstance(action, Create) for action in found.actions) is not steers


async def test_a_pod_explores_where_some_nodes_have_no_router() -> None:
    room = Room(mode="Single")
    aims_at_the_minimum(room, Exploration.STEER, Exploration.MIGRATE)
    measured_by_routers(room, "b", there="ab")
    assert (await room.choose()).actions == ()
    measured_by_routers(room, "b", there="ab")
    for node in "ab":
        room.observations.routers(KEY).heard(node, ["u"], NOW + HEARD)
    found = await room.choose(HEARD.total_seconds())
    assert [action.node for action in found.actions if isinstance(action, Create)] == ["c"]


async def test_a_pod_that_was_evicted_is_not_there_any_more_before_the_watch_shows_it() -> None:
    """A move that takes too long by then is made: its new pod would go as well."""
    last = later(-moves.PATIENCE.total_seconds())
    times = {"start_time": last, "ready_time": last}
    move = Move(pod="web-1", source_node="a", target_node="b", reason="Nearer", outcome=Outcome.EVICTING, **times)
    room = Room(status=LatencyPolicyStatus(moves=(move,)), mode="Single")
    other = web_pod("u2")
    other.metadata.name, other.spec.node_name = "web-2", "b"
    room.workloads.pod_changed(None, other)
    room.evicted.add("u1")
    found = await room.choose()
    assert [pod.name for pod in found.view.pods] == ["web-2"]
    assert [each.outcome for each in found.status.moves] == [Outcome.MOVED]


@pytest.mark.parametrize("mode", ["Single", "PerUser"])
@pytest.mark.parametrize("outcome", [Outcome.CREATING, Outcome.EVICTING])
@pytest.mark.parametrize(
    ("gone", "evicted", "ended"),
    [pytest.param("", ["web-1"], [], id="none"), pytest.param("b", ["web-2"], [Outcome.CANCELLED], id="the new one")],
)
async def test_a_pod_whose_node_is_gone_serves_nobody(
    mode: str, outcome: Outcome, gone: str, evicted: list[str], ended: list[Outcome]
) -> None:
    """Nobody is left to say so: the pod is ready for a minute, until it is collected."""
    ready = later(-1) if outcome is Outcome.EVICTING else None
    move = Move(
        pod="web-1",
        source_node="a",
        target_node="b",
        reason="MoreUsers",
        outcome=outcome,
        start_time=later(-10),
        ready_time=ready,
    )
    room = Room(status=LatencyPolicyStatus(moves=(move,)), mode=mode)
    other = web_pod("u2")
    other.metadata.name, other.spec.node_name = "web-2", "b"
    other.status.conditions.append(PodCondition(type="Ready", status="True"))
    room.workloads.pod_changed(None, other)
    if gone:
        room.places.node_changed(NetworkNode(metadata=ObjectMeta(name=gone)), None)
    found = await room.choose()
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted
    assert [each.outcome for each in found.status.moves if each.outcome not in moves.OPEN] == ended


# While it is decided the event loop goes on


@pytest.mark.parametrize(
    ("stops", "evicted"),
    [
        pytest.param("web-2", [], id="the one that replaces it: the other stays"),
        pytest.param("web-1", ["web-1"], id="the one that goes"),
        pytest.param("", ["web-1"], id="none"),
    ],
)
async def test_nothing_is_evicted_where_another_has_stopped_serving_meanwhile(stops: str, evicted: list[str]) -> None:
    move = Move(
        pod="web-1",
        source_node="a",
        target_node="b",
        reason="MoreUsers",
        outcome=Outcome.EVICTING,
        start_time=later(-10),
        ready_time=later(-1),
    )
    room = Room(status=LatencyPolicyStatus(moves=(move,)))
    other = web_pod("u2")
    other.metadata.name, other.spec.node_name = "web-2", "b"
    other.status.conditions.append(PodCondition(type="Ready", status="True"))
    room.workloads.pod_changed(None, other)
    room.hear()
    deciding = asyncio.create_task(room.choose())
    await asyncio.sleep(0)
    for uid, pod in [*room.workloads.pods(target_of(room.policy)).items()]:
        if pod.metadata.name == stops:
            gone = web_pod(uid)
            gone.metadata.name, gone.spec.node_name = pod.metadata.name, pod.spec.node_name
            room.workloads.pod_changed(pod, gone)
    found = await deciding
    assert [action.pod for action in found.actions if isinstance(action, Evict)] == evicted


async def test_users_who_are_heard_of_meanwhile_count_the_next_time() -> None:
    room = Room()
    room.hear(count=3)
    deciding = asyncio.create_task(room.choose())
    await asyncio.sleep(0)
    room.hear(1, count=5)
    found = await deciding
    assert found.each is not None
    assert found.each.users == 3
    found = await room.choose(1)
    assert found.each is not None
    assert found.each.users == 5


async def test_one_of_few_who_comes_from_two_networks_in_turn_does_not_keep_pods_from_moving() -> None:
    room, moved = Room(), list[int]()
    for at in range(60):
        room.hear(at)
        both = UserRoundTrips("both", (90_000,), 0.0, f"198.51.{at % 2}.7")
        room.observations.served(KEY, "a", [both], later(at), each=True)
        found = await room.choose(at)
        room.measure(at, a=90, b=60, c=10)
        room.policy = room.policy.model_copy(update={"status": found.status})
        moved += [at for action in found.actions if isinstance(action, Create)]
    assert len(moved) == 1


async def test_what_the_workload_asks_for_is_seen_beside_what_there_should_be() -> None:
    room = Room(status=LatencyPolicyStatus(surge=Surge(replicas=1, previous=1, wanted=2, seen=True)))
    found = await room.choose(replicas=2)
    assert (found.view.replicas, found.view.asked) == (1, 2)
