"""The status of a LatencyPolicy: all that the latency controller knows, so that another one goes on from it.

Times in it are whole seconds and round trips whole microseconds, as they are written; users are keyed hashes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from berth.api.base import ApiModel, Int32, Int64, Timestamp
from berth.api.conditions import Condition

MAX_NODES: Final = 256
"""Nodes that a status tells of at most."""
MAX_MOVES: Final = 64
"""Moves that a status tells of at most, and so the most in an hour."""
MAX_ASSOCIATIONS: Final = 1000
"""Users with a node of their own at most."""
MAX_PODS: Final = 32
"""Pods that are placed for users at most."""
MAX_MICROSECONDS: Final = 60_000_000
"""Greatest round trip that is stated; a request has failed long before."""
CONDITION_WORKING: Final = "Working"
"""Condition: whether the policy can be carried out."""
CONDITION_WITHIN_LIMITS: Final = "WithinLimits"
"""Condition: whether users have what the policy asks for."""
CONDITION_MOVING: Final = "Moving"
"""Condition: whether pods move, and what keeps them."""
MANAGER: Final = "berth-latency"
"""Field manager of the status."""
_MAX_NAME: Final = 253
MAX_HASH: Final = 64
"""Characters of a user's hash at most."""

Microseconds = Annotated[int, Field(ge=1, le=MAX_MICROSECONDS, json_schema_extra={"format": "int64"})]
"""A round trip in microseconds."""
Milliseconds = Annotated[int, Field(ge=1, le=60_000, json_schema_extra={"format": "int32"})]
"""A limit of latency in milliseconds."""


class NodeState(StrEnum):
    """What a node is to the users of a policy."""

    UNKNOWN = "Unknown"
    """not measured, or not often enough"""
    INVALID = "Invalid"
    """beyond the hard limit"""
    HARD_VALID = "HardValid"
    """within the hard limit alone"""
    SOFT_VALID = "SoftValid"
    """within both"""


class MeasurementSource(StrEnum):
    """Who measured a round trip."""

    METER = "Meter"
    """the latency meter beside a pod, of requests that it served"""
    PROBE = "Probe"
    """the node's agent, to the user's address"""
    ROUTER = "Router"
    """the router, of requests that it sent through the node"""


class NodeStatus(ApiModel):
    """What is known of a node."""

    node: str = Field(min_length=1, max_length=_MAX_NAME, description="Name of the node.")
    state: NodeState = Field(
        default=NodeState.UNKNOWN,
        description=(
            "Unknown: not measured. Invalid: beyond the hard limit. HardValid: within it. SoftValid: within both."
        ),
    )
    source: MeasurementSource | None = Field(
        default=None,
        description=(
            "Who measured. Meter: the latency meter, of requests served there. Probe: the node's agent. Router: the "
            "router, of requests sent through the node. Unset: nobody, or all of them where each user counts."
        ),
    )
    p50_microseconds: Microseconds | None = Field(default=None, description="Median of the round trips.")
    p90_microseconds: Microseconds | None = Field(default=None, description="90th percentile of the round trips.")
    samples: Int32 = Field(default=0, ge=0, description="Round trips behind these; where each user counts, users.")
    time: Timestamp | None = Field(default=None, description="When the last of them was measured.")
    rejections: Int32 = Field(default=0, ge=0, description="How often a move there did not give what it promised.")
    rejected_until: Timestamp | None = Field(default=None, description="Until when no pod moves there because of that.")


class Outcome(StrEnum):
    """How far a move is, or how it ended."""

    CREATING = "Creating"
    """the new pod is awaited"""
    TRYING = "Trying"
    """the new pod is ready, and it is awaited how far its node is, which nobody knew"""
    EVICTING = "Evicting"
    """the new pod is ready, and the old one has to go"""
    MOVED = "Moved"
    """the old pod is gone; what it gained is not measured yet"""
    CONFIRMED = "Confirmed"
    """it gained what it promised"""
    DISAPPOINTED = "Disappointed"
    """it did not; the node is remembered"""
    CANCELLED = "Cancelled"
    """given up before anything was evicted"""


class Move(ApiModel):
    """A pod that goes to another node."""

    pod: str = Field(min_length=1, max_length=_MAX_NAME, description="Pod that is replaced.")
    source_node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node that it leaves.")
    target_node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node of the pod that replaces it.")
    new_pod: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_NAME,
        description="Pod that replaces it. Unset: none has come to that node yet.",
    )
    reason: str = Field(min_length=1, max_length=64, description="Why, as one word in CamelCase.")
    outcome: Outcome = Field(
        description=(
            "How far it is: Creating, Trying, Evicting, Moved; or how it ended: Confirmed, Disappointed, Cancelled."
        )
    )
    start_time: Timestamp = Field(description="When the new pod was asked for.")
    ready_time: Timestamp | None = Field(default=None, description="When the new pod was ready.")
    before_microseconds: Microseconds | None = Field(default=None, description="Median on the old node when it began.")
    expected_microseconds: Microseconds | None = Field(
        default=None, description="Median expected on the new node. Unset: it was not known."
    )
    users: Int32 | None = Field(
        default=None,
        ge=0,
        description="Users whom the new pod is for, where each user counts. Unset: all count as one.",
    )
    after_microseconds: Microseconds | None = Field(
        default=None, description="Median on the new node afterwards. Unset: not measured yet."
    )
    refused: bool | None = Field(
        default=None,
        description="Whether it was given up because no pod may be created, as by a quota; then it counts as no move. "
        "Unset: it was not.",
    )


