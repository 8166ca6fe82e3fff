"""Progress on standard error: a live line on a terminal, a line now and then otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

PLAIN_INTERVAL = 2.0
"""Seconds between lines where standard error is no terminal; what is quicker says nothing."""

Report = Callable[[str, int, int], None]
"""(what is done, how much of it, of how much; 0 when that is not known)."""


@contextmanager
def progress_on_stderr(*, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> Iterator[Report]:
    """Yield a function to report progress to; the live line is gone at the end."""
    console = Console(stderr=True, highlight=False)
    if quiet:
        yield lambda _what, _done, _total: None
        return
    if not console.is_terminal:
        yield _plain(console, clock)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as live:
        task = live.add_task("", total=None)

        def report(what: str, done: int, total: int) -> None:
            live.update(task, description=what, completed=done, total=total or None)

        yield report


def _plain(console: Console, clock: Callable[[], float]) -> Report:
    last = clock()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        now = clock()
        if now - last >= PLAIN_INTERVAL:
            last = now
            console.print(f"{what}: {done} of {total}" if total else f"{what}: {done}", soft_wrap=True)

    return report
