"""``make demo-pinning``: two applications that disturb each other get a socket each, on a real node of this machine.

Starts a kubelet with containerd in a network namespace, with ``deploy/pinning`` on it, runs applications, labels two of
them, and shows the SocketStatus and the CPUs that the kernel lets their containers use; then takes the labels away.
``make demo-down`` stops it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from berth.api.cpulist import format_cpulist
from berth.api.labels import LABEL_INTERFERENCE_CLASS
from hack.demo import exit_status, say, show, wait_for
from hack.harness import pinned_node
from hack.localcluster import ClusterError, LocalCluster, Options
from hack.localcluster.kubelets import packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.paths import clusters_root

CLUSTER = "demo-pinning"
NAMESPACE = "shop"
CLASSES = {"web": "B", "batch": "C"}
"""Applications and what they get as a label: the first suffers beside neighbours, the second makes them suffer."""
BYSTANDER = "other"
"""One that gets none."""
HINT = f"hack/cluster kubectl --name {CLUSTER} describe sst says why"


class Row(NamedTuple):
    """A pod as it runs."""

    app: str
    """its application"""
    letter: str
    """class by its label; empty: it has none"""
    cpus: frozenset[int]
    """CPUs that its container has"""


def application(name: str) -> dict[str, Any]:
    """A Deployment of one pod."""
    container: dict[str, Any] = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    container |= {"resources": {"requests": {"cpu": "100m", "memory": "16Mi"}}}
    labels = {"app": name}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


class Demo:
    """The node, and what runs there."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        """Divide the machine's CPUs into sockets, where it has one."""
        self._cluster = cluster
        self._directory = directory
        self._sockets, self._sysfs = pinned_node.sockets_for(directory)

    def install(self) -> None:
        """Berth's image, kinds and rights, and deploy/pinning."""
        pinned_node.prepare(self._cluster, self._directory)
        items = [item for item in pinned_node.manifests(self._cluster, "pinning") if item["kind"] != "DaemonSet"]
        for item in items:
            if item["kind"] == "Deployment":
                # kube-scheduler places the pods here, and knows no sockets.
                item["spec"]["template"]["spec"]["containers"][0]["args"].append("--socketstatus-assign-all")
        items.append(pinned_node.daemon_set(self._cluster, self._directory, self._sysfs))
        pinned_node.apply(self._cluster, items, "--force-conflicts")
        for workload in ("daemonset/berth-pinning", "deployment/berth-socketstatus"):
            pinned_node.rolled_out(self._cluster, workload)

    def deploy(self) -> None:
        """Run the applications."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        names = [*CLASSES, BYSTANDER]
        pinned_node.apply(self._cluster, [namespace, *map(application, names)])
        for name in names:
            self._kubectl("rollout", "status", f"deployment/{name}", "--timeout=120s")

    def sockets(self) -> str:
        """The node's sockets, in words."""
        parts = [f"socket {number}: CPUs {format_cpulist(cpus)}" for number, cpus in enumerate(self._sockets)]
        made = "" if self._sysfs is None else " (this machine has one socket: its CPUs are shown as two)"
        return ", ".join(parts) + made

    def label(self) -> None:
        """Label the pods of both applications."""
        for name, letter in CLASSES.items():
            self._kubectl("label", "pods", f"-lapp={name}", f"{LABEL_INTERFERENCE_CLASS}={letter}", "--overwrite")

    def unlabel(self) -> None:
        """Take the labels away."""
        self._kubectl("label", "pods", "--all", f"{LABEL_INTERFERENCE_CLASS}-")

    def pinned(self) -> bool:
        """Whether each application with a label has a socket of its own, and the SocketStatus says so."""
        found = [row.cpus for row in self._rows() if row.letter]
        apart = len(found) == len(set(found)) == len(CLASSES) and all(cpus in self._sockets for cpus in found)
        return apart and f" {len(CLASSES)}/{len(CLASSES)} " in self.socket_status()

    def restored(self) -> bool:
        """Whether each pod has all CPUs."""
        return all(row.cpus == frozenset().union(*self._sockets) for row in self._rows())

    def table(self) -> str:
        """A line for each application: its class, and the CPUs that its container has."""
        head = f"{'application':<13}{'class':<7}CPUs of its container"
        rows = [f"{app:<13}{letter or '-':<7}{format_cpulist(cpus)}" for app, letter, cpus in self._rows()]
        return "\n".join([head, *rows])

    def socket_status(self) -> str:
        """What kubectl shows of the node."""
        return self._kubectl("get", "sst")

    def _rows(self) -> list[Row]:
        pods = json.loads(self._kubectl("get", "pods", "-o", "json"))["items"]
        cpus = pinned_node.pods_on_cpus(self._cluster, frozenset(pod["metadata"]["uid"] for pod in pods))
        return [
            Row(
                pod["metadata"]["labels"]["app"],
                pod["metadata"]["labels"].get(LABEL_INTERFERENCE_CLASS, ""),
                cpus.get(pod["metadata"]["uid"], frozenset()),
            )
            for pod in pods
        ]

    def _kubectl(self, *arguments: str) -> str:
        return self._cluster.kubectl("-n", NAMESPACE, *arguments, timeout=150).stdout


def run() -> None:
    """Show it."""
    problem = packages.problem(clusters_root() / CLUSTER)
    if problem:
        raise ClusterError(problem)
    say("starting a real node: kubelet and containerd in a network namespace")
    cluster = LocalCluster.start(CLUSTER, options=Options(kubelets=1), report=say)
    directory = cluster.layout.home / "pinning"
    directory.mkdir(exist_ok=True)
    demo = Demo(cluster, directory)
    say("installing Berth: its image, crds/, deploy/rbac, deploy/pinning")
    demo.install()
    say(f"the node has {demo.sockets()}")
    say("running three applications: web, batch and other")
    demo.deploy()
    show("Without labels: every container runs anywhere", demo.table())
    say(f"kubectl label pods -l app=web {LABEL_INTERFERENCE_CLASS}=B  (it suffers from neighbours)")
    say(f"kubectl label pods -l app=batch {LABEL_INTERFERENCE_CLASS}=C  (it makes neighbours suffer)")
    demo.label()
    wait_for(demo.pinned, what="a socket for each application", hint=HINT)
    show("kubectl get sst", demo.socket_status())
    show("With labels: a socket for each of the two", demo.table())
    say(f"kubectl label pods --all {LABEL_INTERFERENCE_CLASS}-")
    demo.unlabel()
    wait_for(demo.restored, what="all CPUs for every container", hint=HINT)
    show("Without labels again: what was there before", demo.table())
    show(
        "Look around",
        f"export KUBECONFIG={cluster.kubeconfig}\n"
        "export PATH=$(hack/cluster bin):$PATH\n"
        f"kubectl label pods -n {NAMESPACE} -l app=web {LABEL_INTERFERENCE_CLASS}=D\n"
        f"kubectl describe sst {pinned_node.first_node(cluster).name}\n\n"
        "Stop everything:     make demo-down",
    )


if __name__ == "__main__":
    sys.exit(exit_status(run))
