"""Lists whose items have a key of their own: the API server refuses two with the same, and a reader takes either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from berth.api.errors import FieldPath, FieldProblem, field_path


def repeated_keys(model: BaseModel, path: FieldPath = ()) -> Iterator[FieldProblem]:
    """Yield an item for each key that stands twice in a list of `model`, or of models inside, but for items of lists.

    Args:
        model: an object of a kind, or a part of one.
        path: where that part is.
    """
    for name, field in type(model).model_fields.items():
        value, here = getattr(model, name), (*path, field.alias or name)
        if isinstance(value, BaseModel):
            yield from repeated_keys(value, here)
            continue
        schema: Any = field.json_schema_extra
        keys = schema.get("x-kubernetes-list-map-keys", ()) if isinstance(schema, Mapping) else ()
        first: dict[tuple[Any, ...], int] = {}
        for place, item in enumerate(value if keys else ()):
            key = tuple(getattr(item, each) for each in keys)
            known = first.setdefault(key, place)
            if known != place:
                named = ", ".join(f"{each} {text}" for each, text in zip(keys, key, strict=True))
                text = f"{named} is stated by {field_path((*here, known))} as well; leave one of them out"
                yield FieldProblem((*here, place), text)
