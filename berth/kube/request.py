"""One request to the API server, and the media types of what it sends. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from berth.kube.http_answer import LARGEST_BODY
from berth.kube.resources import Resource

MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
JSON: Final = "application/json"


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


def selection(label_selector: str | None, field_selector: str | None) -> dict[str, str]:
    """The part of the query that selects objects of a collection."""
    return {name: text for name, text in (("labelSelector", label_selector), ("fieldSelector", field_selector)) if text}
