"""Tables and plots from stored results; placeholder text is never written, missing results are left out."""

from __future__ import annotations

from pathlib import Path


def write_report(results: Path) -> None:
    """Write docs/benchmarks/phare.md and its plots."""
