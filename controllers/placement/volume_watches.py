"""The watches on storage objects: they feed the cluster state's VolumeTable and say that something changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from berth.kube.client import ApiClient
from berth.kube.reflector import Handler, HasMetadata, Reflector, object_key
from berth.kube.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from berth.scheduling.cache.volumes import VolumeTable

T = TypeVar("T", bound=HasMetadata)


def volume_watches(client: ApiClient, table: VolumeTable, *, changed: Callable[[], None]) -> dict[str, Reflector[Any]]:
    """Make the watches that keep a VolumeTable equal to the API server's storage objects.

    Args:
        client: open API client.
        table: what to keep up to date.
        changed: called after each batch of changes.

    Returns:
        Reflectors by plural name, not running yet. All of them are required: without them a pod with a claim would
        be placed where its volume cannot be reached.
    """

    def watch(resource: Resource[T], put: Callable[[T], None], drop: Callable[[str], None]) -> Reflector[T]:
        reflector = Reflector(client, resource)
        reflector.add_handler(follow(put, drop))
        reflector.add_batch_handler(changed)
        return reflector

    watches: list[Reflector[Any]] = [
        watch(PERSISTENT_VOLUMES, table.upsert_volume, table.remove_volume),
        watch(PERSISTENT_VOLUME_CLAIMS, table.upsert_claim, table.remove_claim),
        watch(STORAGE_CLASSES, table.upsert_class, table.remove_class),
        watch(CSI_NODES, table.upsert_csi_node, table.remove_csi_node),
        watch(CSI_DRIVERS, table.upsert_driver, table.remove_driver),
        watch(CSI_STORAGE_CAPACITIES, table.upsert_capacity, table.remove_capacity),
        watch(VOLUME_ATTACHMENTS, table.upsert_attachment, table.remove_attachment),
    ]
    return {reflector.resource.plural: reflector for reflector in watches}


def follow(put: Callable[[T], None], drop: Callable[[str], None]) -> Handler[T]:
    """A watch handler: `put` with the object, or `drop` with its key (``namespace/name`` or name)."""

    def handle(old: T | None, new: T | None) -> None:
        if new is not None:
            put(new)
        elif old is not None:
            drop(object_key(old.metadata))

    return handle
