"""``python -m hack.vm --boot TEST... [--boot TEST...]``: run tests in the virtual machine, after a power cut each.

The exit status is 0 if all passed, 1 if one did not, 2 if the machine cannot be started.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from hack.localcluster.errors import ClusterError
from hack.vm.boot import boot, prepare
from hack.vm.packages import parts
from hack.vm.qemu import Shape


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.vm", allow_abbrev=False, description=__doc__)
    parser.add_argument(
        "--boot", action="append", nargs="+", required=True, metavar="TEST", help="what pytest is to run in one boot"
    )
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results go, boot-1.xml and so on (JUnit)")
    parser.add_argument("--systemd", action="store_true", help="boot with systemd, whose cgroups all are then")
    return parser


def main() -> int:
    """Run the boots in order; the first whose tests do not pass is the last."""
    arguments = _parser().parse_args()
    try:
        found = parts(report=lambda text: print(text, file=sys.stderr, flush=True))
        with tempfile.TemporaryDirectory(prefix="berth-vm-") as scratch:
            prepare(found, Path(scratch))
            for number, tests in enumerate(arguments.boot, start=1):
                name = f"boot-{number}"
                passed = boot(found, Path(scratch), name, tests, shape=Shape(), systemd=arguments.systemd)
                if arguments.results is not None:
                    arguments.results.mkdir(parents=True, exist_ok=True)
                    text = (Path(scratch) / f"{name}.xml").read_bytes()
                    (arguments.results / f"{name}.xml").write_bytes(text)
                if not passed:
                    return 1
    except ClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
