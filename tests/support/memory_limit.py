"""A memory limit for processes that a test starts; the test is left out where there can be none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import pytest

from hack.harness import memory_limit


@contextmanager
def limited(limit: int) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """A limit of so many bytes for processes that are started within what it yields; needs to make a cgroup."""
    with ExitStack() as stack:
        try:
            entered = stack.enter_context(memory_limit.limited(limit))
        except OSError as error:
            pytest.skip(f"no cgroup can be made here: {error}")
        yield entered
