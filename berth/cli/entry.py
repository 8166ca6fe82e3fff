"""Entry point of the command ``berth``.

Components run for years, one of them on every node: they do without what the other commands load, which takes 6 MiB.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Run ``berth``."""
    if sys.argv[1:2] == ["run"]:
        _leave_out("rich")
        from berth.cli.run import main as run

        sys.exit(run(sys.argv[2:]))
    from berth.cli.main import main as command

    command()


def _leave_out(package: str) -> None:
    """Have structlog loaded without a package that it loads where it is there, and uses for what Berth logs nowhere."""
    modules: dict[str, Any] = sys.modules
    modules[package] = None
    import_module("structlog")
    del modules[package]
