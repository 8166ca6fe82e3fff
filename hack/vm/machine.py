"""Runs the virtual machine to its end, and once more where it never began.

Under software emulation a kernel stood still while it booted, once in some dozens of boots on a machine with much other
work. Nothing of a test has run then and nothing is on the disk, so that another boot is as good.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from hack.localcluster.errors import ClusterError

START: Final = 240.0
"""Seconds until the machine's first script runs: many times what it needs."""
TIMEOUT: Final = 1800.0
"""Seconds that a boot may take, tests included: likewise."""
BOOTS: Final = 2
"""How often it is tried."""
_LOOK: Final = 0.5
"""Seconds between two looks at whether it has begun."""


def run_machine(
    line: Sequence[str],
    environment: Mapping[str, str],
    begun: Path,
    *,
    start: float = START,
    timeout: float = TIMEOUT,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run the program until it ends.

    Args:
        line: the program with its arguments.
        environment: its variables.
        begun: file that the machine makes once its kernel has booted.
        start: seconds after which one that has not is ended, and begun anew.
        timeout: seconds after which one that has is ended.
        clock: the time that the first of both is counted in.

    Raises:
        ClusterError: it did not begin, or not end, in time.
    """
    for _ in range(BOOTS):
        begun.unlink(missing_ok=True)
        ends = clock() + start  # from before it starts: on a busy machine it may do much before this goes on
        with subprocess.Popen(line, env=environment, stdin=subprocess.DEVNULL) as machine:
            try:
                if not _stands_still(machine, begun, ends, clock):
                    machine.wait(timeout)
                    return
                print(f"the kernel of the virtual machine has not booted for {start:g} s: it is ended", flush=True)
            except subprocess.TimeoutExpired as error:
                raise ClusterError(f"still running after {timeout:g} s: see what it said last") from error
            finally:
                machine.kill()
    raise ClusterError(f"did not boot, {BOOTS} times for {start:g} s")


def _stands_still(machine: subprocess.Popen[bytes], begun: Path, ends: float, clock: Callable[[], float]) -> bool:
    """Wait until it has begun or ended; returns whether it did neither in time."""
    while not begun.exists():
        try:
            machine.wait(_LOOK)
        except subprocess.TimeoutExpired:
            if clock() > ends:
                return True
        else:
            return False
    return False
