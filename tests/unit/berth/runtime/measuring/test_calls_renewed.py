"""A controller that begins anew with another certificate while meters, routers and agents run: no process is restarted
for that, and nobody is believed before the new certificate is published."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL, SERVER_NAME
from berth.kube.client import ApiClient
from berth.runtime.measuring.calls import ReportServer, SoughtServer
from berth.runtime.measuring.published import PublishedServer
from berth.runtime.measuring.reporter import Reporter
from berth.runtime.measuring.reports import Reports
from berth.runtime.measuring.users import UserTable
from tests.support.api_server import Answer, Request, api_server
from tests.support.kube import running, until
from tests.support.latency_controller import certificate_for, instructions, latency_controller

Where = Callable[[ApiClient, str, Path], SoughtServer]


def by_file(_client: ApiClient, url: str, directory: Path) -> SoughtServer:
    return ReportServer(url.replace("127.0.0.1", "localhost"), directory / "token", directory / "ca.crt")


def by_config_map(client: ApiClient, _url: str, directory: Path) -> SoughtServer:
    return PublishedServer(client, "berth-system", directory / "token")


@pytest.mark.parametrize(
    ("where", "name"),
    [pytest.param(by_file, "localhost", id="a file"), pytest.param(by_config_map, SERVER_NAME, id="a ConfigMap")],
)
async def test_another_certificate_at_the_same_address_is_believed_once_it_is_published(
    where: Where, name: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("of-the-pod")
    directories = [tmp_path / "first", tmp_path / "second"]
    for directory in directories:
        directory.mkdir()
        await asyncio.to_thread(certificate_for, name, directory)
    first, second = ((directory / "server.crt").read_text() for directory in directories)
    stated = {CONFIGMAP_CA: first}
    (tmp_path / "ca.crt").write_text(first)

    def answer(_: Request) -> Answer:
        return Answer(200, {"metadata": {"name": CONFIGMAP, "namespace": "berth-system"}, "data": dict(stated)})

    with api_server(answer) as server:
        async with ApiClient(server.connection(), user_agent="test") as client, AsyncExitStack() as before:
            controller = await before.enter_async_context(latency_controller(certificate=directories[0]))
            stated[CONFIGMAP_URL] = controller.url
            reporter = Reporter(
                where(client, controller.url, tmp_path),
                Reports(UserTable()),
                lambda *_: None,
                pauses=(0.01, 0.05),
                least=0.01,
            )
            async with running(reporter.run()):
                await controller.message(0)
                await before.aclose()
                async with latency_controller(controller.port, directories[1]) as renewed:
                    renewed.says(instructions())
                    unheard = failed() + 2
                    await until(lambda: failed() >= unheard, what="attempts")
                    assert renewed.messages == []
                    stated[CONFIGMAP_CA] = second
                    (tmp_path / "ca.crt").write_text(second)
                    await renewed.message(1)
                    assert set(renewed.tokens) == {"Bearer of-the-pod"}


def failed() -> float:
    return REGISTRY.get_sample_value("berth_round_trip_reports_total", {"outcome": "failed"}) or 0.0
