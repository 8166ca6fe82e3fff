"""What the virtual machine has: the emulator's command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.vm.packages import FIRMWARE, Parts

# The emulator's own processor tells no threads of a core; this one does, and has what compiled packages ask for.
_PROCESSOR: Final = "Nehalem"
_NEAR, _FAR = 10, 20  # distances of memory, as firmware states them


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Processors and memory; by default what pinning has to tell apart, as small as it can be."""

    sockets: int = 2
    dies: int = 2
    """dies of a socket; each has an L3 of its own"""
    cores: int = 1
    """cores of a die"""
    threads: int = 2
    """threads of a core"""
    nodes: int = 2
    """NUMA nodes; CPUs are divided among them in order"""
    node_mib: int = 512
    """memory of each NUMA node, MiB"""

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return self.sockets * self.dies * self.cores * self.threads


def command(parts: Parts, *, initramfs: Path, shared: Path, disk: Path, shape: Shape) -> list[str]:
    """Return the command that boots; the machine's console is its standard output.

    Args:
        parts: programs and kernel.
        initramfs: archive that the kernel starts from.
        shared: directory that the machine may write to.
        disk: file that is its disk.
        shape: processors and memory.
    """
    line = [str(parts.qemu), "-no-user-config", "-nodefaults", "-accel", "tcg,thread=multi", "-cpu", _PROCESSOR]
    for directory in FIRMWARE:
        line += ["-L", str(parts.root / directory)]
    line += [
        "-smp",
        f"{shape.cpus},sockets={shape.sockets},dies={shape.dies},cores={shape.cores},threads={shape.threads}",
    ]
    line += ["-m", f"{shape.nodes * shape.node_mib}M", *_memory(shape)]
    for tag, path, options in (("root", Path("/"), ",readonly=on,multidevs=remap"), ("vm", shared, "")):
        line += ["-fsdev", f"local,id={tag},path={path},security_model=none{options}"]
        line += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    line += ["-drive", f"file={disk},format=raw,if=virtio"]
    # Without it the kernel takes half a minute to collect chance, and whoever asks for it waits.
    line += ["-device", "virtio-rng-pci"]
    line += ["-display", "none", "-serial", "stdio", "-no-reboot"]
    words = ["console=ttyS0", "quiet", "panic=-1", "no_timer_check", "mitigations=off", "apparmor=0", "berth.vm"]
    return [*line, "-kernel", str(parts.kernel), "-initrd", str(initramfs), "-append", " ".join(words)]


def _memory(shape: Shape) -> list[str]:
    line = []
    each = shape.cpus // shape.nodes
    for node in range(shape.nodes):
        line += ["-object", f"memory-backend-ram,id=memory{node},size={shape.node_mib}M"]
        line += ["-numa", f"node,nodeid={node},cpus={each * node}-{each * node + each - 1},memdev=memory{node}"]
    for one in range(shape.nodes):
        for other in range(shape.nodes):
            line += ["-numa", f"dist,src={one},dst={other},val={_NEAR if one == other else _FAR}"]
    return line
