"""Validation errors in words: which object, which field, what is wrong, what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pydantic import ValidationError

from berth.api.text import shortened

_REMEDIES: Final[dict[str, str]] = {
    "missing": "add the field",
    "enum": "use one of the names listed",
    "literal_error": "use one of the names listed",
    "int_type": "write a whole number without quotes",
    "int_parsing": "write a whole number without quotes",
    "int_from_float": "write a whole number",
    "string_type": "write a string; put it in quotes if it looks like a number or a boolean",
    "model_type": "write a map of fields",
    "dict_type": "write a map of fields",
    "tuple_type": "write a list",
    "list_type": "write a list",
    "too_long": "split the object or shorten the list",
    "string_too_long": "shorten it",
    "greater_than_equal": "raise the value to the minimum",
    "less_than_equal": "lower the value to the maximum",
}
_PROBLEMS: Final[dict[str, str]] = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "model_type": "must be a map of fields",
    "dict_type": "must be a map of fields",
}
"""Where pydantic speaks of Python types, the words of someone who writes YAML."""
_LONGEST_VALUE: Final = 60


FieldPath: TypeAlias = tuple[int | str, ...]
"""Names and list positions that lead to a field."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field."""

    path: FieldPath
    """names and list positions that lead to the field"""
    text: str
    """problem, value found and remedy, a sentence"""

    def __str__(self) -> str:
        """Return ``field: text``, the field as kubectl writes it."""
        return f"{field_path(self.path)}: {self.text}"


class InvalidFieldError(ValueError):
    """One field of an API object makes no sense; :attr:`problem` says which and why."""

    def __init__(self, path: FieldPath, text: str) -> None:
        """Blame the field at ``path``."""
        self.problem = FieldProblem(path, text)
        super().__init__(str(self.problem))


class InvalidObjectError(ValueError):
    """An API object does not fit its kind's model; :attr:`problems` has its bad fields."""

    def __init__(self, obj: Any, error: ValidationError) -> None:
        """Explain ``error``, which the validation of ``obj`` raised."""
        self.problems = explain_validation_error(error)
        name = object_name(obj)
        super().__init__("; ".join(f"{name}: {problem}" for problem in self.problems))


def object_name(obj: Any) -> str:
    """Return ``Kind namespace/name`` of a raw API object, with ``?`` for what it does not state."""
    if not isinstance(obj, Mapping):
        return "object ?"
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = str(metadata.get("name") or "?")
    namespace = metadata.get("namespace")
    return f"{obj.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"


def field_path(location: FieldPath) -> str:
    """Return a pydantic error location the way kubectl writes paths: ``spec.workloads[0].workload.name``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) or part == "*" else f".{part}"
    return path.removeprefix(".") or "(object)"


def explain_validation_error(error: ValidationError, *, described: str = "`kubectl explain`") -> list[FieldProblem]:
    """Return the bad fields, each with problem, value found and remedy; ``described``: where fields are described."""
    return [FieldProblem(item["loc"], _problem(item, described)) for item in error.errors(include_url=False)]


def _problem(item: Any, described: str) -> str:
    kind = str(item["type"])
    text = str(item["msg"])
    if kind == "value_error":
        return text.removeprefix("Value error, ")  # our own validators state the remedy themselves
    text = _PROBLEMS.get(kind, text[:1].lower() + text[1:])
    found = "" if kind == "missing" else f", found {shortened(repr(item['input']), _LONGEST_VALUE)}"
    remedy = _REMEDIES.get(kind) or f"correct the value; {described} describes the field"
    return f"{text}{found}; {remedy}"
