"""ProbeReport: what a node's agent has measured, ``berth.dev/v1alpha1``, cluster-scoped, named after its node."""

from typing import Final

from pydantic import Field

from berth.api import rules
from berth.api.base import ApiModel, ApiObject, Int64, Timestamp
from berth.api.labels import BERTH_GROUP

API_VERSION: Final = f"{BERTH_GROUP}/v1alpha1"
"""``apiVersion`` of every ProbeReport."""
KIND: Final = "ProbeReport"
"""``kind`` of every ProbeReport."""
PLURAL: Final = "probereports"
"""Resource name in API paths."""

MAX_PEERS: Final = 100
"""Peers of a report at most."""
MAX_MICROSECONDS: Final = 60_000_000
"""Greatest round trip that a report can state; a probe is lost long before."""
PER_MILLE: Final = 1000
"""Loss of a peer that answers nothing."""

MAX_NODE: Final = 253
"""Characters of a node's name."""
MAX_ZONE: Final = 63
"""Characters of a zone: it is the value of a label."""

MAX_INTERFACE: Final = 15
"""Characters of an interface's name: Linux takes no more."""
MAX_BITS_PER_SECOND: Final = 10**18
"""Greatest bandwidth that a report can state."""

_PERCENTILE: Final = "of the round trips, in microseconds. Unset: the peer answered nothing."


class PeerReport(ApiModel):
    """What was measured of one peer."""

    node: str = Field(min_length=1, max_length=MAX_NODE, description="Name of the peer's node.")
    zone: str = Field(
        default="", max_length=MAX_ZONE, description="Zone of the peer's node; empty or unset: it has none."
    )
    method: str | None = Field(
        default=None,
        json_schema_extra={"enum": ["TCP", "ICMP"]},
        description=(
            "What the round trips were measured by. TCP: the kernel's round trip to the peer's responder. ICMP: echo, "
            "where the responder did not answer. Unset: the peer answered nothing."
        ),
    )
    p50_microseconds: Int64 | None = Field(default=None, ge=1, le=MAX_MICROSECONDS, description=f"Median {_PERCENTILE}")
    p90_microseconds: Int64 | None = Field(
        default=None, ge=1, le=MAX_MICROSECONDS, description=f"90th percentile {_PERCENTILE}"
    )
    p99_microseconds: Int64 | None = Field(
        default=None, ge=1, le=MAX_MICROSECONDS, description=f"99th percentile {_PERCENTILE}"
    )
    jitter_microseconds: Int64 | None = Field(
        default=None,
        ge=0,
        le=MAX_MICROSECONDS,
        description="Mean absolute difference of consecutive round trips, in microseconds.",
    )
    loss_per_mille: Int64 = Field(ge=0, le=PER_MILLE, description="Probes without an answer, of a thousand sent.")
    samples: Int64 = Field(ge=0, description="Answered probes behind the percentiles.")
    throughput_bits_per_second: Int64 | None = Field(
        default=None,
        ge=1,
        le=MAX_BITS_PER_SECOND,
        description="What one TCP connection carried to the peer. Unset: it was not measured, as is usual.",
    )
    throughput_time: Timestamp | None = Field(default=None, description="When throughput was measured.")
    last_probe_time: Timestamp = Field(description="When the peer was last probed, whether it answered or not.")


class BandwidthReport(ApiModel):
    """The node's link, and how much of it was used over the last ten minutes, in bit/s of the busier direction."""

    interface: str = Field(min_length=1, max_length=MAX_INTERFACE, description="Network interface of the link.")
    capacity_bits_per_second: Int64 | None = Field(
        default=None,
        ge=1,
        le=MAX_BITS_PER_SECOND,
        description="What the link carries in each direction, by its driver or as configured. Unset: unknown.",
    )
    mean_bits_per_second: Int64 | None = Field(
        default=None, ge=0, le=MAX_BITS_PER_SECOND, description="Mean of the samples. Unset: there are none."
    )
    deviation_bits_per_second: Int64 | None = Field(
        default=None,
        ge=0,
        le=MAX_BITS_PER_SECOND,
        description="Standard deviation of the samples. Unset: there are none.",
    )
    samples: Int64 = Field(ge=0, description="Samples behind mean and deviation, one each ten seconds.")


class ProbeReportStatus(ApiModel):
    """What the agent has measured over the last minutes."""

    time: Timestamp | None = Field(
        default=None, description="When the report was written; one older than ten minutes has no agent any more."
    )
    zone: str = Field(default="", max_length=MAX_ZONE, description="Zone of the node; empty or unset: it has none.")
    peer_count: Int64 | None = Field(default=None, ge=0, description="Number of peers in the report.")
    nearest_zone: str | None = Field(
        default=None, max_length=128, description="Other zone with the least median of p90, and that, for kubectl get."
    )
    farthest_zone: str | None = Field(
        default=None,
        max_length=128,
        description="Other zone with the greatest median of p90, and that, for kubectl get.",
    )
    loss: str | None = Field(default=None, max_length=16, description="Mean loss of all peers, for kubectl get.")
    rounds_dropped: Int64 | None = Field(
        default=None, ge=0, description="Rounds since the agent started that the node was too busy to measure in."
    )
    bandwidth: BandwidthReport | None = Field(
        default=None, description="The node's link and how much of it is used. Unset: it was not found."
    )
    peers: tuple[PeerReport, ...] = Field(
        default=(),
        max_length=MAX_PEERS,
        description="Figures by peer.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node"]},
    )


class ProbeReport(ApiObject):
    """Round trips from one node to some others, as the node's agent measures them; named after the node."""

    api_version: str = Field(default=API_VERSION, description=rules.API_VERSION_DESCRIPTION)
    kind: str = Field(default=KIND, description=rules.KIND_DESCRIPTION)
    status: ProbeReportStatus = Field(
        default_factory=ProbeReportStatus, description="What the agent has measured over the last minutes."
    )
