"""Packages that are unpacked without being installed; apt-get is one that a test writes."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from hack.localcluster import debian
from hack.localcluster.errors import ClusterError


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of programs that come before the machine's own."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def program(directory: Path, name: str, text: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


def test_files_that_are_not_wanted_are_left_out(programs: Path, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tree:
        for name in ("./boot/image-1", "./boot/other", "./lib/1/fs/a.ko", "./lib/1/sound/b.ko"):
            tree.addfile(tarfile.TarInfo(name))
    (tmp_path / "tree.tar").write_bytes(buffer.getvalue())
    program(programs, "apt-get", ': > "$3.deb"; : > "$4.deb"')
    program(programs, "dpkg-deb", f'[ "$1" = --fsys-tarfile ] || : > "$3/everything"; cat {tmp_path}/tree.tar')
    patterns = (f"./{pattern}" for pattern in ("boot/image-*", "lib/*/fs/*"))
    debian.unpack(["kernel", "other"], tmp_path / "root", only=patterns)
    root = tmp_path / "root"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == ["boot/image-1", "lib/1/fs/a.ko"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "root", "tree.tar"]


def test_a_download_that_hangs_is_told(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs, "apt-get", "exec sleep 60")
    monkeypatch.setattr(debian, "TIMEOUT", 0.1)
    with pytest.raises(ClusterError, match=r"apt-get update --quiet: still running after 0\.1 s"):
        debian.unpack(["one"], tmp_path / "root")


def test_what_an_installation_would_add(programs: Path) -> None:
    said = "Reading package lists...\nInst one (1.0 Debian [amd64])\nInst two:i386 [0.9] (1.0)\nConf one (1.0)"
    program(programs, "apt-get", f"printf '{said}'")
    assert debian.missing(["one"]) == ["one", "two:i386"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        pytest.param("kernel\n  Depends: kernel-6.1\n  Depends: other", "kernel-6.1", id="it depends on one"),
        pytest.param("kernel", None, id="it depends on none"),
    ],
)
def test_the_latest_of_a_package(programs: Path, said: str, found: str | None) -> None:
    program(programs, "apt-cache", f"printf '{said}'")
    if found is not None:
        assert debian.latest("kernel") == found
        return
    with pytest.raises(ClusterError, match="the package kernel depends on nothing"):
        debian.latest("kernel")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_a_real_package(programs: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(
        "Package: one\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: one\n"
    )
    (tree / "usr").mkdir()
    (tree / "usr" / "one").write_text("1")
    subprocess.run(["dpkg-deb", "--build", str(tree), str(tmp_path / "one.deb")], check=True, capture_output=True)
    program(programs, "apt-get", f"cp {tmp_path}/one.deb .")
    debian.unpack(["one"], tmp_path / "root")
    assert (tmp_path / "root" / "usr" / "one").read_text() == "1"
