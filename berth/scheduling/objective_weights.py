"""Weights of the objective: what counts how much for whoever chooses a node."""

from __future__ import annotations

from pydantic import Field

from berth.scheduling.configuration_model import ConfigurationModel


class ObjectiveWeights(ConfigurationModel):
    """Weights of costs in joint plans and of scores when a pod is placed alone. Higher counts more; 0 switches off."""

    network: float = Field(default=1.0, ge=0, description="Network cost of dependency edges (0 on one node).")
    price: float = Field(default=1.0, ge=0, description="Price of the requested resources.")
    bandwidth: float = Field(default=1.0, ge=0, description="Price of bandwidth between nodes.")
    waste: float = Field(default=0.5, ge=0, description="Room left over on a node that no known pod could use.")
    balance: float = Field(default=0.5, ge=0, description="Uneven use of a node's resources, where nodes have prices.")
    scores: float = Field(
        default=0.05,
        ge=0,
        description=(
            "Cost units that a score of 0 instead of 100 (resources left, balance) is worth when all replicas of a "
            "workload are placed alone by cost; of n replicas, each counts 1/n of that."
        ),
    )
    network_score: float = Field(
        default=5.0, ge=0, description="Weight of the network score (0 to 100) when a pod is placed alone by score."
    )
    price_score: float | None = Field(
        default=None,
        ge=0,
        description="Weight of the price score (0 to 100) when a pod is placed alone by score; unset: `price`.",
    )
    user_latency: float = Field(
        default=1.0,
        ge=0,
        description="Round trip to users, 1 for 0.1 ms, of pods that a LatencyPolicy is about.",
    )
    user_latency_score: float = Field(
        default=20.0,
        ge=0,
        description="Weight of the score of the same (0 to 100) when a pod is placed alone by score.",
    )
    interference: float = Field(
        default=10.0,
        ge=0,
        description=(
            "Cost of a slowdown that counts 1: its excess, 0.5 more above 1.1, another 2 above 1.2, summed over all "
            "pods of a socket. A pod that becomes 1.3 times slower costs 28."
        ),
    )
    interference_score: float = Field(
        default=5.0,
        ge=0,
        description="Weight of the interference score (0 to 100) when a pod is placed alone by score.",
    )
