"""Who may ask next: in turns by namespace, and what hangs leaves lookups to others."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from berth.kube import fair_queue
from berth.kube.client import ApiClient
from berth.kube.objects import Pod
from controllers.placement import binder as binder_module
from controllers.placement.binder import Binder, BindOutcome
from tests.support.kube import running, until
from tests.support.placement import lone


class Server:
    """Shows every pod bound, but for those of namespaces whose name begins with ``hang``: it gives no answer."""

    async def get(self, _kind: object, name: str, *, namespace: str) -> Pod:
        if namespace.startswith("hang"):
            await asyncio.Event().wait()
        return lone(name, namespace=namespace, on="n1")


@pytest.fixture
def binder(monkeypatch: pytest.MonkeyPatch) -> Binder:
    monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 0.02)
    monkeypatch.setattr(binder_module, "backoff", lambda *_, **__: 0.0)
    return Binder(cast("ApiClient", Server()))


def asked(binder: Binder, name: str, namespace: str) -> asyncio.Task[object]:
    pod = lone(name, namespace=namespace)
    return asyncio.create_task(binder.find_out(pod, "n1", lambda: pod))


async def test_namespaces_whose_pods_cannot_be_read_leave_lookups_to_others(binder: Binder) -> None:
    hanging = [asked(binder, f"p{number}", f"hang-{name}") for number in range(3) for name in range(50)]
    good = [asked(binder, f"p{number}", "good") for number in range(20)]
    await until(lambda: all(task.done() for task in good), what="the good ones are known", seconds=10.0)
    for task in hanging:
        assert not task.done()
        task.cancel()
    await asyncio.gather(*hanging, return_exceptions=True)


@pytest.mark.parametrize("when", ["while it waits", "while it asks"])
async def test_a_lookup_that_is_cancelled_gives_its_turn_back(binder: Binder, when: str) -> None:
    hanging = [asked(binder, f"p{number}", "hang") for number in range(binder_module.LOOKUPS + 20)]
    for _ in range(5):
        await asyncio.sleep(0)
    for task in hanging if when == "while it asks" else reversed(hanging):
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    good = [asked(binder, f"p{number}", f"good-{number}") for number in range(binder_module.LOOKUPS * 2)]
    found = await asyncio.wait_for(asyncio.gather(*good), 5.0)
    assert {result.outcome for result in found} == {BindOutcome.BOUND}  # type: ignore[attr-defined]


async def test_what_the_watch_shows_needs_no_turn(binder: Binder) -> None:
    async def never() -> None:
        await asyncio.gather(*(asked(binder, f"p{n}", f"hang-{n}") for n in range(3 * binder_module.LOOKUPS)))

    async with running(never()):
        await asyncio.sleep(0)
        shown = lone("p", on="n1")
        result = await asyncio.wait_for(binder.find_out(lone("p"), "n1", lambda: shown), 5.0)
    assert result.outcome is BindOutcome.BOUND
