"""Processes of pytest that run tests side by side."""

from __future__ import annotations

import os


def worker_number() -> int:
    """Which of them this is, from 0; whatever two of them must not share is told apart by it."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
