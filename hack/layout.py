"""``python -m hack.layout``: does the tree keep to the rules of its layout?

- No Python file has more than 400 lines.
- ``tests/unit`` mirrors the source: ``tests/unit/berth/kube/test_client.py`` and ``test_client_<aspect>.py`` test the
  module or package ``berth/kube/client``.
- A module with logic has such a test. This is a warning as long as some have none.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ("berth", "controllers", "agents", "hack", "bench")
UNIT: Final = "tests/unit"
MAX_LINES: Final = 400
"""Lines of a file at most."""
LOGIC: Final = 40
"""Lines of functions from which on a module needs a test of its own."""
TESTED_ELSEWHERE: Final[dict[str, str]] = {
    "bench": "bench",
    "hack/demo.py": "tests/e2e/test_readme.py",
    "hack/demo_latency.py": "tests/e2e/test_readme.py",
    "hack/demo_pinning.py": "tests/e2e/test_readme.py",
    "hack/harness": "tests/integration",
    "hack/localcluster": "tests/integration/test_local_cluster.py",
    "hack/vm": "tests/vm",
}
"""Modules, or directories of them, that need no unit test, and what shows instead that they work."""


def python_files(root: Path) -> list[Path]:
    """Python files of the tree, relative to `root`, in order."""
    return sorted(path.relative_to(root) for top in (*SOURCES, "tests") for path in (root / top).rglob("*.py"))


def too_long(root: Path, files: list[Path]) -> Iterator[str]:
    """Files with too many lines."""
    for path in files:
        lines = len((root / path).read_text(encoding="utf-8").splitlines())
        if lines > MAX_LINES:
            yield f"{path}: {lines} lines, at most {MAX_LINES}; split it"


def subject(test: Path, modules: set[Path]) -> Path | None:
    """What a unit test is about: the module or package with the longest name that the test's name begins with."""
    directory = test.relative_to(UNIT).parent
    words = test.stem.removeprefix("test_").split("_")
    for count in range(len(words), 0, -1):
        name = "_".join(words[:count])
        for found in (directory / name, directory / f"__{name}__"):
            if found in modules:
                return found
    return None


def without_subject(files: list[Path]) -> Iterator[str]:
    """Unit tests that no module of the source explains."""
    modules = _modules(files)
    for path in files:
        if _is_unit_test(path) and subject(path, modules) is None:
            home = path.relative_to(UNIT).parent
            yield f"{path}: no module in {home}/ has a name that this one begins with; move it to where its subject is"


def untested(root: Path, files: list[Path]) -> Iterator[str]:
    """Modules with logic that no unit test is about."""
    modules = _modules(files)
    tested = {subject(path, modules) for path in files if _is_unit_test(path)}
    for path in files:
        if path.parts[0] == "tests" or path.with_suffix("") in tested:
            continue
        if any(path.is_relative_to(exempt) for exempt in TESTED_ELSEWHERE):
            continue
        size = logic((root / path).read_text(encoding="utf-8"))
        if size >= LOGIC:
            yield f"{path}: {size} lines of logic without {UNIT}/{path.parent}/test_{path.stem.strip('_')}.py"


def logic(source: str) -> int:
    """Lines of the functions of a module, the nested ones counted once."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _modules(files: list[Path]) -> set[Path]:
    """Modules without their suffix, packages, and the directory of examples."""
    sources = [path for path in files if path.parts[0] != "tests"]
    return {path.with_suffix("") for path in sources} | {path.parent for path in sources} | {Path("examples")}


def _is_unit_test(path: Path) -> bool:
    return path.is_relative_to(UNIT) and path.name.startswith("test_")


def main(root: Path = ROOT) -> int:
    """Print what breaks the rules, and return the exit code."""
    files = python_files(root)
    problems = [*too_long(root, files), *without_subject(files)]
    print(*problems, *(f"warning: {text}" for text in untested(root, files)), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
