"""What users who ask a Service tell of attempts that failed. Left out: real ones (tests/e2e)."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pytest

from agents.router.endpoints import Backend
from berth.runtime.proxy.upstream import Address
from hack.harness import asking
from hack.harness.asking import Service, ask
from hack.localcluster import LocalCluster
from hack.localcluster.rest import ApiError


@dataclass
class Known:
    """Pods, as they were known some seconds ago."""

    backends: tuple[Backend, ...]
    looked: float
    unseen: str = "2.0 s: TimeoutError()"


@pytest.fixture
def nobody() -> Iterator[Address]:
    """Where nobody listens, nor can: of a port that is free alone others may take hold."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Address(*taken.getsockname())


@pytest.mark.parametrize("age", [pytest.param(0.0, id="of now"), pytest.param(60.0, id="of a minute ago")])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("there", [True, False])
def test_what_failed_says_how_old_it_was_what_was_known(
    monkeypatch: pytest.MonkeyPatch, nobody: Address, there: bool, method: str, age: float
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.5)
    pods = (Backend(nobody, "n", "web"),) if there else ()
    answer = ask(cast(Service, Known(pods, time.monotonic() - age)), method=method)
    why = "web: ConnectionRefusedError(111, 'Connection refused')" if there else "no pod is ready"
    assert answer.node == ""
    assert set(answer.failures) == {why}
    assert age <= answer.oldest < age + 30
    assert answer.unseen == "2.0 s: TimeoutError()"


@dataclass
class Answers:
    """An API server that answers every look alike."""

    server: str = "http://127.0.0.1:1"
    token: str = ""
    ca_file: None = None
    answer: object = None

    def request(self, *_: str) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(TimeoutError(), "TimeoutError()", id="none"),
        pytest.param(ApiError(503, "GET: 503"), "ApiError('GET: 503')", id="an error"),
        pytest.param(json.JSONDecodeError("no", "", 0), "JSONDecodeError(", id="a part of one"),
        pytest.param({"items": [{"endpoints": 1}]}, "ValidationError(", id="of another shape"),
    ],
)
def test_a_look_that_fails_leaves_all_as_before_and_says_why(
    monkeypatch: pytest.MonkeyPatch, answer: object, why: str
) -> None:
    api = Answers(answer={"items": []})
    monkeypatch.setattr(asking, "Api", lambda *_, **__: api)
    service = Service(cast(LocalCluster, api), "default", "web")
    service.backends, looked = (Backend(Address("127.0.0.1", 1), "n", "web"),), service.looked
    api.answer = answer
    service.look()
    assert (len(service.backends), service.looked) == (1, looked)
    assert why in service.unseen
    api.answer = {"items": []}
    service.look()
    assert (service.backends, service.unseen) == ((), "")
