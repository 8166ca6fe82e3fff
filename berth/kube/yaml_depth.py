"""YAML that is nested without end: the parser in C makes values as deep as a text says, until its stack is full and the
process is gone, after 60 KB of brackets.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

MAX_YAML_DEPTH: Final = 1000
"""Lists and maps inside each other; JSON is not read much deeper."""
_INLINE: Final = re.compile(r"[-?][ \t]+(?=[-?][ \t])")
"""A list that begins on the line of another one. Where each begins on a line of its own, indentation bounds them."""


def check_depth(text: str) -> None:
    """Refuse what is nested too deeply; nearly every text is seen to be flat at a glance.

    Raises:
        RecursionError: it is.
        yaml.YAMLError: it is no YAML.
    """
    opened = sum(text.count(bracket) for bracket in "[{") - text.count("[]") - text.count("{}")
    if opened <= MAX_YAML_DEPTH and sum(1 for _ in _INLINE.finditer(text)) <= MAX_YAML_DEPTH:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                raise RecursionError(f"nested in more than {MAX_YAML_DEPTH} lists and maps")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
