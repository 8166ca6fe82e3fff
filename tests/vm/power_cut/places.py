"""What both boots know."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DIRECTORY: Final = Path("/disk/power-cut")
"""Where the journal is, on a disk that survives."""
CGROUP: Final = "node"
"""Where the containers' cgroups are."""
