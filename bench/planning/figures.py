"""Longest wait of the event loop while an AppGroup is measured: ``python -m bench.planning.figures``."""

from __future__ import annotations

import asyncio
import sys
import time

from bench.planning.__main__ import Edges, layered, make_group, make_node, make_pod, no_rules
from bench.planning.event_loop import Watched, watched
from berth.kube.memory import freeze_objects, give_back_large_blocks
from berth.network.groups import GroupKey
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import PlacementConfiguration
from controllers.placement.group_metrics import GroupMetrics
from controllers.placement.planning_thread import SWITCH_INTERVAL

NODES = 1000
CASES: dict[str, tuple[Edges, int]] = {
    "10,000 edges": (layered(1000, 10), 2),
    "10,000 pods of 1000 workloads": (layered(1000, 3), 10),
}


async def idle() -> None:
    """No plan is being made."""


async def measure(edges: Edges, replicas: int) -> Watched:
    """Return what a look at the group does to the event loop."""
    cache, configuration = Cache(clock=time.monotonic), PlacementConfiguration()
    for number in range(NODES):
        cache.update_node(make_node(number, 16))
    cache.update_group(make_group(edges, {}))
    metrics, key = GroupMetrics(cache, configuration, idle=idle), GroupKey("default", "app")
    for number, workload in enumerate(edges):
        for replica in range(replicas):
            pod = make_pod(workload, replica, no_rules(workload))
            pod.spec.node_name = f"node-{(7 * number + 131 * replica) % NODES}"
            cache.update_pod(pod)
    metrics.pod_changed(key, "berth-scheduler")
    give_back_large_blocks()
    freeze_objects()
    async with watched() as seen:
        await metrics._look(key)
    return seen


def main() -> None:
    """Print a line per case."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    for name, case in CASES.items():
        seen = asyncio.run(measure(*case))
        print(f"{name}: {seen.seconds * 1000:.0f} ms, longest stall {seen.longest_stall * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
