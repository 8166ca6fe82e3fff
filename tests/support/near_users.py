"""An application on real nodes that is to be near its users: what runs of it, its LatencyPolicy, and what users had."""

from __future__ import annotations

import json
import os
import signal
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from berth.api.labels import SCHEDULER_NAME
from berth.api.latencypolicy import API_VERSION, KIND, PLURAL, LatencyPolicyStatus, Outcome
from hack.harness.asking import Answer
from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.metered import POSTED, metered
from hack.harness.pinned_node import apply
from hack.harness.user_place import Users
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets import berth_image
from tests.support.berth_nodes import NAMESPACE, get, pods
from tests.support.real_nodes import processes_on

HARD, SOFT = 100, 40
"""Limits in milliseconds."""
BEST, FAIR, FAR = 20.0, 70.0, 180.0
"""Round trips in milliseconds: within both limits, within the hard one, beyond."""
ENDED: Final = frozenset({Outcome.MOVED, Outcome.CONFIRMED, Outcome.DISAPPOINTED, Outcome.CANCELLED})
LATENCY: Final = REPOSITORY / "deploy" / "latency"
ROUTERS: Final = "web-router"
"""DaemonSet and Service of routers; the application behind them is called web."""
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/berth-latency"


@contextmanager
def latency_deployed(cluster: LocalCluster) -> Iterator[None]:
    """Inside the block the cluster has the latency controller as well, and one replica of it leads."""
    cluster.kubectl("apply", "--server-side", "-k", str(LATENCY))
    try:
        cluster.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/berth-latency", "--timeout=240s", timeout=300)
        eventually(lambda: leader(cluster), what="a latency controller that leads")
        yield
    finally:
        cluster.kubectl("delete", "--wait=false", "-k", str(LATENCY))


def leader(cluster: LocalCluster) -> dict[str, Any]:
    """The pod of the latency controller that leads; empty where none does."""
    holder = str(get(cluster, LEASE)["spec"].get("holderIdentity") or "")
    found = (pod for pod in pods(cluster) if holder.startswith(pod["metadata"]["name"]))
    return next(found, {})


@contextmanager
def namespace(cluster: LocalCluster, name: str) -> Iterator[str]:
    """A namespace that is deleted afterwards."""
    cluster.kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")


class Application:
    """A Deployment with meters, its Service, and its policy of the same name."""

    def __init__(self, cluster: LocalCluster, namespace: str, name: str = "web") -> None:
        """Of such a name; nothing is made yet."""
        self.cluster, self.namespace, self.name = cluster, namespace, name

    def deploy(self, *, replicas: int = 1, scheduler: str = SCHEDULER_NAME, posted: Path | None = None) -> None:
        """Create it; what is posted is added to files in that directory, one of each pod."""
        items = metered(self.name, scheduler=scheduler)
        if posted is not None:
            _post_to(items[0]["spec"]["template"]["spec"], posted)
        items[0]["spec"]["replicas"] = replicas
        self.apply(*items)

    def route(self) -> None:
        """Have routers before its Service on all nodes, and return when they are available."""
        items = list(yaml.safe_load_all((REPOSITORY / "examples" / "router" / "router.yaml").read_text()))
        for item in items:
            if item["kind"] == "DaemonSet":
                (container,) = item["spec"]["template"]["spec"]["containers"]
                container["image"] = berth_image.TAG
        self.apply(*items)
        self.kubectl("rollout", "status", f"daemonset/{ROUTERS}", "--timeout=180s", timeout=240)

    def available(self) -> None:
        """Return when it is."""
        self.kubectl("rollout", "status", f"deployment/{self.name}", "--timeout=180s", timeout=240)

    def want(self, **spec: Any) -> None:
        """Create or change its policy."""
        metadata = {"name": self.name}
        spec = {"targetRef": {"name": self.name}, **spec}
        self.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})

    def apply(self, *items: dict[str, Any]) -> None:
        """Create or change objects of its namespace."""
        for item in items:
            item["metadata"]["namespace"] = self.namespace
        apply(self.cluster, items, "--force-conflicts")

    def kubectl(self, *arguments: str, timeout: float = 120.0) -> str:
        """Run kubectl in its namespace; what it prints."""
        return self.cluster.kubectl("-n", self.namespace, *arguments, timeout=timeout).stdout

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Its pods, or others of its namespace, of those that are to stay."""
        chosen = (selector or f"app={self.name}").replace("=", "%3D")
        path = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={chosen}"
        return [pod for pod in get(self.cluster, path) if "deletionTimestamp" not in pod["metadata"]]

    def nodes(self) -> list[str]:
        """Where these are, in order; empty for one that is nowhere yet."""
        return sorted(pod["spec"].get("nodeName", "") for pod in self.pods())

    def replicas(self) -> int:
        """How many its Deployment is to have."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self.name}"
        return int(get(self.cluster, path)["spec"]["replicas"])

    def status(self) -> LatencyPolicyStatus:
        """That of its policy."""
        path = f"/apis/{API_VERSION}/namespaces/{self.namespace}/{PLURAL}/{self.name}"
        return LatencyPolicyStatus.model_validate(get(self.cluster, path).get("status", {}))

    def reason(self, condition: str) -> str:
        """That of a condition of its policy; empty where there is none."""
        return next((each.reason for each in self.status().conditions if each.type == condition), "")

    def message(self, condition: str) -> str:
        """What a condition of its policy says."""
        return next((each.message for each in self.status().conditions if each.type == condition), "")

    def events(self, reason: str) -> list[str]:
        """What the Events of its policy say that have this reason."""
        chosen = f"involvedObject.kind={KIND},involvedObject.name={self.name},reason={reason}"
        found = json.loads(self.kubectl("get", "events", "--field-selector", chosen, "-o", "json"))
        return [event["message"] for event in found["items"]]

    def settled(self) -> list[str]:
        """Where its pods are, once as many as there should be are there and nothing is on its way; else nothing."""
        # A move may begin between one look and the next; it is in the status first.
        before, nodes, replicas, after = self.status(), self.nodes(), self.replicas(), self.status()
        rest = after.surge is None and all(move.outcome in ENDED for move in after.moves)
        same = (before.surge, before.moves) == (after.surge, after.moves)
        return nodes if rest and same and len(nodes) == replicas else []

    def wait_settled(self, accept: Callable[[list[str]], bool], *, timeout: float = 180.0) -> list[str]:
        """Wait until they are where they should be; where that is."""
        return eventually(
            lambda: (self.settled(), self.nodes(), self.status().moves),
            accept=lambda seen: bool(seen[0]) and accept(seen[0]),
            what=f"{self.name} near its users",
            timeout=timeout,
        )[0]


