"""Half an hour of ordinary applications beside a hostile tenant: ``python -m bench.soak``.

A real API server with 1000 nodes; the controllers run as processes of their own, the placement controller twice. Three
tenants create Online Boutiques, one creates what has stopped Berth before. Figures in docs/benchmarks/soak.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import psutil

from bench.live.workload import SYSTEM_NAMESPACE, network_topology
from bench.soak.hostile import ACTS, Hostility
from bench.soak.observe import QUARTERS, Growth, Leadership, Period, growth, period, resident
from bench.soak.ordinary import Shop, Waits
from bench.soak.tenant import Tenant
from berth.api.labels import LABEL_REGION, LABEL_ZONE
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.objects import Node
from berth.kube.reflector import Reflector
from berth.kube.resources import NAMESPACES, NETWORK_TOPOLOGIES, NODES, PODS
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.topology import load

REPOSITORY = Path(__file__).resolve().parents[2]
SHOPS = ("shop-a", "shop-b", "shop-c")
LEADER = "placement"
P99_SECONDS = 3.0
"""What 99 of 100 ordinary pods may wait."""
PATIENCE = 30.0
"""Seconds after which an ordinary pod counts as stuck."""
GROWTH = 1.15
"""Resident memory in the last quarter of the run, against the second quarter, at the most."""


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


class Soak:
    """The run."""

    def __init__(self, client: ApiClient, nodes: Sequence[Node], processes: dict[str, ControllerProcess]) -> None:
        """Prepare."""
        self._client = client
        self._nodes = nodes
        self._processes = processes
        self._leader = psutil.Process(processes[LEADER].pid)
        self.leadership = Leadership()
        self.waits = Waits()
        self.periods: list[Period] = []

    async def run(self, arguments: argparse.Namespace) -> None:
        """Create, watch and print a line a minute."""
        acts = [act for act in ACTS if not arguments.acts or act.__name__ in arguments.acts]
        # The tenants' own connections: a flood of one must not wait in front of another's requests here.
        connection = self._client.connection
        async with ApiClient(connection) as good, ApiClient(connection, max_connections=8) as bad:
            shops = [
                Shop(
                    Tenant(good, name, nodes=self._nodes, parallel=8), interval=arguments.interval, life=arguments.life
                )
                for name in SHOPS
            ]
            tenant = Tenant(bad, "hostile", nodes=self._nodes, parallel=arguments.parallel)
            hostility = Hostility(tenant, acts)
            jobs = [shop.run() for shop in shops] + [self._watch(name) for name in SHOPS]
            if not arguments.peaceful:
                jobs.append(hostility.run())
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(job) for job in jobs]
                await self._look_on(arguments.minutes, hostility)
                for task in tasks:
                    task.cancel()
            say(f"{hostility.done} hostile acts; refused by the API server: {dict(tenant.refusals)}")

    async def _watch(self, namespace: str) -> None:
        watch = Reflector(self._client, PODS, namespace=namespace)
        watch.add_handler(self.waits.note)
        await watch.run()

    async def _look_on(self, minutes: int, hostility: Hostility) -> None:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        began = time.monotonic()
        for minute in range(1, minutes + 1):
            since, cpu = time.monotonic(), self._cpu()
            while time.monotonic() < began + 60 * minute:
                await self.leadership.look(self._client, "default", f"berth-{LEADER}")
                self._all_run()
                await asyncio.sleep(1.0)
            self.periods.append(self._period(minute, since, self._cpu() - cpu, hostility.current))
            print(row(self.periods[-1]), flush=True)
        self.total = self._period(0, began, self._cpu(), "")

    def _period(self, minute: int, since: float, cpu: float, act: str) -> Period:
        holders = len(self.leadership.holders)
        return period(minute, self.waits, since, leaders=holders, mib=resident(self._processes), cpu=cpu, act=act)

    def _cpu(self) -> float:
        return float(sum(self._leader.cpu_times()[:2]))

    def _all_run(self) -> None:
        for name, process in self._processes.items():
            if not process.running:
                raise SystemExit(f"{name} has ended with {process.process.returncode}\n{process.tail()}")

    def faults(self) -> list[str]:
        """What was not as it must be."""
        found = []
        if not self.total.p99 < P99_SECONDS:
            found.append(f"p99 {self.total.p99:.2f} s, not below {P99_SECONDS:g} s")
        if self.total.waiting > PATIENCE:
            found.append(f"a pod has waited for {self.total.waiting:.0f} s at the end")
        if len(self.leadership.holders) != 1:
            found.append(f"the Lease changed hands: {self.leadership.holders}")
        if self.waits.rebound:
            found.append(f"{self.waits.rebound} pods changed their node")
        for name, memory in self.growth().items():
            if memory.ratio > GROWTH:
                found.append(f"{name} grew by {memory.ratio - 1:.0%} from the second to the last quarter")
        return found

    def growth(self) -> dict[str, Growth]:
        """Memory over the run, by process; nothing for a run that is too short to tell."""
        if len(self.periods) < QUARTERS:
            return {}
        return {name: growth([period.mib[name] for period in self.periods]) for name in self._processes}


COLUMNS = ("minute", "bound", "p50 s", "p99 s", "longest s", "oldest waits s", "leaders", "MiB", "leader CPU s", "act")


def row(item: Period) -> str:
    """A period as a Markdown row."""
    mib = " ".join(f"{name} {value:.0f}" for name, value in item.mib.items())
    cells = (
        item.minute or "all", item.bound, f"{item.p50:.2f}", f"{item.p99:.2f}", f"{item.longest:.2f}",
        f"{item.waiting:.1f}", item.leaders, mib, f"{item.cpu:.1f}", item.act,
    )  # fmt: skip
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def start(stack: ExitStack, cluster: LocalCluster, directory: Path) -> dict[str, ControllerProcess]:
    """Start the controllers, the placement controller's standby last."""
    processes: dict[str, ControllerProcess] = {}
    for name in (LEADER, "appgroup", "networktopology", "standby"):
        process = ControllerProcess.start(
            [LEADER if name == "standby" else name], kubeconfig=cluster.kubeconfig, directory=directory
        )
        processes[name] = stack.enter_context(process).wait_ready(timeout=120)
        if name == LEADER:
            process.wait_leader()
    return processes


