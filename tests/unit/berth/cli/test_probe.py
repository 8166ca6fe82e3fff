"""``berth-agent probe`` against responders on loopback: its table, its document, its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.node.probing.icmp import Icmp
from agents.node.probing.rounds import Target
from agents.node.probing.window import Figures, Latency, Method
from berth.cli.agent import app
from berth.cli.probe import fields, table, target
from tests.support.probing import free_port, running_responder

LATENCY = Latency(p50=310, p90=1200, p99=20_050, jitter=7)


@pytest.fixture(autouse=True)
def _no_icmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Icmp, "_try", lambda *_, **__: False)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["probe", "--rate", "1000", *arguments])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param("127.0.0.1", Target("127.0.0.1", "127.0.0.1", 7), id="address"),
        pytest.param("127.0.0.1:80", Target("127.0.0.1:80", "127.0.0.1", 80), id="address and port"),
        pytest.param("::1", Target("::1", "::1", 7), id="IPv6"),
        pytest.param("[::1]", Target("[::1]", "::1", 7), id="IPv6 in brackets"),
        pytest.param("[::1]:80", Target("[::1]:80", "::1", 80), id="IPv6 and port"),
        pytest.param("fe80::7%lo", Target("fe80::7%lo", "fe80::7%lo", 7), id="link-local"),
        pytest.param("[fe80::7%lo]:80", Target("[fe80::7%lo]:80", "fe80::7%lo", 80), id="link-local and port"),
    ],
)
def test_target(host: str, expected: Target) -> None:
    assert target(host, 7) == expected


@pytest.mark.parametrize(
    ("host", "text"),
    [
        pytest.param("127.0.0.1:http", "'http' is no port", id="port is no number"),
        pytest.param("127.0.0.1:70000", "'70000' is no port; write a number from 1 to 65535", id="port too large"),
        pytest.param("127.0.0.1:²", "'²' is no port", id="a digit of another kind"),
        pytest.param("127.0.0.1:" + "9" * 5000, "9999…' is no port", id="endless port"),
        pytest.param("", "'' names no host", id="nothing"),
        pytest.param(":80", "':80' names no host", id="a port alone"),
        pytest.param("[]:80", "'[]:80' names no host", id="brackets around nothing"),
        pytest.param("x" * 5000, "xxx…: no address found", id="endless name"),
        pytest.param("no-such-host.invalid", "no address found", id="unknown name"),
        pytest.param("a..b", "no address found", id="no name at all"),
    ],
)
def test_what_has_no_address_ends_with_2(host: str, text: str) -> None:
    result = run(host)
    assert result.exit_code == 2
    assert text in result.stderr


def test_a_host_that_answers() -> None:
    with running_responder() as peer:
        result = run(f"127.0.0.1:{peer.port}", "--rounds", "2", "-o", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    (host,) = found["hosts"]
    assert found["rounds"] == 2
    assert (host["address"], host["method"]) == ("127.0.0.1", "TCP")
    assert 0 < host["p50Microseconds"] <= host["p90Microseconds"] <= host["p99Microseconds"]
    assert host["samples"] + round(6 * host["loss"]) == 6


def test_one_that_does_not_ends_with_3() -> None:
    with running_responder() as peer:
        result = run(f"127.0.0.1:{peer.port}", f"127.0.0.1:{free_port()}", "--rounds", "1")
    assert result.exit_code == 3
    heading, answers, silent = result.stdout.splitlines()
    assert heading.split()[:3] == ["HOST", "ADDRESS", "METHOD"]
    assert answers.split()[2] == "TCP"
    assert silent.split()[2:] == ["-", "-", "-", "-", "-", "100.0", "%", "0"]
    assert "does not let this process send ICMP: hosts without a responder show as lost" in result.stderr


def test_disturbed_rounds_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([False, True, False])
    monkeypatch.setattr("berth.cli.probe.DisturbanceDetector.disturbed", lambda *_: next(rounds))
    with running_responder() as peer:
        result = run(f"127.0.0.1:{peer.port}", "--rounds", "3")
    assert "1 of 3 rounds left out: this machine was too busy." in result.stdout
    assert result.stdout.splitlines()[1].split()[-1] == "6"


def test_more_hosts_than_descriptors_are_no_busy_machine() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard})); "
        "from berth.cli.agent import main; main()"
    )
    hosts = [f"127.0.0.{number}" for number in range(1, 65)]
    with running_responder("") as peer:
        arguments = ["probe", *hosts, "--port", str(peer.port), "--rounds", "1", "--rate", "1000"]
        few, more = (
            subprocess.run(
                [sys.executable, "-c", program.format(soft=64, hard=hard), *arguments],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
            for hard in (64, 256)
        )
    assert few.returncode == 2
    assert "no descriptor or memory is left to probe 64 hosts" in few.stderr
    assert more.returncode == 0, more.stderr
    assert all(row.split()[2] == "TCP" for row in more.stdout.splitlines()[1:])


@pytest.mark.parametrize(
    ("figures", "row"),
    [
        pytest.param(
            Figures(Method.ICMP, LATENCY, 0.125, 14, 0.0),
            "h 192.0.2.1 ICMP 0.310 1.200 20.050 0.007 12.5 % 14",
            id="measured",
        ),
        pytest.param(Figures(Method.TCP, None, 1.0, 0, 0.0), "h 192.0.2.1 - - - - - 100.0 % 0", id="silent"),
        pytest.param(None, "h 192.0.2.1 - - - - - - -", id="every round dropped"),
    ],
)
def test_table(figures: Figures | None, row: str) -> None:
    hosts = [fields(Target("h", "192.0.2.1", 1), figures)]
    text = table({"rounds": 1, "roundsDropped": 0, "hosts": hosts})
    assert text.splitlines()[1].split() == row.split()
