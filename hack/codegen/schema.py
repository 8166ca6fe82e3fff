"""Structural schemas: a pydantic model's JSON schema in the form the API server requires.

A structural schema (Kubernetes documentation, "Specifying a structural schema") has no ``$ref``,
no ``title``, no null types and states a type everywhere; this module turns pydantic's output into
one and keeps descriptions, bounds, formats and ``x-kubernetes-*`` keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel

_DROPPED: Final = frozenset({"title", "$defs", "default"})
_KEY_ORDER: Final = (
    "description",
    "type",
    "format",
    "anyOf",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "required",
    "properties",
    "items",
)


class SchemaError(ValueError):
    """A model has a shape that a structural schema cannot express; the message names the field."""


def structural_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the structural schema of ``model``.

    Defaults of the models are left out on purpose: a default in a CRD would be written into
    stored objects, where "unset" must stay visible.

    Raises:
        SchemaError: the model uses a construct without structural equivalent (a real union, a
            recursive type), or a field without description.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, definitions=schema.get("$defs", {}), path=model.__name__, above=())


def _convert(node: dict[str, Any], *, definitions: dict[str, Any], path: str, above: tuple[str, ...]) -> dict[str, Any]:
    node = dict(node)
    if "$ref" in node:
        name = str(node.pop("$ref")).rpartition("/")[2]
        if name in above:
            raise SchemaError(f"{path}: {name} contains itself; a structural schema cannot be recursive")
        # What the field says about itself (its description) wins over what its type says.
        return _convert({**definitions[name], **node}, definitions=definitions, path=path, above=(*above, name))
    node = _without_null(node, path=path)
    if "$ref" in node:
        return _convert(node, definitions=definitions, path=path, above=above)
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if "properties" in node:
        result["properties"] = {
            key: _described(
                _convert(value, definitions=definitions, path=f"{path}.{key}", above=above), path=f"{path}.{key}"
            )
            for key, value in node["properties"].items()
        }
    if "items" in node:
        result["items"] = _convert(node["items"], definitions=definitions, path=f"{path}[]", above=above)
    if isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = _convert(
            node["additionalProperties"], definitions=definitions, path=f"{path}{{}}", above=above
        )
    if "description" in result:
        result["description"] = " ".join(str(result["description"]).split())
    if "type" not in result and "x-kubernetes-int-or-string" not in result:
        raise SchemaError(f"{path}: the schema states no type")
    return _ordered(result)


def _without_null(node: dict[str, Any], *, path: str) -> dict[str, Any]:
    """Turn ``X | None`` into ``X``: for the API server, null and absent are the same."""
    if "anyOf" not in node or "x-kubernetes-int-or-string" in node:
        return node
    branches = [item for item in node["anyOf"] if item.get("type") != "null"]
    if len(branches) != 1:
        raise SchemaError(f"{path}: a union of types has no structural schema; choose one type")
    return {**branches[0], **{key: value for key, value in node.items() if key != "anyOf"}}


def _described(schema: dict[str, Any], *, path: str) -> dict[str, Any]:
    if not schema.get("description"):
        raise SchemaError(f"{path}: the field has no description; kubectl explain would be silent about it")
    return schema


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    known = {key: schema[key] for key in _KEY_ORDER if key in schema}
    return known | {key: schema[key] for key in sorted(schema) if key not in known}
