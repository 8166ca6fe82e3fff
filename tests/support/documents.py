"""Objects with every field of their kind, and with some of these replaced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import inspect

Path = tuple[str | int, ...]
"""Names and list positions that lead to a value."""
HOSTILE: list[Any] = [
    *(None, True, 0, -1, 1.5, 2**31, 2**63, 10**30, -(10**30), 1e308, float("nan"), float("inf")),
    *("", "-5", "1e400", "9" * 5000, "zone", "=", "\n", "2026-13-45"),
    *([], {}, [None], [[]], [{}], [""], {"": ""}, {"x": None}, {"a": {"b": []}}),
]
"""Values that stand in place of what belongs there."""
CONTAINERS = (inspect.ListType, inspect.DictType, inspect.StructType)


def full(kind: inspect.Type) -> Any:
    """A document of a type in which every list and map has an entry."""
    if isinstance(kind, inspect.UnionType):
        return full(next((one for one in kind.types if isinstance(one, CONTAINERS)), kind.types[0]))
    if isinstance(kind, inspect.StructType):
        return {field.encode_name: full(field.type) for field in kind.fields}
    if isinstance(kind, inspect.ListType):
        return [full(kind.item_type)]
    if isinstance(kind, inspect.DictType):
        return {"key": full(kind.value_type)}
    return {inspect.StrType: "1", inspect.IntType: 1, inspect.FloatType: 1.0, inspect.BoolType: True}.get(type(kind))


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Where all values inside a document are, itself first."""
    yield at
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in entries:
        yield from paths(item, (*at, name))


def replaced(value: Any, path: Path, other: Any) -> Any:
    """A copy with another value at a path."""
    if not path:
        return other
    copied: Any = list(value) if isinstance(value, list) else dict(value)
    copied[path[0]] = replaced(copied[path[0]], path[1:], other)
    return copied
