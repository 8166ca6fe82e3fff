"""Apply an application with its network at once, again and again: ``python -m bench.settling --tries 100``.

Every try has a namespace of its own and applies the objects of examples 01 to 03 in one ``kubectl apply``, shuffled. It
counts as good when all eleven pods are bound and every decision names that NetworkTopology with its computed weights.
Then the same without the NetworkTopology: there is nothing to wait for, and the time from the last pod's creation to
the last binding is what the wait costs at the most. Times are those of a watch of this program's own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from berth.api.labels import ANNOTATION_DECISION, WEIGHTS_DIJKSTRA
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.objects import Pod
from berth.kube.reflector import Reflector
from berth.kube.resources import NETWORK_TOPOLOGIES, PODS
from berth.scheduling.annotations import read_decision
from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, install_crds
from hack.harness.observe import PodLog, percentiles
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster

FILES = ("01-appgroup-online-boutique", "02-networktopology", "03-online-boutique-deployments")
CONTROLLERS = ("appgroup", "networktopology", "placement")
MEMBERS = 11
PATIENCE = 60.0


def examples(*, network: bool) -> list[dict[str, Any]]:
    """The objects of the example files, with or without the NetworkTopology."""
    found: list[dict[str, Any]] = []
    for name in FILES:
        found += yaml.safe_load_all((REPOSITORY / "examples" / f"{name}.yaml").read_text())
    return [item for item in found if network or item["kind"] != NETWORK_TOPOLOGIES.kind]


def problem(pods: Sequence[Pod], topology: str) -> str:
    """What is wrong with a placement, empty when every pod was placed with that NetworkTopology's computed weights."""
    bound = [pod for pod in pods if pod.spec.node_name]
    if len(bound) < MEMBERS:
        return f"{len(bound)} of {MEMBERS} pods bound after {PATIENCE:.0f} s"
    for pod in bound:
        network: Mapping[str, Any] = read_decision(pod.metadata.annotations.get(ANNOTATION_DECISION, "{}"))["network"]
        if network.get("topology") != topology or WEIGHTS_DIJKSTRA not in network.get("weights", ()):
            return f"{pod.metadata.name} was placed with {network}"
    return ""


class Bench:
    """One cluster with all controllers, for many tries."""

    def __init__(self, cluster: LocalCluster, client: ApiClient, process: ControllerProcess) -> None:
        """Share them."""
        self._cluster, self._client, self._process = cluster, client, process

    async def one(self, seed: int, *, network: bool) -> tuple[str, float]:
        """One try: what is wrong with it (empty: nothing), and seconds from the last creation to the last binding."""
        namespace = f"try-{'with' if network else 'without'}-{seed}"
        objects = examples(network=network)
        random.Random(seed).shuffle(objects)
        await self._kubectl("create", "namespace", namespace)
        log = PodLog()
        reflector = Reflector(self._client, PODS, namespace=namespace)
        reflector.add_handler(log.note)
        watching = asyncio.create_task(reflector.run())
        try:
            await reflector.synced.wait()
            await self._kubectl("apply", "-n", namespace, "-f", "-", text=yaml.safe_dump_all(objects))
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE):
                    while len(log.bound) < MEMBERS:
                        await asyncio.sleep(0.02)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        wrong = problem(list(log.pods.values()), f"{namespace}/net-topology") if network else ""
        if len(log.bound) < MEMBERS:
            wrong = problem(list(log.pods.values()), "")
        waited = max(log.bound.values(), default=PATIENCE) - max(log.created.values(), default=0.0)
        # The next try has to do without this one's network.
        await self._kubectl("delete", "-n", namespace, "deployments,appgroups,networktopologies", "--all")
        await self._kubectl("delete", "namespace", namespace, "--wait=false")
        while self._process.metric("berth_cached_objects", resource="networktopologies"):
            await asyncio.sleep(0.05)
        return wrong, waited

    async def _kubectl(self, *arguments: str, text: str | None = None) -> None:
        await asyncio.to_thread(self._cluster.kubectl, *arguments, input=text)


async def measure(cluster: LocalCluster, process: ControllerProcess, tries: int) -> int:
    """Run all tries and print their figures; returns how many went wrong."""
    failed = 0
    async with ApiClient(await load_connection(kubeconfig=str(cluster.kubeconfig))) as client:
        bench = Bench(cluster, client, process)
        for network in (True, False):
            waits: list[float] = []
            bad = 0
            for seed in range(tries):
                wrong, waited = await bench.one(seed, network=network)
                waits.append(waited)
                if wrong:
                    bad += 1
                    print(f"try {seed}: {wrong}", flush=True)
            median, high = percentiles(waits)
            name = "with" if network else "without"
            print(
                f"{name} a NetworkTopology: {tries - bad} of {tries} tries good; seconds from the last creation to the "
                f"last binding: median {median:.2f}, 99th percentile {high:.2f}, most {max(waits):.2f}",
                flush=True,
            )
            failed += bad
    return failed


def main() -> int:
    """Start a cluster and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.settling", description=__doc__)
    parser.add_argument("--tries", type=int, default=100, help="tries with and tries without a network (default 100)")
    tries = parser.parse_args().tries
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster.start(f"settling-{os.getpid()}", nodes=DEMO_TOPOLOGY, die_with_parent=True) as cluster,
    ):
        install_crds(cluster)
        with ControllerProcess.start(
            CONTROLLERS, kubeconfig=cluster.kubeconfig, directory=Path(directory), arguments=["--no-leader-elect"]
        ) as process:
            process.wait_ready()
            return 1 if asyncio.run(measure(cluster, process, tries)) else 0


if __name__ == "__main__":
    sys.exit(main())
