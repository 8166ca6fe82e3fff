"""Writing a ProbeReport: its status, and the report itself when there is none; with a scripted API server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from agents.node.probing.report_writer import ReportWriter
from berth.api.probereport import ProbeReportStatus
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal

REPORT = "/apis/berth.dev/v1alpha1/probereports/n1"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1"}
STATUS = ProbeReportStatus(zone="a", peer_count=0)


class Server:
    """An API server with one node and its report, where they are there."""

    def __init__(self, *, report: bool, node: bool = True) -> None:
        self.report = report
        self.node = node

    def __call__(self, request: Request) -> Answer:
        path = request.path.partition("?")[0]
        if path == "/api/v1/nodes/n1":
            return Answer(200, {"metadata": {"name": "n1", "uid": "u1"}}) if self.node else refusal(404, "NotFound")
        if path == REPORT:
            self.report = True
            return Answer(201, {})
        assert path == f"{REPORT}/status"
        return Answer(200, {}) if self.report else refusal(404, "NotFound")


async def write(answer: Callable[[Request], Answer]) -> ApiServer:
    with api_server(answer) as server:
        async with ApiClient(server.connection()) as client:
            await ReportWriter(client, "n1").write(STATUS)
    return server


def asked(server: ApiServer) -> list[tuple[str, str]]:
    return [(request.method, request.path.partition("?")[0]) for request in server.requests]


def bodies(server: ApiServer) -> list[Any]:
    return [json.loads(request.body) for request in server.requests if request.body]


async def test_the_status_is_set_whole() -> None:
    server = await write(Server(report=True))
    assert asked(server) == [("PATCH", f"{REPORT}/status")]
    assert "fieldManager=berth-node" in server.requests[0].path
    assert bodies(server) == [[{"op": "add", "path": "/status", "value": STATUS.to_api()}]]


@pytest.mark.parametrize(
    ("node", "metadata"),
    [
        pytest.param(True, {"name": "n1", "ownerReferences": [OWNER]}, id="owned by its node"),
        pytest.param(False, {"name": "n1"}, id="no such node"),
    ],
)
async def test_a_report_that_is_not_there_is_made(node: bool, metadata: dict[str, Any]) -> None:
    server = await write(Server(report=False, node=node))
    assert asked(server)[1:] == [
        ("GET", "/api/v1/nodes/n1"),
        ("PATCH", REPORT),
        ("PATCH", f"{REPORT}/status"),
    ]
    made = bodies(server)[1]
    assert made["metadata"] == metadata
    assert "status" not in made


async def test_a_refusal_is_raised_and_nothing_made() -> None:
    with pytest.raises(ApiError, match="403"):
        await write(lambda _: refusal(403, "Forbidden"))
