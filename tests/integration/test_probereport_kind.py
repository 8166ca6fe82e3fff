"""ProbeReport on a real API server: its columns, what it refuses, and whose words it has."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.node.probing.report import Moment, ProbedPeer, status_of
from agents.node.probing.report_writer import ReportWriter
from agents.node.probing.window import Figures, Latency, Method
from berth.api.probereport import API_VERSION, KIND
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from hack.harness.cluster import Kubectl
from hack.localcluster import LocalCluster

PEER: dict[str, Any] = {"node": "n2", "lossPerMille": 0, "samples": 5, "lastProbeTime": "2026-01-31T12:00:00Z"}


@pytest.fixture
def report(kubectl: Kubectl) -> Iterator[str]:
    """Name of a report that says nothing yet."""
    name = f"node-{secrets.token_hex(4)}"
    kubectl.apply({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}})
    yield name
    kubectl("delete", "probereport", name)


def write(kubectl: Kubectl, name: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    kubectl("patch", "probereport", name, "--subresource=status", "--type=merge", "-p", patch)


def test_columns(kubectl: Kubectl, report: str) -> None:
    now = Moment(datetime.now(UTC), 100.0)
    figures = Figures(Method.TCP, Latency(400, 850, 900, 5), 0.05, 54, 99.0)
    far = Figures(Method.ICMP, Latency(9000, 20_000, 30_000, 5), 0.0, 36, 99.0)
    peers = [ProbedPeer("n2", "b", figures), ProbedPeer("n3", "c", far)]
    write(kubectl, report, status_of("a", peers, now, rounds_dropped=3).to_api())
    head, line = kubectl("get", "probereports", report, "-o", "wide").splitlines()
    assert head.split() == ["NAME", "ZONE", "PEERS", "P90-NEAREST", "P90-FARTHEST", "LOSS", "DROPPED", "AGE"]
    assert line.split()[:-1] == [report, "a", "2", "0.85ms", "b", "20.00ms", "c", "2.5", "%", "3"]
    assert line.split()[-1].endswith("s")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"p90Microseconds": -1}, "p90Microseconds", id="negative"),
        pytest.param({"p90Microseconds": 1.5}, "p90Microseconds", id="no whole number"),
        pytest.param({"lossPerMille": 1001}, "lossPerMille", id="more lost than sent"),
        pytest.param({"method": "PIGEON"}, "method", id="unknown method"),
        pytest.param({"zone": "z" * 64}, "zone", id="no label's value"),
        pytest.param({"lastProbeTime": "yesterday"}, "lastProbeTime", id="no time"),
    ],
)
def test_what_no_agent_says_is_refused(kubectl: Kubectl, report: str, change: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=text):
        write(kubectl, report, {"peers": [PEER | change]})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"meanBitsPerSecond": -1}, "meanBitsPerSecond", id="negative"),
        pytest.param({"capacityBitsPerSecond": 0}, "capacityBitsPerSecond", id="0 is no capacity"),
        pytest.param({"interface": "i" * 16}, "interface", id="no name of an interface"),
    ],
)
def test_a_link_that_no_agent_has_is_refused(kubectl: Kubectl, report: str, change: dict[str, Any], text: str) -> None:
    link = {"interface": "eth0", "capacityBitsPerSecond": 10**10, "meanBitsPerSecond": 0, "samples": 1}
    write(kubectl, report, {"bandwidth": link})
    with pytest.raises(Exception, match=text):
        write(kubectl, report, {"bandwidth": link | change})


def test_one_entry_a_peer_and_not_too_many(kubectl: Kubectl, report: str) -> None:
    with pytest.raises(Exception, match="Duplicate value"):
        write(kubectl, report, {"peers": [PEER, PEER]})
    with pytest.raises(Exception, match="must have at most 100 items"):
        write(kubectl, report, {"peers": [PEER | {"node": f"n{number}"} for number in range(101)]})


@pytest.mark.parametrize(
    "flags", [pytest.param(["--server-side"], id="applied"), pytest.param([], id="replaced by another client")]
)
async def test_what_others_have_written_into_it_goes_with_the_agents_next_write(
    cluster: LocalCluster, kubectl: Kubectl, report: str, flags: list[str]
) -> None:
    link = {"interface": "eth9", "capacityBitsPerSecond": 1, "samples": 1}
    status = {"bandwidth": link, "peers": [PEER | {"node": f"forged-{number}"} for number in range(100)]}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": report}, "status": status}
    verb = "apply" if flags else "replace"
    kubectl(verb, *flags, "--subresource=status", "-f", "-", input=json.dumps(document))
    figures = Figures(Method.TCP, Latency(400, 850, 900, 5), 0.0, 54, 99.0)
    now = Moment(datetime.now(UTC), 100.0)
    own = status_of("a", [ProbedPeer("n2", "b", figures), ProbedPeer("n3", "b", figures)], now, rounds_dropped=0)
    async with ApiClient(await load_connection(kubeconfig=str(cluster.kubeconfig))) as client:
        await ReportWriter(client, report).write(own)
    assert kubectl.get("probereport", report)["status"] == own.to_api()
