"""Every generated file: what it must say, and whether it does."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final

from hack.codegen import injection, placement_configuration, policies, running
from hack.codegen.crds import crd, manifest
from hack.codegen.kinds import KINDS
from hack.codegen.kinds_page import kinds_page

ROOT: Final = Path(__file__).resolve().parents[2]
"""Root of the source tree, where generated files go by default."""
RUNNING: Final = "docs/reference/running.md"
"""A page of which only a part is generated; the rest is what the tree has."""


def generated_files() -> dict[str, str]:
    """Text of every generated file, by its path below the root."""
    return {
        **{f"crds/{kind.group}_{kind.plural}.yaml": manifest(kind) for kind in KINDS},
        policies.PATH: policies.manifest(),
        injection.PATH: injection.manifest(),
        "docs/reference/kinds.md": kinds_page([(kind, crd(kind)) for kind in KINDS]),
        "docs/reference/placement-configuration.md": placement_configuration.page(),
        RUNNING: running.with_options((ROOT / RUNNING).read_text(encoding="utf-8")),
    }


def drift(root: Path) -> list[str]:
    """Lines of a unified diff from the files below `root` to what the models say; empty when equal.

    A manifest in ``crds/`` that belongs to no kind counts as drift: applied from there it would
    install a kind that nothing serves.
    """
    files = generated_files()
    lines: list[str] = []
    for name, wanted in files.items():
        path = root / name
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            found.splitlines(), wanted.splitlines(), fromfile=name, tofile=f"{name} (from the models)", lineterm=""
        )
    manifests = sorted(f"crds/{path.name}" for path in (root / "crds").glob("*.yaml"))
    return lines + [f"{name}: no model generates this file; delete it" for name in manifests if name not in files]


def write(root: Path) -> list[str]:
    """Write every generated file below `root` and return their paths."""
    files = generated_files()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
