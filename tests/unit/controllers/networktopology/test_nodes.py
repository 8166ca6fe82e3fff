"""When the controller looks at where nodes are: at once, and at a pace after that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import cast

from berth.api.labels import LABEL_ZONE
from berth.kube.client import ApiClient
from berth.kube.objects import ObjectMeta
from controllers.networktopology.nodes import LOOK_SECONDS, LOOKS, LabelledNode, NodeWatch
from tests.support.virtual_time import run_in_virtual_time

MINUTE = 60.0


class Watched:
    """A watch of nodes that a test moves."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.looks: list[tuple[float, str]] = []
        self.nodes = NodeWatch(cast(ApiClient, None), changed=lambda: self.looks.append((now(), self.zone)))
        self.nodes.reflector.run = asyncio.Event().wait  # type: ignore[method-assign,assignment]
        self.move("a")
        self.nodes.reflector.synced.set()

    @property
    def zone(self) -> str:
        return self.nodes.places.zone_of("n1")

    def move(self, zone: str, **labels: str) -> None:
        node = LabelledNode(ObjectMeta(name="n1", labels={LABEL_ZONE: zone, **labels}))
        self.nodes.reflector._apply_object("MODIFIED", node)
        self.nodes.reflector._end_batch()


def test_a_node_that_moves_all_the_time_is_looked_at_at_a_pace() -> None:
    async def work(now: Callable[[], float]) -> tuple[list[tuple[float, str]], str]:
        watched = Watched(now)
        task = asyncio.create_task(watched.nodes.run())
        while now() < MINUTE:
            await asyncio.sleep(0.25)
            watched.move("b" if watched.zone == "a" else "a")
            watched.move("c")
        await asyncio.sleep(LOOK_SECONDS)
        task.cancel()
        return watched.looks, watched.zone

    looks, zone = run_in_virtual_time(work)
    moments = [moment for moment, _ in looks]
    assert all(later - earlier > LOOK_SECONDS - 0.1 for earlier, later in pairwise(moments[LOOKS:]))
    assert moments[LOOKS - 1] < LOOK_SECONDS
    assert len(moments) <= LOOKS + (MINUTE + LOOK_SECONDS) / LOOK_SECONDS
    assert (looks[-1][1], zone) == ("c", "c")


def test_a_move_is_seen_at_once_and_other_labels_are_none() -> None:
    async def work(now: Callable[[], float]) -> list[tuple[float, str]]:
        watched = Watched(now)
        task = asyncio.create_task(watched.nodes.run())
        await asyncio.sleep(MINUTE)
        watched.move("a", heartbeat="1")
        await asyncio.sleep(MINUTE)
        watched.move("b")
        await asyncio.sleep(0.3)
        watched.move("c")
        await asyncio.sleep(0.3)
        task.cancel()
        return watched.looks

    (_, started), *later = run_in_virtual_time(work)
    assert [(round(moment - 2 * MINUTE, 1), zone) for moment, zone in later] == [(0.2, "b"), (0.5, "c")]
    assert started == "a"
