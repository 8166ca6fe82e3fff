"""When a run may begin, and from when its pods count as created."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from bench.live import scenario
from berth.kube.resources import Resource
from hack.harness.observe import PodLog


@pytest.mark.parametrize(
    ("spent", "looks"),
    [([0.01], 1), ([0.4, 0.06, 0.04], 3), ([0.5] * 100, 40)],
    ids=["at once", "after a while", "never"],
)
def test_an_api_server_is_waited_for_until_it_is_idle(
    monkeypatch: pytest.MonkeyPatch, spent: list[float], looks: int
) -> None:
    now, left = [0.0], [*spent]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(scenario, "Cpu", lambda _pids: SimpleNamespace(spent=lambda: left.pop(0)))
    monkeypatch.setattr(scenario, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now[0]))
    scenario.until_idle(1)
    assert len(spent) - len(left) == looks


class Server:
    """Takes every creation."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    async def create(self, resource: Resource[Any], body: dict[str, Any], *, namespace: str | None = None) -> bytes:
        self.kinds.append(resource.kind)
        return json.dumps({**body, "metadata": {**body["metadata"], "uid": f"uid-{len(self.kinds)}"}}).encode()


async def test_pods_count_as_created_when_that_was_answered() -> None:
    server, log = Server(), PodLog()
    pods = await scenario.create_all(server, "a", scheduler="berth-scheduler", groups=2, replicas=3, log=log)  # type: ignore[arg-type]
    assert server.kinds.count("Pod") == pods == 2 * 33
    assert sorted(log.created) == sorted(f"uid-{n}" for n, kind in enumerate(server.kinds, 1) if kind == "Pod")
