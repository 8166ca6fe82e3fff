"""What users who ask a Service tell of attempts that failed. Left out: real ones (tests/e2e)."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
    age: float
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
    answer = ask(cast(Service, Known(pods, age)), method=method)
    why = "web: ConnectionRefusedError(111, 'Connection refused')" if there else "no pod is ready"
    assert answer.node == ""
    assert set(answer.failures) == {why}
    assert answer.oldest == age
    assert answer.unseen == "2.0 s: TimeoutError()"


@dataclass
class Answers:
    """An API server with one pod, of whose watch it is stated what comes, and how it ends."""

    server: str = "http://127.0.0.1:1"
    token: str = ""
    ca_file: None = None
    items: Sequence[object] = ()
    changes: Sequence[object] = ()
    end: Exception | None = None
    lists: int = 0
    paths: list[str] = field(default_factory=list)

    def request(self, *_: str) -> object:
        self.lists += 1
        if self.lists > 1 and self.end is not None and not self.changes:
            raise self.end
        return {"items": self.items, "metadata": {"resourceVersion": "7"}}

    def lines(self, path: str) -> Iterator[bytes]:
        self.paths.append(path)
        for change in self.changes:
            yield change if isinstance(change, bytes) else json.dumps(change).encode()
        if self.end is not None:
            raise self.end


def endpoints(name: str, *pods: str) -> dict[str, object]:
    """An EndpointSlice."""
    found = [{"addresses": ["10.0.0.1"], "nodeName": "n", "targetRef": {"kind": "Pod", "name": pod}} for pod in pods]
    return {"metadata": {"name": name}, "addressType": "IPv4", "endpoints": found, "ports": [{"port": 80}]}


def change(kind: str, *given: str) -> dict[str, object]:
    return {"type": kind, "object": endpoints(*given)}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Answers:
    found = Answers(items=[endpoints("web-1", "a")])
    monkeypatch.setattr(asking, "Api", lambda *_, **__: found)
    return found


def names(service: Service) -> list[str]:
    return [backend.pod for backend in service.backends]


@pytest.mark.parametrize(
    ("changes", "pods"),
    [
        pytest.param([], ["a"], id="nothing"),
        pytest.param([change("MODIFIED", "web-1", "a", "b")], ["a", "b"], id="one more pod"),
        pytest.param([change("ADDED", "web-2", "b")], ["a", "b"], id="another slice"),
        pytest.param([change("MODIFIED", "web-1", "b")], ["b"], id="another pod instead"),
        pytest.param([change("DELETED", "web-1", "a")], [], id="none any more"),
    ],
)
def test_what_changes_is_heard(api: Answers, changes: list[object], pods: list[str]) -> None:
    service = Service(cast(LocalCluster, api), "default", "web")
    assert names(service) == ["a"]
    api.changes = changes
    service.hear()
    assert names(service) == pods
    (path,) = api.paths
    assert path.startswith("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?")
    assert path.endswith("?labelSelector=kubernetes.io/service-name%3Dweb&watch=1&resourceVersion=7")


GONE = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}


@pytest.mark.parametrize(
    ("changes", "end", "why"),
    [
        pytest.param([], TimeoutError(), "TimeoutError()", id="the list is not answered"),
        pytest.param([], ApiError(503, "GET: 503"), "ApiError('GET: 503')", id="it is answered by an error"),
        pytest.param([], json.JSONDecodeError("no", "", 0), "JSONDecodeError(", id="by a part of one"),
        pytest.param([change("ADDED", "web-2", "b")], ConnectionResetError(), "Reset", id="the watch is cut"),
        pytest.param([GONE], None, "too old resource version", id="the watch is too old"),
        pytest.param([b'{"type": "ADD'], None, "DecodeError(", id="a part of a change"),
        pytest.param([{"type": "ADDED", "object": {"endpoints": 1}}], None, "ValidationError(", id="of another shape"),
    ],
)
def test_what_ends_hearing_leaves_all_as_it_was_and_is_told(
    api: Answers, changes: list[object], end: Exception | None, why: str
) -> None:
    service = Service(cast(LocalCluster, api), "default", "web")
    before = service.age
    api.changes, api.end = changes, end
    service.hear()
    assert "a" in names(service)
    assert (before, service.age > 0) == (0, True)
    assert why in service.unseen
    api.changes, api.end = [], None
    service.hear()
    assert (names(service), service.unseen) == (["a"], "")


def test_it_is_heard_until_nobody_wants_to(api: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that ends, for whatever reason, is followed by another."""
    monkeypatch.setattr(asking, "PAUSE", 0.0)
    stop, ends = threading.Event(), iter([ConnectionResetError(), None, None])
    service = Service(cast(LocalCluster, api), "default", "web")

    def lines(path: str) -> Iterator[bytes]:
        api.paths.append(path)
        yield json.dumps(change("MODIFIED", "web-1", str(len(api.paths)))).encode()
        if len(api.paths) == 3:
            stop.set()
        if (end := next(ends)) is not None:
            raise end

    monkeypatch.setattr(api, "lines", lines)
    service.follow(stop)
    assert (names(service), len(api.paths)) == (["3"], 3)
