"""What steps of the controller cost beside many tenants: ``python -m bench.planning.tenants``.

Each of N namespaces has an AppGroup of two workloads, a NetworkTopology, a Service, and two pods that wait. Measured is
the median time of one step that concerns one of them, or none.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from bench.planning.__main__ import make_group, make_node, make_pod, no_rules
from berth.api.labels import LABEL_APPGROUP
from berth.kube.client import ApiClient
from berth.kube.fair_queue import FairQueue
from berth.kube.objects import CustomObject, Pod, Service
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.cycle import CycleListener, SchedulingCycle
from berth.scheduling.queue import SchedulingQueue
from controllers.placement.event_handlers import EventHandlers
from controllers.placement.group_metrics import GroupMetrics
from controllers.placement.pod_conditions import PodConditions
from controllers.placement.volume_binder import VolumeBinder

Step = Callable[[int], None]


async def idle() -> None:
    """No plan is being made."""


class Tenants:
    """Cache, queue and handlers of a controller that knows them."""

    def __init__(self, count: int) -> None:
        """Have all objects seen; no pod is planned yet."""
        self.count = count
        self.configuration = PlacementConfiguration()
        self.cache = Cache(clock=time.monotonic)
        self.queue = SchedulingQueue(clock=time.monotonic, groups=self.cache.groups)
        self.cycle = SchedulingCycle(self.cache, self.queue, self.configuration, CycleListener())
        client = cast("ApiClient", None)
        self.handlers = EventHandlers(
            self.cache,
            self.queue,
            self.configuration,
            volumes=VolumeBinder(client, self.cache.state, idle=idle),
            conditions=PodConditions(client),
            groups=GroupMetrics(self.cache, self.configuration, idle=idle),
            record=lambda _: None,
            deferring=lambda call, _: call,
        )
        for number in range(100):
            self.handlers.on_node(None, make_node(number, 16))
        for number in range(count):
            self.handlers.on_topology(None, topology(number))
            self.handlers.on_group(None, group(number))
            self.handlers.on_service(None, service(number))
        for number in range(count):
            for workload in ("w0", "w1"):
                self.handlers.on_pod(None, pod(number, workload))

    def fail_all(self) -> None:
        """Have no pod placed."""
        while (entry := self.queue.pop()) is not None:
            self.queue.back_off(entry)

    def attempt(self, _: int) -> None:
        """Take the next entry, which is not placed."""
        entry = self.queue.pop()
        if entry is not None:
            self.queue.back_off(entry)

    def place(self, _: int) -> None:
        """Plan the next entry."""
        entry = self.queue.pop()
        if entry is not None:
            self.cycle.schedule_one(entry)

    def costs(self, number: int) -> None:
        """Ask for the network costs of a namespace."""
        self.cache.costs_for(f"tenant-{number % self.count}", self.configuration.profiles[0])

    def change_service(self, number: int) -> None:
        """See another Service of a namespace without anything that waits."""
        self.handlers.on_service(None, service(self.count + number))

    def bind_foreign_pod(self, number: int) -> None:
        """See a pod of kube-scheduler that has got a node."""
        made = pod(self.count + number, "w0")
        made.metadata.labels.pop(LABEL_APPGROUP)
        made.spec.scheduler_name, made.spec.node_name = "default-scheduler", "node-1"
        self.handlers.on_pod(None, made)


def pod(number: int, workload: str) -> Pod:
    """The pod of a workload in a namespace."""
    made = make_pod(workload, number, no_rules(workload))
    made.metadata.namespace = f"tenant-{number}"
    return made


def group(number: int) -> CustomObject:
    """The AppGroup of a namespace."""
    made = make_group({"w0": ["w1"], "w1": []}, {})
    made.metadata.namespace, made.metadata.uid = f"tenant-{number}", f"group-{number}"
    return made


def service(number: int) -> Service:
    """The Service of a namespace."""
    metadata = {"name": "w0", "namespace": f"tenant-{number}", "uid": f"service-{number}"}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": {"app": "w0"}}}, Service)


def topology(number: int) -> CustomObject:
    """The NetworkTopology of a namespace."""
    costs = [{"destination": "zone-1", "networkCost": 5}]
    zones = {"topologyKey": "topology.kubernetes.io/zone", "originList": [{"origin": "zone-0", "costList": costs}]}
    body: dict[str, Any] = {
        "metadata": {"name": "net", "namespace": f"tenant-{number}", "uid": f"net-{number}", "generation": 1},
        "spec": {"weights": [{"name": "UserDefined", "topologyList": [zones]}], "configmapName": "none"},
    }
    return CustomObject.of(body)


async def slow_namespaces(count: int) -> float:
    """Mean seconds of putting an item beside namespaces that wait and are slow, and taking it."""
    queue: FairQueue[int] = FairQueue(48)
    for number in range(count):
        queue.put(f"tenant-{number}", number)
        queue._note_slow(f"tenant-{number}")
    while queue.take() is not None:
        pass  # until slow work has all workers that it may have
    start = time.perf_counter()
    for number in range(100):
        queue.put("prompt", number)
        turn = queue.take()
        assert turn is not None
        queue.done(turn)
    return (time.perf_counter() - start) / 100


def median(step: Step, times: int = 50) -> float:
    """Seconds of a step."""
    seconds = []
    for number in range(times):
        start = time.perf_counter()
        step(number)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    """Print a line per step and number of tenants."""
    parser = argparse.ArgumentParser(prog="python -m bench.planning.tenants", description=__doc__)
    parser.add_argument("tenants", nargs="*", type=int, default=[100, 1000, 10_000])
    for count in parser.parse_args().tenants:
        tenants = Tenants(count)
        print(f"{count} tenants", flush=True)
        for step in (tenants.place, tenants.attempt, tenants.costs):
            print(f"  {step.__name__:16} {median(step) * 1e6:8.0f} µs", flush=True)
        tenants.fail_all()
        for step in (tenants.change_service, tenants.bind_foreign_pod):
            print(f"  {step.__name__:16} {median(step) * 1e6:8.0f} µs", flush=True)
        print(f"  slow_namespaces  {asyncio.run(slow_namespaces(count)) * 1e6:8.0f} µs", flush=True)


if __name__ == "__main__":
    main()
