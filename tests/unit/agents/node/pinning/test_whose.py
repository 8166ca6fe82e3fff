"""Whose container a process is in: by what the kubelet has mounted, as the kernel shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.node.pinning.whose import container_name, kinds

UID = "0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f"
OTHER = "11111111-2222-3333-4444-555555555555"
LOG = f"/var/lib/kubelet/pods/{UID}/containers/web/1f2e3d4c"
HOSTS = f"/pods/{UID}/etc-hosts"


def line(root: str, at: str = "/dev/termination-log") -> str:
    """One of mountinfo, as proc(5) has it."""
    return f"710 650 254:1 {root} {at} rw,relatime - ext4 /dev/vda1 rw"


SANDBOX = [
    "650 500 0:60 / / ro,relatime - overlay overlay rw,lowerdir=/a",
    line("/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/ab/resolv.conf", "/etc/resolv.conf"),
]
HOST = [line("/", f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~projected/token")]


@pytest.mark.parametrize(
    ("processes", "name"),
    [
        pytest.param({"7": [*SANDBOX, line(HOSTS, "/etc/hosts"), line(LOG)]}, "web", id="a container"),
        pytest.param({"7": [*SANDBOX, line(HOSTS, "/etc/hosts")]}, "", id="one whose name is not told"),
        pytest.param({"7": SANDBOX}, None, id="what holds the namespaces"),
        pytest.param({"7": HOST}, None, id="one that has no root directory yet"),
        pytest.param({"7": [line(LOG.replace(UID, OTHER))]}, None, id="of another pod"),
        pytest.param({"7": [line(f"{LOG}/more")]}, None, id="a file that is none of the kubelet's"),
        pytest.param({"7": None, "8": [line(LOG)]}, "web", id="the first has ended"),
        pytest.param({"0": [line(LOG)]}, None, id="processes cannot be seen"),
        pytest.param({"7": ["", "many words but no mount"]}, None, id="nonsense"),
        pytest.param({}, None, id="no process"),
    ],
)
def test_name(tmp_path: Path, processes: dict[str, list[str] | None], name: str | None) -> None:
    cgroup = tmp_path / "cgroup"
    cgroup.mkdir()
    (cgroup / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in processes))
    for pid, lines in processes.items():
        if lines is not None:
            (tmp_path / pid).mkdir()
            (tmp_path / pid / "mountinfo").write_bytes("\n".join(lines).encode() + b"\n\xff\n")
    assert container_name(cgroup, UID, proc=tmp_path) == name


def test_a_cgroup_that_is_gone(tmp_path: Path) -> None:
    assert container_name(tmp_path / "gone", UID, proc=tmp_path) is None


def test_processes_that_are_in_cgroups_inside(tmp_path: Path) -> None:
    for directory, pids in ((tmp_path / "c", ""), (tmp_path / "c" / "init.scope", "7\n")):
        directory.mkdir()
        (directory / "cgroup.procs").write_text(pids)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "mountinfo").write_text(line(LOG))
    assert container_name(tmp_path / "c", UID, proc=tmp_path) == "web"


@pytest.mark.parametrize(
    ("scores", "containers", "sandboxes", "presumed"),
    [
        pytest.param({"s": -998, "c": -997}, "c", "s", "", id="guaranteed"),
        pytest.param({"s": -998, "c": 2, "d": 999}, "cd", "s", "", id="burstable, two containers"),
        pytest.param({"s": -998, "c": 1000}, "c", "s", "", id="best effort"),
        pytest.param({"s": 0, "c": 1000}, "c", "", "s", id="a runtime that may not go below 0"),
        pytest.param({"s": 0, "b": 0, "c": 1000}, "c", "", "", id="the same, and a container was to have less"),
        pytest.param({"s": -998}, "", "s", "", id="before there are containers"),
        pytest.param({"s": 0}, "", "", "s", id="the same, and the runtime may not go below 0"),
        pytest.param({"c": 2, "d": 1000}, "d", "", "c", id="a runtime without a process for namespaces"),
        pytest.param({"s": -998, "c": -998}, "", "sc", "", id="as the runtime's own process has it, for a moment"),
        pytest.param({"s": -998, "c": -999}, "", "s", "", id="a container that has given itself less"),
        pytest.param({"s": -998, "c": -1000, "d": 2}, "d", "s", "", id="the same beside another one"),
        pytest.param({"s": -998, "c": -500, "d": 1}, "", "s", "", id="scores that the kubelet does not give"),
        pytest.param({"s": 0, "c": -500}, "", "", "c", id="less than a runtime that may not go below 0"),
        pytest.param({"s": None, "c": 1000}, "", "", "c", id="one has ended"),
        pytest.param({"s": "many", "b": 1, "c": 1000, "d": 1}, "c", "", "", id="nonsense"),
        pytest.param({}, "", "", "", id="nothing"),
    ],
)
def test_kinds(
    tmp_path: Path, scores: dict[str, int | str | None], containers: str, sandboxes: str, presumed: str
) -> None:
    for name, score in scores.items():
        pid = f"{ord(name)}"
        for directory in (tmp_path / name, tmp_path / pid):
            directory.mkdir()
        (tmp_path / name / "cgroup.procs").write_text(f"1\n{pid}\n")
        if score is not None:
            (tmp_path / pid / "oom_score_adj").write_text(f"{score}\n")
    found = kinds({name: tmp_path / name for name in scores}, proc=tmp_path)
    assert found == (frozenset(containers), frozenset(sandboxes), frozenset(presumed))
