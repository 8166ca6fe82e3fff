"""Where the local cluster keeps things: tools in a cache, instances in a state directory, neither in the work tree."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hack.localcluster.errors import ClusterError

REPOSITORY = Path(__file__).resolve().parents[2]
"""Root of the work tree."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")


def _base(variable: str, fallback: str) -> Path:
    value = os.environ.get(variable)
    return Path(value) if value else Path.home() / fallback


def tools_cache() -> Path:
    """Directory under which every built version of the tools has a directory of its own."""
    return _base("XDG_CACHE_HOME", ".cache") / "berth" / "tools"


def clusters_root() -> Path:
    """Directory of all instances; ``BERTH_CLUSTERS_DIR`` overrides it."""
    override = os.environ.get("BERTH_CLUSTERS_DIR")
    return Path(override) if override else _base("XDG_STATE_HOME", ".local/state") / "berth" / "clusters"


def check_name(name: str) -> str:
    """Return *name* if it can name an instance.

    Raises:
        ClusterError: not a DNS label of at most 42 characters.
    """
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"cluster name {name!r} is not usable: use at most 42 lower-case letters, digits and '-', "
            "starting and ending with a letter or digit"
        )
    return name
