"""What makes a SocketStatus due: its own events, and pods and profiles where it exists."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import kopf
import pytest

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.objects import CustomObject
from berth.runtime.seen_versions import SeenVersions
from berth.runtime.workqueue import WorkQueue
from berth.scheduling.cache.sockets import SocketTable
from controllers.socketstatus.handlers import PROFILE_DELAY, Handlers
from controllers.socketstatus.pods import NodePods, SocketPod
from tests.support.seats import pod
from tests.support.sockets import workload_profile

ALL = {"n1", "n2", "n3"}


def of(owner: str, name: str, node: str) -> SocketPod:
    """A pod of a Deployment."""
    reference = {"kind": "Deployment", "name": owner, "uid": owner, "controller": True}
    return pod(name, "", node=node, ownerReferences=[reference])


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


MILD, HARSH = {"db": "1.0"}, {"db": "1.9"}


@pytest.mark.parametrize(
    ("old", "new", "nodes"),
    [
        pytest.param(None, workload_profile("db", "C"), {"n1", "n2"}, id="comes"),
        pytest.param(workload_profile("db", "C"), None, {"n1", "n2"}, id="goes"),
        pytest.param(workload_profile("db", "C"), workload_profile("db", "D"), {"n1", "n2"}, id="another class"),
        pytest.param(workload_profile("db", "C"), workload_profile("db", "E"), {"n1", "n2"}, id="unreadable"),
        pytest.param(workload_profile("db", "C"), workload_profile("db", "C", target="web"), ALL, id="about another"),
        pytest.param(workload_profile("db", "C"), workload_profile("db", "C"), set(), id="as it was"),
        pytest.param(None, workload_profile("nobody", "C"), set(), id="of no pod"),
        pytest.param(
            workload_profile("web", "D", slowdowns=MILD),
            workload_profile("web", "D", slowdowns=HARSH),
            {"n3"},
            id="hurt",
        ),
    ],
)
def test_profiles_make_nodes_due_with_pods_that_count_as_others_now(
    old: CustomObject | None, new: CustomObject | None, nodes: set[str]
) -> None:
    known: dict[str, float] = {}
    everybody = {*ALL, "empty"}

    def all_due(*, delay: float) -> None:
        known.update(dict.fromkeys(everybody, delay))

    queue: Any = SimpleNamespace(
        known=everybody,
        add=lambda node, *, delay: known.update({node: delay}),
        add_known=all_due,
    )
    table = SocketTable()
    handlers = Handlers(
        queue, SeenVersions(queue.add), pods=NodePods(table, LABEL_INTERFERENCE_CLASS), profiles=table.profiles
    )
    for name, owner, node in [
        ("a", "db", "n1"),
        ("b", "db", "n1"),
        ("c", "db", "n2"),
        ("d", "web", "n3"),
        ("e", "db", "unpinned"),
    ]:
        handlers.pod_changed(None, of(owner, name, node))
    handlers.pod_changed(None, pod("done", node="n4"))
    handlers.pod_changed(None, of("db", "moved", "n3"))
    handlers.pod_changed(of("db", "moved", "n3"), None)
    handlers.profile_changed(None, old) if old is not None else None
    known.clear()
    handlers.profile_changed(old, new)
    assert known == dict.fromkeys(nodes, PROFILE_DELAY)
