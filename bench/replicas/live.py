"""The cases of Online Boutique on a real control plane: Deployments are applied, and what is bound is judged.

One control plane for all of them, with the nodes of the case at hand. Nothing but defaults: the controllers are those
of ``berth run appgroup networktopology placement``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.replicas.boutique import GROUP, Case, Result, manifests
from bench.replicas.cluster import Manifest, read_cluster
from bench.replicas.evaluator import evaluate
from bench.replicas.rules import violations
from hack.harness.cluster import Kubectl, eventually, install_crds
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.topology import NodeSpec

CONTROLLERS: Final = ("appgroup", "networktopology", "placement")
_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"


def run_live(cases: Iterable[Case]) -> Iterator[Result]:
    """Place each case and take it away again.

    ``seconds`` of a result are from the Deployments' being applied until the last pod is bound.

    Raises:
        AssertionError: pods wait longer than two minutes; the text says how many have a node.
    """
    with (
        LocalCluster.start(die_with_parent=True, report=partial(print, file=sys.stderr)) as cluster,
        tempfile.TemporaryDirectory() as directory,
    ):
        install_crds(cluster)
        kubectl = Kubectl(cluster, GROUP[0])
        controllers = ControllerProcess.start(
            CONTROLLERS, kubeconfig=cluster.kubeconfig, directory=Path(directory), arguments=["--no-leader-elect"]
        )
        with controllers:
            controllers.wait_ready()
            for case in cases:
                yield _place(case, cluster, kubectl)


def _place(case: Case, cluster: LocalCluster, kubectl: Kubectl) -> Result:
    documents = manifests(case)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for item in documents:
        kinds.setdefault(item["kind"], []).append(item)
    deployments = kinds.pop("Deployment")
    nodes = [_node(item) for item in kinds.pop("Node")]
    cluster.create_nodes(nodes)
    try:
        kubectl.apply(*(item for found in kinds.values() for item in found))
        eventually(partial(_computed, kubectl), what="orders and weights")
        wanted = case.replicas * len(deployments)
        started = time.monotonic()
        kubectl.apply(*deployments)
        eventually(lambda: len(_bound(kubectl)), accept=wanted.__eq__, what=f"{wanted} pods bound: {case.name}")
        seconds = time.monotonic() - started
        seen = [kubectl.get(kind) for kind in ("nodes", "services", "appgroups", "networktopologies")]
        found = read_cluster([*seen, {"kind": "PodList", "items": _bound(kubectl)}])
        return Result(case, evaluate(found, GROUP), 0, seconds, violations(found))
    finally:
        kubectl("delete", "deployments,services,appgroups,networktopologies", "--all", "--ignore-not-found")
        kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
        eventually(lambda: kubectl.get("pods")["items"], accept=lambda left: not left, what="no pods")
        cluster.delete_nodes(nodes)


def _node(item: Manifest) -> NodeSpec:
    labels, room = item["metadata"]["labels"], item["status"]["allocatable"]
    return NodeSpec(
        name=item["metadata"]["name"],
        region=labels[_REGION],
        zone=labels[_ZONE],
        capacity=room,
        allocatable=room,
        labels={},
        annotations={},
        taints=(),
    )


def _computed(kubectl: Kubectl) -> bool:
    """Whether the controllers have done their part before pods come."""
    group = kubectl.get("appgroups", GROUP[1])
    topology = kubectl.get("networktopologies")["items"][0]
    return bool(group.get("status", {}).get("topologyOrder")) and bool(topology.get("status"))


def _bound(kubectl: Kubectl) -> list[dict[str, Any]]:
    return [pod for pod in kubectl.get("pods")["items"] if pod["spec"].get("nodeName")]
