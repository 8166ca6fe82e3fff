"""Whether the kubelet itself pins containers: its managers of CPUs and memory write down by which policy they work."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

DIRECTORY: Final = Path("/var/lib/kubelet")
"""The kubelet's ``--root-dir``."""


class _Manager(NamedTuple):
    """A manager of the kubelet that may pin."""

    name: str
    """what it gives containers"""
    file: str
    """its checkpoint in the kubelet's directory, which it writes whatever its policy"""
    setting: str
    """field of the kubelet's configuration"""
    none: str
    """the policy by which it leaves containers alone"""
    always: bool
    """whether every kubelet has one"""


_CPU: Final = _Manager("CPU", "cpu_manager_state", "cpuManagerPolicy", "none", always=True)
_MEMORY: Final = _Manager("memory", "memory_manager_state", "memoryManagerPolicy", "None", always=False)
"""Kubelets before 1.21 have none."""
_MAX_BYTES: Final = 2**22


class _State(msgspec.Struct, rename="camel"):
    policy_name: str


def pins(directory: Path = DIRECTORY) -> str:
    """Return why the kubelet has to be taken for one that pins; empty if it does not.

    One of which nothing is known may pin: two that write the same cpusets would undo each other's work for ever. One
    that gives containers NUMA nodes has chosen the CPUs near them.
    """
    return _pins(directory, _CPU) or _pins(directory, _MEMORY)


def _pins(directory: Path, manager: _Manager) -> str:
    file = directory / manager.file
    try:
        with file.open("rb") as stream:
            policy = msgspec.json.decode(stream.read(_MAX_BYTES), type=_State).policy_name
    except FileNotFoundError:
        if not manager.always:
            return ""
        return f"{file} is not there, so that the kubelet may pin; name the directory that is its --root-dir"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return f"{file}: {reason}, so that the kubelet may pin; let the agent read it"
    except (ValueError, RecursionError) as error:
        text = f"{file}: no state of a {manager.name} manager ({error})"
        return f"{text}, so that the kubelet may pin; start the kubelet again"
    if policy == manager.none:
        return ""
    text = f"the kubelet's {manager.name} manager has the policy {policy} and pins"
    return f"{text}; set its {manager.setting} to {manager.none}"
