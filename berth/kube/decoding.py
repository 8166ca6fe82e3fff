"""JSON of the API server as structs; a field that is null counts as absent, as it does for Go.

Go writes null for a list or map that was never made: ``spec.drivers`` of the CSINode of a node without CSI drivers, for
one. msgspec takes no null where a list is expected, so what it refuses is read again with such fields left out; objects
without them cost nothing extra.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")


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
        try:
            return self._decoder.decode(data)
        except msgspec.ValidationError:
            return msgspec.convert(without_null_fields(msgspec.json.decode(data), self._kind), self._kind)


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
