"""Follows the ConfigMaps that NetworkTopologies name, each by a watch of its own, for as long as it is named.

A watch on all ConfigMaps of the cluster would bring everybody's configuration into this process; a watch on one
name needs no more rights and no more memory than that one object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime
from typing import NamedTuple

import msgspec

from berth.kube.client import TRANSPORT_ERRORS, ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import ObjectMeta
from berth.kube.reflector import Reflector
from berth.kube.resources import Resource
from controllers.networktopology.sources import configmap
from controllers.networktopology.sources.base import Reading, SourceState


class ManagedFields(msgspec.Struct, gc=False):
    """metav1.ManagedFieldsEntry, cut down to when a manager last wrote and which top-level fields it owns."""

    time: str | None = None
    fields: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict, name="fieldsV1")


class SourceMeta(ObjectMeta):
    """metav1.ObjectMeta with the times of the last writes."""

    managed_fields: list[ManagedFields] = msgspec.field(default_factory=list)


class SourceConfigMap(msgspec.Struct, gc=False):
    """corev1.ConfigMap with the times of its last writes."""

    metadata: SourceMeta = msgspec.field(default_factory=SourceMeta)
    data: dict[str, str] = {}

    @property
    def time(self) -> datetime | None:
        """When the data was last written, by whomever; writes of labels and annotations do not make it newer."""
        moments = [entry.time for entry in self.metadata.managed_fields if "f:data" in entry.fields]
        moments.append(self.metadata.creation_timestamp)
        return max((datetime.fromisoformat(moment) for moment in moments if moment), default=None)


SOURCE_CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap", SourceConfigMap)
"""ConfigMaps as sources of measurements."""


class ConfigMapRef(NamedTuple):
    """Name of one ConfigMap."""

    namespace: str
    """its namespace"""
    name: str
    """its name"""

    def __str__(self) -> str:
        """Return it as messages name it."""
        return f"ConfigMap {self.namespace}/{self.name}"


class ConfigMapSource:
    """One ConfigMap as a source of measurements."""

    def __init__(self, client: ApiClient, ref: ConfigMapRef, *, changed: Callable[[], None]) -> None:
        """Prepare.

        Args:
            client: open API client.
            ref: the ConfigMap.
            changed: called when its content changes, it comes or it goes, and once it is known to be absent.
        """
        self.ref = ref
        self._client = client
        self._changed = changed
        self._reflector: Reflector[SourceConfigMap] = Reflector(
            client, SOURCE_CONFIGMAPS, namespace=ref.namespace, field_selector=f"metadata.name={ref.name}"
        )
        self._reflector.add_handler(self._object_changed)
        self._content: SourceConfigMap | None = None

    async def run(self) -> None:
        """Follow for ever; ends only by cancellation."""
        synced = asyncio.create_task(self._announce())
        try:
            await self._reflector.run()
        finally:
            synced.cancel()

    def read(self, nodes: Collection[str]) -> Reading:
        """Return what the ConfigMap says now."""
        if not self._reflector.synced.is_set():
            return Reading(SourceState.PENDING, str(self.ref))
        if self._content is None:
            return Reading(SourceState.MISSING, str(self.ref))
        return configmap.parse(self._content.data, name=str(self.ref), nodes=nodes, time=self._content.time)

    async def why_pending(self) -> str:
        """Ask the API server for the ConfigMap itself and return what is wrong, empty when nothing is."""
        try:
            pages = self._client.list_pages(
                SOURCE_CONFIGMAPS, namespace=self.ref.namespace, field_selector=f"metadata.name={self.ref.name}"
            )
            async for _ in pages:
                pass
        except ApiError as error:
            if error.status == 403:
                return f"{error.message}; allow this account to list and watch ConfigMaps in {self.ref.namespace}"
            return str(error)
        except TRANSPORT_ERRORS as error:
            return f"API server not reached: {error!r}"
        return ""

    async def _announce(self) -> None:
        await self._reflector.synced.wait()
        self._changed()

    def _object_changed(self, old: SourceConfigMap | None, new: SourceConfigMap | None) -> None:
        self._content = new
        if new is None or old is None or new.data != old.data:
            self._changed()


class ConfigMapWatches:
    """The sources in use, shared by the NetworkTopologies that name the same ConfigMap."""

    def __init__(self, client: ApiClient, *, changed: Callable[[str], None]) -> None:
        """Prepare.

        Args:
            client: open API client whose connections are not limited, as every watch keeps one.
            changed: called with the key of every NetworkTopology whose source changed.
        """
        self._client = client
        self._changed = changed
        self._sources: dict[ConfigMapRef, ConfigMapSource] = {}
        self._tasks: dict[ConfigMapRef, asyncio.Task[None]] = {}
        self._named: dict[str, ConfigMapRef] = {}

    def __len__(self) -> int:
        """Return the number of ConfigMaps that are followed."""
        return len(self._sources)

    def follow(self, key: str, ref: ConfigMapRef | None) -> ConfigMapSource | None:
        """Note which ConfigMap the NetworkTopology ``key`` names (None for none or gone) and return its source."""
        before = self._named.pop(key, None)
        if ref is not None:
            self._named[key] = ref
        if before is not None and before != ref and before not in self._named.values():
            del self._sources[before]
            self._tasks.pop(before).cancel()
        if ref is None:
            return None
        if ref not in self._sources:
            self._sources[ref] = ConfigMapSource(self._client, ref, changed=lambda: self._tell(ref))
            self._tasks[ref] = asyncio.create_task(self._sources[ref].run())
        return self._sources[ref]

    async def close(self) -> None:
        """Stop following."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _tell(self, ref: ConfigMapRef) -> None:
        for key in [key for key, named in self._named.items() if named == ref]:
            self._changed(key)
