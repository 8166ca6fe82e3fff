"""Entry point of the command ``berth``.

Components run for years, one of them on every node: they do without what the other commands load, which takes 6 MiB.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""
UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What is wrong with a file that takes no more."""


def main() -> None:
    """Run ``berth``."""
    with ended_in_words():
        _berth()


def kubectl_main() -> None:
    """Run ``kubectl berth``."""
    with ended_in_words():
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
def ended_in_words() -> Iterator[None]:
    """End without a traceback at Ctrl-C, also while what the command needs is still being loaded, and at a full disk.

    Commands tell themselves that their answer cannot be written; help and versions are written by the libraries that
    read the options.
    """
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        # Of a file that was to be opened the error has the name.
        if error.filename is not None or error.errno not in UNWRITABLE | {errno.EPIPE}:
            raise
        if error.errno != errno.EPIPE:  # else a reader that has seen enough
            print(f"the answer cannot be written: {error.strerror}", file=sys.stderr)
        with suppress(OSError):
            sys.stdout.close()  # what is still buffered would be written once more at the end, and fail again
        sys.exit(1)


def _leave_out(package: str) -> None:
    """Have structlog loaded without a package that it loads where it is there, and uses for what Berth logs nowhere."""
    modules: dict[str, Any] = sys.modules
    modules[package] = None
    import_module("structlog")
    del modules[package]
