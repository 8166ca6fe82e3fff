"""Items of lists that a field manager owns, by ``metadata.managedFields``.

The API server keeps them, but whoever may write an object may state them, too. What cannot be read is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

_ITEM: Final = "k:"
"""What a field begins with that is an item of a list with keys; its keys follow as JSON."""


def owned_items(entry: Mapping[str, Any], *path: str, key: str) -> dict[str, Mapping[str, Any]]:
    """Return the items of a list that an entry of managedFields names, with the fields of each that are owned.

    Args:
        entry: one of managedFields.
        path: names of the fields that lead to the list, such as ``spec``, ``weights``.
        key: field by which its items are told apart; items in which it is no text are left out.
    """
    fields = _fields(entry.get("fieldsV1"))
    for name in path:
        fields = _fields(fields.get(f"f:{name}"))
    found: dict[str, Mapping[str, Any]] = {}
    for field, owned in fields.items():
        value = _value(field, key)
        if value is not None:
            found[value] = _fields(owned)
    return found


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _value(field: str, key: str) -> str | None:
    if not field.startswith(_ITEM):
        return None
    try:
        keys = msgspec.json.decode(field.removeprefix(_ITEM))
    except (msgspec.DecodeError, RecursionError):
        return None
    value = _fields(keys).get(key)
    return value if isinstance(value, str) else None
