"""Templates of objects: YAML with the few actions of Go's text/template that scheduler_perf uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from bench.schedperf.operations import LeftOutError
from bench.schedperf.source import LOADER

Manifest = dict[str, Any]

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "Add": lambda *numbers: sum(numbers),
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Divide": lambda a, b: a / b,
}
_OPEN = ("labels", "annotations", "matchLabels", "nodeSelector", "capacity", "allocatable", "requests", "limits")
"""Fields whose keys are data."""


def fill(text: str, *, index: int, count: int) -> str:
    """Fill in a template.

    Args:
        text: the template.
        index: ``.Index``, the object's number from 0.
        count: ``.Count``, how many objects there are.

    Raises:
        LeftOutError: an action is not understood.
    """
    return _ACTION.sub(lambda match: _value(match[1].split(), index=index, count=count), text)


def _value(words: list[str], *, index: int, count: int) -> str:
    variables = {".Index": index, ".Count": count}
    if len(words) == 1 and words[0] in variables:
        return str(variables[words[0]])
    try:
        numbers = [float(variables.get(word, word)) for word in words[1:]]
        if words[0] == "Mod":
            return str(int(numbers[0]) % int(numbers[1]))
        found = re.fullmatch(r"(Add|Subtract|Multiply|Divide)(Int|Float)", words[0])
        if found is not None:
            result = _FUNCTIONS[found[1]](*numbers)
            return str(int(result)) if found[2] == "Int" else f"{result:g}"
    except (ValueError, IndexError, TypeError):
        pass
    raise LeftOutError(f"template action {{{{ {' '.join(words)} }}}} is not understood")


def objects(path: Path, *, count: int) -> list[Manifest]:
    """`count` objects of a template, which are one and the same where it does not depend on their number.

    Raises:
        LeftOutError: an action of the template is not understood.
    """
    text = path.read_text()
    if not _ACTION.search(text):
        return [_load(text)] * count
    return [_load(fill(text, index=index, count=count)) for index in range(count)]


def _load(text: str) -> Manifest:
    made: Manifest = _lowered(yaml.load(text, Loader=LOADER))
    return made


def _lowered(value: Any, *, data: bool = False) -> Any:
    """The fields' names as the API has them: Go reads them in any case, and some templates rely on it."""
    if isinstance(value, list):
        return [_lowered(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key if data else key[:1].lower() + key[1:]: _lowered(item, data=key in _OPEN) for key, item in value.items()
    }
