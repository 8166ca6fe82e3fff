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

from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.memory_limit import limited
from tests.support.proxying import Visit, application, get, status_of

LIMIT = 192 * 2**20
CLIENTS = 2500
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
FIELD = "A: " + "x" * 10_000
HALF = get("/", *[FIELD] * 7, last=False).removesuffix(b"\r\n")
LARGE = get("/held", *[FIELD] * 6, last=False)
LONG = get("/long", last=False)
UPGRADE = get("/held", "Connection: Upgrade", "Upgrade: websocket", *[FIELD] * 6, last=False)


async def script(visit: Visit) -> None:
    while True:
        head = await visit.head()
        if b"/held" in head:
            await asyncio.Event().wait()
        elif b"/long" in head:
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            while True:
                await visit.say(b"x" * 100_000)
        await visit.say(SMALL)


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
        with limited(LIMIT) as entered:
            with entered():
                process = ControllerProcess.start(
                    ["router"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=options
                )
            with process:
                await asyncio.to_thread(process.wait_ready)
                [line] = process.records("routing")
                reader, writer = await asyncio.open_connection("127.0.0.1", line["port"])
                flood: list[asyncio.StreamWriter] = []
                for number in range(CLIENTS):
                    _, client = await asyncio.open_connection("127.0.0.1", line["port"], limit=1024)
                    client.write(sent)
                    flood.append(client)
                    if number % 50 == 0:
                        async with asyncio.timeout(60):
                            writer.write(get(last=False))
                            assert status_of(await reader.readuntil(b"hi")) == 200
                await asyncio.to_thread(
                    process.wait_until,
                    lambda: any("memory is short" in str(each.get("event")) for each in process.records()),
                    what="what is said of it",
                )
                async with asyncio.timeout(60):
                    writer.write(get(last=False))
                    assert status_of(await reader.readuntil(b"hi")) == 200
                assert process.running
                for client in [*flood, writer]:
                    client.transport.abort()
