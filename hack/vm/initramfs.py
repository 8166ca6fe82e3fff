"""The first root of a kernel: a program, a script and modules in an archive in memory."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from hack.localcluster.errors import ClusterError

MODULES: Final = ("virtio_pci", "virtio_rng", "virtio_blk", "9pnet_virtio", "9p", "overlay", "crc32c_generic", "ext4")
"""Modules that :file:`init.sh` needs; what they need themselves comes before them."""
_DIRECTORY, _PROGRAM, _DATA = 0o40755, 0o100755, 0o100644
_INIT: Final = Path(__file__).with_name("init.sh")


def initramfs(busybox: Path, modules: Path) -> bytes:
    """Return the archive that the kernel unpacks and starts ``/init`` of.

    Raises:
        ClusterError: a module is not among those of the kernel.
    """
    places = ("bin", "modules", "proc", "sys", "dev", "lower", "layer", "merged")
    files: dict[str, tuple[int, bytes]] = dict.fromkeys(places, (_DIRECTORY, b""))
    files["init"] = (_PROGRAM, _INIT.read_bytes())
    files["bin/busybox"] = (_PROGRAM, busybox.read_bytes())
    for number, (name, content) in enumerate(_closure(modules)):
        # In the order in which they are to be loaded, which is that of their names.
        files[f"modules/{number:02d}-{name}.ko"] = (_DATA, content)
    return archive(files)


def archive(files: Mapping[str, tuple[int, bytes]]) -> bytes:
    """Return files, mode and content by path, in the format "newc" of cpio (kernel: ``initramfs-buffer-format``)."""
    packed = bytearray()
    for inode, (path, (mode, content)) in enumerate([*files.items(), ("TRAILER!!!", (0, b""))], start=1):
        name = path.encode() + b"\0"
        fields = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        packed += b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (name, content):
            packed += part
            packed += bytes(-len(packed) % 4)
    return bytes(packed)


def _closure(directory: Path, names: Iterable[str] = MODULES) -> Iterator[tuple[str, bytes]]:
    there = {path.name.partition(".")[0].replace("-", "_"): path for path in directory.rglob("*.ko*")}
    done: set[str] = set()
    waiting = [*names][::-1]
    while waiting:
        name = waiting.pop()
        if name in done:
            continue
        if name not in there:
            raise ClusterError(f"{directory} has no module {name}: remove the directory, and it is unpacked again")
        content = _content(there[name])
        needed = [each for each in _needs(content) if each not in done]
        if needed:
            waiting += [name, *needed]
            continue
        done.add(name)
        yield name, content


def _needs(content: bytes) -> list[str]:
    match = re.search(rb"\0depends=([^\0]*)\0", content)
    return [name.replace("-", "_") for name in match[1].decode().split(",") if name] if match else []


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content
