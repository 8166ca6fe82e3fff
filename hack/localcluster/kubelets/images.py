"""Container images without a registry: archives of one layer, imported into the containerd of each node."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hack.localcluster.errors import ClusterError
from hack.localcluster.kubelets import packages
from hack.localcluster.kubelets.configuration import PAUSE_IMAGE
from hack.localcluster.kubelets.names import Node

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(path: Path, *, tag: str, layer: Path, config: Mapping[str, Any]) -> None:
    """Write an image as `docker save` does.

    Args:
        path: the file.
        tag: name and tag of the image.
        layer: its files, an uncompressed tar.
        config: its ``config``: ``Entrypoint``, ``User`` and so on.
    """
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    description = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [tag], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        for name, document in (("manifest.json", manifest), ("config.json", description)):
            text = json.dumps(document).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
        archive.add(layer, "layer.tar")


def write_pause(path: Path, program: Path) -> None:
    """Write the image of the container that holds a pod's namespaces: nothing but *program*."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".image-") as scratch:
        layer = Path(scratch) / "layer.tar"
        with tarfile.open(layer, "w") as files:
            entry = files.gettarinfo(program, "pause")
            entry.mode = 0o755
            with program.open("rb") as content:
                files.addfile(entry, content)
        write_archive(path, tag=PAUSE_IMAGE, layer=layer, config={"Entrypoint": ["/pause"], "User": "65535:65535"})


def ctr(node: Node, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run containerd's client on *node* in the kubelet's namespace of images; the outcome is not looked at."""
    command = [str(packages.locate("ctr")), f"--address={node.socket}", "--namespace=k8s.io", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def load(node: Node, archives: Iterable[Path]) -> None:
    """Import the images in *archives* on *node*; one that is there already is replaced.

    Raises:
        ClusterError: containerd refuses one.
    """
    for archive in archives:
        answer = ctr(node, ["images", "import", str(archive)])
        if answer.returncode != 0:
            raise ClusterError(f"{archive} cannot be imported on {node.name}: {answer.stderr.strip()}")
