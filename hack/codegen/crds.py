"""CustomResourceDefinitions from the models, and the reference page beside them.

``python -m hack.codegen.crds`` writes ``crds/*.yaml`` and ``docs/reference/kinds.md``;
``--check`` writes nothing and exits with 1 and a diff when a file differs from the models.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from hack.codegen.kinds import KINDS, KindSpec
from hack.codegen.kinds_page import kinds_page
from hack.codegen.schema import structural_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
"""Root of the source tree, where generated files go by default."""
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
    return HEADER + yaml.dump(crd(kind), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def generated_files(kinds: Iterable[KindSpec] = KINDS) -> dict[str, str]:
    """Return every generated file as relative path -> text."""
    kinds = tuple(kinds)
    files = {f"crds/{kind.group}_{kind.plural}.yaml": manifest(kind) for kind in kinds}
    files["docs/reference/kinds.md"] = kinds_page([(kind, crd(kind)) for kind in kinds])
    return files


def drift(root: Path) -> list[str]:
    """Return the lines of a unified diff from the files below ``root`` to what the models say; empty when equal.

    A manifest in ``crds/`` that belongs to no kind counts as drift: applied from there it would
    install a kind that nothing serves.
    """
    files = generated_files()
    lines: list[str] = []
    stale = sorted(path for path in (root / "crds").glob("*.yaml") if f"crds/{path.name}" not in files)
    for name, wanted in files.items():
        path = root / name
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), fromfile=name, tofile=f"{name} (from the models)", lineterm=""
        )
    lines += [f"crds/{path.name}: no model generates this file; delete it" for path in stale]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the generated files and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.codegen.crds", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 with a diff if a file is not up to date"
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="directory that holds crds/ and docs/ (default: the source tree)"
    )
    options = parser.parse_args(arguments)
    if options.check:
        lines = drift(options.root)
        if lines:
            sys.stdout.write(
                "\n".join([*lines, "", "Generated files differ from the models: run `make manifests`.", ""])
            )
        return 1 if lines else 0
    for name, text in generated_files().items():
        path = options.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
