"""What one namespace leaves of the binding workers to others when its work hangs, and what is not planned meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from berth.kube import fair_queue
from berth.kube.objects import Pod
from controllers.placement.binder import BindOutcome, BindResult
from controllers.placement.binding_cycle import Assumed
from tests.support.desk import Desk
from tests.support.kube import running, until
from tests.support.placement import lone
from tests.support.volumes import WAIT, claim, storage_class, using

REFUSED = BindResult(BindOutcome.REFUSED, "403 Forbidden")


def occupied(desk: Desk) -> set[str]:
    """Pods that take room."""
    return {record.key for name in ("n1", "n2") for record in desk.cache.state.pods_on(name)}


def waiting(desk: Desk) -> list[str]:
    return [pod.metadata.name for entry in desk.queue.entries() for pod in entry.pods.values()]


class Unreadable:
    """A binder of which some pods' bindings stay unknown until they are told."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.told: asyncio.Future[BindResult] = asyncio.get_running_loop().create_future()

    async def bind(
        self, pod: Pod, node: str, *, decision: str, admitted: str, socket: str, deletion_cost: str
    ) -> BindResult:
        assert decision
        assert not admitted
        assert not socket
        return BindResult(BindOutcome.UNKNOWN if pod.metadata.name in self.names else BindOutcome.BOUND)

    async def find_out(self, _pod: Pod, _node: str, _watched: Callable[[], Pod | None]) -> BindResult:
        return await self.told


async def test_pods_that_cannot_be_read_keep_nobody_waiting(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = desk.controller.binding
    binder = Unreadable(*(f"lost-{number}" for number in range(cycle._workers)))
    monkeypatch.setattr(cycle, "_binder", binder)
    names = [*binder.names, "good"]
    for item in [desk.place(lone(name, cpu="10m")) for name in names]:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: desk.said.reasons == ["Scheduled"], what="the good one is bound")
        assert occupied(desk) == {f"default/{name}" for name in names}  # what is unknown keeps its room
        binder.told.set_result(REFUSED)
        await until(lambda: waiting(desk) == list(binder.names), what="the others are told")


def test_full_while_too_much_of_a_namespace_is_unbound(desk: Desk) -> None:
    limit = 8 * desk.controller.configuration.bindings_in_flight
    assumed = desk.place(lone("p"))
    for number in range(limit):
        assert not desk.controller.binding.full("default"), number
        desk.controller.binding.submit(assumed.decision, assumed.costs)
    assert desk.controller.binding.full("default")
    assert not desk.controller.binding.full("another")


async def test_full_counts_what_is_unknown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = desk.controller.binding
    monkeypatch.setattr(cycle, "_workers", 4)
    names = [f"lost-{number}" for number in range(8 * cycle._workers)]
    binder = Unreadable(*names)
    monkeypatch.setattr(cycle, "_binder", binder)
    for item in [desk.place(lone(name, cpu="1m")) for name in names]:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: not len(cycle._unbound) and cycle.full("default"), what="all are unknown")
        binder.told.set_result(REFUSED)
        await until(lambda: not cycle.full("default"), what="they are told")


async def test_a_large_application_keeps_no_other_namespace_waiting(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    class Recording(Unreadable):
        async def bind(self, pod: Pod, node: str, **annotations: Any) -> BindResult:
            order.append(pod.metadata.name)
            await asyncio.sleep(0)
            return await super().bind(pod, node, **annotations)

    cycle = desk.controller.binding
    monkeypatch.setattr(cycle, "_workers", 2)
    monkeypatch.setattr(cycle, "_binder", Recording())
    many = [desk.place(lone(f"many-{number}", cpu="1m")) for number in range(20)]
    one = desk.place(lone("one", namespace="small", cpu="1m"))
    for item in [*many, one]:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: len(order) == len(many) + 1, what="all are bound")
    assert order.index("one") < 2


class Hanging(Unreadable):
    """A binder that gets no answer for the pods of namespaces whose name begins with ``hang``."""

    async def bind(self, pod: Pod, node: str, **annotations: Any) -> BindResult:
        if pod.metadata.namespace.startswith("hang"):
            await asyncio.Event().wait()
        return await super().bind(pod, node, **annotations)

    async def find_out(self, _pod: Pod, _node: str, _watched: Callable[[], Pod | None]) -> BindResult:
        return await asyncio.Future()


