"""Whether the kubelet itself pins containers: its static CPU manager writes down what it has given to whom."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

DIRECTORY: Final = Path("/var/lib/kubelet")
"""The kubelet's ``--root-dir``."""
FILE: Final = "cpu_manager_state"
"""Checkpoint of the CPU manager in it; a kubelet of whatever policy writes one."""
_NONE: Final = "none"
_MAX_BYTES: Final = 2**22


class _State(msgspec.Struct, rename="camel"):
    policy_name: str


def pins(directory: Path = DIRECTORY) -> str:
    """Return why the kubelet has to be taken for one that pins; empty if it does not.

    One of which nothing is known may pin: two that write the same cpusets would undo each other's work for ever.
    """
    file = directory / FILE
    try:
        with file.open("rb") as stream:
            policy = msgspec.json.decode(stream.read(_MAX_BYTES), type=_State).policy_name
    except FileNotFoundError:
        return f"{file} is not there, so that the kubelet may pin; name the directory that is its --root-dir"
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return f"{file}: {reason}, so that the kubelet may pin; let the agent read it"
    except ValueError as error:
        return f"{file}: no state of a CPU manager ({error}), so that the kubelet may pin; start the kubelet again"
    if policy == _NONE:
        return ""
    return f"the kubelet's CPU manager has the policy {policy} and pins; set its cpuManagerPolicy to none"
