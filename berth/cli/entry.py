"""Entry point of the command ``berth``.

Components run for years, one of them on every node: they do without what the other commands load, which takes 6 MiB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def main() -> None:
    """Run ``berth``."""
    with _until_interrupted():
        _berth()


def kubectl_main() -> None:
    """Run ``kubectl berth``."""
    with _until_interrupted():
        from berth.cli.main import kubectl_main as command

        command()


def _berth() -> None:
    if sys.argv[1:2] == ["run"]:
        _leave_out("rich")
        from berth.cli.run import main as run

        sys.exit(run(sys.argv[2:]))
    from berth.cli.main import main as command

    command()


@contextmanager
def _until_interrupted() -> Iterator[None]:
    """End without a traceback at Ctrl-C, also while what the command needs is still being loaded."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _leave_out(package: str) -> None:
    """Have structlog loaded without a package that it loads where it is there, and uses for what Berth logs nowhere."""
    modules: dict[str, Any] = sys.modules
    modules[package] = None
    import_module("structlog")
    del modules[package]
