"""A meter with a memory limit, as in a container, and more clients than it has room for: it goes on, and serves others.

Needs to make a cgroup. Left out: who is cut off, and in which order (tests/unit/berth/runtime/proxy).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hack.harness.processes import ControllerProcess
from tests.support.flooding import HALF, LARGE, LONG, MANY, flood, script
from tests.support.memory_limit import limited
from tests.support.proxying import application

LIMIT = 128 * 2**20
CLIENTS = 1200


@pytest.mark.parametrize(
    ("sent", "clients"),
    [
        pytest.param(HALF, CLIENTS, id="half a head"),
        pytest.param(LARGE, CLIENTS, id="requests not answered"),
        pytest.param(MANY, 2 * CLIENTS, id="many small requests not answered"),
        pytest.param(LONG, CLIENTS, id="answers not read"),
    ],
)
async def test_more_clients_than_there_is_memory_for_end_nothing_for_others(
    tmp_path: Path, sent: bytes, clients: int
) -> None:
    async with application(script) as app:
        options = ["--meter-address=127.0.0.1", "--meter-port=0", "--meter-linger=0"]
        options += [f"--meter-application=127.0.0.1:{app.address.port}"]
        with limited(LIMIT) as entered:
            with entered():
                process = ControllerProcess.start(
                    ["meter"], kubeconfig="unused", directory=tmp_path, arguments=options, apart=True
                )
            with process:
                await asyncio.to_thread(process.wait_ready)
                [line] = process.records("users are measured")
                await flood(process, line["port"], sent, clients)
