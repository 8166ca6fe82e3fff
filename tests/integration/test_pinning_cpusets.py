"""Cpusets in the machine's own hierarchy, with real processes: what the kernel makes of what is written."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agents.node.pinning.cgroup_paths import Driver
from agents.node.pinning.cpuset import CpusetError, read_cpuset, strays, write_cpuset
from agents.node.pinning.hierarchy import Version
from tests.support.cpusets import Machine, everything, machine, make, pod_uid

FIRST, REST = frozenset(sorted(everything())[:1]), frozenset(sorted(everything())[1:])


@pytest.fixture(params=list(Driver))
def room(request: pytest.FixtureRequest) -> Iterator[Machine]:
    with machine(f"cpusets-{request.param}", request.param) as found:
        yield found


def test_processes_run_where_they_are_told(room: Machine) -> None:
    identity, cgroup = room.container(1)
    other_identity, other = room.container(2)
    version, before = room.hierarchy.version, read_cpuset(cgroup, room.hierarchy.version)
    assert before.effective_cpus == before.allowed_cpus >= everything()
    pids = [process.pid for process in room.processes]
    write_cpuset(cgroup, version, REST, before.effective_mems)
    assert read_cpuset(cgroup, version).effective_cpus == REST
    assert [os.sched_getaffinity(pid) for pid in pids] == [set(REST), set(everything())]
    assert strays(cgroup, REST) == []
    assert strays(cgroup, FIRST) == [pids[0]]
    assert strays(cgroup, REST, first=pids[1]) == [pids[1]]
    write_cpuset(cgroup, version, before.allowed_cpus, before.effective_mems)
    assert os.sched_getaffinity(pids[0]) == set(everything())
    uids = frozenset({pod_uid(1), pod_uid(2), pod_uid(3)})
    assert set(room.hierarchy.containers_of(uids)) == {
        (pod_uid(1), identity, cgroup),
        (pod_uid(2), other_identity, other),
    }


def test_cgroups_inside_a_container_follow_there_and_back(room: Machine) -> None:
    _, cgroup = room.container(1)
    inner, innermost = cgroup / "a" / "b", cgroup / "a" / "b" / "c"
    make(innermost, room.hierarchy.root)
    pids = [room.run_in(inner), room.run_in(innermost)]
    before = read_cpuset(cgroup, room.hierarchy.version)
    for cpus in (FIRST, REST, before.allowed_cpus, REST):
        write_cpuset(cgroup, room.hierarchy.version, cpus, before.effective_mems)
        assert [os.sched_getaffinity(pid) for pid in pids] == [set(cpus & everything())] * 2


def test_what_is_chosen_inside_a_container_stays_where_it_fits(room: Machine) -> None:
    _, cgroup = room.container(1)
    make(cgroup / "a", room.hierarchy.root)
    (cgroup / "a" / "cpuset.cpus").write_text(",".join(map(str, REST)))
    before = read_cpuset(cgroup, room.hierarchy.version)
    write_cpuset(cgroup, room.hierarchy.version, REST, before.effective_mems)
    assert read_cpuset(cgroup / "a", room.hierarchy.version).effective_cpus == REST


def test_what_the_kernel_refuses_is_told_with_the_file(room: Machine) -> None:
    _, cgroup = room.container(1)
    mems = read_cpuset(cgroup, room.hierarchy.version).effective_mems
    if room.hierarchy.version is Version.V1:
        with pytest.raises(CpusetError, match=r"cpuset\.cpus: ") as caught:
            write_cpuset(cgroup, room.hierarchy.version, frozenset({4095}), mems)
        assert not caught.value.gone
    for path in (cgroup / "gone", cgroup.parent / "gone"):
        with pytest.raises(CpusetError) as caught:
            write_cpuset(path, room.hierarchy.version, REST, mems)
        assert caught.value.gone
