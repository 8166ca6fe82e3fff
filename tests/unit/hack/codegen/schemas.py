"""The schema of a kind's CustomResourceDefinition, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hack.codegen.crds import crd
from hack.codegen.kinds import KindSpec


def version(kind: KindSpec) -> dict[str, Any]:
    """The one version of a kind."""
    only: dict[str, Any]
    [only] = crd(kind)["spec"]["versions"]
    return only


def schema_nodes(kind: KindSpec) -> dict[str, dict[str, Any]]:
    """Every node of a kind's schema by its path, such as ``.spec.workloads[]``."""
    return dict(_nodes(version(kind)["schema"]["openAPIV3Schema"], ""))


def _nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from _nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]")
