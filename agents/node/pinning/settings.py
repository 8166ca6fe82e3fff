"""What people may set of pinning on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from agents.node.pinning.cri import SOCKET
from agents.node.pinning.division import Division
from agents.node.pinning.hierarchy import MOUNT
from agents.node.pinning.journal import DIRECTORY
from agents.node.pinning.kubelet_state import DIRECTORY as KUBELET
from agents.node.pinning.reconciler import WRITES
from agents.node.topology.sysfs import SYSFS
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.runtime.settings import ComponentSettings


class PinningSettings(ComponentSettings):
    """Settings of pinning."""

    leader_elected: ClassVar[bool] = False

    name: str | None = None
    """Name of the node that it runs on; unset: the host name."""
    class_label: str = LABEL_INTERFERENCE_CLASS
    """Label with the interference class of a pod, the same as placement reads; without it a WorkloadProfile counts."""
    divide: Division = Division.CORES
    """How far a socket is divided among its pods: socket (each has all of it), caches, or caches and cores."""
    memory: bool = False
    """Have pods use memory of their socket's NUMA nodes alone; pages that are elsewhere are moved, which takes time."""
    interval: float = Field(default=1.0, ge=0.2, le=2.0)
    """Seconds from one look for new containers to the next."""
    writes: int = Field(default=WRITES, ge=1, le=1000)
    """Writes of a container's CPUs without a quiet minute after which it is given up."""
    runtime: Path = SOCKET
    """Socket of the container runtime."""
    cgroups: Path = MOUNT
    """Where the host's cgroups are mounted."""
    sysfs: Path = SYSFS
    """The machine's sysfs."""
    kubelet: Path = KUBELET
    """Directory that is the kubelet's --root-dir; it says whether the kubelet pins."""
    journal: Path = DIRECTORY
    """Directory of the journal, which outlives the agent's pod."""
