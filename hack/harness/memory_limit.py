"""A memory limit for processes that are started here, as that of a container."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from hack.harness.cluster import eventually

ROOT = Path("/sys/fs/cgroup")


@contextmanager
def limited(limit: int) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A limit of so many bytes for processes that are started within what it yields.

    Raises:
        OSError: no cgroup can be made here.
    """
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    first = next(((ROOT / "memory", path) for _, names, path in lines if "memory" in names.split(",")), None)
    directory, path = first or next((ROOT, path) for _, names, path in lines if not names)
    here = directory / path.lstrip("/")
    made = here / f"berth-test-{os.getpid()}"
    made.mkdir()
    (made / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))

    @contextmanager
    def entered() -> Iterator[None]:
        (made / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (here / "cgroup.procs").write_text(str(os.getpid()))

    try:
        yield entered
    finally:
        eventually(lambda: not (made / "cgroup.procs").read_text(), what="an empty cgroup")
        made.rmdir()
