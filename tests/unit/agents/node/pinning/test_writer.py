"""The writer without a runtime, on directories that stand for cgroups; no kernel makes there true what is written."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from agents.node.pinning.cri import HUNG_SECONDS, RuntimeClient
from agents.node.pinning.hierarchy import Version
from agents.node.pinning.writer import CpusetWriter, NotInEffectError, Target, Way, Written
from tests.support.scripted_runtime import Known, ScriptedRuntime

CPUS, MEMS = frozenset({1}), frozenset({0})


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    """A container that has what is wanted already."""
    path = tmp_path / "pod" / "c"
    path.mkdir(parents=True)
    for directory, cpus in ((path, "1"), (path.parent, "0-1")):
        for name, text in {"cpus": cpus, "effective_cpus": cpus, "mems": "0", "effective_mems": "0"}.items():
            (directory / f"cpuset.{name}").write_text(text)
    (path / "cgroup.procs").write_text("")
    return path


async def test_a_runtime_that_says_nothing_is_left_alone_for_a_while(tmp_path: Path, cgroup: Path) -> None:
    connections = 0

    def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1

    server = await asyncio.start_unix_server(count, tmp_path / "s.sock")
    now = 100.0
    client = RuntimeClient(tmp_path / "s.sock", timeout=0.05, clock=lambda: now)
    beats: list[float] = []
    writer = CpusetWriter(client, Version.V1, beat=lambda: beats.append(now))
    for after, asked in [(0.0, 1), (1.0, 1), (HUNG_SECONDS - 1.1, 1), (0.2, 2)]:
        now += after
        written = await writer.write(Target("c", cgroup, CPUS, MEMS))
        assert written.way is Way.DIRECT
        assert "UpdateContainerResources: no" in written.unsettled
        assert connections == asked
    assert len(beats) == 4
    server.close()


async def test_what_is_not_in_effect_afterwards_is_told(tmp_path: Path, cgroup: Path) -> None:
    writer = CpusetWriter(RuntimeClient(tmp_path / "none.sock"), Version.V1)
    with pytest.raises(NotInEffectError, match=r"pod/c: asked for CPUs 0-1, has 1$"):
        await writer.write(Target("c", cgroup, frozenset({0, 1}), MEMS))
    assert (cgroup / "cpuset.cpus").read_text() == "0-1"


async def test_without_time_nobody_is_asked(tmp_path: Path, cgroup: Path) -> None:
    writer = CpusetWriter(RuntimeClient(tmp_path / "none.sock"), Version.V1)
    written = await writer.write(Target("c", cgroup, CPUS, MEMS), ask=False)
    assert written == (Way.DIRECT, "there was no time to ask", False, False)


async def test_nobody_is_asked_twice_at_once(tmp_path: Path, cgroup: Path) -> None:
    """Two writes to a runtime that hangs take its timeout each, and no longer."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen()
        writer = CpusetWriter(RuntimeClient(tmp_path / "s.sock", timeout=0.05), Version.V1)
        target = Target("c", cgroup, CPUS, MEMS)
        found = await asyncio.gather(writer.write(target), writer.write(target))
        assert [written.way for written in found] == [Way.DIRECT, Way.DIRECT]


async def test_what_was_done_late_and_is_so_no_more_is_asked_again(tmp_path: Path, cgroup: Path) -> None:
    """The runtime did what it was asked after its time, and somebody set something else since."""
    runtime = ScriptedRuntime(tmp_path / "s.sock", {"c": Known("u", cgroup, "/kubepods/c")})
    await runtime.start()
    runtime.gate.clear()
    client = RuntimeClient(tmp_path / "s.sock", patience=0.02)
    writer, target = CpusetWriter(client, Version.V1), Target("c", cgroup, CPUS, MEMS)
    written = await writer.write(target, hurry=True)
    assert (written.way, written.answered, written.awaited) == (Way.DIRECT, False, True)
    assert "no answer yet" in written.unsettled
    runtime.gate.set()
    await writer.settled()
    for name in ("cpuset.cpus", "cpuset.effective_cpus"):
        (cgroup / name).write_text("0")

    def in_effect() -> None:
        (cgroup / "cpuset.effective_cpus").write_text("1")

    runtime.before_update = in_effect
    assert await writer.write(target) == Written(Way.RUNTIME)
    assert runtime.asked == ["UpdateContainerResources"] * 2
    client.close()
    await runtime.stop()
