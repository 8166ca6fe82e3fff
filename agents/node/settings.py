"""What people may set of the node agent on the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field, ValidationInfo, field_validator

from agents.node.probing.prober import USER_RATE
from agents.node.probing.responder import DEFAULT_PORT
from agents.node.probing.rounds import paced_seconds
from agents.node.probing.sampling import DEFAULT_PEERS
from agents.node.throughput.receiver import DEFAULT_PORT as THROUGHPUT_PORT
from berth.api.probereport import MAX_BITS_PER_SECOND, MAX_INTERFACE, MAX_PEERS
from berth.api.quantity import parse_quantity
from berth.runtime.settings import ComponentSettings, NamespaceName

LONGEST_INTERVAL: Final = 60.0
"""Seconds from one round to the next at most: figures are those of the last 90."""


class NodeSettings(ComponentSettings):
    """Settings of the node agent."""

    leader_elected: ClassVar[bool] = False

    name: str | None = None
    """Name of the node that the agent runs on; unset: the host name."""
    service: str = "berth-node"
    """Headless Service of the agents, in whose EndpointSlices they find each other."""
    namespace: NamespaceName = "berth-system"
    """Namespace of that Service."""
    address: str = ""
    """Address that the responder listens on; empty: all of them."""
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535)
    """Port of the responder; 0 picks a free one."""
    peers: int = Field(default=DEFAULT_PEERS, ge=1, le=MAX_PEERS)
    """Nodes that are probed at most; the same on all nodes, since each works out what the others do."""
    interval: float = Field(default=5.0, ge=0.5, le=LONGEST_INTERVAL)
    """Seconds from one round of probes to the next, give or take a tenth."""
    rate: float = Field(default=20.0, ge=1.0, le=1000.0)
    """Probes a second at most, whatever the number of peers; a round, of five probes a peer, must fit into a minute."""
    latency_token_file: Path | None = None
    """File with the pod's token for the latency controller, of the audience latency.berth.dev; unset: it measures no
    round trips to users."""
    user_rate: float = Field(default=USER_RATE, ge=1.0, le=1000.0)
    """Probes a second to users at most."""
    interface: str = Field(default="", max_length=MAX_INTERFACE)
    """Network interface that leads to other nodes; empty: that of the default route."""
    bandwidth: str | None = None
    """Bit/s that its link carries, such as 10G; unset: what its driver says, which virtual ones do not."""
    throughput_megabytes: int = Field(default=0, ge=0, le=100_000)
    """Megabytes that it may send to each peer in an hour, and take from each, to measure throughput; 0: none."""
    throughput_port: int = Field(default=THROUGHPUT_PORT, ge=1, le=65535)
    """Port for that, the same on all nodes."""

    @field_validator("rate")
    @classmethod
    def _ends_a_round(cls, rate: float, info: ValidationInfo) -> float:
        peers = info.data.get("peers", DEFAULT_PEERS)
        least = paced_seconds(peers, 1.0) / LONGEST_INTERVAL
        if rate < least:
            seconds = paced_seconds(peers, rate)
            raise ValueError(
                f"a round with {peers} peers takes {seconds:.0f} s, more than {LONGEST_INTERVAL:g}; write "
                f"{math.ceil(10 * least) / 10:g} or more, or have fewer --node-peers"
            )
        return rate

    @field_validator("bandwidth")
    @classmethod
    def _is_an_amount(cls, bandwidth: str | None) -> str | None:
        if bandwidth is not None and not 1 <= parse_quantity(bandwidth) <= MAX_BITS_PER_SECOND:
            raise ValueError(f"write bit/s from 1 to {MAX_BITS_PER_SECOND:.0e}, such as 10G")
        return bandwidth
