"""From a pydantic model to a structural schema: every construct that the kinds use, and those that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from berth.api.base import ApiModel, Int32, Int64, Timestamp
from berth.api.conditions import ConditionStatus
from berth.api.quantity import Quantity
from hack.codegen.schema import SchemaError, structural_schema


class Inner(ApiModel):
    """The inner type."""

    some_name: str = Field(description="Its name.")


class Outer(ApiModel):
    """A type with
    two lines."""

    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": [{"rule": "true", "message": "m"}]})

    small: Int32 = Field(ge=1, description="32 bits.")
    big: Int64 | None = Field(default=None, le=9, description="64 bits.")
    plain: Inner = Field(description="The field's own words.")
    maybe: Inner | None = Field(default=None, description="Perhaps one.")
    several: tuple[Inner, ...] = Field(
        default=(), max_length=3, description="Some.", json_schema_extra={"x-kubernetes-list-type": "atomic"}
    )
    by_name: dict[str, Inner] = Field(default_factory=dict, description="A map.")
    amount: Quantity | None = Field(default=None, description="How much.")
    moment: Timestamp | None = Field(default=None, description="When.")
    state: ConditionStatus = Field(description="Which.")


def field(name: str) -> Any:
    return structural_schema(Outer)["properties"][name]


INNER = {
    "type": "object",
    "required": ["someName"],
    "properties": {"someName": {"description": "Its name.", "type": "string"}},
}


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("small", {"description": "32 bits.", "type": "integer", "format": "int32", "minimum": 1}),
        ("big", {"description": "64 bits.", "type": "integer", "format": "int64", "maximum": 9}),
        ("plain", {"description": "The field's own words.", **INNER}),
        ("maybe", {"description": "Perhaps one.", **INNER}),
        (
            "several",
            {
                "description": "Some.",
                "type": "array",
                "maxItems": 3,
                "x-kubernetes-list-type": "atomic",
                "items": {"description": "The inner type.", **INNER},
            },
        ),
        (
            "byName",
            {
                "description": "A map.",
                "type": "object",
                "additionalProperties": {"description": "The inner type.", **INNER},
            },
        ),
        (
            "amount",
            {
                "description": "How much.",
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
            },
        ),
        ("moment", {"description": "When.", "type": "string", "format": "date-time"}),
        ("state", {"description": "Which.", "type": "string", "enum": ["True", "False", "Unknown"]}),
    ],
)
def test_field(name: str, schema: dict[str, Any]) -> None:
    assert field(name) == schema


def test_object_keeps_rules_and_requirements_and_has_its_description_in_one_line() -> None:
    schema = structural_schema(Outer)
    assert schema["description"] == "A type with two lines."
    assert schema["required"] == ["small", "plain", "state"]
    assert schema["x-kubernetes-validations"] == [{"rule": "true", "message": "m"}]
    assert not {"title", "$defs", "default"} & set(schema)


class Silent(ApiModel):
    """A type with a field without words."""

    inner: Inner = Field(description="Fine.")
    said: str


class Either(ApiModel):
    """A union."""

    value: int | str = Field(description="One or the other.")


class Tree(ApiModel):
    """A recursive type."""

    children: tuple[Tree, ...] = Field(description="Trees.")


class Anything(ApiModel):
    """An untyped field."""

    value: Any = Field(description="Whatever.")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Silent, r"Silent\.said: .*no description"),
        (Either, r"Either\.value: .*union"),
        (Tree, r"Tree\.children\[\].*contains itself"),
        (Anything, r"Anything\.value: .*no type"),
    ],
    ids=["no-description", "union", "recursion", "no-type"],
)
def test_what_a_structural_schema_cannot_say_is_refused_by_name(model: type[BaseModel], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        structural_schema(model)
