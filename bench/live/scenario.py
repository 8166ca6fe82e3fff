"""One run: create the applications, let one scheduler place them, measure, clean up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import msgspec
import psutil

from bench.live.availability import judged
from bench.live.workload import application, services
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Node, Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import APP_GROUPS, NAMESPACES, PODS, SERVICES
from berth.network.costs import NetworkCosts
from hack.harness.observe import PodLog, judge, percentiles

CREATORS = 32


@dataclass(frozen=True, slots=True)
class Result:
    """Figures of one run."""

    scheduler: str
    """who placed the pods"""
    load: str
    """backlog or arrival"""
    nodes: int
    """nodes of the cluster"""
    groups: int
    """applications created"""
    pods: int
    """pods created"""
    bound: int
    """pods that got a node"""
    pods_per_second: float
    """bound pods divided by the time from the first binding (arrival: creation) to the last binding"""
    p50: float
    """median seconds from a pod's creation to its binding"""
    p99: float
    """99th percentile of the same"""
    mean_edge_cost: float
    """network cost per dependency edge"""
    overcommitted: int
    """nodes with more requests than room: must be 0"""
    rebound: int
    """pods bound twice: must be 0"""
    nodes_used: int
    """nodes with at least one pod"""
    cpu_seconds: float
    """CPU time of the scheduler during the run"""
    rss_mib: float
    """resident memory of the scheduler at the end"""
    size: str = ""
    """size of the nodes"""
    decision_p99: float = float("nan")
    """99th percentile of the planning time per pod in seconds, as the bound of its histogram bucket (Berth only)"""
    replicas: int = 1
    """of every workload"""
    survive_node: float = float("nan")
    """share of the workloads with several replicas that have one left whichever node fails"""
    survive_zone: float = float("nan")
    """the same for zones"""

    def row(self) -> dict[str, Any]:
        """All figures by name."""
        return asdict(self)


IDLE_SHARE = 0.1
"""Share of a processor that a process may take which has nothing to do."""
AT_MOST_SECONDS = 20.0
"""The longest that one waits for that."""


class Cpu:
    """CPU time and memory of processes over a run."""

    def __init__(self, pids: Sequence[int]) -> None:
        """Remember where each stands now."""
        self._processes = [psutil.Process(pid) for pid in pids]
        self._before = self._seconds()

    def _seconds(self) -> float:
        return float(sum(sum(process.cpu_times()[:2]) for process in self._processes))

    def spent(self) -> float:
        """CPU seconds since the start."""
        return self._seconds() - self._before

    def rss(self) -> float:
        """Resident MiB of all of them."""
        return float(sum(process.memory_info().rss for process in self._processes)) / 2**20


def until_idle(pid: int, *, seconds: float = 0.5) -> None:
    """Wait until a process has had next to nothing to do for some time, as an API server that is new has."""
    end = time.monotonic() + AT_MOST_SECONDS
    while time.monotonic() < end:
        cpu = Cpu([pid])
        time.sleep(seconds)
        if cpu.spent() < IDLE_SHARE * seconds:
            return


async def create_all(
    client: ApiClient, namespace: str, *, scheduler: str, groups: int, replicas: int, log: PodLog | None = None
) -> int:
    """Create the applications' AppGroups, Services of several replicas, then all pods, noted in `log`.

    Returns:
        The number of pods.
    """
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    applications = [
        application(f"{namespace}-{number:04d}", scheduler=scheduler, replicas=replicas) for number in range(groups)
    ]
    await in_parallel([lambda g=group: client.create(APP_GROUPS, g, namespace=namespace) for group, _ in applications])
    pods = [pod for _, members in applications for pod in members]
    called = services(pods) if replicas > 1 else []
    await in_parallel([lambda s=service: client.create(SERVICES, s, namespace=namespace) for service in called])

    async def create(pod: dict[str, Any]) -> None:
        answer = await client.create(PODS, pod, namespace=namespace)
        if log is not None:
            log.answered(msgspec.json.decode(answer, type=Pod).metadata.uid)

    await in_parallel([partial(create, pod) for pod in pods])
    return len(pods)


async def create_bound(client: ApiClient, namespace: str, *, nodes: Sequence[str], pods: int) -> int:
    """Create applications whose pods are on nodes already, spread in turn; returns the number of pods."""
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    calls: list[Any] = []
    number = 0
    while len(calls) < pods:
        group, members = application(f"{namespace}-{number:05d}", scheduler="default-scheduler")
        await client.create(APP_GROUPS, group, namespace=namespace)
        for pod in members:
            pod["spec"]["nodeName"] = nodes[len(calls) % len(nodes)]
            calls.append(lambda p=pod: client.create(PODS, p, namespace=namespace))
        number += 1
    await in_parallel(calls)
    return len(calls)


