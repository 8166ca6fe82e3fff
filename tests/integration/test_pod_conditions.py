"""The condition PodScheduled, written to a real API server from pods that may be older than the truth."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from berth.kube.client import ApiClient
from berth.kube.objects import Pod
from berth.kube.resources import PODS
from controllers.placement.binder import Binder, BindOutcome
from controllers.placement.pod_conditions import CONDITION, UNSCHEDULABLE, PodConditions, _Why
from hack.localcluster import LocalCluster
from tests.support.kube import client_of, running


@pytest.fixture
async def client(cluster: LocalCluster, simulated_nodes: list[str]) -> AsyncIterator[ApiClient]:
    async with client_of(cluster) as opened:
        yield opened


@pytest.fixture
async def waiting(client: ApiClient, namespace: str) -> Pod:
    """A pod that nobody schedules."""
    await create(client, namespace)
    return await client.get(PODS, "p", namespace=namespace)


async def create(client: ApiClient, namespace: str) -> None:
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "registry.invalid/main:1"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    await client.create(PODS, body, namespace=namespace)


async def conditions(client: ApiClient, pod: Pod) -> list[tuple[str, str, str]]:
    current = await client.get(PODS, pod.metadata.name, namespace=pod.metadata.namespace)
    return [(c.status, c.reason, c.message) for c in current.status.conditions if c.type == CONDITION]


async def written(client: ApiClient, pod: Pod, *messages: str) -> list[tuple[str, str, str]]:
    """Run a writer until it has nothing left to write; returns the conditions then."""
    writer = PodConditions(client)
    for message in messages:
        writer.unschedulable(pod, message)
    task = asyncio.create_task(writer.run())
    try:
        async with asyncio.timeout(120):
            while not await conditions(client, pod) or writer._waiting:
                await asyncio.sleep(0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return await conditions(client, pod)


async def test_only_the_newest_reason_is_written(client: ApiClient, waiting: Pod) -> None:
    assert await written(client, waiting, "no room", "no cpu") == [("False", "Unschedulable", "no cpu")]


async def test_a_pod_that_changed_in_the_meantime_is_read_again(client: ApiClient, waiting: Pod) -> None:
    await client.merge_patch(
        PODS, "p", {"metadata": {"labels": {"touched": "yes"}}}, namespace=waiting.metadata.namespace
    )
    assert await written(client, waiting, "no room") == [("False", "Unschedulable", "no room")]


async def test_a_pod_that_was_bound_in_the_meantime_is_left_alone(
    client: ApiClient, waiting: Pod, simulated_nodes: list[str]
) -> None:
    result = await Binder(client).bind(waiting, simulated_nodes[0], decision="{}")
    assert result.outcome is BindOutcome.BOUND
    before = await conditions(client, waiting)
    assert [status for status, _, _ in before] == ["True"]
    await PodConditions(client)._write(waiting, _Why(UNSCHEDULABLE, "no room"))
    assert await conditions(client, waiting) == before


async def test_a_namesake_is_left_alone(client: ApiClient, waiting: Pod) -> None:
    namespace = waiting.metadata.namespace
    await client.delete(PODS, "p", namespace=namespace)
    await create(client, namespace)
    await PodConditions(client)._write(waiting, _Why(UNSCHEDULABLE, "no room"))
    assert await conditions(client, waiting) == []


async def test_what_the_pod_says_already_is_not_written(client: ApiClient, waiting: Pod) -> None:
    await written(client, waiting, "no room")
    current = await client.get(PODS, "p", namespace=waiting.metadata.namespace)
    writer = PodConditions(client)
    writer.unschedulable(current, "no room")
    assert not writer._waiting


async def test_another_reason_leaves_the_time_at_which_the_pod_began_to_wait(client: ApiClient, waiting: Pod) -> None:
    where: dict[str, Any] = {"namespace": waiting.metadata.namespace}
    began = {"type": CONDITION, "status": "False", "reason": "x", "lastTransitionTime": "2020-02-02T20:20:20Z"}
    body = {"status": {"conditions": [began]}}
    await client.strategic_patch(PODS, waiting.metadata.name, body, subresource="status", **where)
    writer = PodConditions(client)
    writer.unschedulable(waiting, "no cpu")
    async with running(writer.run()), asyncio.timeout(120):
        while await conditions(client, waiting) != [("False", UNSCHEDULABLE, "no cpu")]:
            await asyncio.sleep(0.02)
    raw = await client.get(PODS.raw, waiting.metadata.name, **where)
    [condition] = [each for each in raw["status"]["conditions"] if each["type"] == CONDITION]
    assert condition["lastTransitionTime"] == began["lastTransitionTime"]
