"""A latency controller that begins anew with other keys at the same address: meter and node agent go on with it.

The controller and the API server are real; meter and agent are their parts that talk to it, in this process. The agent
tries nothing again by itself, so that it comes back because it hears of the new controller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.node.users.duty import UserDuty
from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA
from berth.runtime.measuring.published import FollowedServer, PublishedServer
from berth.runtime.measuring.reporter import Reporter
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from controllers.latency.identity import SECRET
from hack.harness.cluster import eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.kube import client_of, running, until
from tests.support.latency_stand import LatencyStand, token_of
from tests.support.probing import free_port

NEVER = (6000.0, 6000.0)
"""Pauses that no test waits for."""


@pytest.fixture(scope="module")
def plane(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A control plane of the module's own, with KWOK."""
    return module_cluster()


@asynccontextmanager
async def controller(plane: LocalCluster, directory: Path, port: int) -> AsyncIterator[ControllerProcess]:
    """The latency controller, listening."""
    arguments = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", str(port)]
    process = await asyncio.to_thread(
        ControllerProcess.start, ["latency"], kubeconfig=plane.kubeconfig, directory=directory, arguments=arguments
    )
    try:
        yield process
    finally:
        await asyncio.to_thread(process.kill)


async def heard(process: ControllerProcess) -> None:
    """Wait until a meter and an agent have spoken to a controller."""

    def kinds() -> set[str]:
        name = "berth_latency_messages_total"
        return {kind for kind in ("round_trips", "probes") if process.metric(name, kind=kind)}

    await asyncio.to_thread(
        eventually, kinds, accept={"round_trips", "probes"}.__eq__, what="meter and agent", timeout=60.0
    )


async def test_meter_and_agent_go_on_with_a_controller_that_has_another_certificate(
    plane: LocalCluster, tmp_path: Path
) -> None:
    port = free_port()
    with LatencyStand(plane, {"a": 120}, agents=False) as stand:
        stand.meters = False
        stand.deploy()
        [pod] = await asyncio.to_thread(eventually, lambda: list(stand.stage.pods().values()), what="a pod")
        meter, agent = tmp_path / "meter", tmp_path / "agent"
        meter.write_text(token_of(stand.api, pod))
        agent.write_text(stand.agent_token(stand.stage.node("a")))

        def certificate() -> str:
            found = stand.api.request("GET", f"/api/v1/namespaces/default/configmaps/{CONFIGMAP}")
            return str(found["data"][CONFIGMAP_CA])

        async with client_of(plane) as client:
            duty = UserDuty(FollowedServer(client, "default", agent), NEVER)
            reporter = Reporter(
                PublishedServer(client, "default", meter), Reports(UserTable()), lambda *_: None, pauses=(0.1, 1.0)
            )
            with capture_logs() as logs:
                async with controller(plane, tmp_path, port) as first:
                    await asyncio.to_thread(first.wait_ready)
                    async with running(reporter.run(), duty.run(lambda _: True)):
                        await heard(first)
                        before = await asyncio.to_thread(certificate)
                        await asyncio.to_thread(first.kill)
                        await until(
                            lambda: any(each["event"] == "no orders to measure users" for each in logs), what="its end"
                        )
                        patch = json.dumps({"data": None})
                        plane.kubectl("patch", "secret", SECRET, "--type=merge", f"-p={patch}")
                        async with controller(plane, tmp_path, port) as second:
                            await heard(second)
                            assert await asyncio.to_thread(certificate) != before