class Association(ApiModel):
    """A user and the node that serves it."""

    user: str = Field(min_length=1, max_length=MAX_HASH, description="Keyed hash of the user's identity.")
    node: str = Field(min_length=1, max_length=_MAX_NAME, description="Node of the pod that serves the user.")
    last_seen_time: Timestamp = Field(description="When the user was last heard of.")


class Surge(ApiModel):
    """The number of replicas is being changed, or there is one more while a pod moves."""

    replicas: Int32 = Field(ge=0, description="Replicas that there should be.")
    previous: Int32 = Field(ge=0, description="Replicas before the last change.")
    wanted: Int32 = Field(ge=0, description="Replicas after it.")
    seen: bool = Field(
        default=False, description="Whether the change was seen: another number after it is somebody else's, and stays."
    )
    leaving: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_NAME,
        description="Pod that is evicted before there is one replica less. Unset: none is.",
    )
    deployment: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_NAME,
        description="UID of the Deployment; the number of another of its name is left alone. Unset: any counts.",
    )


class PublishedRule(StrEnum):
    """Which rule of the thesis decides."""

    MINIMUM = "Minimum"
    """all nodes are visited, and then the nearest is taken"""
    HARD = "Hard"
    """nodes beyond the hard limit are left"""
    HARD_AND_SOFT = "HardAndSoft"
    """and nodes beyond the soft one, as the soft condition lets it"""


class VisitedNode(ApiModel):
    """A node that pods went to in rounds of the published rules."""

    node: str = Field(min_length=1, max_length=_MAX_NAME, description="Name of the node.")
    visits: Int32 = Field(ge=0, description="How many pods went there since the search began.")
    left: bool = Field(default=False, description="Whether a pod has left it for its latency since.")


class Search(ApiModel):
    """What the rounds of the published rules remember."""

    rule: PublishedRule = Field(
        description=(
            "Rule that decides. Minimum: all nodes are visited, then the nearest is taken. Hard: nodes beyond the hard "
            "limit are left. HardAndSoft: and those beyond the soft one, while half of all nodes may be valid without."
        )
    )
    start_time: Timestamp = Field(description="When the search began.")
    round_time: Timestamp = Field(description="When the last round was, or the search began.")
    visited: tuple[VisitedNode, ...] = Field(
        default=(),
        max_length=MAX_NODES,
        description="Nodes that were visited.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node"]},
    )


class AnnotatedLimits(ApiModel):
    """Limits that the pods' annotations state."""

    hard_max_latency: Milliseconds | None = Field(default=None, description="Hard limit in milliseconds. Unset: none.")
    soft_max_latency: Milliseconds | None = Field(default=None, description="Soft limit in milliseconds. Unset: none.")


class LatencyPolicyStatus(ApiModel):
    """All that is known and was done."""

    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="Generation of the spec that it is about."
    )
    target: str | None = Field(
        default=None,
        min_length=1,
        max_length=_MAX_NAME,
        description="Name of the Deployment that it is about, of whose users it tells. Unset: that of the spec.",
    )
    annotated_limits: AnnotatedLimits | None = Field(
        default=None,
        description="Limits by the annotations of the workload's pods. Unset: those of the policy count, or none.",
    )
    nodes: tuple[NodeStatus, ...] = Field(
        default=(),
        max_length=MAX_NODES,
        description="What is known of nodes.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["node"]},
    )
    probed_time: Timestamp | None = Field(default=None, description="When agents were last asked to measure.")
    unreachable_time: Timestamp | None = Field(
        default=None,
        description="When agents last found that users do not answer them. Unset: they do, or nobody asked.",
    )
    moves: tuple[Move, ...] = Field(
        default=(),
        max_length=MAX_MOVES,
        description="The last moves, in the order in which they began.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    plan: tuple[Annotated[str, Field(max_length=_MAX_NAME, description="Name of a node.")], ...] = Field(
        default=(),
        max_length=MAX_PODS,
        description="Nodes that pods are on their way to, where each user counts.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    associations: tuple[Association, ...] = Field(
        default=(),
        max_length=MAX_ASSOCIATIONS,
        description="Users and the nodes that serve them.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["user"]},
    )
    surge: Surge | None = Field(
        default=None, description="The number of replicas is being changed, or is raised. Unset: it is left alone."
    )
    search: Search | None = Field(
        default=None, description="What the rounds of the published rules remember. Unset: they do not decide."
    )
    fewer_time: Timestamp | None = Field(
        default=None,
        description="Since when fewer pods would do, where their number follows the users. Unset: they would not.",
    )
    state: str | None = Field(
        default=None,
        max_length=_MAX_NAME,
        description="States of the nodes that pods are on, or where each user counts, of users; worst first.",
    )
    p50: str | None = Field(
        default=None,
        max_length=_MAX_NAME,
        description="Median round trip of the farthest of these nodes; where each user counts, of users.",
    )
    moves_last_hour: Int32 | None = Field(default=None, ge=0, description="Moves that began within the last hour.")
    conditions: tuple[Condition, ...] = Field(
        default=(),
        description="What is right and what is not.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
