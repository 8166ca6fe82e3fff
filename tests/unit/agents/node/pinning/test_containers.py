"""Containers without a runtime, found by the names of cgroups; with a real one they are in the integration tests."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.node.pinning.containers import ASK_SECONDS, MOUNTS_SECONDS, STALE_SECONDS, Containers
from agents.node.pinning.cri import Container, CriError, Place, RuntimeClient
from agents.node.pinning.hierarchy import Hierarchy, Version
from agents.node.pinning.whose import container_name
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


@pytest.mark.parametrize("stated", [f"/kubepods/podu1/{SECOND}", "/kubepods/podu1", "/kubepods"])
async def test_a_runtime_that_names_what_is_another_containers_or_many_is_not_believed(
    tmp_path: Path, stated: str
) -> None:
    pod = tmp_path / "cpuset" / "kubepods" / "podu1"
    cgroup(pod / SECOND)
    runtime = ScriptedRuntime(tmp_path / "s.sock", {FIRST: Known("u1", cgroup(pod / FIRST), stated)})
    await runtime.start()
    client = RuntimeClient(tmp_path / "s.sock")
    containers = Containers(client, Hierarchy(tmp_path / "cpuset", Version.V1))
    assert [each.cgroup for each in await containers.of(frozenset({"u1"}), {})] == [pod / FIRST]
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


class Late(RuntimeClient):
    """Says which containers run when the test has it say so."""

    def __init__(self, root: Path) -> None:
        super().__init__(root / "none.sock")
        self.asked = 0
        self.answers: asyncio.Future[tuple[Container, ...]] = asyncio.get_running_loop().create_future()

    async def containers(self) -> tuple[Container, ...]:
        self.asked += 1
        return await asyncio.shield(self.answers)

    async def place(self, container_id: str, *, hurry: bool = False) -> Place:
        return Place("", 7)

    def again(self) -> None:
        self.answers = asyncio.get_running_loop().create_future()


class Slow:
    """A node whose runtime takes its time."""

    def __init__(self, root: Path) -> None:
        self.root, self.now, self.runtime = root, 0.0, Late(root)
        hierarchy = Hierarchy(root / "cpuset", Version.V1)
        self.containers = Containers(self.runtime, hierarchy, clock=lambda: self.now, patience=0.05, proc=root / "proc")

    def container(self, identity: str, *, uid: str = "u1", sure: bool = True, score: int | None = None) -> Path:
        """Make a container; of one that is not sure nothing is mounted that tells, as of what holds namespaces."""
        made = cgroup(self.root / "cpuset" / "kubepods" / f"pod{uid}" / identity)
        pid = f"{sum(map(ord, identity))}"
        (made / "cgroup.procs").write_text(pid)
        (self.root / "proc" / pid).mkdir(parents=True)
        if score is not None:
            (self.root / "proc" / pid / "oom_score_adj").write_text(f"{score}")
        source = f"/kubelet/pods/{uid}/containers/web/1234" if sure else "/resolv.conf"
        (self.root / "proc" / pid / "mountinfo").write_text(f"1 2 3:4 {source} /f rw - ext4 /dev/a rw\n")
        return made

    async def found(self, *others: str) -> dict[str, str]:
        """Names of the containers of pod u1, and of others, by ID."""
        stated = dict.fromkeys(others, "/nowhere")
        return {each.container.id: each.container.name for each in await self.containers.of(frozenset({"u1"}), stated)}


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[Slow]:
    made = Slow(tmp_path)
    yield made
    made.containers.close()


async def test_while_the_runtime_is_late_those_are_found_that_are_surely_containers(slow: Slow) -> None:
    slow.container(FIRST)
    slow.container(SECOND, sure=False)
    slow.container(OTHER, uid="u2")
    for _ in range(2):
        assert await slow.found() == {FIRST: "web"}
        assert (slow.containers.late, slow.containers.silence != "") == (True, True)
    assert slow.runtime.asked == 1
    slow.runtime.answers.set_result((Container(FIRST, "u1", "web"), Container(OTHER, "u2", "web")))
    assert await slow.found() == {FIRST: "web"}
    assert (slow.containers.late, slow.containers.silence, slow.runtime.asked) == (False, "", 1)


async def test_what_the_kernel_ends_sooner_is_a_container_whatever_is_mounted(
    slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look at mounts takes seconds while many start, and is not needed."""
    monkeypatch.setattr("agents.node.pinning.containers.container_name", lambda *_, **__: pytest.fail("looked"))
    slow.container(FIRST, sure=False, score=1000)
    slow.container(SECOND, sure=False, score=-998)
    assert await slow.found() == {FIRST: FIRST[:12]}
    slow.runtime.answers.set_exception(CriError("it hangs", answered=False))
    assert await slow.found() == {FIRST: FIRST[:12]}, "what holds the namespaces is none while the runtime is silent"


