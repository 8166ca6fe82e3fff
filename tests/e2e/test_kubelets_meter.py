"""The meter's example on real nodes: a sidecar that a kubelet starts, and a user on a node that is 40 ms away.

By hand, as the example has it, and put into the pod by its label. Its differences from the example: the application is
one that this image has, and the pod is in its node's network, where packets can be delayed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from berth.api.labels import LABEL_METER, METER_ENABLED
from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.metered import metered
from hack.localcluster import LocalCluster
from hack.localcluster.kubelets.network import enter
from tests.support.real_nodes import address_of, delayed, real_node

MILLISECONDS = 40
SERVER, USER = "node-1", "node-2"
TRIES = 3
"""The best counts: what delays packets waits for a processor as well."""
METERED, HEALTH = 9480, 9481
ASK = """
import sys, time, urllib.request
for _ in range(10):
    with urllib.request.urlopen(sys.argv[1], timeout=20) as answer:
        assert answer.status == 200
    time.sleep(0.05)
"""


def example() -> dict[str, Any]:
    """The Deployment as it can run here."""
    deployment = metered("web", scheduler="default-scheduler")[0]
    deployment["spec"]["template"]["spec"] |= {"hostNetwork": True, "nodeName": SERVER}
    return deployment


def injected(cluster: LocalCluster) -> dict[str, Any]:
    """The same without the sidecar, which its label asks for."""
    cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "meter"))
    deployment = example()
    template = deployment["spec"]["template"]
    template["metadata"]["labels"][LABEL_METER] = METER_ENABLED
    del template["spec"]["initContainers"], template["spec"]["volumes"]
    body = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]}
    body["metadata"] = {"generateName": "dry-", **template["metadata"]}

    def in_force() -> bool:
        answer = cluster.kubectl("create", "--dry-run=server", "-ojson", "-f", "-", input=json.dumps(body))
        return "initContainers" in json.loads(answer.stdout)["spec"]

    eventually(in_force, what="the policy in force", timeout=60.0)
    return deployment


@pytest.fixture(scope="module", params=["by-hand", "injected"])
def namespace(deployed: LocalCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"metered-{request.param}"
    deployment = example() if request.param == "by-hand" else injected(deployed)
    deployed.kubectl("create", "namespace", name)
    deployed.kubectl("apply", "-n", name, "-f", "-", input=json.dumps(deployment))
    deployed.kubectl("-n", name, "rollout", "status", "deployment/web", "--timeout=180s")
    yield name
    deployed.kubectl("delete", "namespace", name, "--wait=false")


def measured(cluster: LocalCluster) -> tuple[float, float]:
    """Round trips of the kernel, and their sum in seconds."""
    with urllib.request.urlopen(f"http://{address_of(cluster, SERVER)}:{HEALTH}/metrics", timeout=20) as answer:
        lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")
    series = 'berth_meter_round_trip_seconds_{}{{source="kernel"}}'
    return float(lines[series.format("count")]), float(lines[series.format("sum")])


def test_a_user_on_a_far_node_is_measured(deployed: LocalCluster, namespace: str) -> None:
    url = f"http://{address_of(deployed, SERVER)}:{METERED}/"
    command = [*enter(real_node(deployed, USER)), sys.executable, "-I", "-c", ASK, url]
    means = []
    with delayed(deployed, USER, MILLISECONDS):
        for _ in range(TRIES):
            before = measured(deployed)
            subprocess.run(command, check=True, timeout=120)
            after = measured(deployed)
            count, seconds = after[0] - before[0], after[1] - before[1]
            assert count == 10
            means.append(1000 * seconds / count)
    assert min(means) == pytest.approx(MILLISECONDS, rel=0.1)


def test_the_pod_ends_when_it_is_told_to(deployed: LocalCluster, namespace: str) -> None:
    deployed.kubectl("-n", namespace, "scale", "deployment/web", "--replicas=0")

    def pods() -> list[Any]:
        answer = deployed.kubectl("-n", namespace, "get", "pods", "-ojson")
        found: list[Any] = json.loads(answer.stdout)["items"]
        return found

    eventually(pods, accept=lambda found: not found, what="the end of the pod", timeout=60.0)
