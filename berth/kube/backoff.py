"""How long to wait before another attempt."""

from __future__ import annotations

import random


def backoff(attempt: int, *, base: float = 0.2, cap: float = 10.0) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): exponential with full jitter, at least a tenth."""
    top = min(cap, base * 2.0 ** min(attempt, 16))
    return top * (0.1 + 0.9 * random.random())  # noqa: S311 - jitter, not a secret
