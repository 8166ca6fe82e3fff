"""What a component wants to know of a kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from berth.kube.client import ApiClient
from berth.kube.resources import Resource

if TYPE_CHECKING:  # it takes long to load, and not every process needs it
    import kopf

Register: TypeAlias = "Callable[[kopf.OperatorRegistry], None]"
"""Adds a component's handlers to the registry with kopf's decorators; called at every start of kopf."""


@dataclass(frozen=True, slots=True)
class Follower:
    """A component that follows a kind, for as long as the API server lets it."""

    kind: Resource[Any]
    client: ApiClient
    register: Register
    listed: Callable[[], None]
    lost: asyncio.Future[str]
    """in the main loop; done with the reason once the kind cannot be listed or watched any more"""

    def lose(self, problem: str) -> None:
        """End the following; the first reason counts."""
        if not self.lost.done():
            self.lost.set_result(problem)
