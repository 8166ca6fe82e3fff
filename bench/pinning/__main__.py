"""``python -m bench.pinning``: how soon pods are pinned, and what all of Berth's agents take on a node; as root.

A real node runs ``deploy/agent`` and ``deploy/pinning`` as they are, or ``deploy/agent-and-pinning``, and as many
pods as its kubelet takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from hack.harness import pinned_node
from hack.harness.assigned_pods import start
from hack.harness.cluster import eventually
from hack.harness.node_processes import first_processes
from hack.harness.pinning_waits import seconds_until_pinned
from hack.localcluster import LocalCluster, Options

MIB = 2**20
POD_LIMIT = 110
TOGETHER = "agent-and-pinning"
"""Directory of ``deploy/`` in which both agents are one process."""
_OTHERS = ("DaemonSet", "Deployment", "PodDisruptionBudget")
"""Kinds of its objects that are applied otherwise, or not needed."""


def install(cluster: LocalCluster, directory: Path, *, together: bool) -> pinned_node.Sockets:
    """Both agents, rolled out, in one process or in two; the sockets that pods are pinned to."""
    sockets, sysfs = pinned_node.sockets_for(directory)
    pinned_node.prepare(cluster, directory)
    if together:
        items = [item for item in pinned_node.manifests(cluster, TOGETHER) if item["kind"] not in _OTHERS]
        items.append(pinned_node.daemon_set(cluster, directory, sysfs, source=TOGETHER))
    else:
        items = [*pinned_node.manifests(cluster, "agent"), pinned_node.daemon_set(cluster, directory, sysfs)]
    pinned_node.apply(cluster, items)
    for name in ("berth-node",) if together else ("berth-pinning", "berth-node"):
        pinned_node.rolled_out(cluster, f"daemonset/{name}")
    return sockets


def agents(cluster: LocalCluster) -> dict[str, psutil.Process]:
    """The agents' processes."""
    node = pinned_node.first_node(cluster)
    (network,) = first_processes(node, "run", "node")
    agent = psutil.Process(network)
    (prober,) = agent.children()
    found = {"its prober": prober}
    if first_processes(node, "run", "node", "pinning"):
        return {"both": agent, **found}
    (pinning,) = first_processes(node, "run", "pinning")
    return {"pinning": psutil.Process(pinning), "network": agent, **found}


def pin(cluster: LocalCluster, sockets: pinned_node.Sockets) -> list[float]:
    """Fill the node with pods; seconds until each was pinned, ascending."""
    present = json.loads(cluster.kubectl("get", "pods", "-A", "-ojson").stdout)["items"]
    names = {f"pod-{number}": number % len(sockets) for number in range(POD_LIMIT - len(present))}
    uids = start(cluster, names)
    wanted = {uids[name]: [sockets[socket]] for name, socket in names.items()}
    return sorted(asyncio.run(seconds_until_pinned(cluster, wanted)).values())


def settle(cluster: LocalCluster) -> None:
    """Return when the kubelet has told of all pods, which takes it longer than to start them."""
    eventually(
        lambda: cluster.kubectl("get", "pods", "--field-selector=status.phase!=Running", "-oname").stdout,
        accept=lambda names: not names,
        what="pods that run",
        timeout=300.0,
    )


def measure(cluster: LocalCluster, seconds: float, case: str) -> None:
    """Print processor time over so many seconds, and memory at their end."""
    found = agents(cluster)
    before = {name: sum(process.cpu_times()[:2]) for name, process in found.items()}
    begun = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    rows = []
    for name, process in found.items():
        memory = process.memory_full_info()
        used = sum(process.cpu_times()[:2]) - before[name]
        rows.append((name, 100 * used / passed, memory.rss / MIB, memory.pss / MIB))
    percents, residents, proportionals = (list(column) for column in zip(*(row[1:] for row in rows), strict=True))
    rows.append(("together", sum(percents), sum(residents), sum(proportionals)))
    for name, percent, resident, proportional in rows:
        print(f"| {case} | {name} | {percent:.2f} | {resident:.0f} | {proportional:.0f} |", flush=True)


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.pinning", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds that are measured (default: 60)")
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds before measuring (default: 60)")
    parser.add_argument("--together", action="store_true", help="both agents in one process: deploy/agent-and-pinning")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    with (
        tempfile.TemporaryDirectory() as directory,
        LocalCluster.start(f"bench-pinning-{os.getpid()}", options=Options(kubelets=1)) as cluster,
    ):
        sockets = install(cluster, Path(directory), together=options.together)
        print("| pods | process | CPU % of a core | RSS MiB | PSS MiB |")
        print("|---|---|---|---|---|")
        time.sleep(options.warm_up)
        measure(cluster, options.seconds, "none")
        waits = pin(cluster, sockets)
        settle(cluster)
        time.sleep(options.warm_up)
        measure(cluster, options.seconds, f"{len(waits)} pinned")
        ranks = (50, 90, 99)
        figures = ", ".join(f"p{r} {v:.2f} s" for r, v in zip(ranks, np.percentile(waits, ranks), strict=True))
        load = os.getloadavg()[0]
        print(f"\n{len(waits)} containers had their CPUs after {figures}, most {waits[-1]:.2f} s; load {load:.1f}")


if __name__ == "__main__":
    main()
