"""How many files, sockets among them, a process may have open."""

from __future__ import annotations

import contextlib
import resource
import sys


def most_files() -> int:
    """Return how many may be open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if most == resource.RLIM_INFINITY else most


def allow_most_files() -> None:
    """Have as many as may be had: shells and container runtimes mostly let a process begin with 1024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
