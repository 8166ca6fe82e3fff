"""What makes an object due, and which version of it is read then."""

from __future__ import annotations

from typing import Any

import kopf

from berth.network.groups import GroupKey
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from controllers.appgroup.handlers import Handlers
from controllers.appgroup.pods import GroupPods

KEY = GroupKey("shop", "a")


async def test_an_event_shows_a_version_and_a_list_makes_all_due_that_are_known() -> None:
    queue: WorkQueue[GroupKey] = WorkQueue(lambda key: key.namespace)
    versions: SeenVersions[GroupKey] = SeenVersions(queue.add)
    handlers = Handlers(queue, pods=GroupPods(), versions=versions)
    registry = kopf.OperatorRegistry()
    handlers.register(registry)
    [handler] = registry._watching.get_all_handlers()
    event: Any = handler.fn
    event(namespace="shop", name="a", meta={"resourceVersion": "7"}, spec={})
    assert (queue.known, versions.of(KEY)) == ({KEY}, "7")
    handlers.listed()
    assert (queue.known, versions.of(KEY)) == ({KEY}, "")
