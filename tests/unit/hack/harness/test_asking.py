"""What users who ask a Service tell of attempts that failed. Left out: real ones (tests/e2e)."""

from __future__ import annotations

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


@dataclass
class Known:
    """Pods, as they were known some seconds ago."""

    backends: tuple[Backend, ...]
    looked: float


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
