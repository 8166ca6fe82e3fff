"""What the tests of berth.kube share: clients of a cluster, and things that happen to API servers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from enum import Enum
from typing import Any, TypeVar

from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.meta import object_key
from berth.kube.reflector import Reflector
from hack.localcluster import LocalCluster

T = TypeVar("T")


class ChangeType(Enum):
    """What a watch's handler is told, in one word."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"

    @classmethod
    def of(cls, old: Any, new: Any) -> ChangeType:
        """The word for a pair of objects, before and after."""
        if old is None:
            return cls.ADDED
        return cls.DELETED if new is None else cls.MODIFIED

    def sides(self, item: T) -> tuple[T | None, T | None]:
        """An object as a handler gets it: before and after."""
        return (None if self is ChangeType.ADDED else item, None if self is ChangeType.DELETED else item)


Seen = list[tuple[ChangeType, str]]


@contextlib.asynccontextmanager
async def client_of(cluster: LocalCluster, **arguments: Any) -> AsyncIterator[ApiClient]:
    """An open client of the cluster's administrator."""
    connection = await load_connection(kubeconfig=str(cluster.kubeconfig))
    async with ApiClient(connection, **arguments) as client:
        yield client


@contextlib.asynccontextmanager
async def running(*coroutines: Coroutine[Any, Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Tasks that are cancelled at the end of the block; one that has failed by then fails the test."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


def followed(reflector: Reflector[Any]) -> Seen:
    """Everything that the reflector's handlers are told."""
    seen: Seen = []

    def note(old: Any, new: Any) -> None:
        seen.append((ChangeType.of(old, new), object_key((new or old).metadata)))

    reflector.add_handler(note)
    return seen


async def until(condition: Callable[[], bool], *, what: str, seconds: float = 60.0) -> None:
    """Let the event loop run until the condition holds; AssertionError after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:.0f} s: {what}") from None


@contextlib.contextmanager
def paused(cluster: LocalCluster, component: str = "kube-apiserver") -> Iterator[None]:
    """The component stands still in the block: its connections stay open and say nothing."""
    pid = cluster.process(component).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Manifest of a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
