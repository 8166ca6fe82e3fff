"""How many files, sockets among them, a process may have open."""

from __future__ import annotations

import contextlib
import resource


def allow_most_files() -> None:
    """Have as many as may be had: shells and container runtimes mostly let a process begin with 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
