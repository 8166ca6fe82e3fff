"""Become a program that the kernel kills when its parent ends.

Run as a script: ``python child.py PARENT-PID PROGRAM ARGUMENT...``. It sets the
parent-death signal and replaces itself with the program, which keeps the setting.
A script rather than a ``preexec_fn``, because that is unsafe in a process with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Set the signal, make sure the parent still lives, and run the program."""
    parent, *argv = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        # The parent may have ended before the setting took effect.
        if os.getppid() != int(parent):
            sys.exit("the parent process ended before the start was complete")
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main()
