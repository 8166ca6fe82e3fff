"""Constants of a Python process that a test chooses: bounds and paces that are right in a cluster, and not in a test.

The process loads :data:`MODULE` as its ``sitecustomize`` module before anything else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

MODULE: Final = """
import importlib, json, os, sys
if sys.orig_argv[1:2] == ["-c"]:  # the controller, and not who starts it
    for name, value in json.loads(os.environ["CHOSEN_CONSTANTS"]).items():
        module, _, constant = name.rpartition(".")
        loaded = importlib.import_module(module)
        assert hasattr(loaded, constant), name
        setattr(loaded, constant, value)
"""
"""Gives constants of modules other values, before others import those modules."""

PATIENT: Final = {f"berth.scheduling.settling.{name}": 600.0 for name in ("SETTLE_SECONDS", "WEIGHTS_SECONDS")}
"""AppGroups wait for network data however long it takes."""


BRISK: Final = {
    "controllers.networktopology.write_pacing.WRITE_SECONDS": 2.0,
    "controllers.networktopology.write_pacing.WORDS_SECONDS": 2.0,
    "controllers.networktopology.nodes.LOOK_SECONDS": 1.0,
    "controllers.networktopology.sources.probereports.TELL_SECONDS": 1.0,
    "controllers.networktopology.sources.prometheus.POLL_SECONDS": 1.0,
}
"""NetworkTopologies follow what is measured within seconds. Unit tests have the pace itself, and tests from end to end
wait for it."""


def chosen_constants(directory: Path, **constants: float) -> dict[str, str]:
    """Return variables for a process whose constants have these values.

    Args:
        directory: where the module goes; this process's own.
        constants: value by full name, such as ``**{"berth.scheduling.settling.SETTLE_SECONDS": 60.0}``.
    """
    directory.mkdir(exist_ok=True)
    (directory / "sitecustomize.py").write_text(MODULE)
    return {"PYTHONPATH": str(directory), "CHOSEN_CONSTANTS": json.dumps(constants)}
