"""Resident memory of each controller on a full cluster: ``python -m bench.live.memory``.

Creates nodes, AppGroups and bound pods, starts every controller by itself, waits until it is ready and
has said nothing new to the API server for a while, and reads its resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.live.__main__ import REPOSITORY, TOPOLOGIES, say
from bench.live.scenario import create_bound
from bench.live.workload import SYSTEM_NAMESPACE, network_topology
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.resources import NAMESPACES, NETWORK_TOPOLOGIES
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.topology import load

CONTROLLERS = ("appgroup", "networktopology", "placement")
SETTLE = 10.0


async def fill(cluster: LocalCluster, nodes: list[str], zones: list[tuple[str, str]], pods: int) -> None:
    """Create the network, the applications and their bound pods."""
    async with ApiClient(await load_connection(kubeconfig=str(cluster.kubeconfig))) as client:
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await client.create(NETWORK_TOPOLOGIES, network_topology(zones), namespace=SYSTEM_NAMESPACE)
        created = await create_bound(client, "full", nodes=nodes, pods=pods)
        say(f"{created} pods are bound")


def resident(process: ControllerProcess) -> float:
    """MiB once the process uses less than 5 % of a core, or after a minute."""
    handle = psutil.Process(process.process.pid)
    deadline = time.monotonic() + 60
    handle.cpu_percent()
    while time.monotonic() < deadline:
        time.sleep(SETTLE / 4)
        if handle.cpu_percent() < 5.0:
            break
    return float(handle.memory_info().rss) / 2**20


def main() -> None:
    """Fill a cluster and print a line per controller."""
    parser = argparse.ArgumentParser(prog="python -m bench.live.memory", description=__doc__)
    parser.add_argument("--topology", default="scale-1000", help="file in hack/topologies (default scale-1000)")
    parser.add_argument("--pods", type=int, default=10_000, help="bound pods (default 10000)")
    parser.add_argument("--controllers", nargs="+", default=list(CONTROLLERS), choices=CONTROLLERS)
    arguments = parser.parse_args()
    specs = load(TOPOLOGIES / f"{arguments.topology}.yaml")
    with LocalCluster.start(f"memory-{os.getpid()}", kwok=False, die_with_parent=True, report=say) as cluster:
        cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
        names = cluster.create_nodes(specs)
        zones = sorted({(spec.region, spec.zone) for spec in specs})
        asyncio.run(fill(cluster, names, zones, arguments.pods))
        print(f"{'controller':<18}{'nodes':>7}{'pods':>8}{'MiB':>7}")
        for controller in arguments.controllers:
            with tempfile.TemporaryDirectory() as directory:
                process = ControllerProcess.start(
                    [controller], kubeconfig=cluster.kubeconfig, directory=Path(directory)
                )
                try:
                    process.wait_ready(timeout=120)
                    print(f"{controller:<18}{len(names):>7}{arguments.pods:>8}{resident(process):>7.0f}")
                    sys.stdout.flush()
                finally:
                    process.stop()


if __name__ == "__main__":
    main()
