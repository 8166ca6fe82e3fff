"""What the parts of a node are called and where they lie. Everything follows from the instance's directory.

So all of it is found again when nothing was written down, and two instances share nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

PARTS = ("containerd", "service-relay", "kubelet")
"""Processes of a node, in start order; the first node's are called ``containerd-1`` and so on."""

PREFIX = 24
"""Length of the prefix of an instance's network."""

MOST_NODES = 50
"""Real nodes of an instance at most."""

REGION = "local"
"""Region of all real nodes."""

SERVICE_ADDRESS = "10.96.0.1"
"""Where pods find the API server: the first address of the range of Services."""


def key(home: Path) -> str:
    """Short name of the instance in *home*, for what is named in the whole machine and has 15 characters at most."""
    return hashlib.sha256(str(home).encode()).hexdigest()[:6]


def bridge(home: Path) -> str:
    """Name of the bridge between the nodes, in the machine's own network namespace."""
    return f"berth-{key(home)}"


def parse(component: str) -> tuple[str, int] | None:
    """Part and number of the node that *component* belongs to, None if it is no part of a node."""
    part, _, number = component.rpartition("-")
    return (part, int(number)) if part in PARTS and number.isdigit() else None


@dataclass(frozen=True, kw_only=True)
class Node:
    """One real node of the instance in `home`."""

    home: Path
    """The instance's directory."""
    number: int
    """Counts from 1."""

    @property
    def name(self) -> str:
        """Name of its Node object."""
        return f"node-{self.number}"

    @property
    def user(self) -> str:
        """Whom its kubelet acts as."""
        return f"system:node:{self.name}"

    @property
    def zone(self) -> str:
        """Its zone: every node has one of its own, of 26 that there are."""
        return f"{REGION}-{chr(ord('a') + (self.number - 1) % 26)}"

    @property
    def namespace(self) -> str:
        """Its network namespace, and its cgroup in every hierarchy."""
        return f"{bridge(self.home)}-{self.number}"

    @property
    def namespace_file(self) -> Path:
        """By which the network namespace is entered."""
        return Path("/run/netns") / self.namespace

    @property
    def interface(self) -> str:
        """The bridge's end of its link; its own end is ``eth0``."""
        return f"bth{key(self.home)}-{self.number}"

    def address(self, gateway: str) -> str:
        """Its address in the network of the instance whose bridge has the address *gateway*."""
        return str(ipaddress.ip_address(gateway) + 10 + self.number)

    @property
    def pods(self) -> str:
        """Network of its pods, known in the instance's namespaces alone: all instances have the same."""
        return f"10.244.{self.number}.0/24"

    @property
    def directory(self) -> Path:
        """Its files."""
        return self.home / "nodes" / str(self.number)

    @property
    def socket(self) -> Path:
        """Where its containerd listens."""
        return self.directory / "containerd.sock"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of its kubelet."""
        return self.directory / "kubeconfig"


def nodes(home: Path, count: int) -> list[Node]:
    """The first *count* nodes of the instance in *home*."""
    return [Node(home=home, number=number) for number in range(1, count + 1)]
