"""What the tests of the placement controller share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def sockets_desk(tmp_path: Path) -> Desk:
    """One whose only profile asks for sockets."""
    config = tmp_path / "placement.yaml"
    config.write_text("profiles: [{interference: LeastSlowdown}]")
    return Desk(config)
