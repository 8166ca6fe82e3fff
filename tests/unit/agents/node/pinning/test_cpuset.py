"""A cgroup's cpuset on directories that stand for the kernel's, in the forms of both versions.

What the kernel itself makes of writes is in tests/integration/test_pinning_cpusets.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.node.pinning.cpuset import Cpuset, CpusetError, allowed, has_left, read_cpuset, strays, write_cpuset
from agents.node.pinning.hierarchy import Version

EFFECTIVE = {
    Version.V1: ("cpuset.effective_cpus", "cpuset.effective_mems"),
    Version.V2: ("cpuset.cpus.effective", "cpuset.mems.effective"),
}


def cgroup(path: Path, version: Version, cpus: str, mems: str, effective: tuple[str, str]) -> Path:
    path.mkdir(exist_ok=True)
    names = ("cpuset.cpus", "cpuset.mems", *EFFECTIVE[version])
    for name, text in zip(names, (cpus, mems, *effective), strict=True):
        (path / name).write_text(f"{text}\n")
    (path / "cgroup.procs").write_text("")
    return path


@pytest.fixture(params=list(Version), ids=["v1", "v2"])
def version(request: pytest.FixtureRequest) -> Version:
    found: Version = request.param
    return found


def test_what_is_stated_and_what_is_true(tmp_path: Path, version: Version) -> None:
    above = cgroup(tmp_path / "pod", version, "0-7", "0-1", ("0-5", "0-1"))
    inner = cgroup(above / "c", version, "4-7", "1", ("4-5", "1"))
    assert read_cpuset(inner, version) == Cpuset(
        cpus="4-7",
        mems="1",
        effective_cpus=frozenset({4, 5}),
        effective_mems=frozenset({1}),
        allowed_cpus=frozenset(range(6)),
        allowed_mems=frozenset({0, 1}),
    )


def test_one_that_states_nothing(tmp_path: Path) -> None:
    above = cgroup(tmp_path / "pod", Version.V2, "", "", ("0-3", "0"))
    found = read_cpuset(cgroup(above / "c", Version.V2, "", "", ("0-3", "0")), Version.V2)
    assert (found.cpus, found.mems, found.effective_cpus) == ("", "", frozenset(range(4)))


@pytest.mark.parametrize(
    ("text", "allows", "partition"),
    [
        pytest.param("member", {0, 1}, False, id="one of many"),
        pytest.param("root", {0, 1, 2, 3}, True, id="CPUs of its own"),
        pytest.param("isolated", {0, 1, 2, 3}, True, id="isolated"),
        pytest.param("root invalid (Cpu list in cpuset.cpus not exclusive)", {0, 1}, False, id="that it does not get"),
    ],
)
def test_a_partition_has_its_cpus_to_itself(tmp_path: Path, text: str, allows: set[int], partition: bool) -> None:
    above = cgroup(tmp_path / "pod", Version.V2, "0-3", "0", ("0-1", "0"))
    inner = cgroup(above / "c", Version.V2, "2-3", "0", ("2-3", "0"))
    (inner / "cpuset.cpus.partition").write_text(f"{text}\n")
    found = read_cpuset(inner, Version.V2)
    assert (found.allowed_cpus, found.partition) == (allows, partition)


@pytest.mark.parametrize(
    ("missing", "gone"),
    [pytest.param("c", True, id="the cgroup is gone"), pytest.param("c/cpuset.cpus", False, id="not switched on")],
)
def test_what_cannot_be_read(tmp_path: Path, version: Version, missing: str, gone: bool) -> None:
    above = cgroup(tmp_path / "pod", version, "0-3", "0", ("0-3", "0"))
    if missing != "c":
        cgroup(above / "c", version, "0-3", "0", ("0-3", "0"))
        (above / missing).unlink()
    with pytest.raises(CpusetError, match=r"pod/c/cpuset\.cpus: No such file") as caught:
        read_cpuset(above / "c", version)
    assert caught.value.gone is gone


def test_a_controller_that_is_not_switched_on_is_told_with_the_file_that_does_so(tmp_path: Path) -> None:
    above = cgroup(tmp_path / "pod", Version.V2, "0-3", "0", ("0-3", "0"))
    (above / "cgroup.subtree_control").write_text("cpu memory\n")
    (above / "c").mkdir()
    with pytest.raises(CpusetError) as caught:
        read_cpuset(above / "c", Version.V2)
    text = f"the controller cpuset is not switched on for this cgroup; write +cpuset to {above}/cgroup.subtree_control"
    assert (str(caught.value), caught.value.gone) == (f"{above}/c/cpuset.cpus: {text}", False)


def test_what_is_no_list(tmp_path: Path, version: Version) -> None:
    above = cgroup(tmp_path / "pod", version, "0-3", "0", ("0-3", "0"))
    cgroup(above / "c", version, "0", "0", ("many", "0"))
    with pytest.raises(CpusetError, match="'many' is no CPU") as caught:
        read_cpuset(above / "c", version)
    assert not caught.value.gone


def test_only_what_changes_is_written(tmp_path: Path, version: Version) -> None:
    found = cgroup(tmp_path / "c", version, "0-3", "0", ("0-3", "0"))
    before = (found / "cpuset.mems").stat().st_mtime_ns
    write_cpuset(found, version, frozenset({2, 3}), frozenset({0}))
    assert (found / "cpuset.cpus").read_text() == "2-3"
    assert (found / "cpuset.mems").stat().st_mtime_ns == before
    write_cpuset(found, version, frozenset({2, 3}), frozenset({0, 1}))
    assert (found / "cpuset.mems").read_text() == "0-1"


def test_with_version_2_cgroups_inside_are_left_alone(tmp_path: Path) -> None:
    outer = cgroup(tmp_path / "c", Version.V2, "0-3", "0", ("0-3", "0"))
    inner = cgroup(outer / "inner", Version.V2, "0-3", "0", ("0-3", "0"))
    write_cpuset(outer, Version.V2, frozenset({1}), frozenset({0}))
    assert (inner / "cpuset.cpus").read_text() == "0-3\n"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(b"Name:\tx\nCpus_allowed_list:\t0-2,5\n", {0, 1, 2, 5}, id="a list"),
        pytest.param(b"Name:\t\xff\x1cx\x85\nCpus_allowed_list:\t0-2,5\n", {0, 1, 2, 5}, id="a name that is no text"),
        pytest.param(b"Name:\tx\n", set(), id="an old kernel"),
        pytest.param(None, set(), id="ended"),
    ],
)
def test_where_a_process_may_run(tmp_path: Path, status: bytes | None, expected: set[int]) -> None:
    if status is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "status").write_bytes(status)
    assert allowed(7, proc=tmp_path) == expected


def test_a_process_may_call_itself_by_any_bytes() -> None:
    """What it takes for a name is the kernel's first line about it, and any pod's process may choose that."""
    program = r"open('/proc/self/comm', 'wb').write(b'\xff\x1c'); print(flush=True); open(0).read()"
    command = [sys.executable, "-S", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        assert b"\xff" in Path(f"/proc/{process.pid}/comm").read_bytes()
        assert allowed(process.pid) >= os.sched_getaffinity(process.pid)
        process.stdin.close()


def test_processes_that_run_elsewhere(tmp_path: Path) -> None:
    for pid, cpus in {7: "0", 8: "0-1", 9: "1", 10: "0-1"}.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "status").write_text(f"Cpus_allowed_list:\t{cpus}\n")
    found = cgroup(tmp_path / "c", Version.V1, "0", "0", ("0", "0"))
    (found / "cgroup.procs").write_text("0\n7\n8\n11\n")
    inner = cgroup(found / "inner", Version.V1, "0", "0", ("0", "0"))
    (inner / "cgroup.procs").write_text("9\n")
    assert strays(found, frozenset({0}), proc=tmp_path) == [8, 9]
    assert strays(found, frozenset({0}), first=10, proc=tmp_path) == [8, 9], "in another PID namespace 10 is another"
    (found / "cgroup.procs").write_text("7\n8\n11\n")
    assert strays(found, frozenset({0}), first=10, proc=tmp_path) == [8, 9, 10]
    assert strays(found, frozenset({0, 1}), first=10, proc=tmp_path) == []


def test_a_container_with_very_many_cgroups_is_looked_through_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.node.pinning.cpuset._MOST_INSIDE", 3)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("Cpus_allowed_list:\t1\n")
    found = cgroup(tmp_path / "c", Version.V2, "0", "0", ("0", "0"))
    (found / "cgroup.procs").write_text("")
    inner = found
    for depth in range(4):
        inner = cgroup(inner / str(depth), Version.V2, "0", "0", ("0", "0"))
        (inner / "cgroup.procs").write_text("")
    (inner.parent / "cgroup.procs").write_text("7\n")
    (inner / "cgroup.procs").write_text("8\n")
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "status").write_text("Cpus_allowed_list:\t1\n")
    assert strays(found, frozenset({0}), proc=tmp_path) == [7]


def test_threads_in_a_cgroup_of_their_own_run_elsewhere(tmp_path: Path) -> None:
    for thread, cpus in {7: "0", 8: "0-1"}.items():
        (tmp_path / str(thread)).mkdir()
        (tmp_path / str(thread) / "status").write_text(f"Cpus_allowed_list:\t{cpus}\n")
    found = cgroup(tmp_path / "c", Version.V2, "0", "0", ("0", "0"))
    (found / "cgroup.procs").write_text("7\n")
    inner = cgroup(found / "inner", Version.V2, "0", "0", ("0", "0"))
    (inner / "cgroup.type").write_text("threaded\n")
    (inner / "cgroup.threads").write_text("8\n")
    (inner / "cgroup.procs").unlink()  # the kernel refuses to have it read
    assert strays(found, frozenset({0}), proc=tmp_path) == [8]


@pytest.mark.parametrize(
    ("present", "first", "allows", "left"),
    [
        pytest.param("7\n", 7, "0-1", False, id="it is there"),
        pytest.param("8\n", 7, "0-1", True, id="it has left"),
        pytest.param("8\n", 7, "0", False, id="where it is it has no other CPUs"),
        pytest.param("0\n8\n", 7, "0-1", False, id="processes are not to be seen"),
        pytest.param("8\n", 9, "0-1", False, id="it has ended"),
        pytest.param("8\n", 0, "0-1", False, id="it is not known"),
    ],
)
def test_a_first_process_that_has_left(tmp_path: Path, present: str, first: int, allows: str, left: bool) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text(f"Cpus_allowed_list:\t{allows}\n")
    found = cgroup(tmp_path / "c", Version.V1, "0", "0", ("0", "0"))
    (found / "cgroup.procs").write_text(present)
    assert has_left(found, frozenset({0}), first, proc=tmp_path) is left
