"""JSON of the API server as structs; a field that is null counts as absent, as it does for Go.

Go writes null for a list or map that was never made: ``spec.drivers`` of the CSINode of a node without CSI drivers, for
one. msgspec takes no null where a list is expected, so what it refuses is read again with such fields left out; objects
without them cost nothing extra.

The API server stores values that are nested 10,000 deep, in the managedFields of any object for one, and
whether a decoder of Python reads that is up to its version. An object that is not read is read again without what is so
deep, which nothing of Berth looks at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")

MAX_DEPTH: Final = 100
"""Lists and maps inside each other that are read of an object that is nested too deeply."""
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def shallow(data: bytes, depth: int = MAX_DEPTH) -> bytes:
    """JSON with null for each list and map that is nested deeper; what is no JSON comes out as something alike."""
    parts: list[bytes] = []
    level = begin = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        if token[0] in (b"[", b"{"):
            level += 1
            if level == depth + 1:
                parts += data[begin : token.start()], b"null"
        elif token[0] in (b"]", b"}"):
            if level == depth + 1:
                begin = token.end()
            level -= 1
    return b"".join((*parts, data[begin:] if level <= depth else b""))


def at_any_depth(decode: Callable[[Any], T], data: bytes | msgspec.Raw) -> T:
    """Decode JSON; what is nested too deeply for that is decoded as :func:`shallow` has it."""
    try:
        return decode(data)
    except RecursionError:
        return decode(shallow(bytes(data)))


class ObjectDecoder(Generic[T]):
    """Decodes objects of one type."""

    def __init__(self, kind: type[T]) -> None:
        """Prepare for objects of a msgspec struct, or dicts."""
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        """Read one object.

        Raises:
            msgspec.DecodeError: it is no JSON, or a field has a wrong type.
        """
        return at_any_depth(self._decode, data)

    def _decode(self, data: bytes | msgspec.Raw) -> T:
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            return self._decoder.decode(msgspec.json.encode(without_null_fields(msgspec.json.decode(data), self._kind)))


def without_nulls(value: Any) -> Any:
    """The same value without map entries that are null: the API server reads them as absent; parts without any stay."""
    if isinstance(value, dict):
        kept = {key: without_nulls(item) for key, item in value.items() if item is not None}
        same = len(kept) == len(value) and all(kept[key] is item for key, item in value.items())
        return value if same else kept
    if isinstance(value, list):
        items = [without_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def without_null_fields(value: Any, kind: type) -> Any:
    """JSON as Python values, without the fields of structs that are null; entries of maps and lists stay."""
    return _without(value, _type_info(kind))


@cache
def _type_info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _without(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.UnionType):
        return next((_without(value, one) for one in kind.types if _fits(value, one)), value)
    if not _fits(value, kind):
        return value
    if isinstance(kind, inspect.StructType):
        fields = {field.encode_name: field.type for field in kind.fields}
        return {
            name: _without(item, fields[name]) if name in fields else item
            for name, item in value.items()
            if item is not None or name not in fields
        }
    if isinstance(kind, inspect.ListType):
        return [_without(item, kind.item_type) for item in value]
    if isinstance(kind, inspect.DictType):
        return {name: _without(item, kind.value_type) for name, item in value.items()}
    return value


def _fits(value: Any, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.StructType | inspect.DictType):
        return isinstance(value, dict)
    return isinstance(kind, inspect.ListType) and isinstance(value, list)