def _post_to(pod: dict[str, Any], directory: Path) -> None:
    """Have an application write what is posted into a directory of this machine, which is that of all nodes."""
    directory.mkdir()
    directory.chmod(0o777)
    [web] = pod["containers"]
    name = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    web["env"] += [name, {"name": POSTED, "value": "/posted/$(POD_NAME)"}]
    web.setdefault("volumeMounts", []).append({"name": "posted", "mountPath": "/posted"})
    pod["volumes"].append({"name": "posted", "hostPath": {"path": str(directory)}})


def kill(cluster: LocalCluster, pod: dict[str, Any], *arguments: str) -> None:
    """End at once the process of a pod whose command line has these arguments one after the other."""
    found = [
        pid
        for pid in processes_on(cluster, pod["spec"]["nodeName"], *arguments)
        if pod["metadata"]["uid"] in Path(f"/proc/{pid}/cgroup").read_text()
    ]
    assert len(found) == 1, (pod["metadata"]["name"], found)
    os.kill(found[0], signal.SIGKILL)


def begun_again(pod: dict[str, Any]) -> int:
    """How often containers of a pod have begun again."""
    status = pod["status"]
    kinds = ("initContainerStatuses", "containerStatuses")
    return sum(each["restartCount"] for kind in kinds for each in status.get(kind, []))


def wait_round_trip(users: Users, distance: float, *, count: int = 5, timeout: float = 60.0) -> None:
    """Wait until the last requests took about as long as to a node at such a distance, in milliseconds."""
    eventually(
        lambda: [answer.round_trip for answer in users.answers()[-count:]],
        accept=lambda seen: len(seen) == count and distance * 0.9 <= statistics.median(seen) <= distance * 1.25 + 5,
        what=f"round trips of {distance:.0f} ms",
        timeout=timeout,
    )


def failed(answers: Sequence[Answer]) -> list[str]:
    """Requests that were not answered at once: when, by whom in the end, why not before, and by how old a knowledge."""
    return [
        f"{answer.time:.2f} {answer.node or 'by nobody'}: {'; '.join(answer.failures)}; as of {answer.oldest:.1f} s ago"
        + (f" ({answer.unseen})" if answer.unseen else "")
        for answer in answers
        if answer.failures or not answer.node
    ]


def distances(nearest: str, *rest: str) -> dict[str, float]:
    """Round trips of users to nodes in milliseconds, from the nearest node to the farthest."""
    return dict(zip((nearest, *rest), (BEST, FAIR, FAR), strict=True))
