"""Which hierarchy has cpusets, and where containers are in it, on directories that stand for the kernel's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from agents.node.pinning.cgroup_paths import Driver, QosClass, Runtime, container_directory, pod_path
from agents.node.pinning.hierarchy import Hierarchy, HierarchyError, Version, find_hierarchy

UID = "0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f"
ID = "6ed36d3b330e341a5cb00e20d97129c289e2d87c4f84ab70101fd7ad22af542b"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"cpuset/cpuset.cpus": "0-1"}, ("cpuset", Version.V1), id="version 1"),
        pytest.param({"cpu,cpuset/cpuset.cpus": "0-1"}, ("cpu,cpuset", Version.V1), id="mounted with another"),
        pytest.param({"cpuset.cpus": "0-1"}, (".", Version.V1), id="the hierarchy of version 1 itself"),
        pytest.param({"cgroup.controllers": "cpuset cpu io"}, (".", Version.V2), id="version 2"),
        pytest.param(
            {"cpuset/cpuset.cpus": "0-1", "unified/cgroup.controllers": ""}, ("cpuset", Version.V1), id="hybrid"
        ),
        pytest.param(
            {"cpu/cpu.shares": "1", "unified/cgroup.controllers": "cpuset"}, ("unified", Version.V2), id="the other way"
        ),
        pytest.param(
            {"cgroup.controllers": "cpuset", "cpuset.cpus": "0-1"}, (".", Version.V2), id="part of a version 2"
        ),
    ],
)
def test_which_hierarchy(tmp_path: Path, files: dict[str, str], expected: tuple[str, Version]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert find_hierarchy(tmp_path) == Hierarchy(tmp_path / expected[0], expected[1])


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="nothing mounted"),
        pytest.param({"cgroup.controllers": "cpu memory"}, id="the controller is not there"),
        pytest.param({"cpu/cpu.shares": "1"}, id="other controllers"),
    ],
)
def test_none(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(HierarchyError, match="no hierarchy with the controller cpuset; mount the host's"):
        find_hierarchy(tmp_path)


@pytest.mark.parametrize("driver", Driver)
@pytest.mark.parametrize("runtime", Runtime)
@pytest.mark.parametrize("qos", QosClass, ids=["guaranteed", "burstable", "best effort"])
@pytest.mark.parametrize("root", [PurePosixPath("/"), PurePosixPath("/n1")], ids=["top", "root of the kubelet's"])
def test_containers_are_found(
    tmp_path: Path, driver: Driver, runtime: Runtime, qos: QosClass, root: PurePosixPath
) -> None:
    hierarchy = Hierarchy(tmp_path, Version.V1)
    path = pod_path(driver, qos, UID, root=root) / container_directory(driver, runtime, ID)
    hierarchy.cgroup(path).mkdir(parents=True)
    (hierarchy.cgroup(path).parent / f"crio-conmon-{ID}.scope").mkdir()
    (tmp_path / "system.slice" / "cron.service").mkdir(parents=True)
    assert hierarchy.search(ID) == hierarchy.cgroup(path)
    assert hierarchy.search("0" * 64) is None
    assert list(hierarchy.containers_of(frozenset([UID, "another"]))) == [(UID, ID, hierarchy.cgroup(path))]
    assert list(hierarchy.containers_of(frozenset(["another"]))) == []


def test_a_container_is_found_wherever_the_hierarchy_is_mounted(tmp_path: Path) -> None:
    cgroup = tmp_path / "cpuset" / "kubepods" / "podu" / ID
    cgroup.mkdir(parents=True)
    path = str(Hierarchy(tmp_path / "cpuset", Version.V1).path_of(cgroup))
    assert path == f"/kubepods/podu/{ID}"
    (tmp_path / "host").symlink_to(tmp_path / "cpuset")
    host = Hierarchy(tmp_path / "host", Version.V1)
    assert host.find(ID, path) == tmp_path / "host" / "kubepods" / "podu" / ID
    assert host.find(ID, "/elsewhere") == host.find(ID, str(cgroup)) == host.find(ID, path)
    cgroup.rmdir()
    assert host.find(ID, path) is None


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param("", id="empty"),
        pytest.param("/", id="the top"),
        pytest.param("/./", id="the top in other words"),
        pytest.param("/../outside", id="outside of the hierarchy"),
        pytest.param("/kubepods/../../outside", id="outside by a detour"),
        pytest.param("//kubepods", id="two slashes, and no cgroup"),
        pytest.param("/" + "a" * 300, id="a name that is too long"),
        pytest.param("/a\0b", id="a name that is none"),
    ],
)
def test_a_path_that_leads_to_no_container_is_passed_over(tmp_path: Path, stated: str) -> None:
    (tmp_path / "outside").mkdir()
    hierarchy = Hierarchy(tmp_path / "cpuset", Version.V1)
    cgroup = hierarchy.root / "elsewhere" / ID
    cgroup.mkdir(parents=True)
    assert hierarchy.find(ID, stated) == cgroup, "it is searched for"
    assert hierarchy.find("0" * 64, stated) is None


def test_what_is_below_a_cgroup_whose_name_is_no_text_is_no_container(tmp_path: Path) -> None:
    """Containers make cgroups inside their own, with any names; no journal and no condition can hold such a path."""
    hierarchy, pod = Hierarchy(tmp_path, Version.V2), pod_path(Driver.CGROUPFS, QosClass.BURSTABLE, UID)
    inside = tmp_path / os.fsdecode(b"kubepods/another/\xff") / pod.relative_to("/") / ID
    inside.mkdir(parents=True)
    assert hierarchy.search(ID) is None
    assert list(hierarchy.containers_of(frozenset([UID]))) == []


@pytest.mark.parametrize("driver", Driver)
@pytest.mark.parametrize("runtime", Runtime)
def test_what_a_container_makes_inside_its_cgroup_is_no_container_of_a_pod(
    tmp_path: Path, driver: Driver, runtime: Runtime
) -> None:
    """Who may write below his own cgroup could have the agent pin that one, and leave the other pod's as it is."""
    hierarchy = Hierarchy(tmp_path, Version.V2)
    other = pod_path(driver, QosClass.BURSTABLE, UID) / container_directory(driver, runtime, ID)
    own = pod_path(driver, QosClass.GUARANTEED, "own") / container_directory(driver, runtime, "f" * 64)
    made = own / other.relative_to("/" if driver is Driver.CGROUPFS else other.parent.parent.parent)
    hierarchy.cgroup(made).mkdir(parents=True)
    assert hierarchy.search("f" * 64) == hierarchy.cgroup(own)
    assert hierarchy.search(ID) is None
    assert list(hierarchy.containers_of(frozenset([UID]))) == []


