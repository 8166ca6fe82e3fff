"""What users who ask a Service tell of attempts that failed. Left out: real ones (tests/e2e)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import pytest

from agents.router.endpoints import Backend
from berth.runtime.proxy.upstream import Address
from hack.harness import asking
from hack.harness.asking import Service, ask
from tests.support.probing import free_port


@dataclass
class Known:
    """Pods, as they were known some seconds ago."""

    backends: tuple[Backend, ...]
    looked: float


@pytest.mark.parametrize("age", [pytest.param(0.0, id="of now"), pytest.param(60.0, id="of a minute ago")])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("there", [True, False])
def test_what_failed_says_how_old_it_was_what_was_known(
    monkeypatch: pytest.MonkeyPatch, there: bool, method: str, age: float
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.5)
    pods = (Backend(Address("127.0.0.1", free_port()), "n", "web"),) if there else ()
    answer = ask(cast(Service, Known(pods, time.monotonic() - age)), method=method)
    why = "web: ConnectionRefusedError(111, 'Connection refused')" if there else "no pod is ready"
    assert answer.node == ""
    assert set(answer.failures) == {why}
    assert age <= answer.oldest < age + 30
