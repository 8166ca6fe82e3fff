"""What a controller is to the process that runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from berth.kube.client import ApiClient
from berth.kube.connection import Connection
from berth.kube.events import EventRecorder
from berth.kube.reflector import Reflector
from berth.runtime.health import Checks


@dataclass(slots=True)
class ControllerContext:
    """Everything a controller gets from the process that runs it."""

    connection: Connection
    """credentials, for kopf"""
    client: ApiClient
    """open API client, shared"""
    recorder: EventRecorder
    """running event recorder of this controller"""
    checks: Checks
    """where to add health and readiness checks"""
    identity: str
    """unique name of this process"""
    options: dict[str, Any] = field(default_factory=dict)
    """command line options that belong to one controller, e.g. ``placement_config``"""
    standby: Callable[[], bool] = lambda: False
    """True while another process leads and this one waits"""

    def watch(self, name: str, reflector: Reflector[Any]) -> None:
        """Make health depend on the age of a reflector's watch and readiness on its first list.

        A process that waits for leadership is ready: a rolling update would otherwise wait for it while it waits
        for the old process to end.
        """

        def health() -> str | None:
            return None if reflector.healthy else f"no word from the API server for {reflector.age:.0f} s"

        def ready() -> str | None:
            return None if self.standby() or reflector.synced.is_set() else "first list not complete"

        self.checks.add_health(f"watch {name}", health)
        self.checks.add_ready(f"sync {name}", ready)


class Controller(Protocol):
    """One controller; entry points of the group ``berth.controllers`` name a class of this shape."""

    name: str
    """name on the command line and of the Lease (``berth-<name>``)"""

    def __init__(self, context: ControllerContext) -> None:
        """Prepare without talking to the API server.

        Raises:
            ValueError, OSError: an option is wrong or names an unreadable file; the text says which and what to do.
        """

    async def run(self) -> None:
        """Work until cancelled; clean up on the way out."""


async def run_together(*coroutines: Any) -> None:
    """Run until the first one fails, then cancel the rest; the failure is raised as it is."""
    tasks = [asyncio.ensure_future(c) for c in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
