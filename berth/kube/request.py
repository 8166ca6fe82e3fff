"""One request to the API server, and the media types of what it sends. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from berth.kube.http_answer import LARGEST_BODY
from berth.kube.resources import Resource

MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"
_NOT_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON has as they are, and YAML in a string does not: it refuses them, or reads line breaks."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, as often as it is sent."""

    method: str
    """of HTTP"""
    resource: Resource[Any]
    """kind that it is about, for the metrics"""
    path: str
    """on the server"""
    body: Any = None
    """what becomes JSON; None: nothing is sent"""
    content_type: str = JSON
    """media type of the body"""
    params: dict[str, str] | None = None
    """of the query"""
    largest: int = LARGEST_BODY
    """bytes of the answer at the most"""
    verb: str = ""
    """what the metrics call it; empty: as the method"""

    def encoded(self) -> bytes | None:
        """The body as JSON; of an apply as JSON that is the same in YAML, which the API server reads it as."""
        if self.body is None:
            return None
        data = msgspec.json.encode(self.body)
        if self.content_type != APPLY_PATCH:
            return data
        return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", data.decode()).encode()


def selection(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """The part of the query that selects objects of a collection."""
    return {name: text for name, text in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if text}
