"""Costs from Prometheus on a real API server: its figures become weights, and stand while it is away.

The server speaks Prometheus's API over HTTPS and wants a token; answers of a real one are in tests/data/prometheus.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from berth.api.labels import LABEL_REGION
from berth.cli.main import kubectl_app
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.api_server import Answer, ApiServer, Request, api_server
from tests.support.chosen_constants import BRISK, chosen_constants
from tests.support.costs import EIGHT_NODES, ZONE_COSTS, Costs, table, user_defined
from tests.support.prometheus import answer, series

CERTIFICATE = Path(__file__).resolve().parents[1] / "data" / "server-certificate"
NEAR = {"Z1>Z2": 9, "Z2>Z1": 9, "Z3>Z4": 9, "Z4>Z3": 9}
FAR = {"us-east-1>us-west-1": 784, "us-west-1>us-east-1": 784}


class Meter:
    """A Prometheus server that is there or not."""

    def __init__(self) -> None:
        """Answer."""
        self.away = False

    def answer(self, request: Request) -> Answer:
        """Return the round trips between all nodes, to those who have the token."""
        if self.away:
            return Answer(503, {"status": "error", "errorType": "unavailable", "error": "starting"})
        if request.headers.get("authorization") != "Bearer secret":
            return Answer(401, b"Unauthorized")
        rows = [
            series(node, peer, "0.00085" if place[0] == other[0] else "0.0784", time=time.time())
            for node, place in EIGHT_NODES.items()
            for peer, other in EIGHT_NODES.items()
        ]
        return Answer(200, answer(*rows, series("n-1", "forged", "0.001"), series("n-1", "n-3", "NaN")))


@pytest.fixture(scope="module")
def meter() -> Meter:
    """What the server says."""
    return Meter()


@pytest.fixture(scope="module")
def prometheus(meter: Meter) -> Iterator[ApiServer]:
    """The server."""
    with api_server(meter.answer, tls=CERTIFICATE) as server:
        yield server


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file with the token that the server knows."""
    path = tmp_path / "token"
    path.write_text("secret\n")
    return path


@pytest.fixture
def costs(
    costs: Costs, eight_nodes: LocalCluster, prometheus: ApiServer, token: Path, tmp_path: Path
) -> Iterator[Costs]:
    """Those of conftest.py, with a controller that knows the server."""
    arguments = ["--prometheus-url", prometheus.url, "--prometheus-preset", "cilium"]
    arguments += ["--prometheus-token-file", str(token), "--prometheus-ca-file", str(CERTIFICATE / "server.crt")]
    with ControllerProcess.start(
        ["networktopology"],
        kubeconfig=eight_nodes.kubeconfig,
        directory=tmp_path,
        arguments=arguments,
        environment=chosen_constants(tmp_path / "constants", **BRISK),
    ) as process:
        process.wait_leader().wait_ready()
        yield costs


def test_figures_become_weights_and_stand_while_the_server_is_away(
    costs: Costs, meter: Meter, prometheus: ApiServer, token: Path, eight_nodes: LocalCluster
) -> None:
    costs.publish(n1_n3=44)
    costs.create(user_defined(zones=ZONE_COSTS))
    before = costs.wait_zones("Dijkstra", NEAR)
    assert table(before, "Dijkstra", LABEL_REGION) == FAR
    source = costs.wait_reason("SourceAvailable", "SomeMeasurementsUnusable")
    assert "n-1 to n-3 has 2 figures" in source["message"]
    assert "no such place: n-1 to forged" in source["message"]
    assert "cilium_node_connectivity_latency_seconds" in prometheus.requests[0].path
    costs.kubectl("annotate", "nt", "net", "berth.dev/source=configmap")
    costs.wait_zones("Dijkstra", {"Z1>Z2": 44})
    costs.kubectl("annotate", "nt", "net", "--overwrite", "berth.dev/source=prometheus")
    costs.wait_zones("Dijkstra", NEAR)
    assert costs.get()["status"]["source"] == "prometheus"
    arguments = ["topology", "net", "-n", costs.kubectl.namespace, "--kubeconfig", str(eight_nodes.kubeconfig)]
    page = " ".join(CliRunner().invoke(kubectl_app, arguments).stdout.split())
    assert "Round trips with Prometheus alone" in page
    assert "Newest data" in page
    assert "Z1 Z2 9" in page
    token.write_text("expired\n")
    source = costs.wait_reason("SourceAvailable", "PrometheusUnreadable")
    assert f"the token of {token} is not accepted" in source["message"]
    token.write_text("secret\n")
    costs.wait_reason("SourceAvailable", "SomeMeasurementsUnusable")
    meter.away = True
    source = costs.wait_reason("SourceAvailable", "PrometheusUnreadable")
    assert "status 503, unavailable: starting; what it said last counts" in source["message"]
    assert costs.get()["spec"]["weights"] == before["spec"]["weights"]
