"""The ReplicaSets of an AppGroup: which are read, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import ReplicaSet
from berth.network.groups import GroupKey
from berth.scheduling.queue_entry import EntryKey
from controllers.placement.replica_sets import STALE_SECONDS, ReplicaSets
from tests.support.kube import running, until

SHOP = EntryKey.of_group(GroupKey("default", "shop"), "berth-scheduler")


class Server:
    """Has these ReplicaSets, or fails."""

    def __init__(self, *found: ReplicaSet, error: Exception | None = None) -> None:
        self.found, self.error = list(found), error
        self.asked: list[dict[str, Any]] = []

    async def list_all(self, _kind: object, **selection: Any) -> list[ReplicaSet]:
        self.asked.append(selection)
        if self.error is not None:
            raise self.error
        return self.found


def replica_set(uid: str, **fields: Any) -> ReplicaSet:
    return msgspec.convert({"metadata": {"uid": uid}, **fields}, ReplicaSet)


async def answers(server: Server, *times: float) -> list[tuple[EntryKey, Mapping[str, int]]]:
    """What is said of the ReplicaSets of one AppGroup that is asked for at these times, its turn being at the last."""
    said: list[tuple[EntryKey, Mapping[str, int]]] = []
    now = 0.0
    reader = ReplicaSets(
        cast("ApiClient", server), answer=lambda key, replicas: said.append((key, replicas)), clock=lambda: now
    )
    *asked, turn = times or (0.0, 0.0)
    for now in asked:  # noqa: B007
        reader.ask(SHOP)
    now = turn
    async with running(reader.run()):
        await until(lambda: bool(said), what="an answer")
    return said


def condition(kind: str, status: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": "FailedCreate"}]}


@pytest.mark.parametrize(
    ("found", "replicas"),
    [
        pytest.param([], {}, id="none"),
        pytest.param([replica_set("a", spec={"replicas": 3}), replica_set("b", spec={"replicas": 0})],
                     {"a": 3, "b": 0}, id="one-is-an-old-revision"),
        pytest.param([replica_set("a")], {"a": 1}, id="nothing-said-is-one"),
        pytest.param([replica_set("a", spec={"replicas": 3}, status=condition("ReplicaFailure", "True"))], {},
                     id="a-quota-forbids-more"),
        pytest.param([replica_set("a", spec={"replicas": 3}, status=condition("ReplicaFailure", "False"))], {"a": 3},
                     id="a-quota-forbade-more"),
    ],
)  # fmt: skip
async def test_what_is_said_of_replica_sets(found: list[ReplicaSet], replicas: dict[str, int]) -> None:
    server = Server(*found)
    assert await answers(server) == [(SHOP, replicas)]
    assert server.asked == [{"namespace": "default", "label_selector": "appgroup.diktyo.x-k8s.io=shop"}]


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(status=403, reason="Forbidden", message="no"), id="an-older-role"),
        pytest.param(TimeoutError(), id="no-answer"),
        pytest.param(ValueError("odd"), id="no-list"),
    ],
)
async def test_who_cannot_be_read_is_said_to_have_none_to_come(error: Exception) -> None:
    server = Server(error=error)
    assert await answers(server) == [(SHOP, {})]
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("times", "read"),
    [
        pytest.param((0.0, 0.9 * STALE_SECONDS), True, id="soon"),
        pytest.param((0.0, 1.1 * STALE_SECONDS), False, id="after-many-others"),
        pytest.param((0.0, STALE_SECONDS, 1.1 * STALE_SECONDS), True, id="asked-for-again-meanwhile"),
    ],
)
async def test_nobody_is_read_whose_pods_have_waited_long(times: tuple[float, ...], read: bool) -> None:
    """A namespace whose AppGroups all come at once has others of it wait behind answers that nobody waits for."""
    server = Server(replica_set("a", spec={"replicas": 3}))
    assert await answers(server, *times) == [(SHOP, {"a": 3} if read else {})]
    assert len(server.asked) == read
