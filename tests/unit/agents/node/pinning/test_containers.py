"""Containers without a runtime, found by the names of cgroups; with a real one they are in the integration tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agents.node.pinning.containers import ASK_SECONDS, Containers
from agents.node.pinning.cri import RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from tests.support.scripted_runtime import Known, ScriptedRuntime

FIRST, SECOND, OTHER = "a" * 64, "b" * 64, "c" * 64


def cgroup(path: Path) -> Path:
    path.mkdir(parents=True)
    for directory in (path, path.parent):
        for name in ("cpuset.cpus", "cpuset.effective_cpus", "cpuset.mems", "cpuset.effective_mems"):
            (directory / name).write_text("0")
    return path


@pytest.fixture
def containers(tmp_path: Path) -> Containers:
    return Containers(RuntimeClient(tmp_path / "none.sock"), Hierarchy(tmp_path / "cpuset", Version.V1))


async def test_those_of_pods_and_those_that_are_known(tmp_path: Path, containers: Containers) -> None:
    pod = tmp_path / "cpuset" / "kubepods" / "burstable" / "podu1"
    first, second = cgroup(pod / FIRST), cgroup(pod / SECOND)
    other = cgroup(tmp_path / "cpuset" / "elsewhere" / OTHER)
    cgroup(tmp_path / "cpuset" / "kubepods" / "podu2" / ("d" * 64))
    assert containers.silence == ""
    found = await containers.of(frozenset({"u1"}), {OTHER: f"/elsewhere/{OTHER}", "gone": "/elsewhere/gone"})
    assert {each.container.id: (each.container.pod_uid, each.cgroup) for each in found} == {
        FIRST: ("u1", first),
        SECOND: ("u1", second),
        OTHER: ("", other),
    }
    assert "none.sock: ListContainers" in containers.silence


async def test_each_that_is_asked_about_shows_that_work_goes_on(tmp_path: Path) -> None:
    pod = tmp_path / "cpuset" / "kubepods" / "podu1"
    known = {name: Known("u1", cgroup(pod / name), f"/kubepods/podu1/{name}") for name in (FIRST, SECOND)}
    runtime = ScriptedRuntime(tmp_path / "s.sock", known)
    await runtime.start()
    client = RuntimeClient(tmp_path / "s.sock")
    beats: list[str] = []
    hierarchy = Hierarchy(tmp_path / "cpuset", Version.V1)
    containers = Containers(client, hierarchy, beat=lambda: beats.append("beat"))
    for _ in range(2):
        found = await containers.of(frozenset({"u1"}), {})
        assert {each.container.id: each.cgroup for each in found} == {FIRST: pod / FIRST, SECOND: pod / SECOND}
    assert len(beats) == 2, "where one is, is remembered"
    client.close()
    await runtime.stop()


async def test_those_that_the_runtime_does_not_place_are_searched_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {name: cgroup(tmp_path / "cpuset" / "kubepods" / "podu1" / name) for name in (FIRST, SECOND)}
    known = {name: Known("u1", path, "") for name, path in places.items()}
    runtime = ScriptedRuntime(tmp_path / "s.sock", known)
    await runtime.start()
    client = RuntimeClient(tmp_path / "s.sock")
    containers = Containers(client, Hierarchy(tmp_path / "cpuset", Version.V1))
    walks: list[Path] = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda top: (walks.append(top), walk(top))[1])
    found = await containers.of(frozenset({"u1"}), {})
    assert {each.container.id: each.cgroup for each in found} == places
    assert len(walks) == 1
    client.close()
    await runtime.stop()


async def test_a_slow_runtime_is_asked_about_a_few_in_each_round_and_new_ones_come_first(tmp_path: Path) -> None:
    pod = tmp_path / "cpuset" / "kubepods" / "podu1"
    names = [f"{number}" * 64 for number in range(7)]
    known = {name: Known("u1", cgroup(pod / name), f"/kubepods/podu1/{name}", 7) for name in names[:6]}
    runtime = ScriptedRuntime(tmp_path / "s.sock", known)
    await runtime.start()
    client, now = RuntimeClient(tmp_path / "s.sock"), [0.0]

    def takes_long() -> None:
        now[0] += ASK_SECONDS / 2

    hierarchy = Hierarchy(tmp_path / "cpuset", Version.V1)
    containers = Containers(client, hierarchy, beat=takes_long, clock=lambda: now[0])
    told = []
    for _ in range(5):
        found = await containers.of(frozenset({"u1"}), {})
        assert {each.container.id: each.cgroup for each in found} == {name: pod / name for name in runtime.containers}
        told.append({each.container.id for each in found if each.pid})
        runtime.containers[names[6]] = Known("u1", pod / names[6], f"/kubepods/podu1/{names[6]}", 7)
        if not (pod / names[6]).exists():
            cgroup(pod / names[6])
    assert [len(each) for each in told] == [2, 4, 6, 7, 7]
    assert names[6] in told[1]
    assert runtime.asked.count("ContainerStatus") == 7
    client.close()
    await runtime.stop()


async def test_cpusets_of_those_that_are_there(tmp_path: Path, containers: Containers) -> None:
    pod = tmp_path / "cpuset" / "kubepods" / "podu1"
    cgroup(pod / FIRST)
    broken = cgroup(pod / SECOND)
    (broken / "cpuset.effective_cpus").write_text("many")
    found = await containers.of(frozenset({"u1"}), {})
    assert len(found) == 2
    cpusets, problems = await containers.cpusets(found, {})
    assert cpusets.keys() == {FIRST}
    assert cpusets[FIRST].effective_cpus == {0}
    assert problems == {
        SECOND: f"{broken / 'cpuset.effective_cpus'}: 'many' is no CPU and no range; write a list such as 0-3,8"
    }


async def test_those_that_have_ended_are_no_problem(tmp_path: Path, containers: Containers) -> None:
    ended = cgroup(tmp_path / "cpuset" / "kubepods" / "podu1" / FIRST)
    found = await containers.of(frozenset({"u1"}), {})
    shutil.rmtree(ended)
    assert await containers.cpusets(found, {}) == ({}, {})
