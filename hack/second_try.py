"""Run a suite of tests, and what fails in it once more, alone: ``python -m hack.second_try pytest's arguments...``.

Tests of real clusters wait for processes that a busy machine may keep from running for long. What passes alone is told
at the end, and is a fault to look into: of the test, or a race of what it tests. Where many files fail it is not the
machine, and there is no second try.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MOST_FILES: Final = 2
"""Files with failures up to which there is a second try."""
_FAILED_TESTS: Final = 1
"""Exit status of pytest where tests ran and some failed; others are of the run itself."""


def failed_files(cache: Path) -> list[str]:
    """Return the files of tests that failed in the run with this cache directory, sorted.

    Whole files: tests of one share a cluster, and some rely on the order in which they disturb it.
    """
    recorded = cache / "v" / "cache" / "lastfailed"
    if not recorded.exists():
        return []
    return sorted({name.partition("::")[0] for name in json.loads(recorded.read_text())})


def run(arguments: Sequence[str]) -> int:
    """Run pytest with the arguments, and a second time for what failed; return the exit status that counts."""
    with tempfile.TemporaryDirectory(prefix="second-try-") as directory:
        cache = Path(directory) / "cache"
        code = _pytest([*arguments, "-o", f"cache_dir={cache}"])
        files = failed_files(cache) if code == _FAILED_TESTS else []
        if not 0 < len(files) <= MOST_FILES:
            return code
        shutil.rmtree(cache)
        print(f"\nonce more, alone: {', '.join(files)}", flush=True)
        code = _pytest([*files, "-o", f"cache_dir={cache}"])
        if code == 0:
            print(f"\npassed at the second try alone, which is a fault to look into: {', '.join(files)}", flush=True)
        return code


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
