"""One request to the API server, and the media types of what it sends. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

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
    verb: str = ""
    """what the metrics call it; empty: as the method"""
