"""What a flood of new users meets: API server, latency controller, an application with its policy, meter and router.

Each but the pod, which KWOK plays, is a process as in a cluster; meter and router have the memory limits of `deploy`
and `examples`.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from berth.api import latency_exchange as exchange
from berth.api.labels import SCHEDULER_NAME
from berth.api.latencypolicy import API_VERSION, KIND, PLURAL
from berth.kube.endpoint_slices import LABEL_SERVICE
from hack.harness.cluster import bound_pod, eventually, install_crds
from hack.harness.memory_limit import limited
from hack.harness.pod_account import pod_account
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from hack.localcluster.topology import NodeSpec

LIMITS: Final = {"meter": 256 * 2**20, "router": 320 * 2**20}
"""Bytes that the processes may have."""
NODE: Final = "near"
_numbers = itertools.count(1)


class Target(NamedTuple):
    """A proxy before an application of its own."""

    process: ControllerProcess
    port: int
    namespace: str


class FloodStand:
    """A control plane with the latency controller."""

    def __init__(self, cluster: LocalCluster, controller: ControllerProcess, directory: Path) -> None:
        """Of these; use :func:`flood_stand`."""
        self.controller, self._cluster, self._directory, self._api = controller, cluster, directory, cluster.api()

    def associated(self, namespace: str) -> dict[str, float]:
        """Users whom the policy's status has a node for, and how many seconds ago each was heard of by that."""
        status = self._api.request("GET", _policy(namespace)).get("status", {})
        now = datetime.now(UTC)
        return {
            each["user"]: (now - datetime.fromisoformat(each["lastSeenTime"])).total_seconds()
            for each in status.get("associations", ())
        }

    @contextmanager
    def proxy(self, kind: str) -> Iterator[Target]:
        """A meter or a router before an application, which one pod is, and a policy for each of its users."""
        namespace, number = f"flood-{next(_numbers)}", next(_numbers)
        place = address()
        command = [sys.executable, "-m", "bench.load", place]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as application:
            try:
                assert application.stdout is not None
                port = int(application.stdout.readline())
                pod = self._deploy(namespace, place, port)
                if kind == "router":
                    pod = self._router_pod(namespace)
                directory = self._directory / str(number)
                token = directory / "token"
                account = pod_account(self._cluster, directory)
                token.write_text(_token(self._api, pod))
                options = [f"--{kind}-{name}={value}" for name, value in _options(kind, namespace, place, port).items()]
                with limited(LIMITS[kind]) as entered:
                    with entered():
                        process = ControllerProcess.start(
                            [kind],
                            kubeconfig=None,
                            directory=directory,
                            arguments=[*options, f"--{kind}-token-file={token}"],
                            environment=account.environment,
                        )
                    with process:
                        process.wait_ready()
                        [line] = process.records("users are measured" if kind == "meter" else "routing")
                        yield Target(process, int(line["port"]), namespace)
            finally:
                application.kill()

    def _deploy(self, namespace: str, place: str, port: int) -> dict[str, Any]:
        """Create it all; returns the pod once it is ready."""
        api, inside = self._api, f"/api/v1/namespaces/{namespace}"
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        eventually(lambda: api.healthy(f"{inside}/serviceaccounts/default"), what="the namespace's account")
        labels = {"app": "web"}
        template = {
            "metadata": {"labels": labels},
            "spec": bound_pod("web", NODE, schedulerName=SCHEDULER_NAME)["spec"],
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        deployment = {"metadata": {"name": "web"}, "spec": spec}
        api.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment)
        identity = {"source": "Header", "name": "X-User"}
        policy = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": "web"},
            "spec": {
                "targetRef": {"name": "web"},
                "hardMaxLatency": 50,
                "users": {"mode": "PerUser", "identity": identity},
            },
        }
        api.request("POST", _policy(namespace, ""), policy)
        slice_ = {
            "metadata": {"name": "web", "labels": {LABEL_SERVICE: "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [place], "nodeName": NODE, "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": port}],
        }
        api.request("POST", f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", slice_)
        found = eventually(
            lambda: [pod for pod in api.request("GET", f"{inside}/pods")["items"] if _is_ready(pod)], what="a ready pod"
        )
        return dict(found[0])

    def _router_pod(self, namespace: str) -> dict[str, Any]:
        return dict(self._api.request("POST", f"/api/v1/namespaces/{namespace}/pods", bound_pod("router", NODE)))


@contextmanager
def flood_stand(directory: Path) -> Iterator[FloodStand]:
    """One that runs."""
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    node = NodeSpec(
        name=NODE, region="r", zone="z", capacity=amounts, allocatable=amounts, labels={}, annotations={}, taints=()
    )
    listening = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with LocalCluster.start(f"flood-{os.getpid()}", nodes=[node], die_with_parent=True) as cluster:
        install_crds(cluster)
        with ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=directory, arguments=listening
        ) as controller:
            controller.wait_ready()
            yield FloodStand(cluster, controller, directory)


def address() -> str:
    """This machine's own address: EndpointSlices hold none of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect(("192.0.2.1", 9))
        return str(unsent.getsockname()[0])


def _options(kind: str, namespace: str, place: str, port: int) -> dict[str, Any]:
    common = {"address": "127.0.0.1", "port": 0, "linger": 0, "controller-namespace": "default"}
    if kind == "meter":
        return common | {"application": f"{place}:{port}"}
    return common | {"service": "web", "namespace": namespace, "policy": "web", "node": NODE}


def _policy(namespace: str, name: str = "/web") -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}{name}"


def _token(api: Api, pod: dict[str, Any]) -> str:
    """A token of the pod for the controller."""
    metadata = pod["metadata"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
    path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/default/token"
    spec = {"audiences": [exchange.AUDIENCE], "expirationSeconds": 3600, "boundObjectRef": bound}
    return str(api.request("POST", path, {"spec": spec})["status"]["token"])


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
