"""Run a suite of tests, and what fails in it once more, alone: ``python -m hack.second_try FILE arguments of pytest``.

Tests of real clusters and of real processes wait for what a busy machine may keep from running for long. What passes
alone is told at the end, and is a fault to look into: of the test, or a race of what it tests. Where many files fail it
is not the machine, and there is no second try. What failed for good, and what at first, is added to FILE, a line each:
whoever runs suites one after another, or side by side, can show it after the last.
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

MOST_FILES: Final = 4
"""Files with failures up to which there is a second try."""
_FAILED_TESTS: Final = 1
"""Exit status of pytest where tests ran and some failed; others are of the run itself."""


def failed_tests(cache: Path) -> list[str]:
    """Return the names of the tests that failed in the run with this cache directory, sorted."""
    recorded = cache / "v" / "cache" / "lastfailed"
    return sorted(json.loads(recorded.read_text())) if recorded.exists() else []


def run(arguments: Sequence[str], told: Path) -> int:
    """Run pytest with the arguments, and a second time for what failed; return the exit status that counts.

    The second time whole files: tests of one share a cluster, and some rely on the order in which they disturb it.
    """
    with tempfile.TemporaryDirectory(prefix="second-try-") as directory:
        cache = Path(directory) / "cache"
        code = _pytest([*arguments, "-o", f"cache_dir={cache}"])
        failed = failed_tests(cache)
        files = sorted({name.partition("::")[0] for name in failed})
        if code == _FAILED_TESTS and 0 < len(files) <= MOST_FILES:
            shutil.rmtree(cache)
            print(f"\nonce more, alone: {', '.join(files)}", flush=True)
            code = _pytest([*files, "-o", f"cache_dir={cache}"])
            if code == 0:
                _tell(
                    told, [f"passed at the second try alone, which is a fault to look into: {name}" for name in failed]
                )
                return 0
            failed = failed_tests(cache)
        if code != 0:
            _tell(told, [f"failed: {name}" for name in failed] or [f"status {code}: pytest {' '.join(arguments)}"])
        return code


def _tell(told: Path, lines: Sequence[str]) -> None:
    print("", *lines, sep="\n", flush=True)
    with told.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[2:], Path(sys.argv[1])))
    except KeyboardInterrupt:
        sys.exit(130)
