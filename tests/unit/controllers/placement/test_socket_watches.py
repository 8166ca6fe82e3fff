"""What watches of SocketStatuses and WorkloadProfiles change in the cache."""

from __future__ import annotations

from typing import cast

from berth.kube.client import ApiClient
from berth.kube.objects import CustomObject
from berth.scheduling.cache.cache import Cache
from controllers.placement.socket_watches import SocketWatches
from tests.support.placement import Clock
from tests.support.sockets import asking, owned, status, workload_profile


class World:
    def __init__(self) -> None:
        self.cache = Cache(clock=Clock(), state=asking())
        self.watches = SocketWatches(cast("ApiClient", None), self.cache, deferring=lambda handler, _: handler)


def test_sockets_come_and_go() -> None:
    world = World()
    world.watches.on_sockets(None, status("n1"))
    assert world.cache.state.sockets.active
    world.watches.on_sockets(status("n1"), None)
    assert not world.cache.state.sockets.active
    world.watches.on_sockets(None, None)


def test_profiles_come_and_go() -> None:
    world, pod = World(), owned("p", "web")
    world.cache.assume(pod, "n1")
    world.watches.on_profile(None, workload_profile("web", "B"))
    assert world.cache.state.sockets.seat(pod.metadata.uid) is not None
    world.watches.on_profile(workload_profile("web", "B"), None)
    assert world.cache.state.sockets.seat(pod.metadata.uid) is None
    world.watches.on_profile(None, None)


def test_one_that_cannot_be_read_stops_no_other() -> None:
    world = World()
    bad = CustomObject.of({"metadata": {"name": "n1"}, "status": {"sockets": "many"}})
    world.watches.on_sockets(None, bad)
    world.watches.on_sockets(None, status("n2"))
    world.watches.on_profile(None, CustomObject.of({"metadata": {"name": "p", "namespace": "default"}}))
    assert world.cache.state.sockets.nodes() == ["n2"]
    assert len(world.cache.state.sockets.profiles) == 0


async def test_planning_begins_when_both_were_asked_for() -> None:
    world = World()
    world.watches.sockets.tried.set()
    world.watches.profiles.tried.set()
    await world.watches.asked()
    assert not world.watches.sockets.synced.is_set()  # a cluster without the kinds never lists them
