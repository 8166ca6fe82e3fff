"""What makes a SocketStatus due: its own events, and pods and profiles where it exists."""

from __future__ import annotations

from typing import Any

import kopf

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.sockets import SocketTable
from controllers.socketstatus.handlers import Handlers
from controllers.socketstatus.pods import NodePods
from tests.support.seats import pod
from tests.support.sockets import workload_profile


async def test_events_and_pods_of_nodes_that_have_a_socketstatus() -> None:
    queue: WorkQueue[str] = WorkQueue(lambda node: node)
    versions: SeenVersions[str] = SeenVersions(queue.add)
    table = SocketTable()
    pods = NodePods(table, LABEL_INTERFERENCE_CLASS)
    handlers = Handlers(queue, versions, pods=pods, profiles=table.profiles)
    registry = kopf.OperatorRegistry()
    handlers.register(registry)
    [handler] = registry._watching.get_all_handlers()
    handlers.pod_changed(None, pod())
    assert (queue.known, list(pods.of("n1"))) == (set(), ["uid-web"])
    event: Any = handler.fn
    event(name="n1", meta={"resourceVersion": "7"})
    assert (queue.known, len(queue), versions.of("n1")) == ({"n1"}, 1, "7")
    handlers.pod_changed(pod(), pod(cpu="2"))
    handlers.profile_changed(None, workload_profile("db", "C"))
    assert (queue.known, len(queue), len(table.profiles)) == ({"n1"}, 1, 1)
    handlers.profile_changed(workload_profile("db", "C"), workload_profile("db", "E"))
    assert len(table.profiles) == 0, "one that cannot be read counts for nothing"
    handlers.profile_changed(None, workload_profile("db", "C"))
    handlers.profile_changed(workload_profile("db", "C"), None)
    assert len(table.profiles) == 0
    handlers.listed()
    assert versions.of("n1") == ""
