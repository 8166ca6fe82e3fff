"""The faulty network of other tests: what has met a fault that begins after the answer was answered by then."""

from __future__ import annotations

import http.server
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hack.harness.cluster import PATIENCE
from hack.localcluster import LocalCluster
from tests.support.faults import Fault, FaultProxy


@dataclass
class Slow:
    """A server that answers when it is told to."""

    asked: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)
    server: str = ""


@pytest.fixture
def slow() -> Iterator[Slow]:
    found = Slow()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.asked.set()
            assert found.answers.wait(PATIENCE)
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (name in the base class)
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.server = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.answers.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("fault", "before"),
    [
        pytest.param(Fault.HANG_AFTER, 0, id="no answer"),
        pytest.param(Fault.RESET_AFTER, 0, id="a reset"),
        pytest.param(Fault.ANSWER_AFTER, 0, id="another answer"),
        pytest.param(Fault.HOLD, 1, id="none yet"),
    ],
)
def test_a_request_has_met_a_fault_once_it_is_answered_or_held(
    slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault, before: int
) -> None:
    """Else who waits for that and kills the client would end the request before the server has it."""
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: True)
    cluster = cast(LocalCluster, SimpleNamespace(server=slow.server, ca_file="", token=""))
    with ThreadPoolExecutor() as pool, FaultProxy(cluster, directory=tmp_path) as proxy:
        rule = proxy.add(fault, path="/things", times=1)
        url = proxy.kubeconfig.read_text().partition("server: ")[2].split()[0]
        pool.submit(urllib.request.urlopen, f"{url}/things", b"{}", PATIENCE)
        if fault is Fault.HOLD:
            proxy.wait_hits(rule)
            proxy.release(rule)
        assert slow.asked.wait(PATIENCE)
        assert rule.hits == before
        slow.answers.set()
        proxy.wait_hits(rule)
        assert (rule.hits, rule.taken) == (1, 1)
