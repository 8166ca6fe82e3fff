"""What real nodes need of the machine: found, unpacked, or named with the remedy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import packages

HOME = Path("/clusters/one")


def program(directory: Path, name: str, text: str = "#!/bin/sh\n") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)
    (directory / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of root's with nothing but what is installed in the directory returned."""
    installed = tmp_path / "bin"
    for name in packages.INSTALLED:
        program(installed, name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(installed))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(packages, "_USUAL", ())
    return installed


def test_nothing_is_wrong_where_all_is_installed(machine: Path) -> None:
    for name in packages.PACKAGES:
        program(machine, name)
    assert packages.problem(HOME) is None


def test_what_was_unpacked_counts_as_installed(machine: Path) -> None:
    for name in packages.PACKAGES:
        program(packages.unpacked() / "usr" / "sbin", name)
    assert packages.problem(HOME) is None


def test_missing_packages_are_named_once_each_with_a_remedy(machine: Path) -> None:
    problem = packages.problem(HOME)
    assert problem is not None
    assert "need containerd, containernetworking-plugins, runc: run hack/cluster build kubelet" in problem


def test_without_root(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "real nodes need root" in (packages.problem(HOME) or "")


def test_a_directory_too_long_for_sockets(machine: Path) -> None:
    assert "too long for the sockets of real nodes" in (packages.problem(Path("/" + "a" * 70)) or "")


def test_what_is_missing_is_downloaded_and_unpacked(machine: Path) -> None:
    program(machine, "containerd")
    program(machine, "containerd-shim-runc-v2")
    program(machine, "ctr")
    program(machine, "apt-get", '#!/bin/sh\nshift 2\nfor name; do : > "$name"_1.deb; done\n')
    # Stands for the package's contents: a file that has the archive's name.
    program(machine, "dpkg-deb", '#!/bin/sh\n: > "$3/${2##*/}"\n')
    said: list[str] = []
    packages.ensure(report=said.append)
    names = {path.name for path in packages.unpacked().iterdir()}
    assert names == {"containernetworking-plugins_1.deb", "runc_1.deb"}
    assert said == [f"unpacking containernetworking-plugins, runc into {packages.unpacked()}"]


def test_lists_of_packages_are_fetched_where_there_are_none(machine: Path) -> None:
    lists = machine / "lists"
    script = f"[ $1 = update ] && : > {lists}\n[ -e {lists} ] || exit 100\n[ $1 = update ] || : > one.deb\n"
    program(machine, "apt-get", f"#!/bin/sh\n{script}")
    program(machine, "dpkg-deb", '#!/bin/sh\n: > "$3/${2##*/}"\n')
    packages.ensure(report=lambda _text: None)
    assert [path.name for path in packages.unpacked().iterdir()] == ["one.deb"]


def test_a_download_that_fails_is_told(machine: Path) -> None:
    program(machine, "apt-get", "#!/bin/sh\necho no network >&2\nexit 100\n")
    with pytest.raises(ClusterError, match=r"^apt-get update --quiet: no network"):
        packages.ensure(report=lambda _text: None)


def test_without_apt_nothing_is_unpacked(machine: Path) -> None:
    packages.ensure(report=lambda _text: None)
    assert not packages.unpacked().exists()
