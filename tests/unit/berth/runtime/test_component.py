"""What a component gets from its process, and how several things run together."""

from __future__ import annotations

import asyncio

import pytest

from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.events import EventRecorder
from berth.kube.precedence import Precedence
from berth.kube.reflector import Reflector
from berth.kube.resources import PODS
from berth.runtime.component import ComponentContext, run_together
from berth.runtime.health import Checks

FIRST = {"sync pods": "first list not complete"}
SILENT = "no response from the API server for 200 s"


def context_of(client: ApiClient, *, standby: bool = False) -> ComponentContext:
    return ComponentContext(
        connection=client.connection,
        client=client,
        recorder=EventRecorder(client, controller="berth.dev/test", instance="i", gives_way_to=Precedence()),
        checks=Checks(),
        identity="i",
        standby=lambda: standby,
    )


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
    context = context_of(closed_client, standby=standby)
    reflector = Reflector(closed_client, PODS)
    context.watch("pods", reflector)
    if synced:
        reflector.synced.set()
    assert context.checks.ready() == ready
    assert context.checks.health() == {}


FORBIDDEN = ApiError(status=403, reason="Forbidden", message='cannot watch resource "pods"')
REFUSED = (
    'pods cannot be listed (403 Forbidden: cannot watch resource "pods"); allow this account to list and watch pods'
)


@pytest.mark.parametrize(
    ("refusal", "synced", "age", "health", "ready"),
    [
        pytest.param(None, False, 200.0, {"watch pods": SILENT}, FIRST, id="silent from the start"),
        pytest.param(None, True, 200.0, {"watch pods": SILENT}, {}, id="silent"),
        pytest.param(FORBIDDEN, False, 200.0, {}, {"sync pods": REFUSED}, id="may not list: no restart would help"),
        pytest.param(FORBIDDEN, True, 10.0, {}, {"sync pods": REFUSED}, id="may not watch any more"),
        pytest.param(
            FORBIDDEN, True, 200.0, {"watch pods": REFUSED}, {"sync pods": REFUSED}, id="its copy has grown old"
        ),
    ],
)
async def test_what_a_watch_that_is_refused_says(
    closed_client: ApiClient,
    monkeypatch: pytest.MonkeyPatch,
    refusal: ApiError | None,
    synced: bool,
    age: float,
    health: dict[str, str],
    ready: dict[str, str],
) -> None:
    context = context_of(closed_client)
    reflector = Reflector(closed_client, PODS)
    context.watch("pods", reflector)
    reflector.refusal = refusal
    if synced:
        reflector.synced.set()
    monkeypatch.setattr(Reflector, "age", property(lambda _: age))
    assert context.checks.health() == health
    assert context.checks.ready() == health | ready


@pytest.mark.parametrize(
    ("synced", "age", "ready"),
    [
        pytest.param(False, 10.0, {"watch pods": REFUSED}, id="may not list"),
        pytest.param(True, 10.0, {}, id="goes on with what it knows"),
        pytest.param(True, 200.0, {"watch pods": REFUSED}, id="which has grown old"),
    ],
)
async def test_an_agent_that_is_refused_serves_while_its_copy_is_young(
    closed_client: ApiClient, monkeypatch: pytest.MonkeyPatch, synced: bool, age: float, ready: dict[str, str]
) -> None:
    context = context_of(closed_client)
    reflector = Reflector(closed_client, PODS)
    context.watch_without_restart("pods", reflector)
    reflector.refusal = FORBIDDEN
    if synced:
        reflector.synced.set()
    monkeypatch.setattr(Reflector, "age", property(lambda _: age))
    assert context.checks.health() == {}
    assert context.checks.ready() == ready


async def test_a_closed_client_says_so(closed_client: ApiClient) -> None:
    with pytest.raises(RuntimeError, match="outside its 'async with' block"):
        await closed_client.get(PODS, "pod", namespace="default")
