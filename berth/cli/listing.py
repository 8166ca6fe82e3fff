"""Reads a live cluster for commands: lists only, nothing is ever written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.kube.errors import ApiError
from berth.kube.resources import Resource

T = TypeVar("T")

USER_AGENT = "berth-cli"


async def list_cluster(
    resources: Iterable[Resource[Any]],
    *,
    optional: Iterable[Resource[Any]] = (),
    kubeconfig: str | None,
    context: str | None,
    progress: Callable[[str, int, int], None],
) -> tuple[dict[str, list[Any]], str]:
    """List every object of some kinds.

    A kind that the cluster does not have counts as one without objects.

    Args:
        resources: kinds.
        optional: more kinds; one that may not be listed counts as one without objects too.
        kubeconfig: file; None as ``berth run`` finds it.
        context: context of the kubeconfig.
        progress: told how many kinds have been read.

    Returns:
        Objects by kind, and the namespace of the context.

    Raises:
        ApiError, aiohttp.ClientError, OSError, ConnectionConfigError: the cluster cannot be read.
    """
    wanted = [*((each, False) for each in resources), *((each, True) for each in optional)]
    connection = await load_connection(kubeconfig=kubeconfig, context=context)
    found: dict[str, list[Any]] = {}
    async with ApiClient(connection, user_agent=USER_AGENT, retries=1) as client:
        lists = OptionalLists(client)
        for number, (resource, refusable) in enumerate(wanted):
            progress(f"listing {resource.plural}", number, len(wanted))
            found[resource.kind] = await (lists.read(resource) if refusable else list_or_nothing(client, resource))
    return found, connection.namespace


class OptionalLists:
    """Reads what an explanation can do without."""

    def __init__(self, client: ApiClient) -> None:
        """Prepare; the client is open."""
        self._client = client
        self.unread: list[str] = []
        """plural names of what may not be listed"""

    async def read(self, resource: Resource[T], **selection: Any) -> list[T]:
        """All objects of a kind; none of one that the cluster does not know, or that may not be listed.

        Args:
            resource: the kind.
            selection: which of them, as ``ApiClient.list_all`` takes it.
        """
        try:
            return await list_or_nothing(self._client, resource, **selection)
        except ApiError as error:
            if error.status != 403:
                raise
            if resource.plural not in self.unread:
                self.unread.append(resource.plural)
            return []


async def list_or_nothing(client: ApiClient, resource: Resource[T], **selection: Any) -> list[T]:
    """A whole collection, empty when the cluster does not know the kind."""
    try:
        return await client.list_all(resource, **selection)
    except ApiError as error:
        if error.not_found:
            return []
        raise
