"""When a run may begin."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bench.live import scenario


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
