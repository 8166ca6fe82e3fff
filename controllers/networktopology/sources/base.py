"""What every source of measurements gives: samples between nodes, their time, and what was wrong with them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import NamedTuple, Protocol


class Measurement(NamedTuple):
    """One sample of the network latency between two nodes, in one direction."""

    origin: str
    """node that sent"""
    destination: str
    """node that was reached"""
    milliseconds: int
    """latency, 0 or more"""


class SourceState(Enum):
    """Whether a source can be read."""

    NONE = "None"
    """no source is named"""
    PENDING = "Pending"
    """not read yet; nothing may be concluded from it"""
    FAILED = "Failed"
    """reading failed; nothing may be concluded from it"""
    MISSING = "Missing"
    """it does not exist"""
    EMPTY = "Empty"
    """it exists and has no usable sample"""
    READ = "Read"
    """it has samples"""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source says at one moment."""

    state: SourceState
    """whether it can be read"""
    name: str = ""
    """the source for people, e.g. ``ConfigMap default/netperf``"""
    measurements: tuple[Measurement, ...] = ()
    """usable samples, in a fixed order"""
    time: datetime | None = None
    """when the newest sample was published, None when the source does not say"""
    malformed: tuple[str, ...] = ()
    """one phrase per entry that could not be read: where, what was found"""
    unknown_nodes: tuple[str, ...] = ()
    """entries that name nodes which the cluster does not have"""
    detail: str = ""
    """why reading failed"""

    @property
    def settled(self) -> bool:
        """Whether conclusions may be drawn; False while the source is unread or unreadable."""
        return self.state not in (SourceState.PENDING, SourceState.FAILED)


class Source(Protocol):
    """A place where latencies between nodes are published."""

    def read(self, nodes: Collection[str]) -> Reading:
        """Return what the source says now; ``nodes`` are the names of the cluster's nodes. Does no I/O."""
