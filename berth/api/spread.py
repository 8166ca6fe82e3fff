"""Which failure the replicas of an application must survive: a field of profiles and an annotation of AppGroups."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from berth.api.errors import FieldProblem
from berth.api.labels import ANNOTATION_SPREAD
from berth.api.text import shortened

MAX_SHOWN = 64
"""Bytes of a text that cannot be read that are repeated to people; an annotation may have 256 KiB."""


class SpreadLevel(StrEnum):
    """How far apart replicas of a workload are kept, as far as their number and the cluster allow it."""

    SOFT = "soft"
    """survive a node, and then a zone, where that costs no more than its price"""
    NONE = "none"
    """survive nothing"""
    NODE = "node"
    """survive the failure of any node at any cost, and of a zone where that costs no more than its price"""
    ZONE = "zone"
    """survive the failure of any node and of any zone at any cost"""


def read_spread(annotations: Mapping[str, str]) -> SpreadLevel | None:
    """Return what an AppGroup states; None where it states nothing, or nothing that could be read."""
    text = annotations.get(ANNOTATION_SPREAD, "")
    return SpreadLevel(text) if text in set(SpreadLevel) else None


def spread_problem(annotations: Mapping[str, str]) -> FieldProblem | None:
    """Return what is wrong with the annotation of an AppGroup; None when all is well."""
    text = annotations.get(ANNOTATION_SPREAD)
    if text is None or text in set(SpreadLevel):
        return None
    return FieldProblem(
        ("metadata", "annotations", ANNOTATION_SPREAD),
        f'"{shortened(text, MAX_SHOWN)}" is no such failure; the spread of the profile is used; '
        f"write one of {', '.join(SpreadLevel)}",
    )