async def test_fifty_namespaces_whose_bindings_hang_leave_workers_to_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 0.05)
    cycle = desk.controller.binding
    monkeypatch.setattr(cycle, "_binder", Hanging())
    hanging = [desk.place(lone(f"p{n}", namespace=f"hang-{m}", cpu="1m")) for n in range(3) for m in range(50)]
    good = [desk.place(lone(f"good-{number}", namespace="good", cpu="1m")) for number in range(20)]
    for item in hanging:
        cycle._put(item)
    async with running(cycle.run()):
        for number, item in enumerate(good, start=1):
            cycle._put(item)
            await until(partial(bound, desk, number), what="the good one is bound", seconds=5.0)
    assert bound(desk, 20)


def bound(desk: Desk, number: int) -> bool:
    return desk.said.reasons == ["Scheduled"] * number


class Provisioner:
    """A volume binder whose writes or waits never end."""

    def __init__(self, *, written: bool) -> None:
        self.written = written
        self.begun: Counter[str] = Counter()

    def needed(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes)

    async def claim(self, pod: Pod, _node: str) -> dict[str, int]:
        self.begun[pod.metadata.namespace] += 1
        if not self.written:
            await asyncio.Event().wait()
        return {}

    async def wait(self, _pod: Pod, _node: str, _written: object) -> None:
        await asyncio.Event().wait()


def with_claims(desk: Desk, number: int) -> list[Assumed]:
    """Decisions about pods whose claims are not bound."""
    desk.see("storageclasses", storage_class(WAIT))
    desk.see("persistentvolumeclaims", claim("c", storageClassName=WAIT))
    return [desk.place(lone(f"p{n}", cpu="1m", spec=using("c"))) for n in range(number)]


async def test_full_counts_pods_whose_volumes_are_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = desk.controller.binding
    monkeypatch.setattr(cycle, "_workers", 4)
    monkeypatch.setattr(cycle, "_volumes", Provisioner(written=True))
    items = with_claims(desk, 8 * cycle._workers)
    for item in items:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: not len(cycle._unbound), what="all are waited for")
        assert cycle.full("default")
        assert not cycle.full("another")


async def test_writes_for_volumes_that_hang_leave_workers_to_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycle = desk.controller.binding
    provisioner = Provisioner(written=False)
    monkeypatch.setattr(cycle, "_volumes", provisioner)
    monkeypatch.setattr(cycle, "_binder", Unreadable())
    good = desk.place(lone("good", namespace="good", cpu="1m"))
    for item in [*with_claims(desk, 60), good]:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: desk.said.reasons == ["Scheduled"], what="the good one is bound")
        assert 0 < provisioner.begun["default"] <= cycle._workers


async def test_writes_for_volumes_that_are_given_up_are_planned_anew(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_queue, "SLOW_SECONDS", 0.02)
    cycle = desk.controller.binding
    monkeypatch.setattr(cycle, "_volumes", Provisioner(written=False))
    for item in with_claims(desk, 60):
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: bool(desk.said.reasons), what="what is slow beyond the half is given up")
        assert set(desk.said.reasons) == {"VolumesNotBound"}
        assert waiting(desk)


async def test_a_pod_that_cannot_be_handled_stops_nobody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = desk.controller.binding
    binder = Unreadable()
    binder.told.set_result(REFUSED)
    monkeypatch.setattr(cycle, "_binder", binder)
    annotations = cycle._annotations

    def odd(item: Assumed) -> dict[str, str]:
        if item.decision.pod.metadata.name == "odd":
            raise ZeroDivisionError
        return annotations(item)

    monkeypatch.setattr(cycle, "_annotations", odd)
    for item in [desk.place(lone(name, cpu="10m")) for name in ("odd", "good")]:
        cycle._put(item)
    async with running(cycle.run()):
        await until(lambda: len(desk.said.reasons) == 2, what="both have their outcome")
    assert sorted(desk.said.reasons) == ["BindingFailed", "Scheduled"]
    assert waiting(desk) == ["odd"]
