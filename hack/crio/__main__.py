"""``python -m hack.crio``: build CRI-O, or make sure that it is there, and print where its programs are.

The exit status is 1 if the build fails, and 0 where packages cannot be had, as on another system than Debian.
"""

from __future__ import annotations

import subprocess
import sys

from hack.crio.programs import PACKAGES, ensure
from hack.localcluster.errors import ClusterError


def main() -> int:
    """Print a line for each program."""
    try:
        found = ensure(report=lambda text: print(text, file=sys.stderr, flush=True))
    except (ClusterError, OSError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if found is None:
        print(f"tests with CRI-O are left out: they need {', '.join(PACKAGES.values())}", file=sys.stderr)
        return 0
    for name, path in found._asdict().items():
        print(f"{name:<24} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
