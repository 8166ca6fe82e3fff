"""A run: what is started, followed and stopped, in which order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.schedperf import measure
from bench.schedperf.observe import Observer
from bench.schedperf.source import Case, Workload


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in its order."""
    done: list[str] = []

    class Scheduler:
        scheduler_name = "tested"

        def start(self) -> list[int]:
            done.append("started")
            return []

        def stop(self) -> None:
            done.append("stopped")

    class Idle:
        def __init__(self, _pids: list[int]) -> None:
            pass

        def spent(self) -> float:
            return 0.0

    @asynccontextmanager
    async def following(_observer: Observer, _client: Any) -> AsyncIterator[None]:
        done.append("followed")
        yield

    monkeypatch.setattr(measure, "contender", lambda *_, **__: Scheduler())
    monkeypatch.setattr(measure, "Cpu", Idle)
    monkeypatch.setattr(Observer, "following", following)
    return done


async def run() -> None:
    await measure.run(
        cast("Any", None),
        cast("Any", SimpleNamespace(process=lambda _name: SimpleNamespace(pid=0))),
        case=Case("Basic", Path(), (), None, ()),
        workload=Workload("5Nodes", {}),
        sequence=(),
        label="berth",
        number=0,
        patience=1.0,
        baseline=None,
    )


async def test_nothing_is_followed_while_a_scheduler_starts(steps: list[str]) -> None:
    """Its start holds up the event loop for seconds: a watch that is being opened would be given up meanwhile."""
    await run()
    assert steps == ["started", "followed", "stopped"]


async def test_a_run_that_fails_leaves_nothing_behind(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise LookupError("broken")

    monkeypatch.setattr("bench.schedperf.measure.Executor.run", broken)
    with pytest.raises(LookupError, match="broken"):
        await run()
    assert steps == ["started", "followed", "stopped"]
