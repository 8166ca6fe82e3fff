"""One pass over a policy: what is written, in which order, and what is not done when writing it fails.

With a scripted API server. What follows from many passes is tested on a real one: tests/integration/test_latency_*.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from berth.api.base import format_timestamp
from berth.api.latency_exchange import UserRoundTrips
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Node, ObjectMeta, Pod, PodCondition
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.cache import Cache
from controllers.latency.candidates import Candidates
from controllers.latency.evictions import Evictions
from controllers.latency.objects import Deployment, NetworkNode
from controllers.latency.observations import Observations
from controllers.latency.orders import Orders
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.reconciler import CONFLICT_DELAY, Reconciler
from controllers.latency.workloads import Workloads
from tests.support import builders
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal
from tests.support.desk import Notes
from tests.support.placement import Clock
from tests.unit.controllers.latency.test_workloads import deployment, policy, web_pod

KEY = "shop/web"
FAR, NEAR = 120_000, 20_000


class Queue(WorkQueue[str]):
    """Keeps when a key is due again."""

    def __init__(self) -> None:
        super().__init__(lambda key: key.partition("/")[0])
        self.delays: list[float] = []

    def add(self, key: str, *, delay: float = 0.0) -> None:
        assert key == KEY
        self.delays.append(delay)


class Stand:
    """A policy whose users are far from its only pod, on node a, and near to node b."""

    def __init__(self, server: ApiServer, client: ApiClient) -> None:
        self.server, self.notes, self.queue = server, Notes(), Queue()
        self.spec: dict[str, Any] = {}
        self.policies, self.workloads, self.observations = Policies(), Workloads(), Observations()
        self.places, self.orders, self.clock = Places([]), Orders(Clock()), Clock()
        self.candidates = Candidates(Cache(clock=Clock()))
        for node in (network_node(builders.node(name)) for name in ("a", "b")):
            self.candidates.node_changed(None, node)
            self.places.node_changed(None, node)
        self.reconciler = Reconciler(
            client=client,
            recorder=self.notes,  # type: ignore[arg-type]
            queue=self.queue,
            policies=self.policies,
            workloads=self.workloads,
            candidates=self.candidates,
            places=self.places,
            observations=self.observations,
            orders=self.orders,
            evictions=Evictions(client, self.clock),
            status_interval=600.0,
            clock=lambda: datetime.now(UTC),
        )
        self.workloads.deployment_changed(None, running(1))
        self.appears(pod("web-1", "u1", "a"))

    def appears(self, found: Pod) -> None:
        self.candidates.pod_changed(None, found)
        self.workloads.pod_changed(None, found)

    def wants(self, status: dict[str, Any] | None = None, **spec: Any) -> None:
        """Have the watch show the policy."""
        obj = policy(**spec)
        document = obj.document(api_version="berth.dev/v1alpha1", kind="LatencyPolicy")
        self.spec = document["spec"]
        self.policies.written(document | {"status": status or {}})

    def measured(self, **microseconds: int) -> None:
        """Have meters tell of a user at nodes; of all windows those of 15 round trips."""
        for node, value in microseconds.items():
            self.observations.served(KEY, node, [UserRoundTrips("u", (value,) * 15)], datetime.now(UTC))

    @property
    def writes(self) -> list[tuple[str, dict[str, Any]]]:
        """What was written, in order: the last part of the path, and the body."""
        return [
            (each.path.partition("?")[0].rpartition("/")[2], json.loads(each.body)) for each in self.server.requests
        ]


def network_node(node: Node) -> NetworkNode:
    return NetworkNode(metadata=node.metadata, spec=NetworkNode().spec, status=with_room(node))


def with_room(node: Node) -> Any:
    status = NetworkNode().status
    status.allocatable, status.capacity = node.status.allocatable, node.status.capacity
    return status


def pod(name: str, uid: str, node: str, *, ready: bool = True) -> Pod:
    found = web_pod(uid)
    found.metadata.name, found.spec.node_name = name, node
    found.status.conditions = [PodCondition(type="Ready", status="True" if ready else "False")]
    return found


def running(replicas: int) -> Deployment:
    found = deployment()
    found.metadata = ObjectMeta(name="web", namespace="shop", uid="d", resource_version="5")
    found.spec.replicas = replicas
    return found


@pytest.fixture
def refused() -> dict[str, Answer]:
    """Answers to writes, by the last part of their path, other than that all is well."""
    return {}


@pytest.fixture
async def stand(refused: dict[str, Answer]) -> AsyncIterator[Stand]:
    versions, made = iter(range(100, 1000)), list[Stand]()

    def answer(request: Request) -> Answer:
        kind = request.path.partition("?")[0].rpartition("/")[2]
        if kind in refused:
            return refused[kind]
        body = json.loads(request.body)
        metadata = {"name": "web", "namespace": "shop", "uid": "web"} | body["metadata"]
        body["metadata"] = metadata | {"resourceVersion": str(next(versions))}
        if kind == "status":
            body["spec"] = made[0].spec
        return Answer(200, body)

    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            made.append(Stand(server, client))
            yield made[0]


async def test_what_is_to_be_done_is_remembered_before_it_is_done(stand: Stand) -> None:
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    assert await stand.reconciler.reconcile(KEY)
    [(first, status), (second, scale)] = stand.writes
    assert (first, second) == ("status", "scale")
    assert status["metadata"]["resourceVersion"] == "1", "only if nobody has written since"
    [move] = status["status"]["moves"]
    assert (move["pod"], move["targetNode"], move["outcome"]) == ("web-1", "b", "Creating")
    assert status["status"]["surge"] == {"replicas": 1, "previous": 1, "wanted": 2, "seen": False, "deployment": "d"}
    assert scale["spec"] == {"replicas": 2}
    assert "MoveBegun" in stand.notes.reasons


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        pytest.param(refusal(409, "Conflict"), True, id="somebody has written since"),
        pytest.param(refusal(403, "Forbidden"), False, id="it is not allowed"),
    ],
)
async def test_nothing_is_done_that_could_not_be_remembered(
    stand: Stand, refused: dict[str, Answer], answer: Answer, again: bool
) -> None:
    refused["status"] = answer
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    if again:
        assert await stand.reconciler.reconcile(KEY)
        assert CONFLICT_DELAY in stand.queue.delays
    else:
        with pytest.raises(ApiError):
            await stand.reconciler.reconcile(KEY)
    assert [kind for kind, _ in stand.writes] == ["status"]
    assert stand.notes.reasons == []


async def test_a_dry_run_tells_and_does_nothing(stand: Stand) -> None:
    stand.wants(moves={"dryRun": True})
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    [(kind, body)] = stand.writes
    assert kind == "status"
    assert not body["status"].get("moves")
    reasons = {each["type"]: each["reason"] for each in body["status"]["conditions"]}
    assert reasons["Moving"] == "DryRun"


async def test_the_old_pod_goes_once_the_new_one_is_ready(stand: Stand) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b"))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    assert [kind for kind, _ in stand.writes] == ["status", "eviction"]
    assert stand.writes[0][1]["status"]["moves"][0]["outcome"] == "Evicting"
    assert stand.writes[1][1]["deleteOptions"] == {"preconditions": {"uid": "u1"}}


async def test_nothing_goes_while_the_new_pod_is_not_ready(stand: Stand) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b", ready=False))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    assert "eviction" not in [kind for kind, _ in stand.writes]


NOT_READY = pod("web-3", "u3", "", ready=False)
"""made by the ReplicaSet in place of one that was evicted"""


async def test_a_move_that_is_given_up_with_both_pods_ready_takes_one_of_them_and_not_both(stand: Stand) -> None:
    stand.wants(moving(seen=True, outcome="Trying"))
    stand.workloads.deployment_changed(None, running(2))
    new = pod("web-2", "u2", "b")
    stand.appears(new)
    stand.measured(a=FAR, b=FAR)
    for _ in range(2):
        await stand.reconciler.reconcile(KEY)
    kinds = [kind for kind, _ in stand.writes]
    assert (kinds[:2], "scale" in kinds) == (["status", "eviction"], False), "it might delete the other one"
    assert stand.writes[0][1]["status"]["moves"][0]["outcome"] == "Cancelled"
    evicted = {body["metadata"]["name"] for kind, body in stand.writes if kind == "eviction"}
    assert evicted == {"web-2"}
    stand.workloads.pod_changed(new, None)
    await stand.reconciler.reconcile(KEY)
    assert "scale" not in [kind for kind, _ in stand.writes], "the ReplicaSet may not know that it has gone"
    stand.appears(NOT_READY)
    await stand.reconciler.reconcile(KEY)
    kind, body = stand.writes[-1]
    assert (kind, body["spec"]) == ("scale", {"replicas": 1}), "it deletes the one that is not ready"


async def test_what_cannot_be_evicted_is_left_to_the_replica_set_and_not_evicted_any_more(
    stand: Stand, refused: dict[str, Answer]
) -> None:
    refused["eviction"] = refusal(429, "TooManyRequests", "the budget")
    long_ago = format_timestamp(datetime.now(UTC) - timedelta(minutes=1))
    stand.wants(moving(seen=True, outcome="Trying", startTime=long_ago, readyTime=long_ago))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b"))
    stand.measured(a=FAR, b=FAR)
    for _ in range(3):
        await stand.reconciler.reconcile(KEY)
    kinds = [kind for kind, _ in stand.writes if kind != "status"]
    assert kinds == ["eviction", "scale"]


async def test_where_nothing_can_be_moved_any_more_the_number_waits_for_the_pod_that_was_evicted(stand: Stand) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(2))
    stand.appears(pod("web-2", "u2", "b"))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    assert stand.writes[-1][0] == "eviction"
    other = running(2)
    other.spec.template.spec.scheduler_name = "other"
    stand.workloads.deployment_changed(None, other)
    await stand.reconciler.reconcile(KEY)
    assert stand.writes[-1][0] == "status", "of both pods the ReplicaSet might delete the other one"
    stand.workloads.pod_changed(pod("web-1", "u1", "a"), None)
    stand.appears(NOT_READY)
    await stand.reconciler.reconcile(KEY)
    assert (stand.writes[-1][0], stand.writes[-1][1]["spec"]) == ("scale", {"replicas": 1})


async def test_a_number_that_somebody_else_has_set_stays_and_the_move_is_given_up(stand: Stand) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(5))
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    [(kind, body)] = stand.writes
    assert kind == "status"
    assert [move["outcome"] for move in body["status"]["moves"]] == ["Cancelled"]
    assert "surge" not in body["status"]
    assert "ReplicasChanged" in stand.notes.reasons
    assert any(note.message.endswith("; somebody has set the number of replicas") for note in stand.notes.notes)


async def test_figures_alone_are_not_written_all_the_time(stand: Stand) -> None:
    stand.wants(exploration=[])
    stand.measured(a=NEAR)
    await stand.reconciler.reconcile(KEY)
    assert len(stand.writes) == 1
    stand.measured(a=NEAR + 100)
    await stand.reconciler.reconcile(KEY)
    assert len(stand.writes) == 1
    assert 500.0 < max(stand.queue.delays) <= 600.0
    stand.measured(a=FAR)
    await stand.reconciler.reconcile(KEY)
    assert len(stand.writes) > 1, "that a node is invalid now is told at once"


async def test_a_policy_that_cannot_be_carried_out_moves_nothing(stand: Stand) -> None:
    stand.workloads.deployment_changed(running(1), None)
    stand.wants()
    stand.measured(a=FAR, b=NEAR)
    await stand.reconciler.reconcile(KEY)
    [(kind, body)] = stand.writes
    assert kind == "status"
    assert {each["reason"] for each in body["status"]["conditions"]} == {"TargetNotFound"}
    assert stand.notes.reasons == ["TargetNotFound"]


HARD = {"hard_max_latency": "80"}


@pytest.mark.parametrize(
    ("annotations", "scheduler", "spec", "limits"),
    [
        pytest.param(HARD, "other", {}, {"hardMaxLatency": 80}, id="others place the pods"),
        pytest.param({"hard_max_latency": "near"}, "berth-scheduler", {}, None, id="they cannot be read any more"),
        pytest.param(HARD, "other", {"hardMaxLatency": 50}, None, id="the policy states limits itself"),
        pytest.param(None, "", {}, None, id="the Deployment is gone"),
    ],
)
async def test_limits_of_annotations_are_those_of_today_also_where_nothing_can_be_done(
    stand: Stand,
    annotations: dict[str, str] | None,
    scheduler: str,
    spec: dict[str, Any],
    limits: dict[str, int] | None,
) -> None:
    found = running(1)
    if annotations is not None:
        found.spec.template.metadata.annotations = annotations
        found.spec.template.spec.scheduler_name = scheduler
    stand.workloads.deployment_changed(running(1), found if annotations is not None else None)
    stand.wants({"annotatedLimits": {"hardMaxLatency": 30}}, **({"hardMaxLatency": None} | spec))
    await stand.reconciler.reconcile(KEY)
    [(kind, body)] = stand.writes
    assert kind == "status"
    assert body["status"].get("annotatedLimits") == limits


@pytest.mark.parametrize(
    ("replicas", "written"),
    [pytest.param(2, [1], id="as it was left"), pytest.param(5, [], id="somebody else has set it since")],
)
async def test_a_policy_that_goes_while_a_pod_moves_takes_its_replica_along(
    stand: Stand, replicas: int, written: list[int]
) -> None:
    stand.wants(moving(seen=True))
    stand.workloads.deployment_changed(None, running(replicas))
    stand.policies.remove(KEY)
    assert not await stand.reconciler.reconcile(KEY)
    assert [(kind, body["spec"]["replicas"]) for kind, body in stand.writes] == [("scale", each) for each in written]
    assert stand.policies.last(KEY) is None


def moving(*, seen: bool, outcome: str = "Creating", **fields: str) -> dict[str, Any]:
    """A status while the pod on a goes to b."""
    now = format_timestamp(datetime.now(UTC))
    move = {"pod": "web-1", "sourceNode": "a", "targetNode": "b", "reason": "BeyondHardLimit", "outcome": outcome}
    return {
        "moves": [move | {"startTime": now} | fields],
        "surge": {"replicas": 1, "previous": 1, "wanted": 2, "seen": seen},
    }
