"""What a node leaves behind: found by the instance's directory. Removed for real: end-to-end tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import cgroups, remains
from hack.localcluster.kubelets.names import bridge

MOUNTS = r"""
/dev/vda / ext4 rw 0 0
overlay /c/one/nodes/1/run/rootfs overlay rw 0 0
tmpfs /c/one/nodes/1/kubelet/a\040b tmpfs rw 0 0
tmpfs /c/one-more/nodes/1/kubelet tmpfs rw 0 0
nsfs /run/netns/berth-1 nsfs rw 0 0
""".lstrip()


def test_mounts_are_taken_in_reverse_and_of_that_instance_alone() -> None:
    assert remains.mounts_below(Path("/c/one"), MOUNTS) == ["/c/one/nodes/1/kubelet/a b", "/c/one/nodes/1/run/rootfs"]


def test_a_mount_that_has_gone_meanwhile_is_gone(tmp_path: Path) -> None:
    remains.unmount(str(tmp_path))


def test_a_mount_that_stays_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Listed as mounted, and umount says no: nothing may be deleted below it."""
    monkeypatch.setattr(remains, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text(f"tmpfs {tmp_path}/held tmpfs rw 0 0\n")
    with pytest.raises(ClusterError, match=f"cannot unmount {tmp_path}/held: "):
        remains.unmount(f"{tmp_path}/held")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for the directories that all kubelets and containerds of the machine share."""
    monkeypatch.setattr(remains, "CONTAINER_LOGS", tmp_path / "logs")
    monkeypatch.setattr(remains, "CNI_RESULTS", tmp_path / "results")
    monkeypatch.setattr(cgroups, "_MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text("")
    for name in ("logs", "results"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_links_to_logs_and_notes_of_its_sandboxes_go_and_those_of_others_stay(shared: Path) -> None:
    home = shared / "one"
    (home / "nodes/1/run/io.containerd.grpc.v1.cri/sandboxes/abc").mkdir(parents=True)
    # One of a runtime that notes its sandboxes elsewhere, or that has forgotten it already.
    names = (f"{bridge(home)}-1-abc-eth0", f"{bridge(home)}-2-gone-eth0", "cni-loopback-abc-lo")
    others = (f"{bridge(shared / 'two')}-1-def-eth0", "cni-loopback-def-lo")
    for name in (*names, *others):
        (shared / "results" / name).touch()
    (shared / "logs" / "own.log").symlink_to(home / "nodes/1/pod-logs/own.log")
    (shared / "logs" / "other.log").symlink_to("/var/log/pods/other.log")
    (shared / "logs" / "file.log").touch()
    remains.remove(home)
    assert sorted(path.name for path in (shared / "results").iterdir()) == sorted(others)
    assert sorted(path.name for path in (shared / "logs").iterdir()) == ["file.log", "other.log"]


def test_an_instance_without_real_nodes_has_none(shared: Path) -> None:
    remains.remove(shared / "simulated")