async def test_what_is_alone_in_its_pod_is_looked_at_once_the_runtime_is_silent(slow: Slow) -> None:
    """It mostly holds the pod's namespaces, and the runtime will tell."""
    slow.container(FIRST, score=1000)
    assert await slow.found() == {}
    slow.runtime.answers.set_exception(CriError("it hangs", answered=False))
    assert await slow.found() == {FIRST: "web"}


async def test_mounts_are_looked_at_a_short_time_in_each_round(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def slowly(cgroup: Path, uid: str, *, proc: Path) -> str | None:
        slow.now += MOUNTS_SECONDS / 2
        looked.append(cgroup.name)
        return container_name(cgroup, uid, proc=proc)

    monkeypatch.setattr("agents.node.pinning.containers.container_name", slowly)
    names = [f"{number}" * 64 for number in range(5)]
    for name in names:
        slow.container(name)
    counts = [len(await slow.found()) for _ in range(4)]
    assert (counts, sorted(looked)) == ([2, 4, 5, 5], names)


async def test_one_that_was_found_early_stays_until_it_ends_though_the_runtime_does_not_know_it_yet(slow: Slow) -> None:
    early = slow.container(FIRST)
    assert await slow.found() == {FIRST: "web"}
    slow.runtime.answers.set_result(())
    for _ in range(2):
        assert await slow.found(FIRST) == {FIRST: "web"}
        assert not slow.containers.late
    shutil.rmtree(early)
    assert await slow.found(FIRST) == {}


async def test_one_that_is_newer_than_a_late_answer_is_found_in_the_round_of_that_answer(slow: Slow) -> None:
    slow.container(FIRST)
    assert await slow.found() == {FIRST: "web"}
    slow.runtime.answers.set_result((Container(FIRST, "u1", "web"),))
    slow.container(SECOND)
    slow.container(OTHER, sure=False)
    assert await slow.found() == {FIRST: "web", SECOND: "web"}
    assert (slow.containers.late, slow.runtime.asked) == (False, 1)


async def test_one_that_the_runtime_names_no_more_is_gone_as_soon_as_nothing_runs_in_it(slow: Slow) -> None:
    named = slow.container(FIRST)
    await slow.found()
    slow.runtime.answers.set_result((Container(FIRST, "u1", "web"),))
    assert await slow.found() == {FIRST: "web"}
    slow.runtime.again()
    assert await slow.found() == {FIRST: "web"}, "it is known"
    slow.runtime.answers.set_result(())
    assert await slow.found() == {FIRST: "web"}, "it runs"
    slow.runtime.again()
    slow.runtime.answers.set_result(())
    (named / "cgroup.procs").write_text("")
    assert await slow.found() == {}


async def test_what_runs_in_cgroups_of_a_container_is_seen_where_the_runtime_names_it_no_more(slow: Slow) -> None:
    """As systemd in a container does: a cgroup with others inside that divide its CPUs has no process of its own."""
    named = slow.container(FIRST)
    slow.runtime.answers.set_result((Container(FIRST, "u1", "web"),))
    assert await slow.found() == {FIRST: "web"}
    (named / "cgroup.procs").rename(cgroup(named / "system.slice" / "web.service") / "cgroup.procs")
    (named / "cgroup.procs").write_text("")
    slow.runtime.again()
    slow.runtime.answers.set_result(())
    assert await slow.found() == {FIRST: "web"}


async def test_what_a_runtime_says_long_after_it_was_asked_counts_for_nothing(slow: Slow) -> None:
    slow.container(FIRST)
    await slow.found()
    slow.runtime.answers.set_result(())
    assert slow.containers._listing is not None
    await asyncio.wait({slow.containers._listing})
    slow.now += STALE_SECONDS + 1
    slow.runtime.again()
    slow.runtime.answers.set_result((Container(FIRST, "u1", "db"),))
    assert await slow.found() == {FIRST: "db"}
    assert slow.runtime.asked == 2


async def test_a_runtime_that_is_late_and_then_fails_is_silent(slow: Slow) -> None:
    slow.container(FIRST)
    slow.container(SECOND, sure=False)
    assert await slow.found() == {FIRST: "web"}
    slow.runtime.answers.set_exception(CriError("it hangs", answered=False))
    assert await slow.found() == {FIRST: "web"}
    assert (slow.containers.late, slow.containers.silence) == (False, "it hangs")


async def test_where_no_process_tells_a_silent_runtime_is_no_reason_to_pin_nothing(slow: Slow) -> None:
    """As without the host's PID namespace; what holds a pod's namespaces is among them then."""
    slow.container(FIRST, sure=False)
    slow.container(SECOND, sure=False)
    assert await slow.found() == {}
    slow.runtime.answers.set_exception(CriError("it hangs", answered=False))
    assert await slow.found() == {FIRST: FIRST[:12], SECOND: SECOND[:12]}


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
