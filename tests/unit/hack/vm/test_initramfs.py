"""What the kernel starts first: modules in the order in which they can be loaded, in an archive that it reads."""

from __future__ import annotations

import lzma
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.localcluster.errors import ClusterError
from hack.vm.initramfs import MODULES, archive, initramfs

Files = dict[str, tuple[int, bytes]]


def unpacked(packed: bytes) -> Files:
    """Files of an archive, read by the format's description."""
    found: Files = {}
    at = 0
    while True:
        fields = [int(packed[at + 6 + 8 * field : at + 14 + 8 * field], 16) for field in range(13)]
        assert packed[at : at + 6] == b"070701"
        mode, size, length = fields[1], fields[6], fields[11]
        name = packed[at + 110 : at + 110 + length]
        assert name.endswith(b"\0")
        content = (at + 110 + length + 3) // 4 * 4
        if name == b"TRAILER!!!\0":
            return found
        found[name[:-1].decode()] = (mode, packed[content : content + size])
        at = (content + size + 3) // 4 * 4


names = st.text("abcdefgh-./", min_size=1, max_size=12)


@given(st.dictionaries(names, st.tuples(st.sampled_from([0o40755, 0o100644]), st.binary(max_size=30)), max_size=5))
def test_an_archive_has_what_was_put_in(files: Files) -> None:
    assert unpacked(archive(files)) == files


def module(directory: Path, name: str, needs: str = "", *, packed: bool = False) -> None:
    content = f"\0depends={needs}\0name={name}\0".encode()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.ko"
    if packed:
        path.with_suffix(".ko.xz").write_bytes(lzma.compress(content))
    else:
        path.write_bytes(content)


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    root = tmp_path / "modules"
    for number, name in enumerate(MODULES):
        needs = {"ext4": "jbd2,mbcache", "9p": "netfs,9pnet", "9pnet_virtio": "9pnet"}.get(name, "")
        # Files have names with one of the two characters, and what needs them may write the other.
        module(root / str(number), name.replace("_", "-") if number % 2 else name, needs, packed=number % 3 == 0)
    for name, needs in {"jbd2": "crc16", "mbcache": "", "crc16": "", "netfs": "", "9pnet": ""}.items():
        module(root / "fs", name, needs)
    return root


def test_what_a_module_needs_is_loaded_before_it(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "busybox").write_bytes(b"box")
    found = unpacked(initramfs(tmp_path / "busybox", modules))
    assert found["bin/busybox"] == (0o100755, b"box")
    assert found["init"][0] == 0o100755
    order = [path.partition("-")[2].removesuffix(".ko") for path in sorted(found) if path.startswith("modules/")]
    assert sorted(order) == sorted([*MODULES, "jbd2", "mbcache", "crc16", "netfs", "9pnet"])
    for first, then in (("crc16", "jbd2"), ("jbd2", "ext4"), ("mbcache", "ext4"), ("9pnet", "9p"), ("netfs", "9p")):
        assert order.index(first) < order.index(then)


def test_a_module_that_is_not_there_is_named(modules: Path, tmp_path: Path) -> None:
    (tmp_path / "busybox").write_bytes(b"box")
    (modules / "fs" / "crc16.ko").unlink()
    with pytest.raises(ClusterError, match="has no module crc16: remove the directory"):
        initramfs(tmp_path / "busybox", modules)


@pytest.mark.parametrize("script", ["init.sh", "start.sh"])
def test_scripts_are_scripts(script: str) -> None:
    path = Path(__file__).parents[4] / "hack" / "vm" / script
    assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0
