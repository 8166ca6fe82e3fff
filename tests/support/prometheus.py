"""Answers of Prometheus's HTTP API in a line."""

from __future__ import annotations

import json
from typing import Any, Final

MOMENT: Final = 1_795_000_000.25
"""Seconds since the epoch at which all answers were given."""


def series(origin: str, destination: str, figure: str, *, time: float = MOMENT) -> dict[str, Any]:
    """Element of an instant vector; a label without a value is not there, as in Prometheus."""
    labels = {"origin": origin, "destination": destination}
    return {"metric": {name: value for name, value in labels.items() if value}, "value": [time, figure]}


def answer(*rows: Any, kind: str = "vector", result: Any = None, warnings: list[str] | None = None) -> bytes:
    """Answer to an instant query; ``result`` in place of the rows."""
    document: dict[str, Any] = {"status": "success", "data": {"resultType": kind, "result": result or list(rows)}}
    return json.dumps(document | ({"warnings": warnings} if warnings else {})).encode()
