"""CustomResourceDefinitions from the models."""

from __future__ import annotations

from typing import Any, Final

import yaml

from berth.api.labels import BERTH_GROUP
from hack.codegen.kinds import KindSpec
from hack.codegen.schema import structural_schema

HEADER: Final = "# Generated from the models in berth/api by `make manifests`. Do not edit.\n"
"""First line of every generated manifest."""


class _Dumper(yaml.SafeDumper):
    """Block style, as people write manifests."""

    def ignore_aliases(self, *_: Any) -> bool:
        """Write equal parts out in full: aliases are legal YAML but unreadable in a manifest."""
        return True


def crd(kind: KindSpec) -> dict[str, Any]:
    """Return the CustomResourceDefinition of ``kind``."""
    schema = structural_schema(kind.model)
    # The API server validates metadata itself, and a spec that upstream lets be absent may be absent here.
    schema["properties"]["metadata"] = {"type": "object"}
    if kind.group != BERTH_GROUP:
        schema.pop("required", None)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular,
                "shortNames": list(kind.short_names),
                "categories": list(kind.categories),
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [column.to_api() for column in kind.columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def manifest(kind: KindSpec) -> str:
    """Return the text of the CRD file of ``kind``."""
    return yaml_text(crd(kind))


def yaml_text(*documents: dict[str, Any]) -> str:
    """Return objects as a generated manifest."""
    return HEADER + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