async def in_parallel(calls: list[Any]) -> None:
    """Make requests, given as functions, so many at a time as there are `CREATORS`."""
    queue = iter(calls)

    async def worker() -> None:
        for call in queue:
            await call()

    await asyncio.gather(*(worker() for _ in range(CREATORS)))


async def run(
    client: ApiClient,
    *,
    namespace: str,
    scheduler: str,
    label: str,
    groups: int,
    replicas: int,
    nodes: Sequence[Node],
    costs: NetworkCosts,
    start: Callable[[], Sequence[int]],
    load: str,
    patience: float,
) -> Result:
    """Create `groups` applications, have a scheduler place them, and wait until all are bound.

    Args:
        client: open API client.
        namespace: created for the run.
        scheduler: spec.schedulerName of the pods.
        label: name in the result.
        groups: number of applications.
        replicas: of every workload; several keep away from each other where they can.
        nodes: the cluster's nodes.
        costs: what the placement is judged by.
        start: starts the scheduler, waits until it is ready, returns its pids.
        load: ``backlog`` creates everything before the scheduler starts, so that its own rate is measured and
            not that of the creation; ``arrival`` creates while it runs, which shows latencies.
        patience: the run ends early when nothing was bound for so many seconds.
    """
    log = PodLog()
    watch = Reflector(client, PODS, namespace=namespace)
    watch.add_handler(log.note)
    progress = asyncio.Event()
    watch.add_batch_handler(progress.set)
    following = asyncio.create_task(watch.run())
    create = partial(create_all, client, namespace, scheduler=scheduler, groups=groups, replicas=replicas, log=log)
    try:
        await watch.synced.wait()
        if load == "backlog":
            await create()
        cpu = Cpu(await asyncio.to_thread(start))
        started = time.monotonic()
        creating = asyncio.ensure_future(asyncio.sleep(0) if load == "backlog" else create())
        wanted = groups * len(application("x", scheduler=scheduler, replicas=replicas)[1])
        bound, last = 0, time.monotonic()
        while len(log.bound) < wanted and time.monotonic() - last < patience:
            progress.clear()
            try:
                async with asyncio.timeout(1.0):
                    await progress.wait()
            except TimeoutError:
                pass
            if len(log.bound) != bound:
                bound, last = len(log.bound), time.monotonic()
        await creating
        first = log.bound if load == "backlog" else log.created
        seconds = max(log.bound.values(), default=started) - min(first.values(), default=started)
        spent, rss = cpu.spent(), cpu.rss()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    group_objects = await client.list_all(APP_GROUPS, namespace=namespace)
    quality = judge(list(log.pods.values()), group_objects, nodes, costs)
    p50, p99 = percentiles([log.bound[uid] - log.created[uid] for uid in log.bound])
    cost, survival = quality.mean_edge_cost, (float("nan"), float("nan"))
    if replicas > 1:
        found = await judged(client, namespace)
        cost, shared = found.cost, max(found.replicated, 1)
        survival = (found.survive_node / shared, found.survive_zone / shared)
    return Result(
        scheduler=label,
        load=load,
        nodes=len(nodes),
        groups=groups,
        pods=wanted,
        bound=len(log.bound),
        pods_per_second=len(log.bound) / seconds if seconds else float("nan"),
        p50=p50,
        p99=p99,
        mean_edge_cost=cost,
        overcommitted=quality.overcommitted,
        rebound=log.rebound,
        nodes_used=quality.nodes_used,
        cpu_seconds=spent,
        rss_mib=rss,
        replicas=replicas,
        survive_node=survival[0],
        survive_zone=survival[1],
    )


async def clean_up(client: ApiClient, namespace: str) -> None:
    """Delete the run's pods and groups at once, so that the next scheduler finds an empty cluster."""
    pods = await client.list_all(PODS, namespace=namespace)
    await in_parallel([lambda n=pod.metadata.name: client.delete(PODS, n, namespace=namespace) for pod in pods])
    groups = await client.list_all(APP_GROUPS, namespace=namespace)
    await in_parallel([lambda n=g.metadata.name: client.delete(APP_GROUPS, n, namespace=namespace) for g in groups])
    while await client.list_all(PODS, namespace=namespace):
        await asyncio.sleep(0.2)
    try:
        await client.delete(NAMESPACES, namespace)
    except ApiError as error:
        if not error.not_found:
            raise
