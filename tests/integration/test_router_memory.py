"""A router with a memory limit, as in a container, and more clients than there is room for: others are served on.

Needs to make a cgroup. Left out: who is cut off, and in which order (tests/unit/berth/runtime/proxy), and the same of
the meter (test_meter_memory.py).
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from hack.harness.pod_account import pod_account
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.flooding import HALF, LARGE, LONG, MANY, UPGRADE, flood, script
from tests.support.memory_limit import limited
from tests.support.proxying import application

LIMIT = 128 * 2**20
CLIENTS = 2500


def address() -> str:
    """This machine's own address: EndpointSlices hold none of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect(("192.0.2.1", 9))
        return str(unsent.getsockname()[0])


def show(cluster: LocalCluster, namespace: str, port: int) -> None:
    """Have the pod be the Service's."""
    body: dict[str, Any] = {
        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address()], "nodeName": "n", "conditions": {"ready": True}}],
        "ports": [{"name": "http", "port": port}],
    }
    api = cluster.api()
    api.request("POST", f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", body)
    api.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(HALF, id="half a head"),
        pytest.param(LARGE, id="requests not answered"),
        pytest.param(MANY, id="many small requests not answered"),
        pytest.param(LONG, id="answers not read"),
        pytest.param(UPGRADE, id="upgrades not answered"),
    ],
)
async def test_more_clients_than_there_is_memory_for_end_nothing_for_others(
    cluster: LocalCluster, namespace: str, tmp_path: Path, sent: bytes
) -> None:
    async with application(script, address()) as app:
        await asyncio.to_thread(show, cluster, namespace, app.address.port)
        options = ["--router-service=web", f"--router-namespace={namespace}", "--router-port=0", "--router-linger=0"]
        account = pod_account(cluster, tmp_path / "pod")
        with limited(LIMIT) as entered:
            with entered():
                process = ControllerProcess.start(
                    ["router"],
                    kubeconfig=None,
                    directory=tmp_path,
                    arguments=options,
                    environment=account.environment,
                )
            with process:
                await asyncio.to_thread(process.wait_ready)

                [line] = process.records("routing")
                await flood(process, line["port"], sent, CLIENTS)
