"""The processes of real nodes: what must be there before they start, how they are started, when they are ready."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from hack.localcluster.components import Options
from hack.localcluster.errors import ClusterError
from hack.localcluster.instance import Instance, reserved_addresses
from hack.localcluster.kubelets import cgroups, configuration, images, network, packages
from hack.localcluster.kubelets.names import PREFIX, Node, parse
from hack.localcluster.rest import Api, ApiError

TOOLS = ("kubelet", "pause")
"""Tools that real nodes need."""
_RECOVERED = b"Start streaming server"
"""What containerd logs last before it serves kubelets."""


def check(home: Path) -> Path:
    """The directory of the CNI plugins, once it is clear that an instance in *home* can have real nodes.

    Raises:
        ClusterError: it cannot; the message has the remedy.
    """
    problem = packages.problem(home)
    plugin = packages.locate("host-local")
    if problem or plugin is None:
        raise ClusterError(problem or "the CNI plugins are gone")
    return plugin.parent


def options(chosen: Options, home: Path) -> Options:
    """Options of an instance with real nodes: its API server is on the bridge, nothing is simulated.

    Raises:
        ClusterError: this machine cannot run real nodes.
    """
    check(home)
    others = [f"{address}/{PREFIX}" for address in reserved_addresses(home.parent)]
    gateway = network.choose_gateway(home, [*network.used_networks(), *others])
    return replace(chosen, bind_address=gateway, scheduler=True, kwok=False)


def node_of(instance: Instance, component: str) -> tuple[str, Node] | None:
    """Part and node that *component* is; None if it is a component of the control plane."""
    parsed = parse(component)
    return (parsed[0], Node(home=instance.layout.home, number=parsed[1])) if parsed else None


def prepare(instance: Instance) -> None:
    """Make network, cgroups and configuration files of the nodes, as far as they are missing.

    Raises:
        ClusterError: this machine cannot run them.
    """
    home, gateway = instance.layout.home, instance.options.bind_address
    plugins = check(home)
    network.create(home, gateway, instance.nodes)
    for node in instance.nodes:
        cgroups.create(node.namespace)
        for path, content in configuration.files(node, plugins).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


def command(instance: Instance, part: str, node: Node, kubelet: Path) -> list[str]:
    """Command line of a process of *node*; *kubelet* is the kubelet's program."""
    program = {"kubelet": kubelet, "containerd": packages.locate("containerd"), "service-relay": Path(sys.executable)}
    port = instance.ports["kube-apiserver"]
    arguments = configuration.arguments(part, node, instance.options.bind_address, port)
    return [str(packages.locate("nsenter")), *network.enter(node)[1:], str(program[part]), *arguments]


def ready(part: str, node: Node, api: Api, log: Path, offset: int) -> bool:
    """Whether a process of *node* does its work.

    Args:
        part: the process.
        node: its node.
        api: a connection as the administrator.
        log: log of the process.
        offset: where in *log* this run begins.
    """
    match part:
        case "containerd":
            # A kubelet ends that comes before it has recovered what runs already, which it does while it answers.
            return _RECOVERED in _since(log, offset) and images.ctr(node, ["version"]).returncode == 0
        case "service-relay":
            return bool(_since(log, offset))
        case _:
            try:
                conditions = api.request("GET", f"/api/v1/nodes/{node.name}")["status"].get("conditions", [])
            except (ApiError, OSError):
                return False
            return ("Ready", "True") in {(item["type"], item["status"]) for item in conditions}


def _since(log: Path, offset: int) -> bytes:
    with log.open("rb") as content:
        content.seek(offset)
        return content.read()


def load_pause(instance: Instance, program: Path) -> None:
    """Import the image of the container that holds a pod's namespaces on every node; its program is *program*."""
    archive = instance.layout.home / "pause.tar"
    images.write_pause(archive, program)
    for node in instance.nodes:
        images.load(node, [archive])
