"""How long to wait before another attempt."""

from __future__ import annotations

from typing import Final

from berth.kube.errors import ApiError
from berth.kube.jitter import jitter

PAUSE_SECONDS: Final = 10.0
"""Longest wait before another attempt to follow something."""


def backoff(attempt: int, *, base: float = 0.2, cap: float = 10.0) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): exponential with full jitter, at least a tenth."""
    return jitter(0.1, 1.0) * min(cap, base * 2.0 ** min(attempt, 16))


def wait_after(error: Exception, attempt: int, *, cap: float = PAUSE_SECONDS) -> float:
    """Seconds to wait after an attempt that failed: as :func:`backoff`, and no less than the server asks for."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    return max(backoff(attempt, base=0.1, cap=cap), asked or 0.0)
