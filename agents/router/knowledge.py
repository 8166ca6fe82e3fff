"""What a router knows of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.api.latency_exchange import Instructions


@dataclass(slots=True)
class Knowledge:
    """What is known of users and pods; others keep it up to date."""

    key: bytes = b""
    """key of the users' hashes; empty: the controller has not been heard yet, and users are not known"""
    instructions: Instructions = field(default_factory=Instructions)
    """what the controller has said last"""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """node of each user that has one, by the user's hash"""
