"""A node whose pods come one after another and get sockets."""

from __future__ import annotations

from berth.kube.objects import CustomObject
from berth.scheduling.cache.cache import Cache
from berth.scheduling.interference.policy import InterferencePolicy
from tests.support import builders
from tests.support.placement import Clock
from tests.support.sockets import asking, classed


def cache_of(*objects: CustomObject, policy: InterferencePolicy = InterferencePolicy.LEAST_SLOWDOWN) -> Cache:
    """Cache with the node n1 of 64 CPUs, and SocketStatuses."""
    cache = Cache(clock=Clock(), state=asking(policy))
    cache.update_node(builders.node("n1", cpu="64"))
    for obj in objects:
        cache.update_sockets(obj)
    return cache


def place(cache: Cache, *letters: str, cpu: str = "1") -> list[int | None]:
    """Sockets of pods that come one after another, as they are in the end."""
    pods = [classed(f"p{number}", letter, cpu=cpu) for number, letter in enumerate(letters)]
    for pod in pods:
        cache.assume(pod, "n1")
    seats = [cache.state.sockets.seat(pod.metadata.uid) for pod in pods]
    return [None if seat is None else seat.socket for seat in seats]
