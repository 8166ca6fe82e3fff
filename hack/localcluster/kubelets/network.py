"""The network between the nodes: a bridge, and for each node a namespace with a link to it."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets.names import PREFIX, SERVICE_ADDRESS, Node, bridge, key

POOL = ipaddress.IPv4Network("10.248.0.0/13")
"""Networks of instances are taken from here."""

_SETTINGS = {
    "net.ipv4.ip_forward": "1",
    # What a distribution sets at boot: anybody may open ICMP sockets.
    "net.ipv4.ping_group_range": "0 2147483647",
    # Packets may leave by a device of their own and be answered by another: hack/localcluster/kubelets/delay.py.
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}


def choose_gateway(home: Path, used: Iterable[str]) -> str:
    """Address of the bridge in a network of `POOL` that overlaps none of the networks *used*.

    Raises:
        ClusterError: all are taken.
    """
    taken = [ipaddress.IPv4Network(item, strict=False) for item in used]
    networks = list(POOL.subnets(new_prefix=PREFIX))
    # Instances that start at the same moment begin at different ones.
    first = int(key(home), 16) % len(networks)
    for network in [*networks[first:], *networks[:first]]:
        if not any(network.overlaps(other) for other in taken):
            return str(network.network_address + 1)
    raise ClusterError(f"every network in {POOL} is in use: stop other clusters (hack/cluster list)")


def used_networks() -> list[str]:
    """IPv4 networks that the machine has routes to, all but the default one."""
    routes = json.loads(_run(["ip", "-json", "-4", "route", "show", "table", "all"]))
    return [route["dst"] for route in routes if route["dst"][0].isdigit()]


def bridge_commands(home: Path, gateway: str) -> list[list[str]]:
    """Commands that make the bridge."""
    name = bridge(home)
    # Else it has the least address of its links, and another once a link with a lesser one comes, or that one goes.
    # Until nodes have found that out, half a minute later, they do not reach the API server.
    number = int(key(home), 16).to_bytes(3, "big")
    return [
        ["ip", "link", "add", name, "address", f"02:00:00:{number.hex(':')}", "type", "bridge"],
        ["ip", "address", "add", f"{gateway}/{PREFIX}", "dev", name],
        ["ip", "link", "set", name, "up"],
    ]


def node_commands(node: Node, gateway: str, others: Sequence[Node]) -> list[list[str]]:
    """Commands that make the namespace of *node*, its link to the bridge, and its routes to the pods of *others*."""
    inside = ["ip", "-netns", node.namespace]
    return [
        ["ip", "netns", "add", node.namespace],
        ["ip", "link", "add", node.interface, "type", "veth", "peer", "name", "eth0", "netns", node.namespace],
        ["ip", "link", "set", node.interface, "master", bridge(node.home), "up"],
        [*inside, "link", "set", "lo", "up"],
        [*inside, "address", "add", f"{SERVICE_ADDRESS}/32", "dev", "lo"],
        [*inside, "address", "add", f"{node.address(gateway)}/{PREFIX}", "dev", "eth0"],
        [*inside, "link", "set", "eth0", "up"],
        [*inside, "route", "add", "default", "via", gateway],
        *([*inside, "route", "add", other.pods, "via", other.address(gateway)] for other in others),
        # Only --net: `ip netns exec` would mount another /sys, without the cgroups, for whatever it runs.
        [*enter(node), "sysctl", "--quiet", "-w", *(f"{name}={value}" for name, value in _SETTINGS.items())],
    ]


def enter(node: Node) -> list[str]:
    """Beginning of a command line that runs what follows in the network namespace of *node*."""
    return ["nsenter", f"--net={node.namespace_file}"]


def create(home: Path, gateway: str, nodes: Sequence[Node]) -> None:
    """Make what is not there yet of the network of the instance in *home*.

    Raises:
        ClusterError: a command fails.
    """
    if not (Path("/sys/class/net") / bridge(home)).exists():
        for command in bridge_commands(home, gateway):
            _run(command)
    for node in nodes:
        link = Path("/sys/class/net") / node.interface
        if not (link.exists() and node.namespace_file.exists()):
            # Of one that was half made, that lost its link with the machine's last boot, or that the kernel is taking
            # away: its name, and its link, which goes some time after it.
            for leftover in (["netns", "delete", node.namespace], ["link", "delete", node.interface]):
                subprocess.run(["ip", *leftover], capture_output=True, check=False)
            for command in node_commands(node, gateway, [other for other in nodes if other != node]):
                _run(command)


def delete(home: Path) -> None:
    """Remove namespaces, links and bridge of the instance in *home*, of those that there are."""
    for path in Path("/run/netns").glob(f"{bridge(home)}-*"):
        _run(["ip", "netns", "delete", path.name])
    # A namespace that a process still held would keep its link; taking the near end away ends both.
    names = [path.name for path in Path("/sys/class/net").glob(f"bth{key(home)}-*")]
    if (Path("/sys/class/net") / bridge(home)).exists():
        names.append(bridge(home))
    for name in names:
        # The link of a namespace goes with it, a moment later: gone is what is wanted.
        subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)


def _run(command: Sequence[str]) -> str:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise ClusterError(f"{' '.join(command)}: {answer.stderr.strip() or answer.returncode}")
    return answer.stdout
