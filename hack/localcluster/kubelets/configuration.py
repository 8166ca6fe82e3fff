"""Command lines and configuration files of a node's containerd, CNI plugins and kubelet. Nothing starts here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets.names import PARTS, REGION, SERVICE_ADDRESS, Node

PAUSE_IMAGE = "berth.dev/pause:1"
"""Image of the container that holds a pod's namespaces; the node imports it, nothing is downloaded."""

SERVICE_RELAY = Path(__file__).with_name("service_relay.py")


def arguments(part: str, node: Node, gateway: str, port: int) -> list[str]:
    """Arguments of a process of *node*, one of `PARTS`.

    Args:
        part: the process.
        node: the node.
        gateway: address of the API server, and of the bridge.
        port: the API server's port.
    """
    match part:
        case "containerd":
            return ["--config", str(node.directory / "containerd.toml")]
        case "service-relay":
            return ["-I", str(SERVICE_RELAY), SERVICE_ADDRESS, "443", gateway, str(port)]
        case "kubelet":
            return [
                f"--config={node.directory / 'kubelet.yaml'}",
                f"--kubeconfig={node.kubeconfig}",
                f"--hostname-override={node.name}",
                f"--node-ip={node.address(gateway)}",
                f"--node-labels=topology.kubernetes.io/region={REGION},topology.kubernetes.io/zone={node.zone}",
                f"--root-dir={node.directory / 'kubelet'}",
                f"--cert-dir={node.directory / 'pki'}",
            ]
        case _:
            raise ClusterError(f"unknown part of a node {part!r}: known are {', '.join(PARTS)}")


def files(node: Node, cni_plugins: Path) -> dict[Path, str]:
    """Contents of the configuration files of *node*; the programs of the CNI plugins are in *cni_plugins*."""
    directory = node.directory
    return {
        directory / "containerd.toml": containerd(node, cni_plugins),
        directory / "cni" / "10-berth.conflist": json.dumps(cni(node), indent=1),
        directory / "kubelet.yaml": json.dumps(kubelet(node), indent=1),
        # Pods of the policy Default get the names that the node knows: none.
        directory / "resolv.conf": "",
    }


def containerd(node: Node, cni_plugins: Path) -> str:
    """Configuration of containerd: all of its files below the node's directory."""
    directory = node.directory
    return f"""\
version = 2
root = "{directory}/containerd"
state = "{directory}/run"
oom_score = 0

[grpc]
  address = "{node.socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Root in a container or virtual machine may lack the right to make a process less likely to be killed.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni_plugins}"
    conf_dir = "{directory}/cni"
"""


def cni(node: Node) -> dict[str, Any]:
    """Network of the node's pods: a bridge in the node's namespace, which forwards."""
    return {
        "cniVersion": "0.4.0",
        "name": node.namespace,
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": node.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": str(node.directory / "addresses"),
                },
            }
        ],
    }


def kubelet(node: Node) -> dict[str, Any]:
    """Configuration of the kubelet; open to everybody who reaches the node's namespace, which is this machine."""
    directory = node.directory
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{node.socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.namespace}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "resolvConf": str(directory / "resolv.conf"),
        "podLogsDir": str(directory / "pod-logs"),
        "volumePluginDir": str(directory / "volume-plugins"),
        # The nodes share one disk with everything else on the machine.
        "evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
    }
