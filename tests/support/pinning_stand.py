"""A node of a test's own to pin on: API objects without a kubelet, real containers in real cgroups, a real agent.

The machine's CPUs are divided into two sockets by a copy of sysfs; everything else is the machine's.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.node.pinning.cgroup_paths import container_path
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import find_hierarchy
from agents.node.topology.machine import Die, LastLevelCache, Machine, NumaNode, Socket
from berth.api.socketstatus import API_VERSION, KIND
from hack.harness.cluster import Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import ClusterError
from tests.support.chosen_constants import chosen_constants
from tests.support.cpusets import everything
from tests.support.running_runtime import RunningRuntime
from tests.support.scripted_runtime import PATIENCE
from tests.support.stepped_clock import SteppedClock
from tests.support.sysfs import write_sysfs

CLASS = "berth.dev/interference-class"
CPUS = sorted(everything())
SOCKETS = (frozenset(CPUS[: len(CPUS) // 2]), frozenset(CPUS[len(CPUS) // 2 :]))
"""CPUs of the two sockets."""
CPUSETS = find_hierarchy()


def two_sockets() -> Machine:
    """The machine's CPUs as two sockets with one NUMA node, since this machine may have no other."""
    online = frozenset(CPUS)
    return Machine(
        sockets=tuple(Socket(number=number, cpus=cpus) for number, cpus in enumerate(SOCKETS)),
        dies=tuple(Die(socket=number, number=0, cpus=cpus) for number, cpus in enumerate(SOCKETS)),
        numa_nodes=(NumaNode(number=0, cpus=online, memory_bytes=2**30),),
        last_level_caches=tuple(LastLevelCache(level=3, size_bytes=2**25, cpus=cpus) for cpus in SOCKETS),
        cores=tuple(frozenset([cpu]) for cpu in CPUS),
    )


@dataclass
class Running:
    """A container of a pod, with a real process."""

    id: str
    """its ID"""
    cgroup: Path
    """directory of its cgroup"""
    pid: int
    """its first process"""

    @property
    def cpus(self) -> frozenset[int]:
        """CPUs that its process may use, by the kernel."""
        return frozenset(os.sched_getaffinity(self.pid))

    def set_own_cpus(self, cpus: frozenset[int]) -> None:
        """Have a process inside the container write the container's cpuset."""
        script = 'echo $$ > "$1/cgroup.procs" && echo "$2" > "$1/cpuset.cpus"'
        subprocess.run(["sh", "-c", script, "sh", str(self.cgroup), ",".join(map(str, sorted(cpus)))], check=True)


@dataclass
class Stand:
    """A node with its pods."""

    kubectl: Kubectl
    daemon: RunningRuntime
    directory: Path
    node: str = field(default_factory=lambda: f"pin-{secrets.token_hex(4)}")
    agents: list[ControllerProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Write what the agent reads of the machine."""
        write_sysfs(self.directory / "sys", two_sockets())
        (self.directory / "kubelet").mkdir()
        self.kubelet("none")
        self.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}})

    def kubelet(self, policy: str) -> None:
        """Write the state of a CPU manager, as a kubelet that starts with this policy does."""
        state = {"policyName": policy, "defaultCpuSet": "", "checksum": 1}
        (self.directory / "kubelet" / "cpu_manager_state").write_text(json.dumps(state))

    def agent(
        self, *, constants: Mapping[str, float] | None = None, clock: SteppedClock | None = None, **options: Any
    ) -> ControllerProcess:
        """Start the agent and wait until it follows the node; constants as `chosen_constants` has them, or a clock."""
        environment = chosen_constants(self.directory / "constants", **constants) if constants else None
        given = {"name": self.node, "runtime": self.daemon.socket, "journal": self.directory / "journal"}
        given |= {"sysfs": self.directory / "sys", "kubelet": self.directory / "kubelet"} | options
        arguments = [f"--pinning-{name.replace('_', '-')}={value}" for name, value in given.items()]
        kubeconfig = self.kubectl._cluster.kubeconfig
        process = ControllerProcess.start(
            ["pinning"],
            kubeconfig=kubeconfig,
            directory=self.directory,
            arguments=arguments,
            environment=clock.environment if clock else environment,
        )
        self.agents.append(process)
        return process.wait_ready()

    async def pod(
        self, name: str, stated: str = "", *, containers: int = 1, labels: dict[str, str] | None = None
    ) -> tuple[str, list[Running]]:
        """Make a pod of the node and start its containers; its UID and these. `stated` is what its class label says."""
        spec = {
            "nodeName": self.node,
            "containers": [{"name": f"c{number}", "image": "pause"} for number in range(containers)],
        }
        labels = ({CLASS: stated} if stated else {}) | (labels or {})
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
        )
        uid = self.kubectl.get("pod", name)["metadata"]["uid"]
        client = RuntimeClient(self.daemon.socket, timeout=PATIENCE)
        found = []
        for number in range(containers):
            identity = await self.daemon.start(uid, f"c{number}")
            place = await client.place(identity)
            found.append(Running(identity, CPUSETS.cgroup(container_path(place.cgroups_path)), place.pid))
        client.close()
        return uid, found

    def assign(self, **sockets: int | dict[str, Any]) -> None:
        """Assign pods, by name, to sockets; a dict changes fields of the assignment."""
        items = []
        for name, chosen in sockets.items():
            uid = "gone"
            with suppress(ClusterError):
                uid = self.kubectl.get("pod", name.replace("_", "-"))["metadata"]["uid"]
            item = {"uid": uid, "namespace": self.kubectl.namespace, "name": name.replace("_", "-")}
            items.append(item | (chosen if isinstance(chosen, dict) else {"socket": chosen}))
        spec = {"assignments": items}
        self.kubectl.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": self.node}, "spec": spec})

    def status(self) -> dict[str, Any]:
        """The status of the node's SocketStatus."""
        status: dict[str, Any] = {}
        with suppress(ClusterError):  # it is not there
            status = self.kubectl.get("sst", self.node).get("status", {})
        return status

    def condition(self, kind: str, status: str, text: str = "", *, timeout: float = PATIENCE) -> str:
        """Wait for a condition of the SocketStatus, with this text in its message, which is returned."""

        def current() -> dict[str, Any]:
            return next((item for item in self.status().get("conditions", []) if item["type"] == kind), {})

        found = eventually(
            current,
            accept=lambda item: item.get("status") == status and text in item["message"],
            what=f"{kind}={status} with {text!r}",
            timeout=timeout,
        )
        return str(found["message"])


@contextmanager
def stand(kubectl: Kubectl, daemon: RunningRuntime, directory: Path) -> Iterator[Stand]:
    """A node; its agents end and its API objects go afterwards."""
    made = Stand(kubectl, daemon, directory)
    try:
        yield made
    finally:
        for process in made.agents:
            process.stop(check=False)
        kubectl("delete", "node,sst", made.node, "--ignore-not-found", check=False)


def on(container: Running, cpus: frozenset[int], *, timeout: float = PATIENCE) -> None:
    """Wait until the kernel lets a container's process use these CPUs and no others."""
    eventually(lambda: container.cpus, accept=lambda found: found == cpus, what=f"CPUs {sorted(cpus)}", timeout=timeout)


def restore(*options: str) -> subprocess.CompletedProcess[str]:
    """Run ``berth-agent restore``."""
    command = [sys.executable, "-c", "from berth.cli.agent import main; main()", "restore", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)
