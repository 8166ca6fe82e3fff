"""The placement controller puts a pod where its LatencyPolicy awaits it, which is read once the pod has come."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject
from tests.support.desk import Desk
from tests.support.kube import running, until
from tests.support.placement import chain, group_object, member
from tests.support.user_latency import of, policy


def served(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server knows where the pod is awaited, and the watch does not yet."""

    async def get(_kind: object, _name: str, **_: Any) -> CustomObject:
        return policy(version=5, awaited="n2")

    monkeypatch.setattr(desk.controller._latency_policies._client, "get", get)
    desk.controller._latency_policies.watch._change("shop/web", None, policy())
    for watch in desk.controller.watches.values():
        watch.synced.set()


@pytest.mark.parametrize("before", [False, True], ids=["while it runs", "before it runs"])
@pytest.mark.parametrize("grouped", [False, True], ids=["alone", "of an application"])
async def test_a_pod_goes_where_it_is_awaited(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, before: bool, grouped: bool
) -> None:
    pod = of("web")
    if grouped:
        pod.metadata.labels |= member("p", "web").metadata.labels
        desk.see("appgroups", group_object("shop", *chain("web"), namespace="shop"))
    binding = desk.controller.binding
    if before:
        desk.pods(pod)
    served(desk, monkeypatch)
    policies = desk.controller._latency_policies
    async with running(desk.controller._schedule(), policies._queue.run(policies._look, workers=8)):
        if not before:
            desk.pods(pod)
        await until(lambda: binding._unbound.waiting("shop") == 1, what="it is placed", seconds=5.0)
    assert desk.cache.node_of(pod) == "n2"