async def soak(cluster: LocalCluster, directory: Path, arguments: argparse.Namespace) -> Soak:
    """Fill the cluster and run."""
    async with ApiClient(await load_connection(kubeconfig=str(cluster.kubeconfig))) as client:
        nodes = await client.list_all(NODES)
        zones = sorted({(n.metadata.labels[LABEL_REGION], n.metadata.labels[LABEL_ZONE]) for n in nodes})
        await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
        await client.create(NETWORK_TOPOLOGIES, network_topology(zones), namespace=SYSTEM_NAMESPACE)
        with ExitStack() as stack:
            run = Soak(client, nodes, await asyncio.to_thread(start, stack, cluster, directory))
            await run.run(arguments)
            return run


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=30, help="length of the run (default 30)")
    parser.add_argument("--interval", type=float, default=6.0, help="seconds between applications of a tenant (6)")
    parser.add_argument("--life", type=float, default=60.0, help="seconds that an application lives (60)")
    parser.add_argument("--parallel", type=int, default=4, help="requests of the hostile tenant at a time (4)")
    parser.add_argument("--peaceful", action="store_true", help="without the hostile tenant, for comparison")
    names = [act.__name__ for act in ACTS]
    parser.add_argument("--acts", nargs="+", choices=names, metavar="ACT", help=f"only these of {', '.join(names)}")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


def main() -> None:
    """Run, print the total, and end with 1 if something was not as it must be."""
    arguments = parse()
    specs = load(REPOSITORY / "hack" / "topologies" / "scale-1000.yaml")
    name = f"soak-{os.getpid()}"
    with (
        LocalCluster.start(name, kwok=False, die_with_parent=True, report=say) as cluster,
        tempfile.TemporaryDirectory() as directory,
    ):
        cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "crds"))
        cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "policies" / "warn"))
        say(f"creating {len(specs)} nodes")
        cluster.create_nodes(specs)
        run = asyncio.run(soak(cluster, Path(directory), arguments))
    print(row(run.total))
    for name, memory in run.growth().items():
        say(f"{name}: MiB by quarter {' '.join(f'{mib:.0f}' for mib in memory.quarters)}, {memory.slope:+.2f} a minute")
    faults = run.faults()
    if arguments.json:
        machine = {"cpus": os.cpu_count(), "platform": platform.platform(), "python": platform.python_version()}
        command = f"python -m bench.soak {' '.join(sys.argv[1:])}".strip()
        periods = [each.row() for each in (*run.periods, run.total)]
        memories = {name: asdict(memory) for name, memory in run.growth().items()}
        document = {"machine": machine, "command": command, "faults": faults, "memory": memories, "periods": periods}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")
    print("\n".join(faults) or "as it must be", file=sys.stderr)
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
