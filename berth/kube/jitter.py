"""How what many would do at one time is spread."""

from __future__ import annotations

import random
from typing import Final

_CHANCE: Final = random.SystemRandom()


def jitter(least: float, most: float) -> float:
    """Return some number from `least` to `most`, each as likely: who began together goes on apart."""
    return _CHANCE.uniform(least, most)
