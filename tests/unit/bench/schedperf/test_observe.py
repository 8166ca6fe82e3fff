"""What the benchmark's watches have seen, and when it waits no longer."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bench.schedperf.observe import Observer, Regarding, ScheduledEvent, StuckError
from berth.kube.meta import ObjectMeta
from berth.kube.objects import Pod


def pod(uid: str, *, node: str = "", reason: str = "") -> Pod:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": reason, "message": "no room"}] if reason else []
    document = {
        "metadata": {"name": uid, "namespace": "a", "uid": uid},
        "spec": {"nodeName": node},
        "status": {"conditions": conditions},
    }
    return msgspec.convert(document, Pod)


def seen(observer: Observer, *pods: Pod) -> None:
    for new in pods:
        observer._pod(observer.pods.pods.get(new.metadata.uid), new)
    observer._changed.set()


async def test_waiting_ends_when_all_have_a_node() -> None:
    observer = Observer(patience=60.0)
    seen(observer, pod("p"), pod("q"), pod("other"))
    waiting = asyncio.create_task(observer.all_bound(["p", "q"]))
    await asyncio.sleep(0)
    seen(observer, pod("p", node="n"))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    seen(observer, pod("q", node="n"))
    await waiting


async def test_a_pod_with_a_condition_or_a_node_has_been_attempted() -> None:
    observer = Observer(patience=60.0)
    seen(observer, pod("p", reason="Unschedulable"), pod("q", node="n"))
    await observer.all_attempted(["p", "q"])


@pytest.mark.parametrize(
    ("left", "text"),
    [
        pytest.param(
            pod("q", reason="Unschedulable"), r"1 pods without a node, such as a/q \(Unsch.*: no room\)", id="told"
        ),
        pytest.param(pod("q"), r"such as a/q \(no condition\)", id="never told"),
        pytest.param(pod("other"), "uid q that was never seen", id="not even seen"),
    ],
)
async def test_waiting_ends_without_news_and_says_for_whom(left: Pod, text: str) -> None:
    observer = Observer(patience=0.05)
    seen(observer, pod("p", node="n"), left)
    with pytest.raises(StuckError, match=text):
        await observer.all_bound(["p", "q"])


async def test_a_pod_that_is_gone_keeps_what_was_seen_of_it() -> None:
    observer = Observer(patience=60.0)
    bound = pod("p", node="n")
    seen(observer, bound)
    observer._pod(bound, None)
    await observer.all_bound(["p"])


async def test_events_are_waited_for_until_none_comes() -> None:
    observer = Observer(patience=60.0)
    seen(observer, pod("p", node="n"), pod("dropped", node="n"), pod("pending"))
    observer._event(None, ScheduledEvent(ObjectMeta(name="e"), Regarding(uid="p")))
    await observer.all_told(["p", "pending"], silence=60.0)
    await observer.all_told(["p", "dropped"], silence=0.05)
    assert set(observer.told) == {"p"}
