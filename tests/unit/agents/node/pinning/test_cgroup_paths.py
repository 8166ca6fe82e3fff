"""Where the cgroup of a container is: forms of kubelet, runc, containerd and CRI-O."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.node.pinning.cgroup_paths import (
    CgroupPathError,
    Driver,
    QosClass,
    Runtime,
    container_directories,
    container_directory,
    container_in,
    container_path,
    may_be,
    pod_path,
    pod_paths,
    slice_path,
)

UID = "0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f"
ID = "6ed36d3b330e341a5cb00e20d97129c289e2d87c4f84ab70101fd7ad22af542b"
SLICE = "kubepods-burstable-pod0c1d3c0f_3e2a_4f5b_9d6e_7a8b9c0d1e2f.slice"
IN_SLICES = f"/kubepods.slice/kubepods-burstable.slice/{SLICE}"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param(f"/kubepods/burstable/pod{UID}/{ID}", f"/kubepods/burstable/pod{UID}/{ID}", id="cgroupfs"),
        pytest.param(f"/n1/kubepods/pod{UID}/{ID}", f"/n1/kubepods/pod{UID}/{ID}", id="below a root of the kubelet's"),
        pytest.param(f"{SLICE}:cri-containerd:{ID}", f"{IN_SLICES}/cri-containerd-{ID}.scope", id="systemd containerd"),
        pytest.param(f"{SLICE}:crio:{ID}", f"{IN_SLICES}/crio-{ID}.scope", id="systemd CRI-O"),
        pytest.param(f":cri-containerd:{ID}", f"/system.slice/cri-containerd-{ID}.scope", id="systemd without a slice"),
        pytest.param("a.slice:x:b.slice", "/a.slice/b.slice", id="a slice instead of a scope"),
        pytest.param("-.slice:crio:x", "/crio-x.scope", id="the root slice"),
    ],
)
def test_what_a_runtime_states(stated: str, expected: str) -> None:
    assert container_path(stated) == PurePosixPath(expected)


@pytest.mark.parametrize(
    "stated",
    [
        pytest.param("", id="nothing"),
        pytest.param("kubepods/x", id="relative"),
        pytest.param("/kubepods/../../etc", id="upwards"),
        pytest.param("a:b", id="two parts"),
        pytest.param("a.slice:b:../c", id="a name that leads elsewhere"),
        pytest.param("nothing:crio:x", id="no slice"),
        pytest.param("a--b.slice:crio:x", id="a slice with an empty part"),
    ],
)
def test_what_no_runtime_states(stated: str) -> None:
    with pytest.raises(CgroupPathError):
        container_path(stated)


@pytest.mark.parametrize(
    ("driver", "qos", "expected"),
    [
        pytest.param(Driver.CGROUPFS, QosClass.GUARANTEED, f"/kubepods/pod{UID}", id="cgroupfs guaranteed"),
        pytest.param(Driver.CGROUPFS, QosClass.BURSTABLE, f"/kubepods/burstable/pod{UID}", id="cgroupfs burstable"),
        pytest.param(
            Driver.CGROUPFS, QosClass.BEST_EFFORT, f"/kubepods/besteffort/pod{UID}", id="cgroupfs best effort"
        ),
        pytest.param(
            Driver.SYSTEMD,
            QosClass.GUARANTEED,
            "/kubepods.slice/kubepods-pod0c1d3c0f_3e2a_4f5b_9d6e_7a8b9c0d1e2f.slice",
            id="systemd guaranteed",
        ),
        pytest.param(Driver.SYSTEMD, QosClass.BURSTABLE, IN_SLICES, id="systemd burstable"),
        pytest.param(
            Driver.SYSTEMD,
            QosClass.BEST_EFFORT,
            "/kubepods.slice/kubepods-besteffort.slice/"
            "kubepods-besteffort-pod0c1d3c0f_3e2a_4f5b_9d6e_7a8b9c0d1e2f.slice",
            id="systemd best effort",
        ),
    ],
)
def test_where_the_kubelet_has_a_pod(driver: Driver, qos: QosClass, expected: str) -> None:
    assert pod_path(driver, qos, UID) == PurePosixPath(expected)
    assert PurePosixPath(expected) in pod_paths(UID)


@pytest.mark.parametrize("driver", Driver)
def test_a_root_of_the_kubelets_stands_before_it(driver: Driver) -> None:
    found = pod_path(driver, QosClass.BURSTABLE, UID, root=PurePosixPath("/n1"))
    assert found == PurePosixPath("/n1") / pod_path(driver, QosClass.BURSTABLE, UID).relative_to("/")


@pytest.mark.parametrize(
    ("driver", "runtime", "expected"),
    [
        pytest.param(Driver.CGROUPFS, Runtime.CONTAINERD, ID, id="cgroupfs containerd"),
        pytest.param(Driver.CGROUPFS, Runtime.CRIO, f"crio-{ID}", id="cgroupfs CRI-O"),
        pytest.param(Driver.SYSTEMD, Runtime.CONTAINERD, f"cri-containerd-{ID}.scope", id="systemd containerd"),
        pytest.param(Driver.SYSTEMD, Runtime.CRIO, f"crio-{ID}.scope", id="systemd CRI-O"),
    ],
)
def test_the_name_of_a_containers_cgroup(driver: Driver, runtime: Runtime, expected: str) -> None:
    assert container_directory(driver, runtime, ID) == expected
    assert expected in container_directories(ID)
    assert container_in(expected) == ID


@pytest.mark.parametrize(
    "directory",
    [
        pytest.param(f"crio-conmon-{ID}.scope", id="the monitor of CRI-O"),
        pytest.param(ID[:-1], id="a part of an ID"),
        pytest.param(f"crio-{ID}.slice", id="a slice"),
        pytest.param(f"cri-containerd-{ID}", id="a scope without its end"),
        pytest.param("system.slice", id="something else"),
    ],
)
def test_what_is_no_containers_cgroup(directory: str) -> None:
    assert directory not in container_directories(ID)
    assert container_in(directory) is None


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=12)


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_every_level_of_a_slice_begins_with_the_one_above(words: list[str]) -> None:
    path = slice_path(f"{'-'.join(words)}.slice")
    stems = [part.removesuffix(".slice") for part in path.parts[1:]]
    assert stems[-1] == "-".join(words)
    assert [lower.rpartition("-")[0] for lower in stems] == ["", *stems[:-1]]


@given(st.text(max_size=60))
def test_no_text_leads_out_of_the_hierarchy(text: str) -> None:
    try:
        path = container_path(text)
    except CgroupPathError:
        return
    assert path.is_absolute()
    assert ".." not in path.parts


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("a" * 64, True, id="its own"),
        pytest.param(f"cri-containerd-{'a' * 64}.scope", True, id="its own with systemd"),
        pytest.param(f"docker-{'a' * 64}.scope", True, id="its own with another runtime"),
        pytest.param("of-another-form", False, id="nobody knows"),
        pytest.param("b" * 64, False, id="another container's"),
        pytest.param(f"crio-{'b' * 64}.scope", False, id="another container's with systemd"),
        pytest.param("pod0c1d3c0f-3e2a-4f5b-9d6e-7a8b9c0d1e2f", False, id="a pod's"),
        pytest.param("kubepods-burstable-pod0c1d.slice", False, id="a pod's with systemd"),
        pytest.param("kubepods", False, id="all pods'"),
        pytest.param("burstable", False, id="those of a class"),
        pytest.param("system.slice", False, id="the machine's own"),
        pytest.param("kubepods-besteffort.slice", False, id="those of many pods"),
    ],
)
def test_whether_a_cgroup_may_be_a_containers(name: str, expected: bool) -> None:
    assert may_be(PurePosixPath("/kubepods") / name, "a" * 64) is expected
