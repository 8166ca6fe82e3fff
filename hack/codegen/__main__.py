"""``python -m hack.codegen`` writes every generated file; with ``--check`` it exits with 1 if one is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.codegen.files import ROOT, drift, write


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the generated files and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.codegen", description="Write the generated files.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff if one is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="where to write or look (default: the source tree)")
    options = parser.parse_args(arguments)
    if not options.check:
        print(*write(options.root), sep="\n")
        return 0
    lines = drift(options.root)
    if lines:
        print(*lines, "", "Generated files differ from the models: run `make manifests`.", sep="\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
