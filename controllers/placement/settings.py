"""What people may set of the placement controller on the command line."""

from __future__ import annotations

from pydantic import FilePath

from berth.runtime.settings import ComponentSettings


class PlacementSettings(ComponentSettings):
    """Settings of the placement controller."""

    config: FilePath | None = None
    """Profiles of the schedulers (YAML); unset: built in."""
