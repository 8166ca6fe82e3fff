"""What a component gets from its process, and how several things run together."""

from __future__ import annotations

import asyncio

import pytest

from berth.kube.client import ApiClient
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.health import Checks


async def for_ever(log: list[str], name: str) -> None:
    log.append(f"{name} starts")
    try:
        await asyncio.Event().wait()
    finally:
        log.append(f"{name} stops")


async def raising(error: Exception) -> None:
    raise error


async def nothing() -> None:
    return


async def test_the_first_failure_stops_the_rest_and_is_raised_as_it_is() -> None:
    log: list[str] = []
    error = LookupError("gone")
    with pytest.raises(LookupError) as caught:
        await run_together(for_ever(log, "a"), raising(error), for_ever(log, "b"))
    assert caught.value is error
    assert log == ["a starts", "b starts", "a stops", "b stops"]


async def test_an_end_does_not_stop_the_rest() -> None:
    log: list[str] = []
    task = asyncio.ensure_future(run_together(nothing(), for_ever(log, "a")))
    while not log:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["a starts", "a stops"]


async def test_all_ended_is_the_end() -> None:
    await run_together(nothing(), nothing())


@pytest.mark.parametrize(
    ("standby", "synced", "ready"),
    [
        (False, False, {"sync pods": "first list not complete"}),
        (False, True, {}),
        (True, False, {}),
        (True, True, {}),
    ],
    ids=["leads, listing", "leads, listed", "waits", "waits, listed"],
)
async def test_readiness_of_a_watch(
    closed_client: ApiClient, standby: bool, synced: bool, ready: dict[str, str]
) -> None:
    context = ComponentContext(
        connection=closed_client.connection,
        client=closed_client,
        recorder=EventRecorder(closed_client, controller="berth.dev/test", instance="i", gives_way_to=Precedence()),
        checks=Checks(),
        identity="i",
        standby=lambda: standby,
    )
    reflector = Reflector(closed_client, PODS)
    context.watch("pods", reflector)
    if synced:
        reflector.synced.set()
    assert context.checks.ready() == ready
    assert context.checks.health() == {}


async def test_a_closed_client_says_so(closed_client: ApiClient) -> None:
    with pytest.raises(RuntimeError, match="outside its 'async with' block"):
        await closed_client.get(PODS, "pod", namespace="default")
