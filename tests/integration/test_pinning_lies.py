"""A runtime that does not say what is so: nobody else's cgroup is written, and who is pinned stays so."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.node.pinning.pinner import LOOK_SECONDS
from tests.support.cpusets import everything
from tests.support.pinning_rounds import Rounds, rounds, wish
from tests.support.pinning_stand import SOCKETS

ALL = everything()
ONE, OTHER = SOCKETS


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Rounds]:
    async with rounds("lies", tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    "up",
    [
        pytest.param(1, id="its pod"),
        pytest.param(2, id="all pods of a class"),
        pytest.param(3, id="all pods"),
        pytest.param(4, id="what all of it is in"),
    ],
)
async def test_a_cgroup_that_is_around_others_is_not_written(node: Rounds, up: int) -> None:
    web, other = node.container(0), node.container(1)
    own = Path(web.known.path)
    web.known.path = str(own.parents[up - 1])
    found = await node.agent().round([wish(0)], observe=False)
    assert (web.cpus, other.cpus, found.pods[0].pinned) == (ONE, ALL, True)
    assert [entry.cgroup for entry in node.journal.entries.values()] == [str(own)]


async def test_one_that_is_left_out_of_the_list_keeps_its_cpus_while_it_runs(node: Rounds) -> None:
    web, other = node.container(0), node.container(1)
    pinner, wishes = node.agent(), [wish(0), wish(1)]
    await pinner.round(wishes, observe=False)
    given = len(node.runtime.asked)
    known = node.runtime.containers.pop(web.id)
    for _ in range(2):
        node.now += LOOK_SECONDS
        found = await pinner.round(wishes, observe=False)
        assert (web.cpus, other.cpus) == (ONE, ONE)
        assert all(state.pinned for state in found.pods)
    assert set(node.runtime.asked[given:]) == {"ListContainers"}
    await pinner.round([wish(1)], observe=False)
    assert (web.cpus, other.cpus) == (ALL, ONE), "it is wanted no more"
    await pinner.round(wishes, observe=False)
    node.runtime.containers[web.id] = known
    node.now += LOOK_SECONDS
    await pinner.round(wishes, observe=False)
    assert web.cpus == ONE
    del node.runtime.containers[web.id]
    node.room.end(known.cgroup)
    await pinner.round(wishes, observe=False)
    assert list(node.journal.entries) == [other.id]


async def test_a_runtime_that_says_yes_and_does_nothing(node: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    web = node.container(0)
    monkeypatch.setattr(node.runtime, "update", lambda known: None)
    pinner = node.agent()
    found = await pinner.round([wish(0)], observe=False)
    assert (web.cpus, found.pods[0].pinned) == (ONE, True)
    await pinner.restore_all()
    assert (web.cpus, dict(node.journal.entries)) == (ALL, {})


@pytest.mark.parametrize("pid", [1, os.getpid(), -1, 2**31 - 1], ids=["init", "our-own", "negative", "largest"])
async def test_another_process_than_its_first(node: Rounds, pid: int) -> None:
    web = node.container(0)
    real, web.known.pid = web.known.pid, pid
    await node.agent().round([wish(0)], observe=False)
    assert (os.sched_getaffinity(real), os.sched_getaffinity(0)) == (ONE, ALL)


async def test_a_container_that_has_another_id_each_time_is_written_under_none(node: Rounds) -> None:
    web, pinner = node.container(0), node.agent()
    for number in range(3):
        node.runtime.containers = {f"{number}" * 64: web.known}
        node.now += LOOK_SECONDS
        found = await pinner.round([wish(0)], observe=False)
        assert (web.cpus, found.pods[0].pinned, dict(node.journal.entries)) == (ALL, False, {})
