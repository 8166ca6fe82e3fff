"""What a component, a controller or an agent, is to the process that runs it; which ones are installed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Protocol

from berth.kube.client import ApiClient
from berth.kube.connection import Connection, load_connection
from berth.kube.events import EventRecorder
from berth.kube.reflector import Reflector
from berth.runtime.health import Checks
from berth.runtime.operator import Operator, why_refused
from berth.runtime.settings import ComponentSettings

ENTRY_POINT_GROUP = "berth.components"


@dataclass(slots=True)
class ComponentContext:
    """What a component gets from the process that runs it."""

    connection: Connection
    """credentials, for kopf"""
    client: ApiClient
    """open API client, shared"""
    recorder: EventRecorder
    """running event recorder of this component"""
    checks: Checks
    """where to add health and readiness checks"""
    identity: str
    """unique name of this process"""
    connect: Callable[[], Awaitable[Connection]] = load_connection
    """finds the API server as the command line says, for a component that does not need one to work; raises
    ConnectionConfigError"""
    standby: Callable[[], bool] = lambda: False
    """True while another process leads and this one waits"""
    operator: Operator = field(default_factory=Operator)
    """the process's kopf operator, shared"""

    def watch(self, name: str, reflector: Reflector[Any]) -> None:
        """Make health depend on the age of a reflector's watch, readiness on its first list and that it may go on.

        One that may not list tells so by readiness: without a copy, a process that is started again knows no more. With
        one that grows old it does better to begin anew.

        A process that waits for leadership is ready: a rolling update would otherwise wait for it while it waits
        for the old process to end.
        """

        def health() -> str | None:
            refused = reflector.refusal is not None and not reflector.synced.is_set()
            return None if reflector.healthy or refused else _silence(reflector)

        def ready() -> str | None:
            if self.standby():
                return None
            return _refusal(reflector) or (None if reflector.synced.is_set() else "first list not complete")

        self.checks.add_health(f"watch {name}", health)
        self.checks.add_ready(f"sync {name}", ready)

    def watch_without_restart(self, name: str, reflector: Reflector[Any]) -> None:
        """Make readiness alone depend on a reflector, of a component that works on with what it knows.

        One that is started again while the API server is away knows nothing. Where it is refused it is ready while what
        it knows is not old: a router that is not ready serves nobody.
        """

        def ready() -> str | None:
            if not reflector.synced.is_set():
                return _refusal(reflector) or "first list not complete"
            return None if reflector.healthy else _silence(reflector)

        self.checks.add_ready(f"watch {name}", ready)


def _refusal(reflector: Reflector[Any]) -> str | None:
    """Why a reflector may not list or watch, and what to do about it."""
    return None if reflector.refusal is None else why_refused(reflector.resource, reflector.refusal)


def _silence(reflector: Reflector[Any]) -> str:
    """What is wrong with one that is not healthy."""
    return _refusal(reflector) or f"no response from the API server for {reflector.age:.0f} s"


class Component(Protocol):
    """A controller or an agent; entry points of the group :data:`ENTRY_POINT_GROUP` name a class of this shape."""

    Settings: ClassVar[type[ComponentSettings]]
    """model of the component's own options"""

    def __init__(self, context: ComponentContext, settings: Any) -> None:
        """Prepare without talking to the API server.

        Args:
            context: what the process provides.
            settings: an instance of :attr:`Settings`.

        Raises:
            ValueError, OSError: a setting is wrong or names an unreadable file; the text says which and what to do.
        """

    async def run(self) -> None:
        """Work until cancelled; clean up on the way out."""


class UnknownComponentError(Exception):
    """A component was named that is not installed or cannot be imported; the text lists those that are."""


def available_components() -> dict[str, EntryPoint]:
    """Installed components: name on the command line and of the Lease (``berth-<name>``) to entry point."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}


def load_component(name: str) -> type[Component]:
    """Import a component.

    Raises:
        UnknownComponentError: it is not installed, or its module cannot be imported.
    """
    known = available_components()
    if name not in known:
        raise UnknownComponentError(f"unknown component {name!r}; choose from: {', '.join(sorted(known))}")
    try:
        component: type[Component] = known[name].load()
    except (ImportError, AttributeError) as error:
        raise UnknownComponentError(
            f"component {name!r} ({known[name].value}) cannot be imported: {error}; reinstall kube-berth"
        ) from error
    return component


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
