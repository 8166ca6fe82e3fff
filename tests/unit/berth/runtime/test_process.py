"""A process of ``berth run`` without an API server: signals, failures, health.

With one: tests/integration/test_kube_run.py.
"""

from __future__ import annotations

import resource
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from kubernetes_asyncio.client import Configuration

from berth.kube.connection import Connection
from berth.runtime.health import Checks
from berth.runtime.operator import Operator
from berth.runtime.process import Selected, _Hosted
from berth.runtime.settings import RunSettings
from tests.support import malloc
from tests.support.probe import QUIET, Probe, ProbeSettings, berth, unreachable


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """A kubeconfig of a server that is not there."""
    return unreachable(tmp_path)


@pytest.mark.parametrize(
    ("number", "names"),
    [
        pytest.param(signal.SIGTERM, ["probe"], id="SIGTERM"),
        pytest.param(signal.SIGINT, ["probe", "twin"], id="SIGINT, two components"),
        pytest.param(signal.SIGTERM, ["probe", "probe"], id="the same twice runs once"),
    ],
)
def test_a_signal_ends_it_with_0(kubeconfig: str, number: signal.Signals, names: list[str]) -> None:
    with berth("run", *names, kubeconfig, *QUIET) as process:
        started = process.until("started")
        for _ in dict.fromkeys(names):
            process.until("working")
        assert process.stop(number) == 0
    assert started["components"] == list(dict.fromkeys(names))
    assert started["server"] == "http://127.0.0.1:1"
    assert [line["event"] for line in process.lines][-1] == "stopping"


def test_clean_up_is_waited_for(kubeconfig: str) -> None:
    with berth("run", "probe", kubeconfig, *QUIET, mode="slow") as process:
        process.until("working")
        assert process.stop() == 0
    assert [line["event"] for line in process.lines][-2:] == ["stopping", "cleaned up"]


def test_a_second_signal_ends_a_stuck_component(kubeconfig: str) -> None:
    with berth("run", "probe", kubeconfig, *QUIET, mode="stuck") as process:
        process.until("working")
        process.popen.send_signal(signal.SIGTERM)
        process.until("cancellation ignored")
        assert process.stop() == -signal.SIGTERM


@pytest.mark.parametrize(
    ("mode", "error"),
    [("fail", "the probe failed"), ("end", "component probe ended by itself")],
)
def test_a_component_that_fails_or_ends_takes_the_process_with_it(kubeconfig: str, mode: str, error: str) -> None:
    with berth("run", "probe", kubeconfig, *QUIET, mode=mode) as process:
        assert process.wait() == 1
    (failure,) = (line for line in process.lines if line["event"] == "component failed")
    assert failure["component"] == "probe"
    assert failure["exception"][0]["exc_value"] == error


def status(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.skipif(not malloc.known(), reason="another C library than glibc")
def test_every_process_gives_large_blocks_back(kubeconfig: str) -> None:
    with berth("run", "probe", kubeconfig, *QUIET, mode="large") as process:
        assert process.until("large blocks")["given_back"] is True


def test_every_process_may_open_as_many_files_as_it_is_allowed(kubeconfig: str) -> None:
    """Container runtimes begin with 1024: a router or meter would be full with 500 clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard - 1), hard))
    try:
        with berth("run", "probe", kubeconfig, *QUIET, mode="files") as process:
            assert process.until("files")["most"] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_types_are_worked_out_before_there_are_threads_and_crashes_are_told(kubeconfig: str) -> None:
    """Two threads of leases that read the same type first ended the process with a segmentation fault, and no word."""
    with berth("run", "probe", kubeconfig, *QUIET, mode="types") as process:
        found = process.until("types")
    assert (found["worked_out"], found["later"], found["crashes_told"]) == (1, 0, True)


def test_health_without_an_api_server(kubeconfig: str) -> None:
    with berth("run", "probe", "twin", kubeconfig, *QUIET, mode="wait") as process:
        port = process.until("started")["health_port"]
        process.until("watch interrupted")
        assert status(port, "/healthz") == (200, "ok\n")  # not silent for long enough yet
        # Both components follow namespaces, and both are told.
        assert status(port, "/readyz") == (
            503,
            "sync namespaces: first list not complete; first list not complete\n",
        )
        code, metrics = status(port, "/metrics")
        assert code == 200
        assert 'berth_api_requests_total{code="error",resource="namespaces",verb="LIST"}' in metrics
        assert process.stop() == 0


def test_a_standby_is_ready_because_a_rolling_update_waits_for_it(kubeconfig: str) -> None:
    health = ("--health-host", "127.0.0.1", "--health-port", "0")
    with berth("run", "probe", kubeconfig, *health, mode="wait") as process:
        port = process.until("started")["health_port"]
        process.until("lease attempt failed")
        assert status(port, "/healthz") == (200, "ok\n")
        assert status(port, "/readyz") == (200, "ok\n")
        assert process.stop() == 0


async def test_events_give_way_to_the_writes_of_their_component() -> None:
    connection = Connection(configuration=Configuration(host="https://192.0.2.1"), namespace="default")
    selected = Selected("probe", Probe, ProbeSettings())
    hosted = _Hosted.build(selected, connection, RunSettings(), Checks(), "me", Operator())
    assert hosted.recorder._others is hosted.client.writes
    assert hosted.recorder._client is hosted.events_client is not hosted.client
