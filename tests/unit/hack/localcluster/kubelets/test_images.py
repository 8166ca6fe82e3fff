"""Image archives: what a container runtime reads from them."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.localcluster import ClusterError
from hack.localcluster.kubelets import images, packages
from hack.localcluster.kubelets.names import Node


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Manifest, description and layer of an archive."""
    with tarfile.open(path) as archive:
        files = {entry.name: archive.extractfile(entry) for entry in archive}
        read = {name: content.read() for name, content in files.items() if content}
    (manifest,) = json.loads(read["manifest.json"])
    return manifest, json.loads(read[manifest["Config"]]), read[manifest["Layers"][0]]


def test_the_layer_is_named_by_its_digest(tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"layer")
    config = {"Entrypoint": ["/a"]}
    images.write_archive(tmp_path / "a.tar", tag="example/a:1", layer=tmp_path / "layer", config=config)
    manifest, description, layer = contents(tmp_path / "a.tar")
    assert manifest["RepoTags"] == ["example/a:1"]
    assert layer == b"layer"
    assert description["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert description["config"] == {"Entrypoint": ["/a"]}
    assert description["os"] == "linux"


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")])
def test_architectures_have_the_names_of_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, name: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    (tmp_path / "layer").touch()
    images.write_archive(tmp_path / "a.tar", tag="a:1", layer=tmp_path / "layer", config={})
    assert contents(tmp_path / "a.tar")[1]["architecture"] == name


def test_the_pause_image_has_one_file_that_anybody_may_run(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"ELF")
    images.write_pause(tmp_path / "pause.tar", tmp_path / "program")
    _, description, layer = contents(tmp_path / "pause.tar")
    with tarfile.open(fileobj=io.BytesIO(layer)) as files:
        (entry,) = files
        assert (entry.name, entry.size, entry.mode) == ("pause", 3, 0o755)
    assert description["config"]["Entrypoint"] == ["/pause"]
    assert not description["config"]["User"].startswith("0")


def test_an_image_that_containerd_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ctr"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(packages, "locate", lambda _name: program)
    with pytest.raises(ClusterError, match=r"/a\.tar cannot be imported on node-1: broken"):
        images.load(Node(home=tmp_path, number=1), [Path("/a.tar")])
