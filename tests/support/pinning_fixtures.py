"""Fixtures of tests that pin the containers of a real runtime; import them, and say so in ``__all__``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hack.harness.cluster import Kubectl
from tests.support.containerd import containerd
from tests.support.pinning_stand import Stand, stand
from tests.support.running_runtime import RunningRuntime


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRuntime]:
    """A containerd, the same for all tests of a file."""
    with containerd(tmp_path_factory.mktemp("a")) as running:
        yield running


@pytest.fixture
async def node(kubectl: Kubectl, daemon: RunningRuntime, tmp_path: Path) -> AsyncIterator[Stand]:
    """A node of that runtime; what a test has left on it is ended."""
    with stand(kubectl, daemon, tmp_path) as made:
        yield made
    for uid in list(daemon.sandboxes):
        await daemon.end(uid)