def test_two_slashes_are_one(tmp_path: Path) -> None:
    hierarchy = Hierarchy(tmp_path, Version.V1)
    (tmp_path / "kubepods" / "c").mkdir(parents=True)
    assert hierarchy.find(ID, "//kubepods//c") == tmp_path / "kubepods" / "c"


def test_a_pod_that_goes_while_its_containers_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, stays = (pod_path(Driver.CGROUPFS, QosClass.BURSTABLE, uid) for uid in ("u1", "u2"))
    hierarchy = Hierarchy(tmp_path, Version.V1)
    for pod in (gone, stays):
        (hierarchy.cgroup(pod) / ID).mkdir(parents=True)
    walk = os.walk

    def walk_behind(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for found in walk(top):
            if found[0] == str(hierarchy.cgroup(gone)):
                shutil.rmtree(found[0])
            yield found

    monkeypatch.setattr("agents.node.pinning.hierarchy.os.walk", walk_behind)
    found = list(hierarchy.containers_of(frozenset({"u1", "u2"})))
    assert found == [("u2", ID, hierarchy.cgroup(stays) / ID)]
    assert not hierarchy.cgroup(gone).is_dir()


def test_a_search_does_not_go_on_for_ever(tmp_path: Path) -> None:
    tmp_path.joinpath(*"abcdefghijkl", ID).mkdir(parents=True)
    assert Hierarchy(tmp_path, Version.V1).search(ID) is None
