"""Where the acts of bench/soak put their objects in tests of what these are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from berth.kube.objects import ObjectMeta
from berth.kube.resources import Resource


class Stored:
    """An API server that takes everything."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.writes = 0

    async def create(self, resource: Resource[Any], body: dict[str, Any], *, namespace: str = "") -> None:
        metadata = {**body["metadata"], "namespace": namespace}
        self.objects[resource.plural, body["metadata"]["name"]] = {**body, "metadata": metadata}

    async def merge_patch(self, resource: Resource[Any], name: str, body: dict[str, Any], **_: Any) -> None:
        known = self.objects[resource.plural, name]
        self.objects[resource.plural, name] = {
            **known,
            **{part: {**known.get(part, {}), **fields} for part, fields in body.items()},
        }
        self.writes += 1

    async def apply(
        self, resource: Resource[Any], name: str, body: dict[str, Any], *, subresource: str, **_: Any
    ) -> None:
        self.objects[resource.plural, name][subresource] = body[subresource]
        self.writes += 1

    async def list_all(self, resource: Resource[Any], **_: Any) -> list[Any]:
        names = [name for plural, name in self.objects if plural == resource.plural]
        return [SimpleNamespace(metadata=ObjectMeta(name=name)) for name in names]

    async def delete(self, resource: Resource[Any], name: str, **_: Any) -> None:
        del self.objects[resource.plural, name]
